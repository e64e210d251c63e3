"""Alg. 1 lines 17-18: a new text from snippets and target. The source text is never shown.

The model is given the target in words, public texts of the same combination as turns of a
conversation, the snippets, and an opening that already states the target: it goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, field_validator

from quantext_graph.models.chat_model import Outcome, Usage
from quantext_graph.prompts import load, marked
from quantext_graph.steps.context import Kit
from quantext_graph.steps.examples import Combination, notes
from quantext_graph.steps.texts import folded
from quantext_graph.steps.verify import rank
from quantext_graph.steps.wording import chosen, describe, opinion_lines, opinions

_TEMPERATURE, _MIN_P = 0.8, 0.06
_USUAL_WORDS = 40
_TOKENS_A_WORD = 2.2


class Written(BaseModel):
    """A text that a model wrote."""

    text: str

    @field_validator("text")
    @classmethod
    def _plain(cls, text: str) -> str:
        """Without quotation marks around it; raises where nothing is left."""
        text = text.strip()
        if len(text) > 1 and text[0] in '"“' and text[-1] in '"”':
            text = text[1:-1].strip()
        if not text:
            raise ValueError("the text is empty")
        return text


@dataclass(frozen=True)
class Draft:
    """The best of the candidates, "" unless the outcome is OK."""

    text: str = field(default="", repr=False)
    outcome: Outcome = Outcome.OK
    reason: str = ""
    candidates: int = 0
    usage: Usage = field(default_factory=Usage)


def rewrite(
    kit: Kit, snippets: Sequence[str], target: Sequence[int], attempt: int = 0, feedback: str = ""
) -> Draft:
    """Write `limits.candidates` texts in one request and keep the best.

    Each attempt draws another opening. `feedback` names what an earlier attempt missed.
    """
    return _write(kit, snippets, tuple(target), attempt, feedback)


def fallback(kit: Kit, target: Sequence[int]) -> Draft:
    """A text from the target alone."""
    return _write(kit, (), tuple(target), 0, "")


def last_resort(kit: Kit, target: Sequence[int]) -> str:
    """Words that come from the spec alone, for when no model wrote anything that may be published."""
    said = opinions(kit.spec, target)
    if said:
        return " ".join(said)
    return describe(kit.spec, target)


def _write(kit: Kit, snippets: Sequence[str], target: Combination, attempt: int, feedback: str) -> Draft:
    opening, usage = kit.openings.draw(target)
    length = _length(kit, target)
    reply = kit.chat.write(
        _messages(kit, snippets, target, length, feedback),
        Written,
        opening=opening,
        temperature=_TEMPERATURE + 0.1 * min(attempt, 2),
        min_p=_MIN_P,
        max_tokens=int(_TOKENS_A_WORD * length) + 40,
        stop=("\n",) if kit.examples.single_line else ("<notes>", "</notes>"),
        n=kit.spec.limits.candidates,
    )
    usage += reply.usage
    if reply.outcome is not Outcome.OK:
        return Draft("", reply.outcome, reply.reason, 0, usage)
    texts = [value.text for value in reply.values]
    best, cost = rank(kit, texts, target)
    return Draft(best, Outcome.OK, "", len(texts), usage + cost)


def _messages(
    kit: Kit, snippets: Sequence[str], target: Combination, length: int, feedback: str
) -> list[BaseMessage]:
    prompt = load("rewrite")
    known = ", ".join(a.name for a, _ in chosen(kit.spec, target) if a.name in feedback.split(", "))
    system = prompt.say(
        "system",
        target=describe(kit.spec, target),
        opinions=opinion_lines(kit.spec, target),
        words=str(length),
        feedback="\n" + prompt.say("feedback", failures=known) if known else "",
    )
    messages: list[BaseMessage] = [SystemMessage(system)]
    for text in kit.examples.demonstrations(target):
        messages += [
            HumanMessage(_notes(notes(text))),
            AIMessage(folded(text) if kit.examples.single_line else text),
        ]
    return [*messages, HumanMessage(_notes(snippets))]


def _notes(snippets: Sequence[str]) -> str:
    said: str = marked("\n".join(snippets) or load("rewrite").say("empty"), "notes")
    return said


def _length(kit: Kit, target: Combination) -> int:
    """Words of a new text: as the demonstrations have, which are short where the set is long."""
    shown = [len(text.split()) for text in kit.examples.demonstrations(target)]
    usual = max(shown, default=0) or kit.examples.words or _USUAL_WORDS
    return min(max(usual, 12), 120)
