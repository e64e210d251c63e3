"""Neutral notes of a record: all that it tells but its attributes, in other words than its own.

The default recipe's first step. It sees the record alone, neither its labels nor its target: whatever
becomes of a record, it was read in the same way. A model says each passage again; then the words that tell
an attribute by public texts are taken out, whatever the record's label says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from quantext_graph.models.chat_model import Outcome, Usage
from quantext_graph.prompts import load, marked
from quantext_graph.spec.models import Spec
from quantext_graph.steps.context import Kit
from quantext_graph.steps.passages import Passage, passages
from quantext_graph.steps.telling import GAP
from quantext_graph.steps.texts import (
    COPIED,
    WORD,
    Written,
    is_essay,
    is_refusal,
    shared_run,
    shares_run,
    visible,
    words,
)

_TEMPERATURE, _WARMER, _MIN_P = 0.5, 0.9, 0.08
_TOKENS_A_WORD = 2.2

_SAID = 4
"""Words from which on a passage is said again: "Okay, thank you." is nobody's own."""

_ADDRESS = re.compile(r"(?:https?:|www\.)\S+|@\w+|\S+@\S+\.\w+|\+?\d[\d\s().-]{7,}\d", re.IGNORECASE)
_REPEATED = re.compile(r"\b(\w+)(?:[\s/,]+\1\b){2,}")


@dataclass(frozen=True)
class Note:
    """What one passage tells, `GAP`s for what it must not, and the place in the form where it stood.
    `strict` is the same with more gaps."""

    text: str
    strict: str
    passage: Passage


@dataclass(frozen=True)
class Extraction:
    """What is kept of a record, in the order of its text: notes of the whole (`recipe: notes`) or snippets
    for the target (`recipe: source`).

    `unread` counts passages or parts for which the model gave no usable reply; nothing of such a reply, or
    of the passage, is used.
    """

    notes: tuple[Note, ...] = field(default=(), repr=False)
    snippets: tuple[str, ...] = field(default=(), repr=False)
    outcome: Outcome = Outcome.OK
    reason: str = ""
    unread: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def lines(self) -> tuple[str, ...]:
        """All that was kept, as the writer sees it."""
        return self.snippets or tuple(note.text for note in self.notes if note.text)


def take_notes(kit: Kit, text: str) -> Extraction:
    """Notes of the whole of `text`."""
    found: list[Note] = []
    before = ""
    unread, usage = 0, Usage()
    outcome, reason = Outcome.OK, ""
    for passage in passages(text, kit.passage_words):
        said = _REPEATED.sub(r"\1", _ADDRESS.sub("", visible(passage.text))).strip()
        if len(words(said)) >= _SAID:
            said, failed, why, cost = _said_again(kit, said)
            usage += cost
            if failed is not Outcome.OK:
                unread, outcome, reason = unread + 1, failed, why
        before = "" if passage.lines else " ".join(before.split()[-COPIED:])
        said = broken(said, text, before)
        before += f" {said}"
        found.append(
            Note(kit.telling.neutral(said), kit.telling.neutral(said, strict=True), _neutral(kit, passage))
        )
    if unread < len(found):
        outcome, reason = Outcome.OK, ""
    return Extraction(tuple(found), (), outcome, reason, unread, usage)


def _neutral(kit: Kit, passage: Passage) -> Passage:
    """The form of a passage; a speaker whose name tells an attribute is left out."""
    told = GAP in kit.telling.neutral(passage.head)
    return Passage("", "" if told else passage.head, passage.lines)


def _said_again(kit: Kit, passage: str) -> tuple[str, Outcome, str, Usage]:
    """The passage in other words; asked for once more, warmer, where it is still the passage's own."""
    messages = [*head(kit.spec, bool(kit.telling.known)), HumanMessage(marked(passage))]
    usage, best = Usage(), ""
    outcome, reason = Outcome.OK, ""
    for temperature in (_TEMPERATURE, _WARMER):
        reply = kit.chat.write(
            messages,
            Written,
            temperature=temperature,
            min_p=_MIN_P,
            max_tokens=int(_TOKENS_A_WORD * len(passage.split())) + 24,
            stop=("\n",),
        )
        usage += reply.usage
        if reply.outcome is not Outcome.OK:
            outcome, reason = reply.outcome, reply.reason
            continue
        said = reply.value.text
        if is_refusal(said) or is_essay(said) or _borrowed(said, passage):
            outcome, reason = Outcome.INVALID, "the reply does not say the passage again"
            continue
        best = said
        if not shares_run(said, passage):
            break
    if not best:
        return "", outcome, reason, usage
    return best, Outcome.OK, "", usage


def _borrowed(said: str, passage: str) -> bool:
    """Whether a reply repeats an example of the instruction instead."""
    return any(shares_run(said, shown, 5) and not shares_run(shown, passage, 5) for _, shown in examples())


def broken(said: str, source: str, before: str = "") -> str:
    """`said`, which stands after `before`, with a gap in every run of words that is in `source` and too long
    to be nobody's."""
    offset = len(before) + 1
    while (start := shared_run(f"{before} {said}", source)) is not None:
        places = [match.span() for match in WORD.finditer(f"{before} {said}")]
        first, last = next(place for place in places[start + COPIED // 2 :] if place[0] >= offset)
        said = said[: first - offset] + GAP + said[last - offset :]
    return said


@cache
def examples() -> tuple[tuple[str, str], ...]:
    """The instruction's invented passages, each with what it is in other words."""
    pairs = re.split(r"\n\s*\n", load("notes").sections["example"])
    return tuple((given, said) for given, said in (pair.split("\n=> ", 1) for pair in pairs))


def head(spec: Spec, learned: bool) -> list[BaseMessage]:
    """What is the same for every passage. Where no public texts show which words tell an attribute, the
    model is asked to leave them out."""
    return list(_head("" if learned else _avoid(spec)))


@cache
def _head(avoid: str) -> Sequence[BaseMessage]:
    prompt = load("notes")
    messages: list[BaseMessage] = [SystemMessage(prompt.say("system", avoid="\n" + avoid if avoid else ""))]
    for given, said in examples():
        messages += [HumanMessage(marked(given)), AIMessage(said)]
    return messages


def _avoid(spec: Spec) -> str:
    prompt = load("notes")

    def lines() -> Iterator[str]:
        for attribute in spec.attributes:
            what = attribute.description or attribute.name
            yield prompt.say("attribute", name=what, categories=", ".join(attribute.category_names))

    said: str = prompt.say("avoid", attributes="\n".join(lines()))
    return said
