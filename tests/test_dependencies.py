"""What the package imports is what pyproject.toml declares: no library comes along by another's grace."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOLDERS = ("quantext_graph", "prompts", "tools")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", name)[0]).lower()


def declared() -> set[str]:
    extras = {key: names for key, names in PROJECT["optional-dependencies"].items() if key != "dev"}
    return {canonical(name) for names in (PROJECT["dependencies"], *extras.values()) for name in names}


def imported() -> Iterator[tuple[str, str]]:
    """Each module imported from elsewhere, with where."""
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            else:
                continue
            for name in names:
                top = name.partition(".")[0]
                if top not in sys.stdlib_module_names and top != "quantext_graph":
                    yield top, f"{path.relative_to(ROOT)}:{node.lineno}"


@cache
def owners(top: str) -> list[str]:
    """Distributions that bring an import name; an extra that is not installed is taken by that name."""
    return [canonical(owner) for owner in installed().get(top, [top])]


@cache
def installed() -> Mapping[str, list[str]]:
    return packages_distributions()


def test_every_import_is_declared() -> None:
    names = declared()
    missing = sorted(f"{place}: {top}" for top, place in imported() if not names & set(owners(top)))
    assert missing == [], "declare what brings them in pyproject.toml, under dependencies or an extra"


@pytest.mark.parametrize("name", sorted(PROJECT["dependencies"]))
def test_every_dependency_is_imported(name: str) -> None:
    used = {owner for top, _ in imported() for owner in owners(top)}
    assert canonical(name) in used, "nothing imports it: take it out of pyproject.toml, or say why it stays"
