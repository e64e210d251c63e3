.PHONY: format lint test check
format:
	ruff format .
	ruff check --fix .

lint:
	bash .ci/lint

test:
	pytest

check: lint test
