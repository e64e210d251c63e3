.PHONY: format lint test check docs
format:
	ruff format .
	ruff check --fix .

lint:
	bash .ci/lint

test:
	pytest

check: lint test

docs:
	python docs/api.py build/api
