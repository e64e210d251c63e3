"""Builds the selection rule of a release from public inputs: sizes, tree, auxiliary labels, secrets, n.

Nothing here takes private labels, so neither the pool nor the selection sizes can depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from quantext_graph.core.arrays import Codes, Event, Floats, cells
from quantext_graph.core.budget import distance_curve, split_budget
from quantext_graph.core.candidates import candidate_pool
from quantext_graph.core.chow_liu import Tree
from quantext_graph.core.distribution import TableDistribution, TreeDistribution, empirical_tables
from quantext_graph.core.joint_pool import DirichletSource, JointPool, Source, TableSource, TreeSource
from quantext_graph.core.own_words import FEWEST_FILLED, FilledSource, fill_limits, own_words_caps
from quantext_graph.core.public_pool import (
    DENSE_CELLS,
    proper_events,
    public_joint,
    public_tree,
    spread_component,
    tilted_components,
)
from quantext_graph.core.selection import JointRule, PerComponentRule, Rule, joint_selection_size
from quantext_graph.core.targets import released_count

JOINT_POOL = 200_000
"""M where nothing says otherwise."""

POOL_WORK = 5 * 10**8
"""Most table look-ups one selection may cost: what makes M smaller for large products and large n."""

KEPT_AT_LEAST = 30
"""K that M is chosen for: with fewer kept, the draw would be among few look-alikes."""

LARGEST_POOL = 2_000_000


@dataclass(frozen=True)
class MechanismParameters:
    """How the released distribution is chosen; the fields are those of the spec's `mechanism`.

    `pool_size` is L, the Dirichlet draws of a component, or M, the candidates for the joint.
    With `budget_nats` the per-component rule splits it over the components and ignores `k`.
    `keep` is κ, the share of the records that is released; 1 is the paper.
    `blind` keeps the joint rule from looking at the secrets' shares: the budget buys nearness in all
    else, and the released share stays where the pool puts it.
    `filled` keeps the candidates to what records in their own words and texts of the auxiliary set can fill.
    """

    selection: Literal["per_component", "joint"] = "joint"
    pool: Literal["dirichlet", "public"] = "public"
    gamma: int = 120
    k: int = 30
    alpha: float = 1.0
    pool_size: int | None = None
    spread: float | None = None
    budget_nats: float | None = None
    targets: Literal["iid", "quota"] = "quota"
    log_l: float = 0.0
    blind: bool = False
    keep: float = 1.0
    filled: bool = False


def build_rule(
    parameters: MechanismParameters,
    *,
    tree: Tree,
    sizes: Sequence[int],
    n: int,
    auxiliary: Codes | None,
    secrets: Sequence[Event] = (),
    pool_seed: int,
) -> Rule:
    """The rule, with its pool made from `pool_seed` (public).

    Args:
        n: number of private records, public.
        auxiliary: public labels (N, m); needed for the public pool.
        secrets: the events whose shares are hidden; the public pool is spread along them.

    Raises:
        ValueError: a public pool without auxiliary labels, a spread without a public pool, γ > L,
            k > γ, a negative budget, or a pool too small for the budget.
    """
    _check(parameters, auxiliary)
    sizes = tuple(sizes)
    if parameters.selection == "joint":
        return _joint_rule(parameters, tree, sizes, n, auxiliary, secrets, pool_seed)
    rng = np.random.default_rng([pool_seed])
    candidates = _component_candidates(parameters, tree, sizes, auxiliary, secrets, rng)
    kept = (parameters.k,) * len(candidates)
    if parameters.budget_nats is not None:
        kept = _split(parameters.budget_nats, candidates, tree, sizes, auxiliary, rng)
    return PerComponentRule(tree, sizes, tuple(candidates), kept)


def joint_pool_size(budget_nats: float, *, width: int, n: int, sizes: Sequence[int]) -> int:
    """M for a budget: `JOINT_POOL` where the work allows, and enough that K ≥ 30.

    Args:
        width: numbers a candidate takes.
        n: number of records; at most that many combinations can occur.
    """
    occurring = min(n, cells(sizes))
    affordable = POOL_WORK // max(width, occurring * len(sizes))
    needed = math.ceil(KEPT_AT_LEAST * math.exp(min(budget_nats, 50.0)))
    return max(1, min(LARGEST_POOL, max(needed, min(JOINT_POOL, affordable))))


def _check(parameters: MechanismParameters, auxiliary: Codes | None) -> None:
    if parameters.pool == "public" and (auxiliary is None or not len(auxiliary)):
        raise ValueError(
            "a public pool needs auxiliary labels; give an auxiliary set, or set pool: dirichlet"
        )
    if parameters.pool == "dirichlet" and parameters.spread is not None:
        raise ValueError("spread moves the candidates of a public pool; set pool: public, or remove spread")
    if parameters.filled and (parameters.selection != "joint" or parameters.pool == "dirichlet"):
        raise ValueError(
            "public texts fill candidates around the public joint; set selection: joint and pool: public, or "
            "let the shortage be written: rewriting.shortage: notes"
        )
    if parameters.blind and parameters.selection != "joint":
        raise ValueError("blind is for the joint rule; set selection: joint, or remove blind")
    if parameters.spread is not None and not 0 <= parameters.spread <= 1:
        raise ValueError(f"spread = {parameters.spread}; it is between 0 and 1")


def _joint_rule(
    parameters: MechanismParameters,
    tree: Tree,
    sizes: tuple[int, ...],
    n: int,
    auxiliary: Codes | None,
    secrets: Sequence[Event],
    pool_seed: int,
) -> JointRule:
    budget = 1.0 if parameters.budget_nats is None else parameters.budget_nats
    source = _source(parameters, tree, sizes, auxiliary, secrets)
    if parameters.filled:
        source = _filled(source, parameters, n, pool_seed, auxiliary)
    size = parameters.pool_size
    if size is None:
        size = joint_pool_size(budget, width=source.width, n=n, sizes=sizes)
    elif size < math.exp(min(budget, 700.0)) * (1 - 1e-12):
        raise ValueError(
            f"a pool of {size} candidates cannot spend {budget} nats; raise pool_size to "
            f"{math.exp(min(budget, 700.0)):.0f} or more, or lower budget_nats to {math.log(size):.3f}"
        )
    blind_to = proper_events(secrets, sizes) if parameters.blind else ()
    return JointRule(JointPool(source, size, pool_seed), joint_selection_size(size, budget), blind_to)


def _source(
    parameters: MechanismParameters,
    tree: Tree,
    sizes: tuple[int, ...],
    auxiliary: Codes | None,
    secrets: Sequence[Event],
) -> Source:
    if parameters.pool == "dirichlet" or auxiliary is None:
        return DirichletSource(tree, sizes, parameters.alpha)
    joint = public_joint(auxiliary, tree, sizes)
    events = proper_events(secrets, sizes)
    if isinstance(joint, TableDistribution):
        return TableSource(joint, events, parameters.spread)
    assert isinstance(joint, TreeDistribution)
    return TreeSource(joint, events, parameters.spread)


def _filled(
    source: Source, parameters: MechanismParameters, n: int, pool_seed: int, auxiliary: Codes | None
) -> FilledSource:
    """The source kept to what can be filled; which candidates that are is public, so the bound stays."""
    assert auxiliary is not None
    if not isinstance(source, TableSource):
        raise ValueError(
            f"more than {DENSE_CELLS} combinations of categories; public texts fill fewer, so name fewer "
            "attributes, or let the shortage be written: rewriting.shortage: notes"
        )
    public = np.ravel_multi_index(tuple(auxiliary.T), source.joint.sizes)
    texts = np.bincount(public, minlength=source.width).astype(np.int64)
    count = released_count(n, parameters.keep)
    filled = FilledSource(source, fill_limits(own_words_caps(source.joint, n), texts, count))
    fitting = filled.fitting(np.random.default_rng([pool_seed]))
    if fitting < FEWEST_FILLED:
        raise ValueError(
            f"the {len(auxiliary)} public texts can fill {fitting:.0%} of the candidates for {count} texts; "
            "name a larger auxiliary set, or lower mechanism.keep or mechanism.spread"
        )
    return filled


def _component_candidates(
    parameters: MechanismParameters,
    tree: Tree,
    sizes: tuple[int, ...],
    auxiliary: Codes | None,
    secrets: Sequence[Event],
    rng: np.random.Generator,
) -> list[Floats]:
    if parameters.pool == "dirichlet":
        return [
            candidate_pool(
                size, parameters.gamma, alpha=parameters.alpha, pool_size=parameters.pool_size, rng=rng
            )
            for size, rows in zip(sizes, tree.rows(sizes), strict=True)
            for _ in range(rows)
        ]
    model = public_tree(auxiliary, tree, sizes)
    tilted = tilted_components(model, parameters.gamma, rng)
    events = proper_events(secrets, sizes)
    candidates = []
    for attribute, tables in enumerate(tilted):
        for value in range(tables.shape[1]):
            pool = tables[:, value]
            along = _categories_along(events, tree, attribute, value)
            if parameters.spread is not None and along:
                public = model.tables[attribute][value]
                pool = spread_component(pool, public, along[rng.integers(len(along))], parameters.spread, rng)
            candidates.append(pool)
    return candidates


def _categories_along(
    events: Sequence[dict[int, tuple[int, ...]]], tree: Tree, attribute: int, value: int
) -> list[tuple[int, ...]]:
    """The secrets' categories that a component can move: its attribute's, where the parent value counts."""
    parent = tree.parents[attribute]
    return [
        event[attribute]
        for event in events
        if attribute in event and (parent not in event or value in event[parent])
    ]


def _split(
    budget_nats: float,
    candidates: Sequence[Floats],
    tree: Tree,
    sizes: tuple[int, ...],
    auxiliary: Codes | None,
    rng: np.random.Generator,
) -> tuple[int, ...]:
    model = public_tree(auxiliary, tree, sizes)
    codes = np.zeros((0, len(sizes)), dtype=np.int64) if auxiliary is None else auxiliary
    curves, masses = [], []
    pools = iter(candidates)
    for attribute, counts in enumerate(empirical_tables(codes, tree, sizes)):
        parent = tree.parents[attribute]
        for value, row in enumerate(counts):
            curves.append(distance_curve(row.astype(float), next(pools), rng))
            masses.append(1.0 if parent < 0 else model.share({parent: (value,)}))
    return split_budget(curves, masses, budget_nats)
