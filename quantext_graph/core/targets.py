"""Targets of a release: n combinations from the drawn distribution (Alg. 1 line 12)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quantext_graph.core.arrays import Codes, Floats, cells, grid
from quantext_graph.core.chow_liu import Tree
from quantext_graph.core.distribution import TABLE_LIMIT, Distribution, TreeDistribution, joint_table


def released_count(n: int, keep: float) -> int:
    """n′ = ⌊κ·n⌋, with κ taken as the decimal number that was written: ⌊0.29·100⌋ is 29."""
    return int(Fraction(str(keep)) * n)


def iid_targets(distribution: Distribution, n: int, *, rng: np.random.Generator) -> Codes:
    """n independent draws (the paper), shape (n, m)."""
    return _targets(distribution, n, rng, quota=False)


def quota_targets(distribution: Distribution, n: int, *, rng: np.random.Generator) -> Codes:
    """Counts by largest remainder of n·P̃, in random order: no sampling noise, shape (n, m).

    It is post-processing of the draw, so the bound stays. Joints of more than `TABLE_LIMIT`
    combinations are filled component by component, each with counts within one of its expectation.
    """
    return _targets(distribution, n, rng, quota=True)


def largest_remainder(n: int, probabilities: Floats) -> NDArray[np.int64]:
    """Whole counts that add to n, each the floor of n·p, or one more where the remainder is largest."""
    exact = n * probabilities / probabilities.sum()
    counts: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    missing = n - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return counts


def _targets(distribution: Distribution, n: int, rng: np.random.Generator, *, quota: bool) -> Codes:
    if cells(distribution.sizes) <= TABLE_LIMIT or not isinstance(distribution, TreeDistribution):
        table = joint_table(distribution)
        counts = largest_remainder(n, table) if quota else rng.multinomial(n, table)
        which = np.repeat(np.arange(len(table)), counts)
        rng.shuffle(which)
        return grid(distribution.sizes)[which]
    pieces = distribution.pieces()
    weights = np.array([weight for weight, _ in pieces])
    counts = largest_remainder(n, weights) if quota else rng.multinomial(n, weights / weights.sum())
    drawn = [
        _ancestral(distribution.tree, tables, int(count), rng, quota=quota)
        for count, (_, tables) in zip(counts, pieces, strict=True)
    ]
    return np.concatenate(drawn)[rng.permutation(n)]


def _ancestral(
    tree: Tree, tables: tuple[Floats, ...], n: int, rng: np.random.Generator, *, quota: bool
) -> Codes:
    """n draws from the root down: the records that share a parent value share out its children."""
    codes = np.zeros((n, len(tables)), dtype=np.int64)
    for attribute in tree.order:
        parent = tree.parents[attribute]
        values = codes[:, parent] if parent >= 0 else np.zeros(n, dtype=np.int64)
        by_value = np.argsort(values, kind="stable")
        group_sizes = np.bincount(values, minlength=len(tables[attribute]))
        for row, group in enumerate(np.split(by_value, np.cumsum(group_sizes)[:-1])):
            if len(group):
                p = tables[attribute][row] / tables[attribute][row].sum()
                counts = _systematic(len(group), p, rng) if quota else rng.multinomial(len(group), p)
                codes[rng.permutation(group), attribute] = np.repeat(np.arange(len(p)), counts)
    return codes


def _systematic(n: int, probabilities: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Whole counts that add to n, each within one of n·p and equal to it in expectation.

    Largest remainder would give every small group its commonest category, and lose the rest.
    """
    edges = np.floor(n * np.cumsum(probabilities) + rng.random())
    edges[-1] = n
    return np.diff(np.minimum(edges, n), prepend=0).astype(np.int64)
