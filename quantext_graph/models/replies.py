"""What comes back from a model: outcomes, usage, and the reading of one reply.

A reply is read or it is not: nothing of a reply that fails to validate leaves this module, and the
reasons given to people name fields and kinds of mistakes, never what the model wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

T = TypeVar("T", bound=BaseModel)


class Outcome(StrEnum):
    """How a call to a model ended."""

    OK = "ok"
    INVALID = "invalid"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class Usage:
    """What calls cost: requests sent (retries included), tokens, seconds of waiting for replies."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True)
class Reply(Generic[T]):
    """The outcome of one call. `values` holds every candidate that validated and is non-empty iff
    the outcome is OK; `reason` is for people and holds neither reply nor record text."""

    outcome: Outcome
    values: tuple[T, ...] = field(default=(), repr=False)
    reason: str = ""
    usage: Usage = Usage()

    @property
    def value(self) -> T:
        """The first candidate; raises `ValueError` where there is none."""
        if not self.values:
            raise ValueError(f"the reply is {self.outcome}: {self.reason}")
        return self.values[0]


class Scores(BaseModel):
    """Log-probabilities (nats) of the options, normalised over them, in the order asked."""

    log_probabilities: tuple[float, ...]


@dataclass(frozen=True)
class Token:
    """A likely next token and its log-probability (nats)."""

    text: str
    log_probability: float


@dataclass(frozen=True)
class Candidate:
    """One completion as the server gave it. `finish` is its finish reason, folded to `stop`,
    `length`, `refusal` or what else the server says; `likely` are the alternatives for its first token."""

    text: str = field(repr=False)
    finish: str = "stop"
    likely: tuple[Token, ...] = field(default=(), repr=False)


class Unreadable(Exception):
    """A candidate that cannot be used. `reason` goes to people, `feedback` back to the model alone."""

    def __init__(self, outcome: Outcome, reason: str, feedback: str = "") -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.feedback = feedback or reason


_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_LATE_THOUGHT = re.compile(r"\A.*</(think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """`text` without `<think>` passages, also where the template swallowed the opening tag."""
    return _LATE_THOUGHT.sub("", _THOUGHT.sub("", text)).strip()


def finished(candidate: Candidate) -> str:
    """The text of a candidate that ended by itself.

    Raises:
        Unreadable: where it was cut by the token limit (also if what is there parses), filtered or empty.
    """
    if candidate.finish == "length":
        raise Unreadable(Outcome.TRUNCATED, "the reply was cut off at its token limit")
    if candidate.finish in ("refusal", "content_filter"):
        raise Unreadable(Outcome.REFUSED, "the model or its content filter refused")
    text = without_thoughts(candidate.text)
    if not text:
        raise Unreadable(Outcome.INVALID, "the reply is empty")
    return text


def read_json(candidate: Candidate, output: type[T]) -> T:
    """The one JSON object in a reply that validates as `output`; prose and fences around it are ignored.

    Raises:
        Unreadable: where there is no such object, or several that differ.
    """
    text = finished(candidate)
    valid: list[T] = []
    mistake: ValidationError | None = None
    for found in _objects(text):
        try:
            value = output.model_validate(found)
        except ValidationError as error:
            mistake = mistake or error
            continue
        if value not in valid:
            valid.append(value)
    if len(valid) == 1:
        return valid[0]
    if valid:
        raise Unreadable(Outcome.INVALID, "the reply holds several answers that differ")
    if mistake is None:
        raise Unreadable(Outcome.INVALID, "the reply holds no JSON object")
    raise Unreadable(Outcome.INVALID, _reason(mistake, output), _feedback(mistake))


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Outermost JSON objects of `text`, in order."""
    decoder = json.JSONDecoder()
    place = text.find("{")
    while place >= 0:
        try:
            found, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield found
        place = text.find("{", end)


def _reason(error: ValidationError, output: type[BaseModel]) -> str:
    """Fields and kinds of mistakes; a key that the model invented is reply text and stays out."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    name = first["loc"][0] if first["loc"] else ""
    where = f"`{name}`" if name in output.model_fields else "the reply"
    return f"{where} does not fit the schema ({first['type']})"


def _feedback(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(str(part) for part in item['loc']) or 'reply'}: {item['msg']}"
        for item in error.errors(include_input=False, include_url=False)[:5]
    )


def read_text(candidate: Candidate, output: type[T], opening: str, prefilled: bool) -> T:
    """A written text, whole from its opening on, validated as `output(text=...)`.

    A server that continues a prefilled opening returns either the continuation or all of it; one
    that was only told the opening must have begun with it.

    Raises:
        Unreadable: where it was cut, is empty, begins otherwise, or `output` refuses it.
    """
    text = finished(candidate) if not prefilled else _continued(candidate, opening)
    if not prefilled and opening and not _folded(text).startswith(_folded(opening)):
        raise Unreadable(Outcome.INVALID, "the text does not begin with its opening")
    try:
        return output.model_validate({"text": text})
    except ValidationError as error:
        raise Unreadable(Outcome.INVALID, _reason(error, output), _feedback(error)) from None


def _continued(candidate: Candidate, opening: str) -> str:
    if not candidate.text.strip() and candidate.finish == "stop":
        return opening.strip()  # the model found that the opening says it all
    finished(candidate)
    text = candidate.text
    if text.lstrip().startswith(opening.strip()):
        return text.strip()
    return (opening + text).strip()


def _folded(text: str) -> str:
    return " ".join(text.split())
