"""What the guided chat asks, in one table, and how an answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langgraph.graph import END
from langgraph.types import Command, interrupt

from quantext_graph.apps.chat.guided_answers import Files, GuidedState, budget, secret_of, spec_path
from quantext_graph.spec.errors import QuantextError

T = TypeVar("T")

BUDGET = (
    "How many nats may the release tell about it? With 0.5 an attacker's chance of being right grows at most "
    "1.6 times, with 1 by 2.7, with 3 by 20; a smaller budget hides more and bends the texts further. "
    "`?` shows what each buys."
)
MENDED = "Mend the file or the spec, then press Enter."


@dataclass(frozen=True)
class Question:
    """A question and what follows from its answer. Its node is called `name`.

    `words` may hold fields of the state; `default` is what Enter stands for. An answer among `turns` leads
    to the node named there. Any other is kept in the state as `read` makes it, under the name without
    `ask_`, and `next` follows; what `read` raises is told and the question put again.
    """

    name: str
    words: str
    next: str = ""
    default: str | Callable[[GuidedState], str] = ""
    read: Callable[[str, GuidedState], Any] | None = None
    turns: Mapping[str, str] = field(default_factory=dict)

    @property
    def leads_to(self) -> dict[str, str]:
        """The nodes that may follow, each with the answer that leads there."""
        return {node: said for said, node in self.turns.items()} | ({self.next: ""} if self.next else {})

    def __call__(self, state: GuidedState) -> Command[str]:
        default = self.default if isinstance(self.default, str) else self.default(state)
        words = self.words.format_map(state) + (f" [{default}]" if default else "")
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


def questions(files: Files) -> tuple[Question, ...]:
    """All that is asked, in order, but for the attributes, which are confirmed one by one (`confirm`)."""
    return (
        Question(
            "ask_data",
            "Which file do you want to release? (.csv, .tsv, .jsonl or .parquet)",
            "ask_auxiliary",
            read=files.readable,
        ),
        Question(
            "ask_auxiliary",
            "Is there a public file of the same kind whose texts are labelled? It is needed for several "
            "attributes. (path, or Enter for none)",
            "look",
            read=lambda said, state: said and files.readable(said, state),
        ),
        Question(
            "ask_text",
            "Which column holds the texts?",
            "ask_texts",
            default=lambda state: files.look(state["data"]).text or "",
            read=files.column,
        ),
        Question(
            "ask_texts",
            "What are the texts, in a few words? For example: messages of patients.",
            "ask_attributes",
            default="short texts",
            read=lambda said, _: said,
        ),
        Question(
            "ask_attributes",
            "Which attributes matter, secret or useful? Names separated by commas; what is no column is "
            "labelled by the model.",
            "propose",
            default=lambda state: ", ".join(files.known(state)),
            read=files.attributes,
        ),
        Question(
            "ask_secret",
            "Which share must nobody learn? For example: {attributes[0][name]} = "
            "{attributes[0][categories][0][name]}",
            "ask_budget_nats",
            read=secret_of,
        ),
        Question("ask_budget_nats", BUDGET, "ask_spec", "1", budget, {"?": "tradeoff"}),
        Question("ask_spec", "Where shall the spec go?", "write", "spec.yaml", spec_path),
        choice("ask_replace", "{spec} stands already. Replace it? [y/n]", y="replace", n="ask_spec"),
        Question("ask_mended_draft", MENDED, "ask_spec"),
        Question("ask_mended", MENDED, "check"),
        choice(
            "ask_preview",
            "Shall two records be rewritten to look at? Nothing is kept. [y/n]",
            y="preview",
            n="ask_start",
        ),
        choice(
            "ask_start", "Start the release? Its draw is spent, whatever comes of it. [y/n]", y="start", n=END
        ),
        choice("ask_again", "Go on with it? What is done is kept. [y/n]", y="go_on", n=END),
        choice(
            "ask_publish",
            "Publish it? y, n, or r to write the texts that missed their target again.",
            y="publish",
            n="keep",
            r="write_again",
        ),
    )


def choice(name: str, words: str, **turns: str) -> Question:
    """A question whose answers are these letters."""
    return Question(name, words, turns=turns)
