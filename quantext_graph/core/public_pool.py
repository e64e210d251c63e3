"""The public auxiliary joint B, and random tilts of it: the sources of the `public` pool.

The symmetric Dirichlet throws away what everybody may know. Here candidates lie around B,

    Q ∝ B · exp(s·z),  z = Σ_r z_r(x_r) + ½ Σ_{r<t} z_rt(x_r, x_t),  z standard normal,

with s log-uniform in `TILT`, so a pool holds close and far candidates and nothing has to be tuned.
With a spread w each candidate is then moved along a secret: its share becomes uniform on
[B(S) − w, B(S) + w], cut to [0, 1], and the rest of it stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quantext_graph.core.arrays import Codes, Event, Floats, cells, combinations, event_mask, grid
from quantext_graph.core.chow_liu import Tree
from quantext_graph.core.distribution import (
    Distribution,
    TableDistribution,
    TreeDistribution,
    empirical_tables,
)

TILT = (0.02, 0.5)
"""Range of s; up to 1.5 serves where the auxiliary set is known to be far off."""

DENSE_CELLS = 5_000
"""Joints of at most this many combinations are smoothed and tilted as a table, larger ones as a tree."""

TREE_WEIGHT = 1.0
"""Weight of the tree model in the smoothed table, in pseudo-records per combination. On the real sets
anything from 1 to 10 puts B nearer to unseen records than the plain table, most where there are many
combinations (TV 0.21 to 0.18 on 875)."""


def public_tree(auxiliary: Codes | None, tree: Tree, sizes: Sequence[int]) -> TreeDistribution:
    """The tree model of the auxiliary labels (N, m), smoothed: every category has mass, everywhere.

    A marginal gets half a pseudo-record a category, a component one pseudo-record of its attribute's
    marginal. Without an auxiliary set every component is uniform.
    """
    sizes = tuple(sizes)
    codes = np.zeros((0, len(sizes)), dtype=np.int64) if auxiliary is None else auxiliary
    tables = []
    for counts in empirical_tables(codes, tree, sizes):
        marginal = counts.sum(axis=0) + 0.5
        marginal = marginal / marginal.sum()
        table = counts + marginal
        tables.append(table / table.sum(axis=1, keepdims=True))
    return TreeDistribution(tree, sizes, tuple(tables))


def public_joint(auxiliary: Codes, tree: Tree, sizes: Sequence[int]) -> Distribution:
    """B: the auxiliary table smoothed with its own tree model; for large products the tree model."""
    model = public_tree(auxiliary, tree, sizes)
    if cells(sizes) > DENSE_CELLS:
        return model
    smoothed = TREE_WEIGHT * cells(sizes) * model.probability(grid(sizes))
    combos, counts, _ = combinations(auxiliary)
    smoothed[np.ravel_multi_index(tuple(combos.T), tuple(sizes))] += counts
    return TableDistribution(tuple(sizes), smoothed / smoothed.sum())


def missing_categories(auxiliary: Codes, sizes: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """(attribute, category) pairs that the auxiliary labels never show: they have smoothed mass only."""
    return tuple(
        (r, int(category))
        for r, size in enumerate(sizes)
        for category in np.flatnonzero(np.bincount(auxiliary[:, r], minlength=size) == 0)
    )


def tilt_scales(count: int, rng: np.random.Generator) -> Floats:
    """s of each candidate, log-uniform, (count,)."""
    return np.exp(rng.uniform(np.log(TILT[0]), np.log(TILT[1]), count))


def tilted_tables(joint: TableDistribution, count: int, rng: np.random.Generator) -> Floats:
    """Tilts of a table, (count, Π ψ_r)."""
    sizes = joint.sizes
    m = len(sizes)
    z: Floats = np.zeros((count, *sizes))
    for r in range(m):
        z += rng.standard_normal((count, *(size if q == r else 1 for q, size in enumerate(sizes))))
    for r in range(m):
        for t in range(r + 1, m):
            shape = (size if q in (r, t) else 1 for q, size in enumerate(sizes))
            z += 0.5 * rng.standard_normal((count, *shape))
    z = z.reshape(count, -1)
    z *= tilt_scales(count, rng)[:, None]
    np.exp(z, out=z)
    z *= joint.probabilities
    z /= z.sum(axis=1, keepdims=True)
    return z


def tilted_components(model: TreeDistribution, count: int, rng: np.random.Generator) -> list[Floats]:
    """Tilts of each component of a tree, one (count, ψ_π(i), ψ_i) for each attribute."""
    scales = tilt_scales(count, rng)[:, None, None]
    tilted = []
    for table in model.tables:
        z = rng.standard_normal((count, 1, table.shape[1])) + np.zeros((1, *table.shape))
        if len(table) > 1:
            z += 0.5 * rng.standard_normal((count, *table.shape))
        weighted = table * np.exp(scales * z)
        tilted.append(weighted / weighted.sum(axis=2, keepdims=True))
    return tilted


def spread_shares(public_share: float, spread: float, count: int, rng: np.random.Generator) -> Floats:
    """The shares that candidates are moved to: uniform around the public share, (count,)."""
    return rng.uniform(max(0.0, public_share - spread), min(1.0, public_share + spread), count)


def proper_events(secrets: Sequence[Event], sizes: Sequence[int]) -> list[dict[int, tuple[int, ...]]]:
    """The secrets as events, without those that all records or none count for: they have no share to move."""
    events = []
    for secret in secrets:
        event = {r: tuple(sorted(set(categories))) for r, categories in secret.items()}
        if all(event.values()) and any(len(categories) < sizes[r] for r, categories in event.items()):
            events.append(event)
    return events


def spread_component(
    candidates: Floats, public: Floats, categories: Sequence[int], spread: float, rng: np.random.Generator
) -> Floats:
    """Candidates (γ, ψ) of one component moved along its categories, around their share in `public` (ψ,)."""
    inside = np.zeros(len(public), dtype=bool)
    inside[list(categories)] = True
    if inside.all() or not inside.any():
        return candidates
    moved = candidates.copy()
    move_tables(moved, inside, spread_shares(float(public[inside].sum()), spread, len(moved), rng))
    return moved


def move_tables(tables: Floats, inside: np.ndarray[tuple[int], np.dtype[np.bool_]], shares: Floats) -> None:
    """Give the cells `inside` of each table (count, cells) the share asked for, in place."""
    held = tables[:, inside].sum(axis=1)
    tables *= np.where(inside, (shares / held)[:, None], ((1 - shares) / (1 - held))[:, None])


def event_cells(event: Event, sizes: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which cells of a joint table count for the event, (Π ψ_r,)."""
    return event_mask(grid(sizes), event)
