"""Tokens, money and time: estimated before a run, counted after it, retries included."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from quantext_graph.core.targets import released_count
from quantext_graph.prompts import load
from quantext_graph.spec.models import ModelSpec, Spec
from quantext_graph.steps.passages import is_small, passage_words
from quantext_graph.steps.public_rows import ENOUGH, SMALLEST
from quantext_graph.steps.wording import describe
from quantext_graph.workspace.records import UsageRow
from quantext_graph.workspace.speeds import remembered

EMBEDDED_SECONDS = 4.0
"""What a call of the embedded 1.5B model took on two cores; other models have other speeds."""

_CHARACTERS = 4.0  # of a token
_SCORED = ("embedded", "ollama")  # providers that are asked one question for each attribute
_DEMONSTRATIONS = 5
_WORD = 6.0  # characters of a word, the blank with it
_WITH_GAPS = 0.6  # share of the passages that are written again for their gaps
_SNIPPETS = 60  # tokens of the reply to an extraction
_LABEL = 12  # tokens of the reply that names one category


@dataclass(frozen=True)
class Work:
    """Calls, tokens read and written, and money where every model's price is known."""

    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    cost: float | None = 0.0

    def __add__(self, other: Work) -> Work:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Work(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            cost,
        )

    def times(self, count: float) -> Work:
        cost = None if self.cost is None else self.cost * count
        return Work(self.calls * count, self.input_tokens * count, self.output_tokens * count, cost)

    def to_json(self) -> dict[str, Any]:
        return {
            "calls": round(self.calls),
            "input_tokens": round(self.input_tokens),
            "output_tokens": round(self.output_tokens),
            "cost": None if self.cost is None else round(self.cost, 4),
        }


@dataclass(frozen=True)
class Estimate:
    """The work of a whole run: at least, and at most if every record needs every attempt. `seconds` is
    for the least, None where nothing is known of the model's speed; `speed` says how it is known."""

    least: Work
    most: Work
    seconds: float | None
    speed: str

    @property
    def calls(self) -> int:
        return round(self.least.calls)

    @property
    def calls_at_most(self) -> int:
        return round(self.most.calls)

    def to_json(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "calls_at_most": self.calls_at_most,
            "seconds": self.seconds,
            "speed": self.speed,
            "least": self.least.to_json(),
            "most": self.most.to_json(),
        }

    def line(self) -> str:
        least, most = self.least, self.most
        if not most.calls:
            return "no model is called"
        said = (
            f"between {self.calls} and {self.calls_at_most} model calls, "
            f"{_count(least.input_tokens)} to {_count(most.input_tokens)} tokens read and "
            f"{_count(least.output_tokens)} to {_count(most.output_tokens)} written"
        )
        if least.cost is not None and most.cost is not None:
            said += f", {least.cost:.2f} to {most.cost:.2f} in money"
        if self.seconds is None:
            return f"{said}; {self.speed}"
        return f"{said}; about {max(1, round(self.seconds / 60))} minutes or more, {self.speed}"


def estimate(
    spec: Spec, n: int, *, characters: float, public: Iterable[str] = (), written: float = 1.0
) -> Estimate:
    """The work for `n` records of `characters` each on average, with these public texts beside them: all are
    labelled, and of as many as `mechanism.keep` says this share is `written`."""
    if not spec.rewriting.needs_model:
        return Estimate(Work(), Work(), 0.0, "no model is called")
    steps, count = _Steps.of(spec, characters, list(public)), written * released_count(n, spec.mechanism.keep)
    attempts = steps.most_attempt + steps.rewrite
    least = steps.label.times(n) + (steps.once + steps.attempt + steps.rewrite).times(count)
    most = steps.label.times(n) + (steps.once + attempts.times(spec.limits.attempts + 1)).times(count)
    seconds, speed = _time(spec.models.chat, least)
    return Estimate(least, most, seconds, speed)


