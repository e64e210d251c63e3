"""Alg. 1 lines 17-18: a new text to a target, by the spec's recipe.

By notes the source is never shown. The model is given the target in words, public passages of the same
combination as turns of a conversation (with gaps, then whole), and the notes passage by passage: it fills
the gaps with what fits the target, and the rest of the record's matter stays. The first passage begins
with an opening that already states the target, where the spec's model needs one. By `source` the model is
given the record itself, its snippets and the target, as in the paper.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from quantext_graph.models.chat_model import Outcome, Usage
from quantext_graph.prompts import load, marked
from quantext_graph.steps.context import Kit
from quantext_graph.steps.examples import Combination
from quantext_graph.steps.extract import Extraction
from quantext_graph.steps.passages import Passage, joined
from quantext_graph.steps.telling import GAP
from quantext_graph.steps.texts import Written, folded, is_essay, is_refusal, windows
from quantext_graph.steps.verify import rank
from quantext_graph.steps.wording import chosen, describe, opinion_lines, spec_words

_TEMPERATURE, _WARMER, _MIN_P = 0.6, 0.1, 0.08
_USUAL_WORDS = 40
_TOKENS_A_WORD = 2.2

_REMEMBERED = 300
"""Words of earlier passages that a model sees at most; half of them are forgotten then, so that a server
which keeps what it has read seldom reads them again."""


@dataclass(frozen=True)
class Draft:
    """The best of the candidates, "" unless the outcome is OK."""

    text: str = field(default="", repr=False)
    outcome: Outcome = Outcome.OK
    reason: str = ""
    candidates: int = 0
    usage: Usage = field(default_factory=Usage)


def rewrite(
    kit: Kit, text: str, kept: Extraction, target: Sequence[int], attempt: int = 0, feedback: str = ""
) -> Draft:
    """A new text of the record `text`, of which `kept` was extracted; by notes `text` is not looked at.

    `limits.candidates` texts of the passage that states the target are written in one request and the best
    is kept. Each attempt is warmer and draws another opening. `feedback` names what an earlier one missed.
    """
    warmth = _TEMPERATURE + _WARMER * min(attempt, 3)
    if kit.spec.rewriting.recipe == "source":
        return _from_source(kit, text, kept.snippets, tuple(target), warmth, feedback)
    return _Writer(kit, tuple(target), warmth, feedback).write([(n.text, n.passage) for n in kept.notes])


def fallback(kit: Kit, kept: Extraction, target: Sequence[int]) -> Draft:
    """A text from less of the record: its notes with more gaps, or its snippets alone."""
    given = [(note.strict, note.passage) for note in kept.notes]
    if kept.snippets:
        given = [(kit.telling.neutral("; ".join(kept.snippets), strict=True), Passage(""))]
    return _Writer(kit, tuple(target), _TEMPERATURE, "").write(given)


def last_resort(kit: Kit, target: Sequence[int]) -> str:
    """Words that come from the spec alone, for when no model wrote anything that may be published."""
    return spec_words(kit.spec, target)


@dataclass
class _Writer:
    """Writes one text, passage by passage; what was written stays in the conversation."""

    kit: Kit
    target: Combination
    warmth: float
    feedback: str
    _usage: Usage = field(default_factory=Usage)
    _said: list[tuple[str, str]] = field(default_factory=list)
    _candidates: int = 0

    def write(self, notes: Sequence[tuple[str, Passage]]) -> Draft:
        given = [(note, form) for note, form in notes if _tells(note)] or [("", Passage(""))]
        head = _head(self.kit, self.target, self.feedback)
        texts: list[str] = []
        for number, (note, form) in enumerate(given):
            if number and GAP not in note:
                text = note
            else:
                text, outcome, reason = self._passage(head, note, form, first=not number)
                if not number and outcome is not Outcome.OK:
                    return Draft("", outcome, reason, 0, self._usage)
            self._remember(note, text)
            texts.append(text)
        whole = joined([form for _, form in given], texts)
        return Draft(whole, Outcome.OK, "", self._candidates, self._usage)

    def _passage(
        self, head: Sequence[BaseMessage], note: str, form: Passage, *, first: bool
    ) -> tuple[str, Outcome, str]:
        """The passage that `note` tells of; its note without the gaps where no reply can be used."""
        opening = self._opening(form.head) if first else ""
        length = len(note.split()) or self.kit.examples.usual_words or _USUAL_WORDS
        reply = self.kit.chat.write(
            [*head, *self._earlier(), HumanMessage(_notes(note, length))],
            Written,
            opening=opening,
            temperature=self.warmth,
            min_p=_MIN_P,
            max_tokens=int(_TOKENS_A_WORD * (length + len(opening.split()) + 2 * note.count(GAP))) + 16,
            stop=("\n",),
            n=self.kit.spec.limits.candidates if first else 1,
        )
        self._usage += reply.usage
        texts = [_without_gaps(value.text) for value in reply.values]
        fit = [text for text in texts if text and not (is_refusal(text) or is_essay(text))]
        if not fit:
            unfit = Outcome.REFUSED if reply.outcome is Outcome.OK else reply.outcome
            return _without_gaps(note), unfit, reply.reason or "the reply is no text of a person"
        if not first:
            return fit[0], Outcome.OK, ""
        self._candidates = len(texts)
        best, cost = rank(self.kit, fit, self.target, note)
        self._usage += cost
        return best, Outcome.OK, ""

    def _opening(self, head: str) -> str:
        opening, usage = self.kit.openings.draw(self.target, head)
        self._usage += usage
        return opening

    def _earlier(self) -> list[BaseMessage]:
        turns: list[BaseMessage] = []
        for note, text in self._said:
            turns += [HumanMessage(_notes(note, 0)), AIMessage(text)]
        return turns

    def _remember(self, note: str, text: str) -> None:
        self._said.append((note, text))
        if sum(len(text.split()) for _, text in self._said) > _REMEMBERED:
            del self._said[: len(self._said) // 2 + 1]


def _head(kit: Kit, target: Combination, feedback: str) -> list[BaseMessage]:
    """What is the same for all passages of all texts of a target."""
    messages: list[BaseMessage] = [SystemMessage(_system(kit, "rewrite", target, feedback))]
    for note, text in kit.examples.gapped(target, kit.telling.neutral, kit.passage_words):
        messages += [HumanMessage(_notes(note, 0)), AIMessage(text)]
    return messages


def _system(kit: Kit, prompt: str, target: Combination, feedback: str, **more: str) -> str:
    missed = [] if kit.small else feedback.split(", ")  # mended 0 of 9 by a small model
    known = ", ".join(a.name for a, _ in chosen(kit.spec, target) if a.name in missed)
    words = load(prompt)
    said: str = words.say(
        "system",
        target=describe(kit.spec, target),
        opinions=opinion_lines(kit.spec, target),
        feedback="\n" + words.say("feedback", failures=known) if known else "",
        **more,
    )
    return said


def _notes(note: str, length: int) -> str:
    said: str = marked(note or load("rewrite").say("empty", words=str(length)), "notes")
    return said


def _tells(note: str) -> bool:
    return bool(re.search(r"\w", note.replace(GAP, "")))


def _without_gaps(text: str) -> str:
    return folded(re.sub(r"_{3,}", " ", text)).replace(" ,", ",").replace(" .", ".")


def _from_source(
    kit: Kit, text: str, snippets: Sequence[str], target: Combination, warmth: float, feedback: str
) -> Draft:
    """REWRITE(x, s, a) of the paper; a text that is longer than the window part by part."""
    usage, written = Usage(), []
    whole = _system(kit, "source", target, feedback, words="100")
    room = kit.room(whole, 0)
    parts = [text] if room is None else list(windows(text, room // 2, kit.chat.count_tokens))
    for part in parts:
        length = len(part.split())
        reply = kit.chat.write(
            [
                SystemMessage(_system(kit, "source", target, feedback, words=str(length))),
                HumanMessage(f"{marked(part)}\n\n{marked(chr(10).join(snippets), 'notes')}"),
            ],
            Written,
            temperature=warmth,
            min_p=_MIN_P,
            max_tokens=int(_TOKENS_A_WORD * length) + 60,
            stop=("<text>", "</text>", "<notes>"),
            n=kit.spec.limits.candidates,
        )
        usage += reply.usage
        if reply.outcome is not Outcome.OK:
            return Draft("", reply.outcome, reply.reason, 0, usage)
        best, cost = rank(kit, [value.text for value in reply.values], target, part)
        usage += cost
        written.append(best)
    return Draft("\n".join(written), Outcome.OK, "", kit.spec.limits.candidates, usage)
