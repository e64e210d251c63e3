"""How many texts of a combination may be records in their own words (`rewriting.recipe: none`).

Whoever holds the public set, or knows a written text when they see one, sees how many texts of a combination
are records as they were. Were these all that have the target, their number would be the private count
wherever there are few. So it is capped: of n records at most `own_words_caps` of a combination go out in
their own words, a number made of the public joint alone, low enough that a private set nearly always has
so many. Then the number is a public constant and tells nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quantext_graph.core.arrays import Floats, Indices
from quantext_graph.core.distribution import TableDistribution
from quantext_graph.core.joint_pool import Block, Source, TableBlock

LEAST = 0.7
"""What a combination's private share may fall to, in parts of its public one."""

RISK = 0.02
"""Chance that any combination of a private set runs short, where all have fallen to `LEAST`."""

MOVED = 0.05
"""Mass of a candidate that may go from combinations with too few public texts to the others."""

FEWEST_FILLED = 0.05
"""Share of the candidates that the public texts must be able to fill."""

_TRIED = 2_000
"""Candidates by which that share is estimated."""

_NOTHING = 1e-12


def own_words_caps(public: TableDistribution, n: int) -> Indices:
    """How many texts of each combination may be records in their own words, (Π ψ_r,).

    The most in sum for which n records, of which each combination has `LEAST` of its public share, have fewer
    than the cap in any of them with a chance of at most `RISK`. Raising the cap of a combination from a to
    a + 1 costs P(it has a records), so the cheapest steps are taken; below the mode they come in order.
    """
    from scipy.stats import binom

    shares = LEAST * public.probabilities
    steps = np.floor(n * shares).astype(np.int64)
    cell = np.repeat(np.arange(len(steps)), steps)
    held = np.arange(len(cell)) - np.repeat(np.cumsum(steps) - steps, steps)
    cost = np.asarray(binom.pmf(held, n, shares[cell]))
    order = np.argsort(cost, kind="stable")
    taken = order[np.cumsum(cost[order]) <= RISK]
    return np.bincount(cell[taken], minlength=len(steps)).astype(np.int64)


def fill_limits(caps: Indices, public_texts: Indices, count: int) -> Floats:
    """The largest share (Π ψ_r,) that each combination may have among `count` texts, so that records in their
    own words and public texts suffice. What has no public text has no share: it could not be filled where its
    records run short."""
    # A hair less, so that no rounding makes one text more of it.
    room: Floats = np.where(public_texts > 0, caps + public_texts, 0) / count * (1 - 1e-9)
    return room


def hidden_range(public_share: float) -> tuple[float, float]:
    """Between which private shares of an event no combination need fall below `LEAST` for its sake."""
    return LEAST * public_share, 1.0 - LEAST * (1.0 - public_share)


@dataclass(frozen=True)
class FilledSource:
    """Candidates of another source that can be filled: no combination has more than `most` (Π ψ_r,).

    What a candidate has beyond that goes to its other combinations in proportion. One that would lose more
    than `MOVED` of its mass is left out, and another is made in its place.
    """

    source: Source
    most: Floats

    @property
    def width(self) -> int:
        return self.source.width

    def block(self, count: int, rng: np.random.Generator) -> Block:
        made = self._made(count, rng)
        tables = made.tables[self._fits(made.tables)]
        while len(tables) < count:
            more = self._made(count, rng).tables
            tables = np.concatenate([tables, more[self._fits(more)]])
        return TableBlock(made.sizes, _within(tables[:count], self.most))

    def fitting(self, rng: np.random.Generator) -> float:
        """Share of the other source's candidates that can be filled."""
        if self.most.sum() < 1 + MOVED:
            return 0.0
        return float(self._fits(self._made(_TRIED, rng).tables).mean())

    def _made(self, count: int, rng: np.random.Generator) -> TableBlock:
        made = self.source.block(count, rng)
        assert isinstance(made, TableBlock)
        return made

    def _fits(self, tables: Floats) -> NDArray[np.bool_]:
        fits: NDArray[np.bool_] = np.maximum(tables - self.most, 0).sum(axis=1) <= MOVED
        return fits


def _within(tables: Floats, most: Floats) -> Floats:
    """Tables (count, cells) cut to `most`, what is over given to the cells with room, in proportion."""
    while (over := np.maximum(tables - most, 0).sum(axis=1, keepdims=True)).max(initial=0) > _NOTHING:
        tables = np.minimum(tables, most)
        room = np.where(tables < most, tables, 0)
        tables += room * over / room.sum(axis=1, keepdims=True)
    return tables