@dataclass(frozen=True)
class _Steps:
    """Work a record: its `label`; `once` (extract, the judge of the finished release), then each attempt's
    judging and writing."""

    label: Work
    once: Work
    attempt: Work
    most_attempt: Work
    rewrite: Work

    @classmethod
    def of(cls, spec: Spec, characters: float, public: list[str]) -> _Steps:
        chat, verify = spec.models.chat, spec.models.verify or spec.models.chat
        text = characters / _CHARACTERS
        target = len(describe(spec, [0] * len(spec.attributes))) / _CHARACTERS
        head = {
            name: sum(map(len, load(name).sections.values())) / _CHARACTERS
            for name in ("label", "notes", "snippets", "rewrite", "source")
        }
        labelled = [a for a in spec.attributes if not a.by_column]
        asked = [a for a in labelled if a.labels != "classifier" or len(public) < ENOUGH]
        label = _judging(verify, len(asked), head["label"] + text, spec)
        judge = _judging(verify, len(spec.attributes), head["label"] + text, spec)
        if spec.rewriting.recipe == "source":
            extract = _work(chat, 1, head["snippets"] + target + text, _SNIPPETS)
            rewrite = _work(chat, 1, head["source"] + target + text, spec.limits.candidates * text)
        else:
            size = passage_words(is_small(chat.model))
            parts = max(1.0, text * _CHARACTERS / _WORD / size)
            extract = _work(chat, parts, head["notes"] + text / parts, text / parts)
            shown = head["rewrite"] + target + _DEMONSTRATIONS * 2 * min(size, 60) + 2 * text
            rewrite = _work(chat, max(1.0, _WITH_GAPS * parts), shown, 1.1 * text / parts)
        last = judge if len(public) < SMALLEST else Work()
        picked = Work() if len(public) >= ENOUGH else judge
        return cls(label, extract + last, picked, judge, rewrite)


def _judging(model: ModelSpec, attributes: int, prompt: float, spec: Spec) -> Work:
    """Labelling a text, or judging one: a question for each attribute, or one for all."""
    if not attributes:
        return Work()
    categories = sum(len(str(a.categories)) for a in spec.attributes) / len(spec.attributes) / _CHARACTERS
    if model.provider in _SCORED:
        return _work(model, attributes, prompt + categories, 1)
    return _work(model, 1, prompt + categories * attributes, _LABEL * attributes)


def _work(model: ModelSpec, calls: float, read: float, written: float) -> Work:
    """`calls` of one model with so many tokens each."""
    return Work(calls, calls * read, calls * written, _cost(model, calls * read, calls * written))


def _cost(model: ModelSpec, read: float, written: float) -> float | None:
    if model.price is None:
        return None
    return (model.price.input * read + model.price.output * written) / 1e6


def _time(model: ModelSpec, work: Work) -> tuple[float | None, str]:
    if model.tokens_per_second is not None:
        return work.output_tokens / model.tokens_per_second, f"at {model.tokens_per_second:g} tokens a second"
    if (seconds := remembered().get(model.model)) is not None:
        return work.calls * seconds, f"at {seconds:.2g} s a call, as in the last run with this model"
    if model.embedded:
        return work.calls * EMBEDDED_SECONDS, f"at {EMBEDDED_SECONDS:g} s a call, as on two cores"
    return None, "how long is not known before a first run with this model, or say `tokens_per_second`"


class Spent(UsageRow):
    """What a step has spent on a model, and what it cost: None where the spec gives no price."""

    cost: float | None = None


def spent(spec: Spec, usage: Iterable[UsageRow]) -> list[Spent]:
    """What each step has cost so far on each model, retries included."""
    models = (spec.models.chat, spec.models.verify, spec.models.evaluate)
    known = {model.model: model for model in models if model is not None}
    rows = []
    for row in usage:
        model = known.get(row.model)
        cost = None if model is None else _cost(model, row.input_tokens, row.output_tokens)
        rows.append(Spent(**row.model_dump(), cost=None if cost is None else round(cost, 6)))
    return rows


def usage_line(row: Spent) -> str:
    money = "" if row.cost is None else f", {row.cost:.2f} in money"
    return (
        f"{row.step} with {row.model}: {row.calls} calls, "
        f"{_count(row.input_tokens)} tokens read, {_count(row.output_tokens)} written{money}"
    )


def _count(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"
