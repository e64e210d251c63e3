"""The bank of openings: a few words that already state the target, with which a rewrite begins.

One bank for each combination of categories, since an opening for one joined to another's clashes.
Made when a combination first comes up, from the public auxiliary set and the spec alone: beginnings of
public texts that a classifier already takes for the target, then what the model writes, checked alike.
Kept on disk by what they were made from.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from quantext_graph.models.chat_model import ChatModel, Outcome, Usage
from quantext_graph.prompts import load
from quantext_graph.spec.models import Spec
from quantext_graph.steps.classifier import TextClassifier
from quantext_graph.steps.examples import Combination, Examples
from quantext_graph.steps.passages import spoken
from quantext_graph.steps.texts import is_essay, is_refusal, words
from quantext_graph.steps.wording import describe, opinion_lines

BANK = 20
_ENOUGH = 5
_FEWEST_WORDS, _MOST_WORDS = 3, 8
_ROWS = 80

_EXACT = 8
"""Texts of a combination from which on no others are looked at: a small classifier takes many of those that
miss an attribute for the target."""
_LIKELY = 0.4
"""Probability, on average over the attributes, that a beginning of an opening must reach."""

_VERSION = 3


class Beginnings(BaseModel):
    """What the model replies with."""

    openings: list[Annotated[str, Field(max_length=90)]] = Field(max_length=10)


@dataclass
class Openings:
    """Banks by combination; threads may draw at the same time, and one bank is made once."""

    spec: Spec
    chat: ChatModel
    examples: Examples
    classifier: TextClassifier | None
    cache: Path | None = None
    wanted: bool = True
    shown: Callable[[Combination], list[tuple[str, str]]] = lambda _: []
    _decks: dict[tuple[Combination, str], list[str]] = field(default_factory=dict, repr=False)
    _banks: dict[Combination, tuple[str, ...]] = field(default_factory=dict, repr=False)
    _locks: dict[Combination, threading.Lock] = field(default_factory=dict, repr=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def draw(self, target: Combination, speaker: str = "") -> tuple[str, Usage]:
        """An opening for the target, at random and without repeats until the bank is used up; "" where
        none could be made or the spec wants none. In a dialogue those of `speaker` ("Doctor: ") are drawn,
        without it."""
        if not self.wanted:
            return "", Usage()
        with self._guard:
            lock = self._locks.setdefault(target, threading.Lock())
        usage = Usage()
        with lock:
            if target not in self._banks:
                self._banks[target], usage = self._bank(target)
            deck = self._decks.setdefault((target, speaker), [])
            if not deck:
                said = (spoken(opening) for opening in self._banks[target])
                deck.extend(opening for who, opening in said if who.strip() == speaker.strip())
                random.shuffle(deck)
            return (deck.pop() if deck else ""), usage

    def bank(self, target: Combination) -> tuple[str, ...]:
        """The openings made for the target so far, without speakers."""
        return tuple(opening for _, opening in map(spoken, self._banks.get(target, ())))

    def _bank(self, target: Combination) -> tuple[tuple[str, ...], Usage]:
        place = self.cache / f"{self._key(target)}.json" if self.cache else None
        kept = _read(place)
        if kept:
            return kept, Usage()
        found = self._from_examples(target)
        usage = Usage()
        if len(found) < _ENOUGH:
            made, usage = self._from_model(target, found)
            found = _distinct([*found, *made])[:BANK]
        _write(place, found)
        return tuple(found), usage

    def _key(self, target: Combination) -> str:
        """A digest of all that the bank depends on; public data only."""
        rows = self._rows(target)
        parts = [
            _VERSION,
            self.chat.name,
            describe(self.spec, target),
            opinion_lines(self.spec, target),
            [self.examples.texts[i] for i in rows],
            load("openings").sections["system"],
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def _from_examples(self, target: Combination) -> list[str]:
        """Beginnings of public texts, as short as makes the target plain to the classifier."""
        if self.classifier is None:
            return []
        cuts = [list(_cuts(self.examples.texts[i])) for i in self._rows(target)[:_ROWS]]
        flat = [cut for row in cuts for cut in row]
        scores = iter(self._scores(flat, target))
        best: list[tuple[float, str]] = []
        for row in cuts:
            judged = [(next(scores) - 0.01 * len(cut.split()), cut) for cut in row]
            if judged:
                best.append(max(judged))
        best.sort(reverse=True)
        return _distinct(cut for score, cut in best if score > np.log(_LIKELY))[:BANK]

    def _rows(self, target: Combination) -> list[int]:
        """Public texts whose beginnings may serve: those of the very combination where there are enough, and
        none that a writer is shown whole, since it would go on as that one does."""
        exact = self.examples.rows(target)
        shown = {text for _, text in self.shown(target)}
        rows = exact if len(exact) >= _EXACT else self.examples.near(target)
        return [i for i in rows if not any(text in self.examples.texts[i] for text in shown)]

    def _from_model(self, target: Combination, found: Sequence[str]) -> tuple[list[str], Usage]:
        prompt = load("openings")
        system = prompt.say(
            "system",
            target=describe(self.spec, target),
            opinions=opinion_lines(self.spec, target),
            count="8",
        )
        shown = list(found) or [
            " ".join(text.split()[:8]) for text in self.examples.demonstrations(target, count=3)
        ]
        messages: list[BaseMessage] = [SystemMessage(system)]
        ask = HumanMessage(prompt.say("ask"))
        if shown:
            messages += [ask, AIMessage(json.dumps({"openings": shown[:4]}, ensure_ascii=False))]
        reply = self.chat.structured(
            [*messages, ask], Beginnings, temperature=0.9, max_tokens=320, n=1, repairs=1
        )
        if reply.outcome is not Outcome.OK:
            return [], reply.usage
        made = [_trimmed(text) for text in reply.value.openings]
        made = [text for text in made if len(words(text)) >= _FEWEST_WORDS and _plain(text)]
        if self.classifier is not None and made:
            scores = self._scores(made, target)
            # Even odds are the bar here: what a model writes on request is seldom off the topic.
            bar = np.log(0.7 * _chance(self.spec))
            made = [text for text, score in zip(made, scores, strict=True) if score > bar]
        return made, reply.usage

    def _scores(self, texts: Sequence[str], target: Combination) -> list[float]:
        """Mean log-probability of the target's categories, all categories taken as equally common."""
        if not texts or self.classifier is None:
            return []
        found = self.classifier.log_probabilities(texts, even=True)
        total = sum(values[:, code] for values, code in zip(found, target, strict=True))
        return [float(value) / len(target) for value in np.asarray(total)]


