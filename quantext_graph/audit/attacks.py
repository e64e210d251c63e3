"""What an attacker learns of a secret proportion: the record of an attack, and what it is held against.

An attack is judged by its error beside `prior_error`, the error of a guess that somebody could make
without the release. A distance that the mechanism put there is no protection where the guess is as near.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from quantext_graph.core.arrays import Codes, Event, event_mask
from quantext_graph.spec.models import Spec

UNKNOWN = -1
"""The code of a label that nobody gave."""


@dataclass(frozen=True)
class Attack:
    """One attacker's answer for one secret.

    `attack` is the name of its kind, `by` who or what made it (a model, an estimator). `estimate`, `error`
    and `prior_error` are shares in [0, 1]. Of an attack about an attribute, which `secret` then names, they
    are the accuracy at telling a record's original label, its rate of mistakes, and the rate without the
    text.
    """

    attack: str
    by: str
    secret: str
    estimate: float
    error: float
    prior_error: float
    detail: Mapping[str, Any] = field(default_factory=dict)
    about: Literal["secret", "attribute"] = "secret"

    @property
    def relative_error(self) -> float | None:
        """Error as a multiple of the prior-only one: below 1 the release told the attacker something.
        None where the prior guess is right already."""
        return self.error / self.prior_error if self.prior_error > 0 else None

    def to_json(self) -> dict[str, Any]:
        return {
            "attack": self.attack,
            "by": self.by,
            "secret": self.secret,
            "estimate": self.estimate,
            "error": self.error,
            "prior_error": self.prior_error,
            "relative_error": self.relative_error,
            **self.detail,
        }


@dataclass(frozen=True)
class Skipped:
    """An attack that could not be made, or a use that could not be tried, and why (for people)."""

    attack: str
    reason: str


@dataclass(frozen=True)
class AttackedSecret:
    """A secret with its true share and what anybody would guess it to be: the share of the public
    auxiliary set, or, without one, that of equally likely categories."""

    title: str
    event: Event
    truth: float
    guess: float

    def attacked(self, attack: str, by: str, estimate: float, **detail: Any) -> Attack:
        """The record of an attack that answered `estimate`; the prior is the public guess."""
        return Attack(
            attack, by, self.title, estimate, abs(estimate - self.truth), abs(self.guess - self.truth), detail
        )


def attacked_secrets(spec: Spec, private: Codes, auxiliary: Codes | None = None) -> list[AttackedSecret]:
    """The secrets of the spec that the private labels (n, m) can answer; `UNKNOWN` marks a missing label."""
    secrets = []
    for secret in spec.secrets:
        event = spec.secret_codes(secret)
        truth = share(private, event)
        if truth is None:
            continue
        guess = public_guess(event, spec.sizes, auxiliary)
        secrets.append(AttackedSecret(secret.title, event, truth, guess))
    return secrets


def public_guess(event: Event, sizes: Sequence[int], auxiliary: Codes | None) -> float:
    """What anybody would guess the share of the event to be: `AttackedSecret.guess`."""
    known = None if auxiliary is None else share(auxiliary, event)
    if known is not None:
        return known
    return math.prod(len(values) / sizes[r] for r, values in event.items())


def share(codes: Codes, event: Event) -> float | None:
    """Share of the event among the rows of (n, m) codes labelled in its attributes; None if none is."""
    labelled = codes[labelled_rows(codes, event)]
    return float(event_mask(labelled, event).mean()) if len(labelled) else None


def labelled_rows(codes: Codes, event: Event) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows of (n, m) codes have a label in every attribute of the event, shape (n,)."""
    return np.asarray((codes[:, list(event)] != UNKNOWN).all(axis=1))
