"""Questions to a model about one text: which category of an attribute is it?

Where the server gives log-probabilities, one short question for each attribute scores its categories'
words; else one structured call answers all attributes with an enum for each.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, ConfigDict, Field, create_model

from quantext_graph.models.chat_model import ChatModel, Outcome, Usage
from quantext_graph.prompts import load, marked
from quantext_graph.spec.models import Spec
from quantext_graph.steps.examples import Examples
from quantext_graph.steps.texts import windows
from quantext_graph.steps.wording import category_list, category_words, question

Scores = np.ndarray[tuple[int], np.dtype[np.float64]]

SURE = 0.9
"""Probability from which on a classifier is not doubted: an LLM would hardly turn it."""

WEIGHT = 0.4
"""Weight of an LLM's log-probabilities beside a classifier's. A small model is far too sure of itself:
at equal weight it did harm to the labels of real posts, at 0.3 to 0.5 good."""

_NAMED = 0.9
"""Probability given to a category that a model named without saying how sure it is."""

_ROOM = 0.85
"""Share of the window that prompt and text may fill: counts of tokens are estimates on some servers."""

_KEPT = 4096


@dataclass(frozen=True)
class Answer:
    """Log-probabilities (nats) of the categories of each attribute asked for; fewer attributes than
    asked where the outcome is not OK."""

    scores: Mapping[int, Scores]
    outcome: Outcome = Outcome.OK
    reason: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass
class Questions:
    """Asks one model. Answers to the same question on the same text are kept in memory for a while,
    so that picking a candidate and verifying it cost one call."""

    spec: Spec
    model: ChatModel
    examples: Examples
    parents: tuple[int, ...]
    scoring: bool = True
    _kept: OrderedDict[tuple[Any, ...], Scores] = field(default_factory=OrderedDict, repr=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def weigh(
        self,
        text: str,
        attributes: Sequence[int],
        given: Mapping[int, int] | None = None,
        prior: Mapping[int, Scores] | None = None,
    ) -> Answer:
        """Scores of `attributes` (parents before children), where `given` says what is known of the
        text already and `prior` what a classifier thinks: its log-probabilities are added to the
        model's weighted ones."""
        known, prior = dict(given or {}), prior or {}
        scores: dict[int, Scores] = {}
        usage = Usage()
        if self.scoring:
            for i in attributes:
                found = self._score(text, i, known)
                usage += found.usage
                if found.outcome is Outcome.UNAVAILABLE and not found.scores:
                    self.scoring = False  # this server gives no log-probabilities
                    break
                if found.outcome is not Outcome.OK:
                    return Answer(scores, found.outcome, found.reason, usage)
                scores[i] = _sum(found.scores[i], prior.get(i))
                known.setdefault(i, int(scores[i].argmax()))
        left = [i for i in attributes if i not in scores]
        if left:
            found = self._choose(text, left)
            scores |= {i: _sum(value, prior.get(i)) for i, value in found.scores.items()}
            return Answer(scores, found.outcome, found.reason, usage + found.usage)
        return Answer(scores, usage=usage)

    def _score(self, text: str, i: int, known: Mapping[int, int]) -> Answer:
        parent = self.parents[i]
        context = {parent: known[parent]} if parent in known else {}
        key = (text, i, tuple(context.items()))
        with self._guard:
            if key in self._kept:
                return Answer({i: self._kept[key]})
        head = self._prefix(i, context)
        words = category_words(self.spec.attributes[i])
        parts, usage = [], Usage()
        for window in self._windows(head, text):
            reply = self.model.score([*head, HumanMessage(marked(window))], words)
            usage += reply.usage
            if reply.outcome is not Outcome.OK:
                return Answer({}, reply.outcome, reply.reason, usage)
            parts.append(np.array(reply.value.log_probabilities))
        scores = np.mean(parts, axis=0)
        with self._guard:
            self._kept[key] = scores
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return Answer({i: scores}, usage=usage)

    def _prefix(self, i: int, context: Mapping[int, int]) -> list[BaseMessage]:
        """What is the same for all texts, so that a server reads it once."""
        key = (i, tuple(context.items()))
        prefix = self._prefixes.get(key)
        if prefix is None:
            prefix = self._prefixes[key] = self._new_prefix(i, context)
        return prefix

    @cached_property
    def _prefixes(self) -> dict[tuple[int, tuple[tuple[int, int], ...]], list[BaseMessage]]:
        return {}

    def _new_prefix(self, i: int, context: Mapping[int, int]) -> list[BaseMessage]:
        attribute, prompt = self.spec.attributes[i], load("score")
        words = category_words(attribute)
        facts = "; ".join(
            f"{self.spec.attributes[j].name}: {self.spec.attributes[j].categories[c].name}"
            for j, c in context.items()
        )
        system = prompt.say(
            "system",
            question=question(attribute),
            categories=category_list(attribute, words, "score", "word"),
            known=prompt.say("known", facts=facts) if facts else "",
            words=", ".join(words),
        )
        messages: list[BaseMessage] = [SystemMessage(system)]
        rounds = [
            self.examples.of_category(i, code, context, 2 if len(words) <= 3 else 1)
            for code in range(len(words))
        ]
        if len(words) <= 8 and all(rounds):
            for turn in range(max(map(len, rounds))):
                for word, texts in zip(words, rounds, strict=True):
                    if turn < len(texts):
                        messages += [HumanMessage(marked(texts[turn])), AIMessage(word)]
        return messages

    def _choose(self, text: str, attributes: Sequence[int]) -> Answer:
        """One structured call for several attributes; of a long text each window votes."""
        head, schema = self._choice(tuple(attributes))
        votes: list[dict[int, Scores]] = []
        usage = Usage()
        for window in self._windows(head, text):
            reply = self.model.structured(
                [*head, HumanMessage(marked(window))],
                schema,
                temperature=0.0,
                max_tokens=64 + 32 * len(attributes),
            )
            usage += reply.usage
            if reply.outcome is not Outcome.OK:
                return Answer({}, reply.outcome, reply.reason, usage)
            votes.append(self._one_hot(reply.value, attributes))
        return Answer({i: np.mean([vote[i] for vote in votes], axis=0) for i in attributes}, usage=usage)

    def _choice(self, attributes: tuple[int, ...]) -> tuple[list[BaseMessage], type[BaseModel]]:
        """What is asked about these attributes, whatever the text, and how the answer must look."""
        found = self._choices.get(attributes)
        if found is None:
            head: list[BaseMessage] = [SystemMessage(label_instruction(self.spec, attributes))]
            found = self._choices[attributes] = head, choice_schema(self.spec, attributes)
        return found

    @cached_property
    def _choices(self) -> dict[tuple[int, ...], tuple[list[BaseMessage], type[BaseModel]]]:
        return {}

    def _one_hot(self, value: BaseModel, attributes: Sequence[int]) -> dict[int, Scores]:
        named = value.model_dump()
        scores = {}
        for place, i in enumerate(attributes):
            names = self.spec.attributes[i].category_names
            rest = (1.0 - _NAMED) / max(1, len(names) - 1)
            masses = np.full(len(names), rest)
            masses[names.index(named[_field(place)])] = _NAMED
            scores[i] = np.log(masses / masses.sum())
        return scores

    def _windows(self, head: Sequence[BaseMessage], text: str) -> list[str]:
        context = self.model.context
        if context is None or len(text) < context // 4:  # fits whatever the tokens are
            return [text]
        used = self.model.count_tokens("\n".join(str(message.content) for message in head))
        return list(windows(text, max(64, int(_ROOM * context) - used - 128), self.model.count_tokens))


