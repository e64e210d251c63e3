"""A budget for the per-component rule: which component keeps how many candidates.

Component c keeps k_c of γ and spends log(γ/k_c) nats. What that buys is a nearer candidate, and it
counts by the mass m_c of its parent value: the expected joint TV is about Σ m_c·d_c(k_c). So a nat
goes where it buys most, and a rare parent value gets none. Public inputs alone decide.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from quantext_graph.core.arrays import Floats
from quantext_graph.core.candidates import total_variation

PLAUSIBLE = 32
"""Draws of what the private component may be, over which d_c is averaged."""


def distance_curve(counts: Floats, candidates: Floats, rng: np.random.Generator) -> Floats:
    """d(k) for k = 1..γ: the mean TV of the k nearest candidates (γ, ψ) to a plausible component, (γ,).

    Plausible components are draws from the Dirichlet posterior of the auxiliary counts (ψ,).
    """
    total = np.zeros(len(candidates))
    for component in rng.dirichlet(counts + 0.5, size=PLAUSIBLE):
        total += np.sort(total_variation(candidates, component))
    mean: Floats = np.cumsum(total / PLAUSIBLE) / np.arange(1, len(candidates) + 1)
    return mean


def split_budget(curves: Sequence[Floats], masses: Sequence[float], budget_nats: float) -> tuple[int, ...]:
    """Selection sizes k_c with Σ log(γ/k_c) ≤ budget and the least Σ m_c·d_c(k_c) found.

    Args:
        curves: d_c(k) for k = 1..γ, (γ,) for each of the C components.
        masses: m_c, the public mass of each component's parent value; 1 for the root.

    Greedy along the lower convex hull of each component's (nats, distance) points, which is optimal
    for the nats it spends; where an equal split would cost less, that is returned.

    Raises:
        ValueError: the budget is negative or not finite.
    """
    if not 0 <= budget_nats < math.inf:
        raise ValueError(f"budget_nats = {budget_nats}; it is finite and not negative")
    gamma, components = len(curves[0]), len(curves)
    greedy = _greedy(curves, masses, budget_nats)
    same = min(gamma, math.ceil(gamma * math.exp(-budget_nats / components) * (1 - 1e-12)))
    equal = (max(1, same),) * components
    return min(greedy, equal, key=lambda sizes: _expected(curves, masses, sizes))


def _expected(curves: Sequence[Floats], masses: Sequence[float], sizes: Sequence[int]) -> float:
    return math.fsum(mass * float(curve[k - 1]) for curve, mass, k in zip(curves, masses, sizes, strict=True))


def _greedy(curves: Sequence[Floats], masses: Sequence[float], budget_nats: float) -> tuple[int, ...]:
    gamma = len(curves[0])
    nats = np.log(gamma / np.arange(1, gamma + 1))
    steps = []
    for component, (curve, mass) in enumerate(zip(curves, masses, strict=True)):
        hull = _lower_hull(nats, curve)
        for place, (here, there) in enumerate(itertools.pairwise(hull)):
            gain = mass * (curve[here] - curve[there]) / (nats[there] - nats[here])
            steps.append((-gain, component, place, int(there)))
    sizes = [gamma] * len(curves)
    left = budget_nats
    for _, component, _, there in sorted(step for step in steps if step[0] < 0):
        price = nats[there] - nats[sizes[component] - 1]
        if price > left + 1e-12:
            break
        left -= price
        sizes[component] = there + 1
    return tuple(_spend_rest(curves, masses, sizes, left))


def _spend_rest(
    curves: Sequence[Floats], masses: Sequence[float], sizes: list[int], left: float
) -> list[int]:
    """What is left buys steps off the hull for the components that have bought, the heaviest first."""
    gamma = len(curves[0])
    bought = [component for component, k in enumerate(sizes) if k < gamma] or range(len(curves))
    for component in sorted(bought, key=lambda c: -masses[c]):
        k = sizes[component]
        affordable = max(1, math.ceil(k * math.exp(-max(left, 0.0)) * (1 - 1e-12)))
        best = affordable + int(np.argmin(curves[component][affordable - 1 : k]))
        if curves[component][best - 1] < curves[component][k - 1]:
            left -= math.log(k / best)
            sizes[component] = min(best, gamma)
    return sizes


def _lower_hull(nats: Floats, curve: Floats) -> NDArray[np.int64]:
    """Indices of the lower convex hull of the points (nats, distance), from no nats to the least distance."""
    hull: list[int] = []
    for k in range(len(curve) - 1, -1, -1):
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            if (curve[b] - curve[a]) * (nats[k] - nats[a]) < (curve[k] - curve[a]) * (nats[b] - nats[a]):
                break
            hull.pop()
        hull.append(k)
    least = int(np.argmin(curve[hull]))
    return np.array(hull[: least + 1], dtype=np.int64)
