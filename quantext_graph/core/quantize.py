"""Algorithm 1, lines 1-14, as one function: labels in, targets out."""

from __future__ import annotations

import secrets as system_randomness
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quantext_graph.core.arrays import Codes, Event, as_codes
from quantext_graph.core.chow_liu import Tree, learn_tree
from quantext_graph.core.distribution import Distribution
from quantext_graph.core.leakage import Leakage, secret_levels
from quantext_graph.core.matching import UNUSED, assign, total_cost
from quantext_graph.core.public_pool import missing_categories
from quantext_graph.core.rules import MechanismParameters, build_rule
from quantext_graph.core.selection import Choice, Rule, draw_choice
from quantext_graph.core.targets import iid_targets, quota_targets, released_count


@dataclass(frozen=True)
class Quantization:
    """What Algorithm 1 decides for n records with m attributes.

    Public: `released` (the drawn distribution), `targets` as a multiset, `leakage` (of the secret with
    the largest bound), `leakages` (one for each secret), `tree`, `rule` (pool and selection sizes, made
    of public inputs), `choice` (which candidate was drawn), `pool_seed`, `missing` ((attribute,
    category) pairs that the auxiliary set lacks), `seeded` (a release that is not private).

    With `keep` κ there are n′ = ⌊κ·n⌋ targets (n′, m), and n − n′ records stay unused.

    Private: `rows` (n,), the row of `targets` that record i gets, or `UNUSED`; `used` (n′,), the records
    that get one, in order, and `assigned` (n′, m) = targets[rows[used]], what they get; `cost`, the mean
    weighted number of changed attributes of those, and `changed`, the share of them whose labels change.
    """

    released: Distribution
    targets: Codes
    rows: NDArray[np.int64]
    used: NDArray[np.int64]
    assigned: Codes
    leakage: Leakage
    leakages: tuple[Leakage, ...]
    cost: float
    changed: float
    tree: Tree
    rule: Rule
    choice: Choice
    pool_seed: int
    missing: tuple[tuple[int, int], ...]
    seeded: bool

    def __repr__(self) -> str:
        n, m = self.targets.shape
        return f"Quantization(n={n}, m={m}, bound_nats={self.leakage.bound_nats:.4g})"


def quantize(
    labels: ArrayLike,
    sizes: Sequence[int],
    *,
    auxiliary: ArrayLike | None = None,
    tree: Tree | None = None,
    weights: Sequence[float] | None = None,
    secrets: Sequence[Event] = (),
    levels: Sequence[int] | None = None,
    pool_seed: int | None = None,
    last: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    **mechanism: Any,
) -> Quantization:
    """Draw a released distribution near that of the labels, and give every record a target.

    Args:
        labels: private category codes (n, m).
        sizes: ψ_r of each attribute.
        auxiliary: public category codes (N, m): for the tree, the public pool and the budget split.
        tree: replaces the tree learned from `auxiliary`.
        weights: w_r, what a changed attribute costs in the matching.
        secrets: the events whose share is hidden.
        levels: |G| of each secret; n + 1 by default.
        pool_seed: makes the pool of an earlier run again; it is public.
        last: (n,) true for records whose labels are in doubt: as long as there are others they stay unused.
        rng: for tests and experiments only. By default the draw takes the operating system's
            randomness, and what else is secret generators seeded by it.
        **mechanism: the fields of `MechanismParameters`.

    Raises:
        ValueError: labels that do not fit `sizes`, no records, no way to a tree, or mechanism
            parameters that contradict each other.
    """
    sizes = tuple(int(size) for size in sizes)
    parameters = MechanismParameters(**mechanism)
    private = as_codes(labels, sizes)
    public = None if auxiliary is None else as_codes(auxiliary, sizes)
    n = len(private)
    if n == 0:
        raise ValueError("no records; a release needs at least one")
    if not 0 < parameters.keep <= 1:
        raise ValueError(f"keep = {parameters.keep}; give a share above 0, at most 1")
    if (count := released_count(n, parameters.keep)) == 0:
        raise ValueError(f"keep = {parameters.keep} of {n} records leaves none; raise it")
    generator = rng or np.random.default_rng()
    if pool_seed is None:
        pool_seed = system_randomness.randbits(64) if rng is None else int(rng.integers(2**63))

    tree = tree or public_dependency_tree(public, sizes)  # line 1
    rule = build_rule(  # line 2
        parameters, tree=tree, sizes=sizes, n=n, auxiliary=public, secrets=secrets, pool_seed=pool_seed
    )
    choice, targets, rows = draw_targets(  # lines 3-14
        rule, private, parameters, weights, rng, generator, last=last
    )
    released, used = rule.release(choice), np.flatnonzero(rows != UNUSED)
    assigned = targets[rows[used]]

    leakages = secret_leakages(rule, n, levels or [secret_levels(n)] * len(secrets), parameters.log_l)
    return Quantization(
        released=released,
        targets=targets,
        rows=rows,
        used=used,
        assigned=assigned,
        leakage=max(leakages, key=lambda leakage: leakage.bound_nats),
        leakages=leakages,
        cost=total_cost(private[used], assigned, weights) / count,
        changed=float((private[used] != assigned).any(axis=1).mean()),
        tree=tree,
        rule=rule,
        choice=choice,
        pool_seed=pool_seed,
        missing=() if public is None else missing_categories(public, sizes),
        seeded=rng is not None,
    )


def draw_targets(
    rule: Rule,
    labels: Codes,
    parameters: MechanismParameters,
    weights: Sequence[float] | None,
    rng: np.random.Generator | None,
    generator: np.random.Generator,
    *,
    last: ArrayLike | None = None,
) -> tuple[Choice, Codes, NDArray[np.int64]]:
    """Alg. 1 lines 3-14 with a rule that is there: the choice, targets (n′, m), and the row of them that each
    record gets (n,), or `UNUSED`. `rng` replaces the operating system's randomness in the choice alone;
    `generator` serves the rest. `last` is for `assign`."""
    choice = draw_choice(rule.kept(labels), rng)
    make = iid_targets if parameters.targets == "iid" else quota_targets
    targets = make(rule.release(choice), released_count(len(labels), parameters.keep), rng=generator)
    return choice, targets, assign(labels, targets, weights=weights, last=last, rng=generator)


def public_dependency_tree(auxiliary: Codes | None, sizes: Sequence[int]) -> Tree:
    """The tree from the auxiliary labels; of a single attribute it is trivial.

    Raises:
        ValueError: several attributes and no auxiliary labels. Private labels never make the tree.
    """
    if len(sizes) == 1:
        return Tree(0, (-1,))
    if auxiliary is None or not len(auxiliary):
        raise ValueError(
            f"{len(sizes)} attributes and no public source for their tree; give an auxiliary set, or name "
            "each attribute's parent in mechanism.tree"
        )
    return learn_tree(auxiliary, sizes)


def secret_leakages(rule: Rule, n: int, levels: Sequence[int], log_l: float) -> tuple[Leakage, ...]:
    """Leakage about each secret of `levels` values; with none named, about any share of n records."""
    return tuple(rule.leakage(secret_levels=size, log_l=log_l) for size in (levels or [secret_levels(n)]))
