"""Statistic Maximal Leakage of a release: its bound, its cap, and what several releases add up to.

All values are in nats. The bound is a statement about the mechanism and holds however good the
labels and the rewritten texts are, given a secret draw, a pool independent of the private data, one
draw a release, and the style term log l, which is an assumption.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Leakage:
    """Leakage about one secret proportion.

    `mechanism_nats` is what the selection rule leaks at most, `cap_nats` = log|G| what there is to
    leak. `bound_nats` = min(mechanism + log l, cap). A bound at the cap is `vacuous`: it says nothing.
    """

    mechanism_nats: float
    cap_nats: float
    bound_nats: float
    vacuous: bool
    components: int
    log_l: float
    secret_levels: int

    @property
    def success_factor(self) -> float:
        """e^bound: the most a release can multiply an attacker's chance of being right (Prop. IV.4)."""
        return math.exp(self.bound_nats)


def secret_levels(n: int, precision: float | None = None) -> int:
    """|G|: the values a proportion can take; n + 1 for one of n records, 1/precision + 1 if it is coarser."""
    return n + 1 if precision is None else math.ceil(1 / precision - 1e-9) + 1


def per_component_leakage(
    gamma: int,
    k: int | Sequence[int],
    *,
    parent_sizes: Sequence[int] = (),
    secret_levels: int,
    log_l: float = 0.0,
) -> Leakage:
    """The paper's bound (Thm. IV.3): C·log(γ/k) + log l, capped at log|G|.

    Args:
        gamma: candidates of each component.
        k: how many are kept; one number, or one for each of the C components.
        parent_sizes: ψ_π(i) of every attribute but the root; C = 1 + their sum.
        secret_levels: |G|.
        log_l: style term, an assumption.

    Raises:
        ValueError: k outside 1..γ, or not one k for each component.
    """
    components = 1 + sum(parent_sizes)
    kept = [k] * components if isinstance(k, int) else list(k)
    if len(kept) != components:
        raise ValueError(f"{len(kept)} selection sizes for {components} components; give one for each")
    for size in kept:
        _check_kept(size, gamma)
    if isinstance(k, int):
        nats = components * math.log(gamma / k)
    else:
        nats = math.fsum(math.log(gamma / size) for size in kept)
    return _leakage(nats, components, secret_levels, log_l)


def joint_leakage(pool: int, kept: int, *, secret_levels: int, log_l: float = 0.0) -> Leakage:
    """The same bound for one component, the whole joint: log(M/K) + log l, capped at log|G|.

    Raises:
        ValueError: K = `kept` outside 1..M = `pool`.
    """
    _check_kept(kept, pool)
    return _leakage(math.log(pool / kept), 1, secret_levels, log_l)


def compose(bounds: Iterable[float]) -> float:
    """What releases of the same private data leak together: the sum of their bounds, in nats."""
    return math.fsum(bounds)


def _check_kept(kept: int, candidates: int) -> None:
    if not 1 <= kept <= candidates:
        raise ValueError(f"k = {kept} candidates cannot be kept of {candidates}; choose 1 to {candidates}")


def _leakage(nats: float, components: int, levels: int, log_l: float) -> Leakage:
    if levels < 1:
        raise ValueError(f"a secret of {levels} values; it has at least one")
    if not 0 <= log_l < math.inf:
        raise ValueError(f"log l = {log_l}; it is finite and not negative")
    cap = math.log(levels)
    reached = nats + log_l
    return Leakage(nats, cap, min(reached, cap), reached >= cap, components, log_l, levels)