def _cuts(text: str) -> Iterable[str]:
    """Beginnings of a text, in whole words; never all of it, never ending in a link or a hashtag."""
    tokens = list(re.finditer(r"\S+", text))
    for count in range(_FEWEST_WORDS + 1, min(_MOST_WORDS, len(tokens) - 2) + 1):
        cut = _trimmed(text[: tokens[count - 1].end()])
        if len(words(cut)) >= _FEWEST_WORDS and _plain(cut):
            yield cut


def _trimmed(text: str) -> str:
    """Without what ends a text or a quotation: somebody is to go on writing."""
    return text.strip().strip('"“”').rstrip(" .…,;:-").strip()


def _plain(text: str) -> bool:
    clean = not (is_refusal(text) or is_essay(text) or "http" in text or "…" in text)
    return clean and text.split()[-1][0] not in "#@"


def _distinct(openings: Iterable[str]) -> list[str]:
    """The first of those that begin with the same three words."""
    seen: set[tuple[str, ...]] = set()
    kept = []
    for opening in openings:
        start = tuple(words(opening)[:3])
        if start not in seen:
            seen.add(start)
            kept.append(opening)
    return kept


def _chance(spec: Spec) -> float:
    return float(np.exp(np.mean([-np.log(size) for size in spec.sizes])))


def _read(place: Path | None) -> tuple[str, ...]:
    if place is None:
        return ()
    try:
        kept = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    return tuple(text for text in kept if isinstance(text, str)) if isinstance(kept, list) else ()


def _write(place: Path | None, bank: Sequence[str]) -> None:
    """Keep a bank; a cache that cannot be written costs time, nothing else."""
    if place is None or not bank:
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(list(bank), file, ensure_ascii=False)
        Path(name).replace(place)
    except OSError:
        return
