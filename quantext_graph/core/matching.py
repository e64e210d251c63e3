"""Step 5: which record gets which target (Alg. 1 lines 13-14), as a transportation network.

The cost of a pair is the weighted Hamming distance of its combinations, so the records of one
combination are alike, and the optimum is a flow between combinations. The mass that labels and targets
share stays where it is, which is optimal since the cost is a metric. The rest flows over hubs: a hub for
each (attribute r, rest of the combination); going up to it costs w_r, going down nothing. Where there are
fewer targets than records (slack), what is over flows to a place for unused records at no cost, so a
target goes to a record that already has it wherever there is one.

Limit: the network holds the product of the occurring categories. Where that exceeds `NETWORK_LIMIT`,
records are first paired with targets that differ from them in as little as possible, the cheapest
attributes first, until the pairs that are left fit the dense solver (`DENSE_LIMIT` squared). Up to
`DENSE_LIMIT` records that is exact; beyond, it is an upper bound of the optimum.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quantext_graph.core.arrays import Codes, Floats, combinations, grid

NETWORK_LIMIT = 20_000
DENSE_LIMIT = 3_000

UNUSED = -1
"""Stands in the place of a target for a record that gets none."""

Ints = NDArray[np.int64]
Plan = list[tuple[int, int, int]]
"""(combination, combination, records): how many records go from one to the other."""


def assign(
    labels: ArrayLike,
    targets: ArrayLike,
    *,
    weights: Sequence[float] | None = None,
    last: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> Ints:
    """The row of `targets` that each record gets, each target once, at least total cost.

    Args:
        labels: (n, m) codes of the private records.
        targets: (n′, m) codes drawn from the released distribution, n′ ≤ n.
        weights: w_r, what a changed attribute costs; all one by default.
        last: (n,) true for records that are used only where there are more targets than others, and then
            so many of them as are wanting, whatever their labels: who is used late tells nothing of where
            records are short. The cost is the least over the records at hand.
        rng: decides which of the records with equal labels goes where, and which stay unused.

    Returns:
        (n,): record i gets `targets[rows[i]]`, or none where `rows[i]` is `UNUSED`.

    Raises:
        ValueError: shapes that do not fit, more targets than records, or weights that are not positive
            and finite.
    """
    if last is not None:
        return _set_aside(np.asarray(labels), np.asarray(targets), np.asarray(last, dtype=bool), weights, rng)
    sources, sinks = np.asarray(labels, dtype=np.int64), np.asarray(targets, dtype=np.int64)
    if sources.ndim != 2 or sinks.ndim != 2 or sources.shape[1] != sinks.shape[1]:
        raise ValueError(f"labels {sources.shape} and targets {sinks.shape} must have shapes (n, m), (n′, m)")
    if len(sinks) > len(sources):
        raise ValueError(f"{len(sinks)} targets for {len(sources)} records; a record takes one at most")
    n, m = sources.shape
    costs = np.ones(m) if weights is None else np.asarray(weights, dtype=float)
    if costs.shape != (m,) or not (np.isfinite(costs) & (costs > 0)).all():
        raise ValueError(f"weights {costs.tolist()} must be {m} positive numbers, one for each attribute")
    combos, _, which = combinations(np.concatenate([sources, sinks]))
    of_record, of_target = which[:n], which[n:]
    supply = np.bincount(of_record, minlength=len(combos))
    demand = np.bincount(of_target, minlength=len(combos))
    shared = np.minimum(supply, demand)
    plan: Plan = [(int(a), int(a), int(shared[a])) for a in np.flatnonzero(shared)]
    plan += _transport(combos, supply - shared, demand - shared, costs)
    return _carry_out(plan, of_record, of_target, rng or np.random.default_rng())


def _set_aside(
    labels: Codes,
    targets: Codes,
    last: NDArray[np.bool_],
    weights: Sequence[float] | None,
    rng: np.random.Generator | None,
) -> Ints:
    """`assign` over the records that are not to be used last, and as many of those as it takes."""
    if last.shape != (len(labels),):
        raise ValueError(f"last {last.shape} must say for each of {len(labels)} records whether it is last")
    rng = rng or np.random.default_rng()
    late = rng.permutation(np.flatnonzero(last))
    first = np.flatnonzero(~last)
    at_hand = np.concatenate([first, late[: max(0, len(targets) - len(first))]])
    rows = np.full(len(labels), UNUSED, dtype=np.int64)
    rows[at_hand] = assign(labels[at_hand], targets, weights=weights, rng=rng)
    return rows


def total_cost(labels: Codes, assigned: Codes, weights: Sequence[float] | None = None) -> float:
    """Σ_i Σ_r w_r·1[label ≠ target] over records that are used and their targets, both (n′, m)."""
    changed = np.count_nonzero(labels != assigned, axis=0)
    return float(changed @ (np.ones(labels.shape[1]) if weights is None else np.asarray(weights, float)))


def _carry_out(plan: Plan, of_record: Ints, of_target: Ints, rng: np.random.Generator) -> Ints:
    """Records of a combination, in random order, to the combinations the plan sends them to; those that
    it sends nowhere stay unused."""
    shuffled = rng.permutation(len(of_record))
    records = shuffled[_grouped(of_record[shuffled])]
    origin, destination, count = np.array(sorted(plan), dtype=np.int64).reshape(-1, 3).T
    # Of the records of one combination the first in their random order are used.
    size = np.bincount(of_record)
    sent = np.bincount(origin, weights=count, minlength=len(size)).astype(np.int64)
    place = np.arange(len(records)) - np.repeat(np.cumsum(size) - size, size)
    used = records[place < np.repeat(sent[: len(size)], size)]
    rows = np.full(len(of_record), UNUSED, dtype=np.int64)
    rows[used[_grouped(np.repeat(destination, count))]] = _grouped(of_target)
    return rows


def _grouped(which: Ints) -> Ints:
    """Positions ordered by combination. Short keys are what NumPy sorts by radix, in linear time."""
    return np.argsort(which.astype(np.min_scalar_type(int(which.max(initial=0)))), kind="stable")


def _transport(combos: Codes, supply: Ints, demand: Ints, costs: Floats) -> Plan:
    """Where the demand that is not met in place comes from: a plan between the rows of `combos` (c, m)."""
    if not demand.any():
        return []
    moving = np.flatnonzero(supply + demand)
    occurring = [np.unique(column, return_inverse=True) for column in combos[moving].T]
    sizes = [len(values) for values, _ in occurring]
    if np.prod([float(size) for size in sizes]) > NETWORK_LIMIT:
        return _nearly_alike(combos, supply.copy(), demand.copy(), costs)
    position = np.ravel_multi_index(tuple(codes for _, codes in occurring), tuple(sizes))
    balance = np.zeros(int(np.prod(sizes)), dtype=np.int64)
    balance[position] = supply[moving] - demand[moving]
    original = np.zeros(len(balance), dtype=np.int64)
    original[position] = moving
    return [
        (int(original[a]), int(original[b]), count) for a, b, count in _network_flow(balance, sizes, costs)
    ]


def _network_flow(balance: Ints, sizes: Sequence[int], costs: Floats) -> Plan:
    """The cheapest flow from combinations of positive to those of negative balance, over the hubs. Of what
    the supply exceeds the demand nothing is said: those records stay unused."""
    unused, over = len(balance), int(balance.sum())
    sources = np.flatnonzero(balance > 0)
    attributes = [r for r, size in enumerate(sizes) if size > 1]
    nodes = np.arange(len(balance))
    all_codes = grid(sizes)
    ups, hubs, prices = [], [], []
    first_hub = unused + 1
    for r in attributes:
        rest = [size for q, size in enumerate(sizes) if q != r]
        others = np.delete(all_codes, r, axis=1)
        hub = np.ravel_multi_index(tuple(others.T), tuple(rest)) if rest else np.zeros_like(nodes)
        ups.append(nodes)
        hubs.append(first_hub + hub)
        prices.append(np.full(len(nodes), costs[r]))
        first_hub += len(nodes) // sizes[r]
    tail = np.concatenate([*ups, *hubs, sources])
    head = np.concatenate([*hubs, *ups, np.full(len(sources), unused)])
    price = np.concatenate([*prices, np.zeros(len(tail) - sum(map(len, prices)))])
    balance = np.append(balance, -over)
    from scipy.optimize import linprog  # with its solver it takes as long to import as all of the rest
    from scipy.sparse import coo_array

    edges = np.arange(len(tail))
    incidence = coo_array(
        (np.repeat([1.0, -1.0], len(edges)), (np.concatenate([tail, head]), np.concatenate([edges, edges]))),
        shape=(first_hub, len(edges)),
    ).tocsr()
    right = np.zeros(first_hub)
    right[: len(balance)] = balance
    solution = linprog(  # type: ignore[call-overload]  # its stubs know no sparse arrays
        price, A_eq=incidence, b_eq=right, bounds=(0, None), method="highs-ds"
    )
    if solution.x is None:
        raise RuntimeError(f"the transportation network has no solution: {solution.message}")
    flow = np.rint(solution.x).astype(np.int64)
    if np.abs(solution.x - flow).max() > 1e-4 or (incidence @ flow != right).any():
        raise RuntimeError("the transportation network gave a flow that is not integral")
    return [step for step in _paths(balance, tail, head, flow) if step[1] != unused]


def _paths(balance: Ints, tail: Ints, head: Ints, flow: Ints) -> Plan:
    """The flow on the edges as paths from where records are to where targets are."""
    left = balance.copy()
    out: dict[int, list[list[int]]] = defaultdict(list)
    for edge in np.flatnonzero(flow):
        out[int(tail[edge])].append([int(head[edge]), int(flow[edge])])
    plan: Plan = []
    for start in np.flatnonzero(balance > 0).tolist():
        while left[start] > 0:
            node, amount, path = start, int(left[start]), []
            while node >= len(left) or left[node] >= 0:
                edge_out = out[node][-1]
                path.append((node, edge_out))
                node, amount = edge_out[0], min(amount, edge_out[1])
            amount = min(amount, int(-left[node]))
            for passed, edge_out in path:
                edge_out[1] -= amount
                if edge_out[1] == 0:
                    out[passed].remove(edge_out)
            left[start] -= amount
            left[node] += amount
            plan.append((start, node, amount))
    return plan


def _nearly_alike(combos: Codes, supply: Ints, demand: Ints, costs: Floats) -> Plan:
    """Pairs that differ in the cheapest attributes only, until the dense solver can take the rest."""
    plan: Plan = []
    for changed in _by_cost(costs):
        if supply.sum() * demand.sum() <= DENSE_LIMIT**2:
            break
        left = np.flatnonzero(supply + demand)
        kept = [r for r in range(combos.shape[1]) if r not in changed]
        group = np.full(len(combos), -1)
        group[left] = combinations(combos[left][:, kept])[2]
        plan += _pair_within_groups(group, supply, demand)
    return plan + _dense(combos, supply, demand, costs)


def _by_cost(costs: Floats) -> Iterator[tuple[int, ...]]:
    """Sets of attributes by what changing them costs; of many attributes, the small sets and all."""
    m = len(costs)
    largest = m if m <= 6 else 2
    subsets = [s for size in range(1, largest + 1) for s in itertools.combinations(range(m), size)]
    yield from sorted(subsets, key=lambda subset: float(costs[list(subset)].sum()))
    yield tuple(range(m))


def _pair_within_groups(group: Ints, supply: Ints, demand: Ints) -> Plan:
    """Pair supply and demand of each group as far as both go, and take it off them."""
    plan: Plan = []
    wanted: dict[int, list[int]] = defaultdict(list)
    for b in np.flatnonzero(demand).tolist():
        wanted[int(group[b])].append(b)
    for a in np.flatnonzero(supply).tolist():
        takers = wanted[int(group[a])]
        while supply[a] and takers:
            b = takers[-1]
            count = int(min(supply[a], demand[b]))
            supply[a] -= count
            demand[b] -= count
            plan.append((a, b, count))
            if not demand[b]:
                takers.pop()
    return plan


def _dense(combos: Codes, supply: Ints, demand: Ints, costs: Floats) -> Plan:
    """The optimum of what is left, record by record."""
    from scipy.optimize import linear_sum_assignment

    sources = np.repeat(np.arange(len(combos)), supply)
    sinks = np.repeat(np.arange(len(combos)), demand)
    cost = np.zeros((len(sources), len(sinks)))
    for r, weight in enumerate(costs):
        cost += weight * (combos[sources, r][:, None] != combos[sinks, r])
    rows, columns = linear_sum_assignment(cost)
    return [(int(a), int(b), 1) for a, b in zip(sources[rows], sinks[columns], strict=True)]
