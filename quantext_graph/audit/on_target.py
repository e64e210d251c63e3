"""How many released texts say what they should, corrected for the mistakes of the judge who read them.

A judge who is right three times in four calls a perfect release three quarters on target, and a judge at
chance calls any release half on target. So a share is corrected by how the judge reads texts whose labels
are known (Rogan & Gladen 1978, Am. J. Epidemiol. 107; adjusted count in Forman 2008): of each category its
`sensitivity` s, the share of texts of the category that it reads as such, and its false positives f, the same
share of all other texts. A text on target is read as on target with chance s, another one with chance f, so
Σ (hit − f) / Σ (s − f) over the texts has the share on target as its mean; for several attributes at once the
terms are products over them. It takes for granted that the judge errs on released texts as on those known,
apart in each attribute, and that one category is hit about as often as another: those that the judge can
hardly tell count little.

The interval counts both what few texts and what few known labels leave open: sensitivity and false positives
are drawn from their posteriors under Jeffreys' prior, the texts by a Bayesian bootstrap (Rubin 1981) with two
texts of weight ½ added, one hit and one missed, so that 24 hits of 24 are not taken for certainty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantext_graph.audit.attacks import UNKNOWN
from quantext_graph.core.arrays import Codes, Floats, combinations
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
    hits = ((read == targets) & ~off[:, None])[told]
    judges = {} if known is None else _judges(*known, targets, names)
    good = [r for r, name in enumerate(names) if name in judges and judges[name].better_than_chance]
    rng = rng or np.random.default_rng(0)

    def corrected(attributes: list[int]) -> Estimate | None:
        chosen = [judges[names[r]] for r in attributes]
        return _corrected(targets[told][:, attributes], hits[:, attributes], off[told], chosen, rng)

    alone = {names[r]: corrected([r]) for r in good}
    return Judgement(
        evaluator=evaluator,
        accuracy={name: judges[name].accuracy if name in judges else None for name in names},
        chance={name: judge.chance for name, judge in judges.items()},
        judge_better_than_chance={name: judge.better_than_chance for name, judge in judges.items()},
        read_on_target=float(hits.all(axis=1).mean()),
        read_by_attribute=dict(zip(names, hits.mean(axis=0).tolist(), strict=True)),
        corrected=corrected(good) if len(good) == len(names) else None,
        corrected_by_attribute={name: found for name, found in alone.items() if found is not None},
    )


def _corrected(
    targets: Codes, hits: _Mask, off: _Mask, judges: Sequence[_Judge], rng: np.random.Generator
) -> Estimate | None:
    """The share on target in all these attributes at once; None where the judges tell no category from the
    others."""
    surely = 1 - float(off.mean())
    if not surely:
        return Estimate(share=0.0, low=0.0, high=0.0)
    kinds, counted, _ = combinations(np.hstack([targets, hits])[~off])  # texts that are alike
    m = targets.shape[1]
    aimed, hit, counts = kinds[:, :m], kinds[:, m:] == 1, counted.astype(float)
    gained, possible = _terms(aimed, hit, [judge.rates() for judge in judges])
    if counts @ possible <= 0:
        return None
    share = surely * _mean(counts, gained, possible)
    first = aimed[[counts.argmax()]]
    aimed, hit = np.vstack([aimed, first, first]), np.vstack([hit, np.ones((1, m)), np.zeros((1, m))])
    counts = np.append(counts, [0.5, 0.5])
    drawn = []
    for _ in range(DRAWS):
        gained, possible = _terms(aimed, hit, [judge.drawn_rates(rng) for judge in judges])
        weights = rng.standard_gamma(counts)
        if weights @ possible > 0:
            drawn.append(surely * _mean(weights, gained, possible))
    low, high = np.quantile(drawn or [0.0, 1.0], [_TAIL, 1 - _TAIL])
    return Estimate(share=share, low=min(share, float(low)), high=max(share, float(high)))


def _terms(targets: Codes, hits: Any, rates: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Π (hit − f) and Π (s − f) of each text, (n,) each; nought where a judge does not tell its category."""
    gained, possible = np.ones(len(targets)), np.ones(len(targets))
    for r, (sensitivity, mistaken) in enumerate(rates):
        s, f = sensitivity[targets[:, r]], mistaken[targets[:, r]]
        gained *= np.where(s > f, hits[:, r] - f, 0.0)
        possible *= np.where(s > f, s - f, 0.0)
    return gained, possible


def _mean(weights: Floats, gained: Floats, possible: Floats) -> float:
    return min(1.0, max(0.0, float(weights @ gained) / float(weights @ possible)))


@dataclass(frozen=True)
class _Judge:
    """How a judge reads one attribute, by what it read off `n` texts whose labels are known: of each category
    (ψ,) how many are `positives`, how many of them were `found`, and how many other texts were `mistaken` for
    it."""

    n: int
    positives: Floats
    found: Floats
    mistaken: Floats

    @property
    def accuracy(self) -> float:
        return float(self.found.sum() / self.n)

    @property
    def chance(self) -> float:
        """What naming the commonest category would reach."""
        return float(self.positives.max() / self.n)

    @property
    def better_than_chance(self) -> bool:
        """Whether the lower bound (95 %, Wilson 1927) of its accuracy is above chance."""
        z = NormalDist().inv_cdf(1 - _TAIL)
        share, slack = self.accuracy, z * z / (2 * self.n)
        spread = z * math.sqrt((share * (1 - share) + slack / 2) / self.n)
        return (share + slack - spread) / (1 + 2 * slack) > self.chance

    def rates(self) -> tuple[Floats, Floats]:
        """Sensitivity and false positives of each category, (ψ,) each. A category that the known texts lack,
        or have alone, is not told: both are nought."""
        negatives = self.n - self.positives
        known = (self.positives > 0) & (negatives > 0)
        sides = ((self.found, self.positives), (self.mistaken, negatives))
        sensitivity, mistaken = (
            np.divide(part, of, out=np.zeros_like(part), where=known) for part, of in sides
        )
        return sensitivity, mistaken

    def drawn_rates(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """What these may be: a draw from their posterior."""
        negatives = self.n - self.positives
        known = (self.positives > 0) & (negatives > 0)
        sensitivity = rng.beta(self.found + 0.5, self.positives - self.found + 0.5)
        mistaken = rng.beta(self.mistaken + 0.5, negatives - self.mistaken + 0.5)
        return np.where(known, sensitivity, 0.0), np.where(known, mistaken, 0.0)


def _judges(read: Codes, true: Codes, targets: Codes, names: Sequence[str]) -> dict[str, _Judge]:
    """The judge of each attribute that has known labels."""
    found = {}
    for r, name in enumerate(names):
        rows = true[:, r] != UNKNOWN
        said, labels = read[rows, r], true[rows, r]
        if not len(labels):
            continue
        size = 1 + int(max(said.max(), labels.max(), targets[:, r].max()))
        right = said == labels
        wrong = said[~right & (said != UNKNOWN)]
        positives, hit, mistaken = (
            np.bincount(codes, minlength=size).astype(np.float64) for codes in (labels, labels[right], wrong)
        )
        found[name] = _Judge(len(labels), positives, hit, mistaken)
    return found
