"""The text channel: what the released texts tell of the secret beyond what the bound on the draw allows.

A text that was written for a target from a record of another label carries something of that label. One
tells little; the sum of all tells the share, so it is the sum that is tested (log l of the bound).

An attacker who knows public texts scores how much each released text looks like one inside the secret's
event, beyond what its target makes expect. From the pairs of the release (labels of the record, target,
text) two things are estimated: `carried`, by how much the score of a changed text leans to its record's old
side, and how much scores vary. With them releases of two shares g₀ and g₁ are made: labels drawn so that
they have the share, targets drawn and matched as the mechanism does it, sums of scores as the estimates make
them. How often the attacker names the right share is held against what the bound allows; with the lower
confidence bound of `carried` it is what can be said for sure. No model is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from quantext_graph.core.arrays import Codes, Event, Floats, event_mask

Deal = Callable[[float, np.random.Generator], tuple[Codes, Codes]]
"""Gives (labels of the records used, their targets), both (n′, m), of a release whose private share is g."""

FEWEST = 10
"""Changed texts below which nothing is said."""

RELEASES = 200
"""Releases of each share that the attacker learns from, and as many that they are asked about."""

_CONFIDENCE = 0.95
_SCORE_LIMIT = 4.0  # log-odds beyond which a text counts no more: one surprise must not stand for a sum


@dataclass(frozen=True)
class TextChannel:
    """What was found of one secret.

    Of `pairs` texts, `changed` were written for the other side of the secret. `carried` is how much they lean
    to their record's old side, in log-odds, with its standard error. `success` is how often an attacker names
    the right one of the `shares`, `allowed` what the bound allows them, `share_alone` what they reach without
    reading the texts, `interval` (90 %) what `success` may be. `nats` is what the texts add to the bound at
    least (95 %), 0 where nothing is sure; `power_nats` the least that so many texts would have shown.
    """

    secret: str
    pairs: int
    changed: int
    carried: float
    carried_standard_error: float
    shares: tuple[float, float]
    bound_nats: float
    allowed: float
    share_alone: float
    success: float
    interval: tuple[float, float]
    nats: float
    power_nats: float

    @property
    def leaks(self) -> bool:
        """Whether the texts were seen to tell more than the bound allows."""
        return self.nats > 0

    @property
    def words(self) -> str:
        """What goes behind a bound in a sentence."""
        if not self.leaks:
            return (
                ", as long as the texts tell nothing of what their records were: more was not seen in "
                f"{self.changed} changed texts, and less than {self.power_nats:.2f} nats would not have been"
            )
        low, high = self.shares
        return (
            f", but the texts tell more: an attacker who reads them all can name the right one of {low:.0%} "
            f"and {high:.0%} for “{self.secret}” {self.success:.0%} of the time where the bound allows "
            f"{self.allowed:.0%}, at least {self.nats:.2f} nats that it does not count"
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "leaks": self.leaks}


def text_channel(
    texts: Sequence[str],
    labels: Codes,
    targets: Codes,
    event: Event,
    public: tuple[Sequence[str], Codes],
    deal: Deal,
    *,
    secret: str,
    bound_nats: float,
    shares: tuple[float, float],
    rng: np.random.Generator | None = None,
    releases: int = RELEASES,
) -> TextChannel | None:
    """The attack on one secret; None where fewer than `FEWEST` texts changed their side of it, or the
    public texts are all of one side.

    Args:
        texts: n′ released texts.
        labels: (n′, m) original labels of their records; `targets` (n′, m) what each was written for.
        event: the secret.
        public: N public texts and their codes (N, m).
        deal: makes labels and targets of a release with a given share, as the mechanism does.
        bound_nats: of the draw, uncapped; `shares` are g₀ and g₁.
        rng: of the releases; nothing of it is secret.
    """
    rng = rng or np.random.default_rng()
    inside, aimed = event_mask(labels, event), event_mask(targets, event)
    changed = np.asarray(inside != aimed)
    known = event_mask(public[1], event)
    if changed.sum() < FEWEST or (~changed).sum() < FEWEST or len(np.unique(known)) < 2:
        return None
    with threadpool_limits(1):
        scores = _beyond_target(_looks(texts, public[0], known), targets, ~changed)
        carried, error, spread = _carried(scores, inside, changed)
        reach = float(norm.ppf(_CONFIDENCE)) * error
        arena = _Arena.of(deal, event, shares, releases, rng)
        low, found, high, alone, power = (
            arena.success(size, spread, rng)
            for size in (carried - reach, carried, carried + reach, 0.0, 2 * reach)
        )
    allowed = min(1.0, 0.5 * math.exp(bound_nats))
    chance = float(norm.ppf(_CONFIDENCE)) * math.sqrt(0.25 / (2 * releases))
    return TextChannel(
        secret=secret,
        pairs=len(texts),
        changed=int(changed.sum()),
        carried=carried,
        carried_standard_error=error,
        shares=shares,
        bound_nats=bound_nats,
        allowed=allowed,
        share_alone=alone,
        success=found,
        interval=(max(0.0, min(low, found) - chance), min(1.0, max(high, found) + chance)),
        nats=max(0.0, math.log(max(low - chance, 1e-9) / allowed)) if carried > reach else 0.0,
        power_nats=max(0.0, math.log(max(power, allowed) / allowed)),
    )


def _looks(texts: Sequence[str], public: Sequence[str], inside: Any) -> Floats:
    """Log-odds (n′,) that a text is inside the event, as public texts teach it."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    reader = LogisticRegression(C=10.0, solver="liblinear").fit(words.fit_transform(public), inside)
    found: Floats = reader.decision_function(words.transform(texts))
    return found


