"""What wrong labels cost where texts say what their record said.

The draw hides the share of *labels*. An attacker who reads texts better than the holder labelled them
counts, among the texts of each side of a secret, those whose record was truly inside; how many those are
moves with the private share (Bayes). All of it is made of public figures: how many texts come out, the
bound, and how often labels are wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from quantext_graph.core.arrays import Codes, Event, cells, event_mask, grid
from quantext_graph.spec.models import Secret, Spec

APART = 0.2
"""The two shares that an attacker is to tell apart lie so far from each other."""

STATED = 0.05
"""Share of wrong labels of which is said what it would cost, where nothing public says how many there are."""

_GRID_LIMIT = 100_000


@dataclass(frozen=True)
class HeldOut:
    """Public texts' codes (N, m), and what the labeller took those texts for while they were held out."""

    codes: Codes
    predicted: Codes


@dataclass(frozen=True)
class SideErrors:
    """How often labels put a record on the wrong side of a secret: of those inside the share `missed`, of
    those outside the share `added`."""

    missed: float
    added: float

    @classmethod
    def of(cls, found: HeldOut, event: Event) -> SideErrors:
        """Those of a labeller on public texts."""
        inside, read = event_mask(found.codes, event), event_mask(found.predicted, event)
        return cls(_mean(~read[inside]), _mean(read[~inside]))

    @classmethod
    def even(cls, codes: Codes, sizes: tuple[int, ...], event: Event, share: float) -> SideErrors:
        """Where a `share` of the labels of each attribute is wrong, any wrong category as likely as another,
        of records that are like the public ones with codes (N, m)."""
        inside = event_mask(codes, event)
        read_inside: NDArray[np.float64] = np.ones(len(codes))
        for r, values in event.items():
            others = max(1, sizes[r] - 1)
            stays = np.isin(codes[:, r], list(values))
            read_inside *= np.where(
                stays, 1 - share + share * (len(values) - 1) / others, share * len(values) / others
            )
        return cls(_mean(1 - read_inside[inside]), _mean(read_inside[~inside]))


def success(released: int, shares: tuple[float, float], errors: SideErrors, by_draw: float) -> float:
    """How often an attacker names the right one of two private shares who knows it from the draw with
    probability `by_draw` and counts the true sides of `released` texts, each of which says what its record
    was.

    The two counts, among the texts labelled inside and outside, are sums of independent texts: together they
    are as good as one normal figure whose means under the two shares are d standard deviations apart. A hint
    that is right with probability p beside it shifts where the attacker draws the line:
    p·Φ(d/2 + λ/d) + (1 − p)·Φ(d/2 − λ/d), with λ = log(p/(1 − p)).
    """
    if by_draw >= 1:
        return 1.0
    middle = sum(shares) / 2
    sides = np.array([_true_inside(share, errors) for share in shares])
    mean = sides.mean(axis=0)
    spread = mean * (1 - mean)
    texts = released * np.array([middle, 1 - middle])
    seen = spread > 0
    d = math.sqrt(float((texts * (sides[0] - sides[1]) ** 2)[seen] @ (1 / spread[seen])))
    if d < 1e-6:
        return by_draw
    shift = math.log(by_draw / (1 - by_draw)) / d
    return float(by_draw * ndtr(d / 2 + shift) + (1 - by_draw) * ndtr(d / 2 - shift))


def what_errors_cost(
    spec: Spec, released: int, nats: float, auxiliary: Codes | None, held_out: HeldOut | None = None
) -> str:
    """One sentence for check and card: what wrong labels would tell of the secret of which they tell most.

    Args:
        released: n′, how many texts come out.
        nats: of the bound on the draw.
        auxiliary: public codes (N, m).
        held_out: how well a classifier labels public texts; None where none labels.

    Returns:
        "" where the spec names no secret, or the bound promises nothing about two shares.
    """
    allowed = 0.5 * math.exp(nats)
    if allowed >= 1 or not spec.secrets:
        return ""
    costs = []
    for secret in spec.secrets:
        errors, public, said = _errors(spec, secret, auxiliary, held_out)
        costs.append((success(released, _two_shares(public), errors, allowed), said))
    found, said = max(costs)
    told = (
        "and by `recipe: none` they do"
        if spec.rewriting.recipe == "none"
        else "texts written to their target do not say it"
    )
    return (
        f"{said}, an attacker who reads without mistakes tells two shares {_hundredths(APART)} points apart "
        f"{_hundredths(found)} times in 100 where {_hundredths(allowed)} are allowed; {told}."
    )


def _errors(
    spec: Spec, secret: Secret, auxiliary: Codes | None, held_out: HeldOut | None
) -> tuple[SideErrors, float, str]:
    """How often labels are wrong about a secret, its public share, and both in words."""
    event = spec.secret_codes(secret)
    if held_out is not None:
        inside = event_mask(held_out.codes, event)
        errors = SideErrors.of(held_out, event)
        if errors != SideErrors(0.0, 0.0):
            public = float(inside.mean())
            wrong = public * errors.missed + (1 - public) * errors.added
            said = (
                f"The program's classifier puts {100 * wrong:.2g} in 100 public texts on the wrong side of "
                f"“{secret.title}”: where texts say what their record said"
            )
            return errors, public, said
    codes = auxiliary if auxiliary is not None else _all_alike(spec.sizes)
    public = float(event_mask(codes, event).mean())
    said = (
        f"Labels are taken as right: if {_hundredths(STATED)} in 100 were wrong and texts said what their "
        "record said"
    )
    return SideErrors.even(codes, spec.sizes, event, STATED), public, said


def _true_inside(share: float, errors: SideErrors) -> tuple[float, float]:
    """The share of true insiders among records labelled inside, and among those labelled outside."""
    inside, outside = share * (1 - errors.missed), (1 - share) * errors.added
    missed, right = share * errors.missed, (1 - share) * (1 - errors.added)
    return inside / ((inside + outside) or 1), missed / ((missed + right) or 1)


def _two_shares(public: float) -> tuple[float, float]:
    """Two shares `APART` around the public one, both possible."""
    low = min(max(0.02, public - APART / 2), 0.98 - APART)
    return low, low + APART


def _all_alike(sizes: tuple[int, ...]) -> Codes:
    """Every combination once, where no public set says how common each is."""
    if cells(sizes) <= _GRID_LIMIT:
        return grid(sizes)
    return np.random.default_rng(0).integers(sizes, size=(_GRID_LIMIT, len(sizes)))


def _hundredths(share: float) -> str:
    """A share in hundredths; nothing here is said to be certain."""
    return f"{min(99, round(100 * share))}"


def _mean(values: NDArray[np.bool_] | NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else 0.0
