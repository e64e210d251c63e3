"""What the guided chat asks, and how an answer is read: against the files it speaks of and what was said.

A reader gives what is kept in the state, or raises a line about what is wrong with the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from quantext_graph.apps.agent_tools.disclosure import Fields
from quantext_graph.data.inspection import DatasetSummary, glance
from quantext_graph.release.draft import SUFFIXES
from quantext_graph.spec.errors import QuantextError

T = TypeVar("T")

WORDS = {
    "ask_data": "Which file do you want to release? (.csv, .tsv, .jsonl or .parquet)",
    "ask_auxiliary": "Is there a public file of the same kind whose texts are labelled? It is needed for "
    "several attributes. (path, or Enter for none)",
    "ask_text": "Which column holds the texts?",
    "ask_texts": "What are the texts, in a few words? For example: messages of patients.",
    "ask_attributes": "Which attributes matter, secret or useful? Names separated by commas; what is no "
    "column is labelled by the model.",
    "ask_secret": "Which share must nobody learn? For example: {attributes[0][name]} = "
    "{attributes[0][categories][0][name]}",
    "ask_budget_nats": "How many nats may the release tell about it? With 0.5 an attacker's chance of being "
    "right grows at most 1.6 times, with 1 by 2.7, with 3 by 20; a smaller budget hides more and bends the "
    "texts further. `?` shows what each buys.",
    "ask_spec": "Where shall the spec go?",
    "ask_replace": "{spec} stands already. Replace it? [y/n]",
    "ask_mended_draft": "Mend the file or the spec, then press Enter.",
    "ask_mended": "Mend the file or the spec, then press Enter.",
    "ask_preview": "Shall two records be rewritten to look at? Nothing is kept. [y/n]",
    "ask_start": "Start the release? Its draw is spent, whatever comes of it. [y/n]",
    "ask_again": "Go on with it? What is done is kept. [y/n]",
    "ask_publish": "Publish it? y, n, or r to write the texts that missed their target again.",
}
"""The words of each question; they may hold fields of the state."""


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


@dataclass(frozen=True)
class Question:
    """A node that asks. An answer among `turns` leads to the node named there. Any other is kept in the
    state as `read` makes it, under the name without `ask_`, and `next` follows; `default` is Enter."""

    name: str
    next: str = ""
    read: Callable[[str, GuidedState], Any] | None = None
    default: str | Callable[[GuidedState], str] = ""
    turns: Mapping[str, str] = field(default_factory=dict)

    @property
    def leads_to(self) -> dict[str, str]:
        """The nodes that may follow, each with the answer that leads there."""
        return {node: said for said, node in self.turns.items()} | ({self.next: ""} if self.next else {})

    def __call__(self, state: GuidedState) -> Command[str]:
        default = self.default if isinstance(self.default, str) else self.default(state)
        words = WORDS[self.name].format_map(state) + (f" [{default}]" if default else "")
        return put(words, lambda said: self._follow(said or default, state))

    def _follow(self, said: str, state: GuidedState) -> Command[str]:
        turn = {"yes": "y", "no": "n"}.get(said.lower(), said.lower())
        if turn in self.turns:
            return Command(goto=self.turns[turn])
        if not self.next:
            *others, last = self.turns
            raise QuantextError(f"answer {', '.join(others)} or {last}")
        kept = {self.name.removeprefix("ask_"): self.read(said, state)} if self.read else {}
        return Command(goto=self.next, update=kept)


def put(question: str, read: Callable[[str], T]) -> T:
    """Ask until `read` makes something of the answer; what it raises is told with the question."""
    error = None
    while True:
        said = str(interrupt({"question": question, "error": error})).strip()
        try:
            return read(said)
        except QuantextError as wrong:
            error = str(wrong)


@dataclass(frozen=True)
class Files:
    """The files a conversation is about; relative paths are taken from `folder`."""

    folder: Path

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
        known, private = self.known(state), self.categories(state["data"])
        names = list(known) if said == ", ".join(known) else parts(said, ",")  # a name may hold a comma
        if not names:
            raise QuantextError("name at least one attribute")
        return [
            {
                "name": name,
                "column": name if name in private else None,
                "categories": [{"name": category} for category in known.get(name, ())],
            }
            for name in names
        ]


def parts(said: str, separator: str) -> list[str]:
    return [part.strip() for part in said.split(separator) if part.strip()]


def secret_of(said: str, state: GuidedState) -> dict[str, list[str]]:
    """`Stance = FAVOR or AGAINST, Target = X` as a secret's `where`."""
    known = {each["name"]: [one["name"] for one in each["categories"]] for each in state["attributes"]}
    where: dict[str, list[str]] = {}
    for clause in parts(said, ","):
        name, _, values = (part.strip() for part in clause.partition("="))
        where[name] = parts(values, " or ")
        if not where[name] or not set(where[name]) <= set(known.get(name, ())):
            names = "; ".join(f"{key} = {' or '.join(values)}" for key, values in known.items())
            raise QuantextError(f"{clause!r} is no share of these attributes: {names}")
    if not where:
        raise QuantextError("name a share")
    return where


def budget(said: str, _: GuidedState) -> float:
    with suppress(ValueError):
        if 0 <= (nats := float(said)) <= 100:
            return nats
    raise QuantextError(f"{said!r} is no number between 0 and 100")


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
