"""What the store keeps of each record, and what it counts.

What holds text is read with `model_construct`: the store wrote it, and there are as many as records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Kept(BaseModel):
    """What is stored as JSON, with these keys."""

    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True)
class StoredRecord:
    """A private record: its id in the store, its row in the data set, and what columns say of it."""

    id: int
    row: int
    text: str
    known: Mapping[int, int]


class StoredAttempt(Kept):
    """One text that was written for a record. `failures` names what it missed."""

    text: str
    on_target: bool
    failures: tuple[str, ...] = ()


Origin = Literal["written", "own", "public"]
"""Where a released text comes from: a model, its record's own words, or the public set."""


class RewriteDetail(Kept):
    """How a released text came about: its origin, and of a written one what it was written from and every
    attempt in order."""

    origin: Origin = "written"
    snippets: tuple[str, ...] = ()
    fallback: bool = False
    attempts: tuple[StoredAttempt, ...] = ()

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> RewriteDetail:
        """What `model_dump` gave, through JSON."""
        attempts = tuple(StoredAttempt.model_construct(**attempt) for attempt in found["attempts"])
        return cls.model_construct(
            origin=found.get("origin", "written"),
            snippets=found["snippets"],
            fallback=found["fallback"],
            attempts=attempts,
        )


@dataclass(frozen=True)
class Rewrite:
    """What came of one record: the text to publish and what the private report needs to know."""

    id: int
    text: str
    verified: bool
    detail: RewriteDetail = field(default_factory=RewriteDetail)


@dataclass(frozen=True)
class StoredPair:
    """A record before and after, with category codes in the order of the spec."""

    id: int
    row: int
    text: str
    labels: tuple[int, ...]
    target: tuple[int, ...]
    released: str
    verified: bool
    detail: RewriteDetail

    def after(self, attempts: int) -> StoredAttempt:
        """The attempt that the record would have ended with, had `attempts` been the limit."""
        if not self.detail.attempts:  # nobody wrote it
            return StoredAttempt.model_construct(text=self.released, on_target=self.verified, failures=())
        tried = self.detail.attempts[:attempts]
        return next((attempt for attempt in tried if attempt.on_target), tried[-1])


@dataclass(frozen=True)
class Failure:
    """A record that a step failed on: its row in the data set and why, in words that hold no text."""

    row: int
    step: str
    reason: str


@dataclass(frozen=True)
class Counts:
    """How far a run is; what `quantext status --json` prints. Of `n` records `released` come out."""

    stage: str
    n: int
    released: int
    labeled: int
    rewritten: int
    verified: int
    unverified: int


class UsageRow(Kept):
    """What a step has spent on a model, retries included; `seconds` of waiting for replies."""

    step: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    seconds: float = 0.0
