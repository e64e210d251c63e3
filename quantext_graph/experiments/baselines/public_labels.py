"""Label proportions for methods that write to labels: public ones, or noised private ones.

Copying the exact private proportions, as some published code does, gives the secret away.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from quantext_graph.core.arrays import Codes, Floats, cells, grid
from quantext_graph.core.targets import largest_remainder
from quantext_graph.spec.errors import QuantextError

Proportions = Literal["public", "noised"]

MOST_COMBINATIONS = 100_000


def label_source(proportions: Proportions, auxiliary: Codes) -> str:
    """Where the proportions come from, in words."""
    if proportions == "noised":
        return "noised: private shares with Gaussian noise that the budget pays for"
    return "public: shares of the auxiliary set" if len(auxiliary) else "public: every combination alike"


def label_counts(codes: Codes, sizes: tuple[int, ...]) -> Floats:
    """How often each combination occurs, (Π ψ_r,).

    Raises:
        QuantextError: more than `MOST_COMBINATIONS` combinations.
    """
    if cells(sizes) > MOST_COMBINATIONS:
        raise QuantextError(
            f"{cells(sizes)} combinations of categories; a label histogram holds {MOST_COMBINATIONS} at most"
        )
    if not len(codes):
        return np.zeros(cells(sizes))
    return np.bincount(np.ravel_multi_index(tuple(codes.T), sizes), minlength=cells(sizes)).astype(float)


def drawn_labels(counts: Floats, n: int, sizes: tuple[int, ...], rng: np.random.Generator) -> Codes:
    """n labels (n, m) in the proportions of `counts` (negative ones are none), in random order."""
    held = np.maximum(counts, 0)
    if not held.any():
        held = np.ones_like(held)
    which = np.repeat(np.arange(len(held)), largest_remainder(n, held / held.sum()))
    rng.shuffle(which)
    return grid(sizes)[which]