def _beyond_target(scores: Floats, targets: Codes, stayed: Any) -> Floats:
    """Scores less what the target makes expect, as texts that stayed show it: that is the draw's to tell."""
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import OneHotEncoder

    _, combination = np.unique(targets, axis=0, return_inverse=True)
    named = OneHotEncoder(handle_unknown="ignore").fit_transform(
        np.column_stack([targets, combination.reshape(-1)])
    )
    expected = Ridge(alpha=1.0).fit(named[stayed], scores[stayed]).predict(named)
    beyond: Floats = np.clip(scores - expected, -_SCORE_LIMIT, _SCORE_LIMIT)
    return beyond


def _carried(scores: Floats, inside: Any, changed: Any) -> tuple[float, float, float]:
    """How much changed texts lean to their record's old side beyond those that stayed, its standard error,
    and the spread of one score. Many releases move records one way alone: the other is taken to be alike."""
    toward = np.where(inside, 1.0, -1.0)
    moved, kept = scores[changed] * toward[changed], scores[~changed] * toward[~changed]
    lean = float(moved.mean() - kept.mean())
    error = math.sqrt(moved.var(ddof=1) / len(moved) + kept.var(ddof=1) / len(kept))
    return lean, error, float(scores.std(ddof=1))


@dataclass(frozen=True)
class _Arena:
    """Releases of g₀, then of g₁, those to learn from first: how many targets each combination of the
    secret's attributes has (`counts`), and for each side of the secret (outside, inside) how many texts are
    aimed there (`size`) and came from the other side (`moved`)."""

    counts: Floats
    size: Floats
    moved: Floats
    releases: int

    @classmethod
    def of(
        cls, deal: Deal, event: Event, shares: tuple[float, float], releases: int, rng: np.random.Generator
    ) -> _Arena:
        made = [deal(share, rng) for _ in range(2) for share in shares for _ in range(releases)]
        attributes = list(event)
        groups = np.unique(np.vstack([np.unique(t[:, attributes], axis=0) for _, t in made]), axis=0)
        counts, size, moved = [], [], []
        for labels, targets in made:
            same = (targets[:, None, attributes] == groups[None]).all(axis=2)
            counts.append(same.sum(axis=0))
            inside, aimed = event_mask(labels, event), event_mask(targets, event)
            size.append([(~aimed).sum(), aimed.sum()])
            moved.append([(inside & ~aimed).sum(), (~inside & aimed).sum()])
        return cls(np.array(counts, float), np.array(size, float), np.array(moved, float), releases)

    def success(self, carried: float, spread: float, rng: np.random.Generator) -> float:
        """How often an attacker who learned from one half names the share of releases of the other, where
        each moved text leans by `carried` to its old side and scores vary by `spread`."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        noise = rng.normal(size=self.size.shape) * spread * np.sqrt(self.size)
        sums = max(carried, 0.0) * self.moved * np.array([1.0, -1.0]) + noise
        seen = self.counts if carried <= 0 else np.hstack([self.counts, sums])
        truth = np.repeat([0, 1, 0, 1], self.releases)
        half = 2 * self.releases
        attacker = make_pipeline(StandardScaler(), LogisticRegression(C=0.3, max_iter=300))
        attacker.fit(seen[:half], truth[:half])
        return float((attacker.predict(seen[half:]) == truth[half:]).mean())
