"""How the answers of the guided chat are read: against the files they speak of, and what was said before.

A reader gives what is kept in the state, or raises a line about what is wrong with the answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from quantext_graph.data.inspection import DatasetSummary, glance
from quantext_graph.release.draft import SUFFIXES
from quantext_graph.spec.errors import QuantextError

Fields = dict[str, Any]


class GuidedState(TypedDict, total=False):
    """What has been settled: paths, names and categories that the person confirmed, never a text."""

    data: str
    auxiliary: str
    text: str
    texts: str
    attributes: list[Fields]
    secret: dict[str, list[str]]
    budget_nats: float
    spec: str
    workspace: str


class Files:
    """The files a conversation is about; relative paths are taken from `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def look(self, path: str) -> DatasetSummary:
        return glance(self.folder / Path(path).expanduser())[0]

    def readable(self, path: str, _: GuidedState) -> str:
        self.look(path)
        return path

    def column(self, name: str, state: GuidedState) -> str:
        names = [column.name for column in self.look(state["data"]).columns]
        if name not in names:
            raise QuantextError(f"no column is called {name!r}; there are: {', '.join(names)}")
        return name

    def categories(self, *paths: str) -> dict[str, list[str]]:
        """The categories of each column of these files that could be an attribute."""
        found: dict[str, set[str]] = {}
        for path in filter(None, paths):
            for column in self.look(path).categorical:
                found.setdefault(column.name, set()).update(column.categories)
        return {name: sorted(categories) for name, categories in found.items()}

    def known(self, state: GuidedState) -> dict[str, list[str]]:
        found = self.categories(state["data"], state["auxiliary"])
        return {name: categories for name, categories in found.items() if name != state["text"]}

    def attributes(self, said: str, state: GuidedState) -> list[Fields]:
        """Those that are named, as they are proposed, with the categories that the files name."""
        known = self.known(state)
        names = [name.strip() for name in said.split(",") if name.strip()]
        if said == ", ".join(known):
            names = list(known)  # one of them may hold a comma
        if not names:
            raise QuantextError("name at least one attribute")
        private = self.categories(state["data"])
        return [
            {
                "name": name,
                "column": name if name in private else None,
                "categories": [{"name": category} for category in known.get(name, ())],
            }
            for name in names
        ]


def secret_of(said: str, state: GuidedState) -> dict[str, list[str]]:
    """`Stance = FAVOR or AGAINST, Target = X` as a secret's `where`."""
    known = {
        each["name"]: [category["name"] for category in each["categories"]] for each in state["attributes"]
    }
    where: dict[str, list[str]] = {}
    for clause in filter(None, (part.strip() for part in said.split(","))):
        name, _, values = (part.strip() for part in clause.partition("="))
        chosen = [value.strip() for value in values.split(" or ") if value.strip()]
        if name not in known or not chosen or not set(chosen) <= set(known[name]):
            names = "; ".join(f"{key} = {' or '.join(values)}" for key, values in known.items())
            raise QuantextError(f"{clause!r} is no share of these attributes: {names}")
        where[name] = chosen
    if not where:
        raise QuantextError("name a share")
    return where


def budget(said: str, _: GuidedState) -> float:
    try:
        nats = float(said)
    except ValueError:
        raise QuantextError(f"{said!r} is no number") from None
    if not 0 <= nats <= 100:
        raise QuantextError("a budget lies between 0 and 100")
    return nats


def spec_path(said: str, _: GuidedState) -> str:
    if not said.endswith(SUFFIXES):
        raise QuantextError(f"{said}: a spec is called .yaml or .yml")
    return said


def changed(attribute: Fields, said: str) -> Fields:
    """The attribute after `name: description` or `-name`; the same object where Enter says it is right."""
    name, _, words = (part.strip() for part in said.partition(":"))
    named = {category["name"]: category for category in attribute["categories"]}
    if not said and len(named) > 1:
        return attribute
    if (dropped := said.removeprefix("-").strip()) != said and attribute.get("proposed") and dropped in named:
        return {**attribute, "categories": [each for key, each in named.items() if key != dropped]}
    if not words:
        raise QuantextError("write `name: description`; an attribute needs two categories or more")
    if name == attribute["name"]:
        return {**attribute, "description": words}
    own = bool(attribute.get("proposed")) or not named
    if name not in named and not own:
        raise QuantextError(f"no category is called {name!r}; there are: {', '.join(named)}")
    named[name] = {**named.get(name, {}), "name": name, "description": words}
    return {**attribute, "categories": list(named.values()), "proposed": own}
