.PHONY: format lint wheel test check
format:
	ruff format .
	ruff check --fix .

# prompts/ and tools/ become quantext_graph.prompts and .tools in the wheel: types and imports are
# checked there, where the names are real.
wheel:
	rm -rf build
	python -m build --wheel --no-isolation --outdir build/lint . >/dev/null
	python -m zipfile -e build/lint/*.whl build/lint/unpacked

lint: wheel
	ruff format --check .
	ruff check .
	cd build/lint/unpacked && mypy --config-file ../../../pyproject.toml
	cd build/lint/unpacked && lint-imports ../../../pyproject.toml

test:
	pytest

check: lint test
