"""How many released texts say what they should, corrected for the mistakes of the judge who read them.

A judge who is right three times in four calls a perfect release three quarters on target, and a judge at
chance calls any release half on target. So the share h that is read as on target is corrected by how the
judge reads texts whose labels are known: (h − f) / (s − f) (Rogan & Gladen 1978, Am. J. Epidemiol. 107; the
adjusted count of Forman 2008). Here s is how often a known text is read as what it says, and f how often it
is read as a target that it misses, drawn like those of the release. For all attributes at once both are
counted on whole texts, since a text that is misread in one attribute is often misread in another; a miss is
then one in a single attribute, the hardest to see, in each as often as its own corrected share says.

It takes for granted that the judge errs on released texts as on those known. The interval counts what few
texts and what few known labels leave open: a Bayesian bootstrap (Rubin 1981) of both, with one text more on
either side, half hit and half missed (Jeffreys' prior), so that 24 hits of 24 are not taken for certainty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from quantext_graph.audit.attacks import UNKNOWN
from quantext_graph.core.arrays import Codes, Floats
from quantext_graph.workspace.reports import Estimate, Judgement

DRAWS = 500
"""Draws that an interval is made of."""

_TAIL = 0.05  # on either side of an interval, and of the judge's accuracy
_Mask = NDArray[np.bool_]


def judgement(
    read: Codes,
    targets: Codes,
    known: tuple[Codes, Codes] | None,
    names: Sequence[str],
    *,
    evaluator: str,
    off: _Mask | None = None,
    rng: np.random.Generator | None = None,
) -> Judgement | None:
    """How well n texts say their targets; None where no text has a whole target.

    Args:
        read: (n, m) codes that the judge read off the texts; `UNKNOWN`, which it could not tell, is a miss.
        targets: (n, m) what they should say.
        known: what the judge read off N texts whose labels are known, and these labels, (N, m) each.
        names: of the m attributes.
        evaluator: who judged, in words.
        off: (n,) texts that are off target whatever the judge reads, made of the spec's words alone.
        rng: of the intervals; nothing of it is secret.
    """
    told = (targets != UNKNOWN).all(axis=1)
    if not told.any():
        return None
    off = np.zeros(len(read), dtype=bool) if off is None else off
    hits = (read == targets) & ~off[:, None]
    skills = {} if known is None else _skills(*known, names)
    good = [r for r, name in enumerate(names) if name in skills and skills[name].better_than_chance]
    alone: dict[int, Estimate] = {}
    together = None
    if known is not None:
        texts = _Texts(targets[told & ~off], hits[told & ~off], 1 - float(off[told].mean()))
        alone, together = _corrected(texts, known, good, rng or np.random.default_rng(0))
    return Judgement(
        evaluator=evaluator,
        accuracy={name: skills[name].accuracy if name in skills else None for name in names},
        chance={name: skill.chance for name, skill in skills.items()},
        judge_better_than_chance={name: skill.better_than_chance for name, skill in skills.items()},
        read_on_target=float(hits[told].all(axis=1).mean()),
        read_by_attribute=dict(zip(names, hits[told].mean(axis=0).tolist(), strict=True)),
        corrected=together,
        corrected_by_attribute={names[r]: found for r, found in alone.items()},
    )


@dataclass(frozen=True)
class _Skill:
    """How a judge reads one attribute of n texts whose labels are known: `accuracy`, and what naming the
    commonest category would reach."""

    accuracy: float
    chance: float
    n: int

    @property
    def better_than_chance(self) -> bool:
        """Whether the lower bound (95 %, Wilson 1927) of the accuracy is above chance."""
        z = NormalDist().inv_cdf(1 - _TAIL)
        share, slack = self.accuracy, z * z / (2 * self.n)
        spread = z * math.sqrt((share * (1 - share) + slack / 2) / self.n)
        return (share + slack - spread) / (1 + 2 * slack) > self.chance


def _skills(read: Codes, true: Codes, names: Sequence[str]) -> dict[str, _Skill]:
    """Of each attribute that has known labels."""
    found = {}
    for r, name in enumerate(names):
        labels = true[true[:, r] != UNKNOWN, r]
        if n := len(labels):
            right = read[true[:, r] != UNKNOWN, r] == labels
            found[name] = _Skill(float(right.mean()), float(np.bincount(labels).max() / n), n)
    return found


@dataclass(frozen=True)
class _Texts:
    """Released texts, but for those that are off target for sure: `targets` and `hits` (n, m); the others are
    the share `part` of all."""

    targets: Codes
    hits: _Mask
    part: float


def _corrected(
    texts: _Texts, known: tuple[Codes, Codes], good: Sequence[int], rng: np.random.Generator
) -> tuple[dict[int, Estimate], Estimate | None]:
    """The share in each attribute that the judge is good at and, if these are all, in all at once."""
    alone = {}
    for r in good:
        if found := _estimate(texts, known, [r], np.ones(1), rng):
            alone[r] = found
    m = texts.targets.shape[1]
    if len(alone) < m:
        return alone, None
    if m == 1:
        return alone, alone[0]
    missed = np.array([1 - alone[r].share for r in range(m)])
    missed = missed / missed.sum() if missed.any() else np.full(m, 1 / m)
    return alone, _estimate(texts, known, range(m), missed, rng)


def _estimate(
    texts: _Texts,
    known: tuple[Codes, Codes],
    attributes: Sequence[int],
    missed: Floats,
    rng: np.random.Generator,
) -> Estimate | None:
    """The share of texts on target in these attributes at once; None where the judge reads a text that misses
    its target as hitting it as often as one that hits it. `missed`: which attribute a miss is in, shares.

    Texts of a category that the known texts lack, which the judge cannot tell, are left out.
    """
    if not texts.part:
        return Estimate(share=0.0, low=0.0, high=0.0)
    read, true = (side[(known[1][:, attributes] != UNKNOWN).all(axis=1)][:, attributes] for side in known)
    targets = texts.targets[:, attributes]
    told = np.all([np.isin(targets[:, i], true[:, i]) for i in range(len(attributes))], axis=0)
    if not told.any():
        return None
    hit = texts.hits[told][:, attributes].all(axis=1)
    readings = _Readings.of(read, true, targets[told], missed)
    share = readings.corrected(float(hit.mean()))
    if share is None:
        return None
    shares = rng.beta(hit.sum() + 0.5, (~hit).sum() + 0.5, size=DRAWS)
    drawn = [readings.corrected(float(each), rng) for each in shares]
    bounds = np.quantile([each for each in drawn if each is not None] or [0.0, 1.0], [_TAIL, 1 - _TAIL])
    low, high = min(share, float(bounds[0])), max(share, float(bounds[1]))
    return Estimate(share=texts.part * share, low=texts.part * low, high=texts.part * high)


@dataclass(frozen=True)
class _Readings:
    """How N known texts were read, (N,) each: whether all of one is read as what it says (`right`), and the
    chance that it is read as a target that it misses (`taken`). By their `weights` they are spread over the
    categories as the targets of the release are."""

    right: Floats
    taken: Floats
    weights: Floats

    @classmethod
    def of(cls, read: Codes, true: Codes, targets: Codes, missed: Floats) -> _Readings:
        right = read == true
        weights, taken = np.ones(len(read)), np.zeros(len(read))
        for i in range(read.shape[1]):
            said, label = read[:, i], true[:, i]
            size = 1 + int(max(label.max(), targets[:, i].max(), said.max()))
            aimed, there = (np.bincount(side, minlength=size) / len(side) for side in (targets[:, i], label))
            weights *= aimed[label] / there[label]
            wrong = np.delete(right, i, axis=1).all(axis=1) & (said != label) & (said != UNKNOWN)
            others = 1 - aimed[label]  # the targets that a text of this label misses
            as_target = np.divide(aimed[said], others, out=np.ones(len(read)), where=others > 0)
            taken += missed[i] * wrong * as_target
        return cls(right.all(axis=1).astype(np.float64), taken, weights / max(float(weights.mean()), 1e-9))

    def corrected(self, share: float, rng: np.random.Generator | None = None) -> float | None:
        """What a share that is read as on target stands for; with `rng` a draw of what it may."""
        weights, added = self.weights, np.zeros(2)
        if rng is not None:
            weights, added = weights * rng.standard_exponential(len(weights)), rng.standard_gamma(0.5, 2)
        total = max(float(weights.sum() + added.sum()), 1e-9)
        s, f = (float((weights @ side + added[0]) / total) for side in (self.right, self.taken))
        return min(1.0, max(0.0, (share - f) / (s - f))) if s > f else None
