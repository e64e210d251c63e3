.PHONY: format lint test check
format:
	ruff format .
	ruff check --fix .
lint:
	ruff format --check .
	ruff check .
	mypy
	lint-imports
test:
	pytest
check: lint test
