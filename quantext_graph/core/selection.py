"""Steps 3 and 4: which candidate is released (Alg. 1 lines 3-11).

A rule is made of public inputs alone. It says which candidates are kept for given labels; one of the
kept is drawn uniformly, and `draw` is the one door through which that secret randomness comes. Since
P(θ'|θ) = 1[θ' kept]/k, Σ_θ' max_θ P(θ'|θ) ≤ γ/k for each component, whatever is kept.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quantext_graph.core.arrays import Codes, Floats, combinations
from quantext_graph.core.candidates import total_variation
from quantext_graph.core.chow_liu import Tree
from quantext_graph.core.distribution import Distribution, TreeDistribution, empirical_tables
from quantext_graph.core.event_atoms import Events
from quantext_graph.core.joint_pool import JointPool
from quantext_graph.core.leakage import Leakage, joint_leakage, per_component_leakage

Kept = list[NDArray[np.int64]]
"""For each component, the indices of the candidates that may be released, nearest first."""

Choice = tuple[int, ...]
"""For each component, the index of the candidate that is released."""


def draw(count: int, rng: np.random.Generator | None = None) -> int:
    """A uniform number below `count`: the secret draw, from the operating system's randomness.

    With a generator it is reproducible, which is for tests and experiments: such a release is not private.
    """
    return secrets.randbelow(count) if rng is None else int(rng.integers(count))


def draw_choice(kept: Kept, rng: np.random.Generator | None = None) -> Choice:
    """One of the kept candidates of each component, uniformly (Alg. 1 line 10)."""
    return tuple(int(indices[draw(len(indices), rng)]) for indices in kept)


def likelihood(choice: Choice, kept: Kept) -> float:
    """P(θ'|θ): the probability that labels which keep `kept` release `choice`."""
    if not all(index in indices for index, indices in zip(choice, kept, strict=True)):
        return 0.0
    return 1 / math.prod(len(indices) for indices in kept)


def nearest(distances: Floats, k: int) -> NDArray[np.int64]:
    """Indices of the k least distances (γ,), nearest first, ties by index.

    Raises:
        ValueError: k outside 1..γ.
    """
    if not 1 <= k <= len(distances):
        raise ValueError(
            f"k = {k} candidates cannot be kept of gamma = {len(distances)}; choose 1 to {len(distances)}"
        )
    return np.argsort(distances, kind="stable")[:k].astype(np.int64, copy=False)


def select_joint(distances: Floats, kept: int) -> Kept:
    """The K = `kept` joint candidates nearest to the empirical joint; `distances` is (M,)."""
    return [nearest(distances, kept)]


def select_per_component(
    empirical: Sequence[Floats | None], candidates: Sequence[Floats], k: int | Sequence[int]
) -> Kept:
    """For each component the k candidates nearest in TV to the empirical one (Alg. 1 lines 3-9).

    Args:
        empirical: (ψ,) for each component; None where the parent value is absent from the private
            data: then all γ are kept, and the bound holds since 1/γ ≤ 1/k.
        candidates: (γ, ψ) for each component.
        k: selection size, one for all or one for each component.
    """
    sizes = [k] * len(candidates) if isinstance(k, int) else k
    kept: Kept = []
    for component, pool, size in zip(empirical, candidates, sizes, strict=True):
        distances = np.zeros(len(pool)) if component is None else total_variation(pool, component)
        near = nearest(distances, size)
        kept.append(near if component is not None else np.arange(len(pool), dtype=np.int64))
    return kept


def joint_selection_size(pool: int, budget_nats: float) -> int:
    """K for a pool of M: the least with log(M/K) ≤ budget, and at least 1.

    Raises:
        ValueError: the budget is negative or not finite.
    """
    _check_budget(budget_nats)
    kept = max(1, math.ceil(pool * math.exp(-budget_nats) * (1 - 1e-12)))
    return min(pool, kept)


def _check_budget(budget_nats: float) -> None:
    if not 0 <= budget_nats < math.inf:
        raise ValueError(f"budget_nats = {budget_nats}; it is finite and not negative")


class Rule(Protocol):
    """A selection rule with its pool: everything about a release that is public before it."""

    def kept(self, labels: Codes) -> Kept:
        """Which candidates the labels (n, m) keep; private."""
        ...

    def release(self, choice: Choice) -> Distribution:
        """The distribution that a choice stands for."""
        ...

    def leakage(self, *, secret_levels: int, log_l: float = 0.0) -> Leakage: ...


@dataclass(frozen=True)
class JointRule:
    """One uniform draw from the K = `selection_size` nearest of M candidates for the whole joint.

    Which are nearest does not look at the shares of the events in `blind_to`.
    """

    pool: JointPool
    selection_size: int
    blind_to: Events = ()

    def kept(self, labels: Codes) -> Kept:
        combos, counts, _ = combinations(labels)
        distances = self.pool.distances(combos, counts / len(labels), blind_to=self.blind_to)
        return select_joint(distances, self.selection_size)

    def release(self, choice: Choice) -> Distribution:
        return self.pool.candidate(choice[0])

    def leakage(self, *, secret_levels: int, log_l: float = 0.0) -> Leakage:
        return joint_leakage(self.pool.size, self.selection_size, secret_levels=secret_levels, log_l=log_l)


@dataclass(frozen=True)
class PerComponentRule:
    """The paper's rule. Components go attribute by attribute, and by parent value within one.

    `candidates` holds (γ, ψ) for each component, `selection_sizes` its k.
    """

    tree: Tree
    sizes: tuple[int, ...]
    candidates: tuple[Floats, ...]
    selection_sizes: tuple[int, ...]

    @property
    def gamma(self) -> int:
        return len(self.candidates[0])

    def kept(self, labels: Codes) -> Kept:
        empirical = [
            counts / counts.sum() if counts.any() else None
            for table in empirical_tables(labels, self.tree, self.sizes)
            for counts in table
        ]
        return select_per_component(empirical, self.candidates, self.selection_sizes)

    def release(self, choice: Choice) -> Distribution:
        chosen = iter([pool[index] for pool, index in zip(self.candidates, choice, strict=True)])
        tables = tuple(np.stack([next(chosen) for _ in range(rows)]) for rows in self.tree.rows(self.sizes))
        return TreeDistribution(self.tree, self.sizes, tables)

    def leakage(self, *, secret_levels: int, log_l: float = 0.0) -> Leakage:
        equal = len(set(self.selection_sizes)) == 1
        return per_component_leakage(
            self.gamma,
            self.selection_sizes[0] if equal else self.selection_sizes,
            parent_sizes=self.tree.parent_sizes(self.sizes),
            secret_levels=secret_levels,
            log_l=log_l,
        )
