"""What the guided chat asks a person and how it reads the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langgraph.types import interrupt

from quantext_graph.apps.agent_tools.tools import Answer

Fields = dict[str, Any]

BUDGET = (
    "How many nats may the release tell about it? With 0.5 an attacker's chance of being right grows at most "
    "1.6 times, with 1 by 2.7, with 3 by 20; a smaller budget hides more and bends the texts further. "
    "`?` shows what each buys. [1]"
)


def asked(question: str, wrong: Callable[[str], str | None] = lambda _: None) -> str:
    """Ask until the answer is none that `wrong` says a line about."""
    error = None
    while True:
        said = str(interrupt({"question": question, "error": error})).strip()
        error = wrong(said)
        if not error:
            return said


def agreed(question: str) -> bool:
    said = asked(
        f"{question} [y/n]",
        lambda said: None if said.lower() in ("y", "yes", "n", "no") else "answer y or n",
    )
    return said.lower() in ("y", "yes")


def confirmed(attribute: Fields) -> Fields:
    """The attribute as the person wants it."""
    error = None
    while True:
        question = (
            f"{_attribute_lines(attribute)}\nIs that right? Enter for yes, `name: description` to change one"
            + (", `-name` to drop one." if attribute.get("proposed") else ".")
        )
        said = str(interrupt({"question": question, "error": error})).strip()
        if not said and len(attribute["categories"]) > 1:
            return attribute
        attribute, error = _changed(attribute, said)


def _changed(attribute: Fields, said: str) -> tuple[Fields, str | None]:
    name, _, words = (part.strip() for part in said.partition(":"))
    names = [category["name"] for category in attribute["categories"]]
    if said.startswith("-") and attribute.get("proposed") and said[1:].strip() in names:
        kept = [category for category in attribute["categories"] if category["name"] != said[1:].strip()]
        return {**attribute, "categories": kept}, None
    if not words:
        return attribute, "write `name: description`; an attribute needs two categories or more"
    if name == attribute["name"]:
        return {**attribute, "description": words}, None
    changed = [
        {**each, "description": words} if each["name"] == name else each for each in attribute["categories"]
    ]
    if name not in names:
        if not attribute.get("proposed") and names:
            return attribute, f"no category is called {name!r}; there are: {', '.join(names)}"
        changed.append({"name": name, "description": words})
        return {**attribute, "categories": changed, "proposed": True}, None
    return {**attribute, "categories": changed}, None


def _attribute_lines(attribute: Fields) -> str:
    head = f"{attribute['name']}: {attribute.get('description') or '(no description)'}"
    return "\n".join(
        [head, *(f"  {each['name']}: {each.get('description', '')}" for each in attribute["categories"])]
    )


def secret_of(said: str, attributes: Sequence[Fields]) -> tuple[dict[str, list[str]], str | None]:
    """`Stance = FAVOR or AGAINST, Target = X` as a secret's `where`, or a line about what is wrong."""
    known = {each["name"]: [category["name"] for category in each["categories"]] for each in attributes}
    where: dict[str, list[str]] = {}
    for clause in filter(None, (part.strip() for part in said.split(","))):
        name, _, values = (part.strip() for part in clause.partition("="))
        chosen = [value.strip() for value in values.split(" or ") if value.strip()]
        if name not in known or not chosen or not set(chosen) <= set(known[name]):
            names = "; ".join(f"{key} = {' or '.join(values)}" for key, values in known.items())
            return {}, f"{clause!r} is no share of these attributes: {names}"
        where[name] = chosen
    return where, None if where else "name a share"


def not_a_budget(said: str) -> str | None:
    try:
        return None if 0 <= float(said) <= 100 else "a budget lies between 0 and 100"
    except ValueError:
        return f"{said!r} is no number"


def not_in(name: str, names: Sequence[str]) -> str | None:
    return None if name in names else f"no column is called {name!r}; there are: {', '.join(names)}"


def look_lines(role: str, looked: Answer) -> list[str]:
    public = looked.public
    columns = ", ".join(f"{column['name']} ({column['kind']})" for column in public["columns"])
    about = "about " if public.get("rows_are_estimated") else ""
    return [f"{role} file: {about}{public['rows']} rows; {columns}", *looked.shown]


def tradeoff_lines(tradeoff: Answer) -> list[str]:
    return [
        f"{row['nats']:g} nats ({row['rule']}): an attacker's chance grows at most "
        + ("without bound that helps" if row["vacuous"] else f"{row['chance_grows_at_most_by']:.1f} times")
        + f"; shares are off by about {max(row['error_of_share'].values(), default=0):.2f}"
        for row in tradeoff.public["points"]
    ]
