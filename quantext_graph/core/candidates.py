"""Step 2: the candidates of one component (Algorithm 2)."""

from __future__ import annotations

import numpy as np

from quantext_graph.core.arrays import Floats

DRAWS_PER_CANDIDATE = 10
"""L = 10γ draws by default (1,200 for the reference's γ = 120); more buys almost nothing."""


def candidate_pool(
    size: int, gamma: int, *, alpha: float = 1.0, pool_size: int | None = None, rng: np.random.Generator
) -> Floats:
    """γ candidate distributions over `size` categories, far apart in total variation.

    L = `pool_size` draws of the symmetric Dirichlet(α), then greedy farthest-point choice. Each draw
    keeps its distance to the nearest chosen one, so the cost is O(γLψ), not the paper's O(γ²L).

    Returns:
        (γ, size); rows are distributions, no two of them equal (but for `size` 1, which has only one).

    Raises:
        ValueError: γ > L, or fewer than γ distinct draws.
    """
    draws = DRAWS_PER_CANDIDATE * gamma if pool_size is None else pool_size
    if gamma > draws:
        raise ValueError(
            f"gamma = {gamma} candidates cannot be chosen of L = {draws} draws; raise the pool size"
        )
    if size == 1:
        return np.ones((gamma, 1))
    pool = rng.dirichlet(np.full(size, alpha), size=draws)
    if gamma == draws and len(np.unique(pool, axis=0)) == draws:  # there is nothing to choose
        return pool
    return pool[farthest_points(pool, gamma)]


def farthest_points(pool: Floats, gamma: int) -> list[int]:
    """Indices of γ rows of `pool` (L, ψ): the first, then each time the one farthest from all chosen.

    Raises:
        ValueError: fewer than γ rows are distinct.
    """
    chosen = [0]
    nearest = total_variation(pool, pool[0])
    while len(chosen) < gamma:
        farthest = int(np.argmax(nearest))
        if nearest[farthest] <= 0:
            raise ValueError(
                f"only {len(chosen)} of {len(pool)} draws differ and gamma = {gamma}; "
                "lower gamma, or raise alpha or the pool size"
            )
        chosen.append(farthest)
        np.minimum(nearest, total_variation(pool, pool[farthest]), out=nearest)
        nearest[farthest] = 0.0  # its distance to itself may be a rounding error away from zero
    return chosen


def total_variation(candidates: Floats, distribution: Floats) -> Floats:
    """½ Σ |Q − P| of each row Q of `candidates` (γ, ψ) to P (ψ,), shape (γ,)."""
    distance: Floats = 0.5 * np.abs(candidates - distribution).sum(axis=1)
    return distance
