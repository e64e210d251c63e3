"""The perfect rewriter, simulated: a released text is a real auxiliary text that carries the target.

It isolates the mechanism from the model. What it cannot show: how well a model writes, what style
leaks, and new texts: where more are asked for than the auxiliary set holds, texts repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from quantext_graph.core.arrays import Codes, Floats, combinations
from quantext_graph.experiments.baselines.method import Corpus, Written
from quantext_graph.spec.errors import QuantextError

NEIGHBOURS = 10
"""A variation is one of so many nearest texts of the same labels."""


class AuxiliaryWriter:
    """Writes by looking up: each text is used as often as every other that serves as well."""

    def __init__(
        self, auxiliary: Corpus, embed: Callable[[Sequence[str]], Floats], rng: np.random.Generator
    ) -> None:
        if not len(auxiliary):
            raise QuantextError("a simulation takes its texts from the auxiliary set; there is none")
        self._auxiliary, self._embed, self._rng = auxiliary, embed, rng
        self._decks: dict[tuple[int, ...], list[int]] = {}

    def compose(self, targets: Codes, *, step: str) -> Written:  # noqa: ARG002
        return self._written([self._deal(tuple(target)) for target in targets.tolist()])

    def rewrite(self, texts: Sequence[str], labels: Codes, targets: Codes, *, step: str) -> Written:  # noqa: ARG002
        return self.compose(targets, step=step)

    def vary(self, texts: Sequence[str], targets: Codes, *, step: str) -> Written:  # noqa: ARG002
        """One of the nearest auxiliary texts that serve the same target, at random."""
        points, pool = self._embed(texts), self._embed(self._auxiliary.texts)
        rows = np.empty(len(texts), dtype=int)
        combos, _, which = combinations(targets)
        for number, combo in enumerate(combos.tolist()):
            asked = np.flatnonzero(which == number)
            serving = self._serving(tuple(combo))
            count = min(NEIGHBOURS + 1, len(serving))
            near = np.argsort(-points[asked] @ pool[serving].T, axis=1)[:, :count]
            # The first is the text itself, where it is an auxiliary one.
            place = self._rng.integers(min(1, count - 1), count, size=len(asked))
            rows[asked] = serving[near[np.arange(len(asked)), place]]
        return self._written(rows.tolist())

    def _deal(self, target: tuple[int, ...]) -> int:
        deck = self._decks.setdefault(target, [])
        if not deck:
            deck.extend(self._rng.permutation(self._serving(target)).tolist())
        return deck.pop()

    def _serving(self, target: tuple[int, ...]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Rows of the texts that carry the target; where none does, of those that miss least."""
        misses = (self._auxiliary.codes != np.array(target)).sum(axis=1)
        return np.flatnonzero(misses == misses.min())

    def _written(self, rows: list[int]) -> Written:
        return Written([self._auxiliary.texts[row] for row in rows], self._auxiliary.codes[rows])