def _sum(asked: Scores, prior: Scores | None) -> Scores:
    return asked if prior is None else WEIGHT * asked + prior


def alone(summed: Scores, prior: Scores) -> Scores:
    """What the model said by itself of scores to which a classifier's `prior` was added, not normalised."""
    return (summed - prior) / WEIGHT


def label_instruction(spec: Spec, attributes: Sequence[int]) -> str:
    """What is asked of a text in one structured call."""
    prompt = load("label")
    blocks = []
    for i in attributes:
        attribute = spec.attributes[i]
        blocks.append(
            prompt.say(
                "attribute",
                name=attribute.name,
                description=attribute.description or attribute.name,
                categories=category_list(attribute, attribute.category_names, "label", "name"),
            )
        )
    said: str = prompt.say("system", attributes="\n\n".join(blocks))
    return said


def choice_schema(spec: Spec, attributes: Sequence[int]) -> type[BaseModel]:
    """A model with one field for each attribute, an enum of its category names.

    In JSON a field is called after its attribute: a small model answers what the key before it says.
    """
    fields: dict[str, Any] = {
        _field(place): (Literal[spec.attributes[i].category_names], Field(alias=key))
        for place, (i, key) in enumerate(zip(attributes, _keys(spec, attributes), strict=True))
    }
    return create_model("Labels", __config__=ConfigDict(extra="forbid"), **fields)


def _keys(spec: Spec, attributes: Sequence[int]) -> list[str]:
    """The attributes' names as servers allow them in a schema, or numbers where nothing would be left."""
    keys = [re.sub(r"[^A-Za-z0-9_.-]+", "_", spec.attributes[i].name)[:64].strip("_") for i in attributes]
    return [key if key and keys.count(key) == 1 else _field(place) for place, key in enumerate(keys)]


def _field(place: int) -> str:
    """In Python fields are numbered: an attribute may be called anything, a field may not."""
    return f"attribute_{place + 1}"
