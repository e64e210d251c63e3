"""Joint distributions over the attributes: as a table, or as a tree of components.

Both know the probability of a combination, the share of an event and how to draw targets, and both
go to JSON and back, since the released one is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quantext_graph.core.arrays import Codes, Event, Floats, cells, event_mask, grid
from quantext_graph.core.chow_liu import Tree

TABLE_LIMIT = 1_000_000
"""Joints of at most this many combinations are spread out in full where that is of use."""

Mask = NDArray[np.bool_]


class Distribution(Protocol):
    """A distribution of combinations of categories."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """ψ_r of each attribute."""
        ...

    def probability(self, combos: Codes) -> Floats:
        """Probability of each of the combinations (c, m), shape (c,)."""
        ...

    def share(self, event: Event) -> float:
        """Probability of the event: the value that the release gives to a secret."""
        ...

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class TableDistribution:
    """A joint spread out: `probabilities` (Π ψ_r,) in row-major order of the combinations."""

    sizes: tuple[int, ...]
    probabilities: Floats

    def probability(self, combos: Codes) -> Floats:
        values: Floats = self.probabilities[np.ravel_multi_index(tuple(combos.T), self.sizes)]
        return values

    def share(self, event: Event) -> float:
        return float(self.probabilities[event_mask(grid(self.sizes), event)].sum())

    def to_json(self) -> dict[str, Any]:
        return {"kind": "table", "sizes": list(self.sizes), "probabilities": self.probabilities.tolist()}


@dataclass(frozen=True)
class Move:
    """A factor on the probability of an event and one on the rest: the move along a secret."""

    event: dict[int, tuple[int, ...]]
    inside: float
    outside: float


@dataclass(frozen=True)
class TreeDistribution:
    """P(φ_root)·Π P(φ_i | φ_π(i)), with `tables[i]` of shape (ψ_π(i), ψ_i), (1, ψ_i) for the root.

    Where `move` is given, combinations in its event are weighted by `inside`, the others by `outside`.
    """

    tree: Tree
    sizes: tuple[int, ...]
    tables: tuple[Floats, ...]
    move: Move | None = None

    def probability(self, combos: Codes) -> Floats:
        values: Floats = tree_probability(self.tree, [table[None] for table in self.tables], combos)[0]
        if self.move is not None:
            inside = event_mask(combos, self.move.event)
            values = values * np.where(inside, self.move.inside, self.move.outside)
        return values

    def share(self, event: Event) -> float:
        total = self._mass(event_box(event, self.sizes))
        if self.move is None:
            return total
        both = self._mass(_meet(event_box(event, self.sizes), event_box(self.move.event, self.sizes)))
        return self.move.inside * both + self.move.outside * (total - both)

    def _mass(self, box: Sequence[Mask]) -> float:
        return float(tree_mass(self.tree, [table[None] for table in self.tables], box)[0])

    def pieces(self) -> list[tuple[float, tuple[Floats, ...]]]:
        """The distribution as a mixture of trees without a move: (weight, tables), weights adding to 1.

        The complement of an event is a union of disjoint boxes: the first attribute outside, or it
        inside and the second outside, and so on; each is a tree of its own.
        """
        if self.move is None:
            return [(1.0, self.tables)]
        box = event_box(self.move.event, self.sizes)
        boxes = [(self.move.inside, box)]
        for attribute in self.move.event:
            outside = [mask if r < attribute else np.ones_like(mask) for r, mask in enumerate(box)]
            outside[attribute] = ~box[attribute]
            boxes.append((self.move.outside, outside))
        pieces = []
        for factor, mask in boxes:
            weight = factor * self._mass(mask)
            if weight > 0:
                pieces.append((weight, tree_within(self.tree, self.tables, mask)))
        return pieces

    def to_json(self) -> dict[str, Any]:
        move = self.move and {
            "event": [[attribute, list(categories)] for attribute, categories in self.move.event.items()],
            "inside": self.move.inside,
            "outside": self.move.outside,
        }
        return {
            "kind": "tree",
            "sizes": list(self.sizes),
            "root": self.tree.root,
            "parents": list(self.tree.parents),
            "tables": [table.tolist() for table in self.tables],
            "move": move,
        }


def distribution_from_json(data: Mapping[str, Any]) -> TableDistribution | TreeDistribution:
    """The distribution that `to_json` wrote."""
    sizes = tuple(data["sizes"])
    if data["kind"] == "table":
        return TableDistribution(sizes, np.array(data["probabilities"]))
    tables = tuple(np.array(table, dtype=float).reshape(len(table), -1) for table in data["tables"])
    move = data["move"] and Move(
        {attribute: tuple(categories) for attribute, categories in data["move"]["event"]},
        data["move"]["inside"],
        data["move"]["outside"],
    )
    return TreeDistribution(Tree(data["root"], tuple(data["parents"])), sizes, tables, move)


def joint_table(distribution: Distribution) -> Floats:
    """The probabilities of all combinations, (Π ψ_r,), adding to 1.

    Raises:
        ValueError: more than `TABLE_LIMIT` combinations.
    """
    if cells(distribution.sizes) > TABLE_LIMIT:
        raise ValueError(f"{cells(distribution.sizes)} combinations; a table holds {TABLE_LIMIT} at most")
    table = distribution.probability(grid(distribution.sizes))
    table /= table.sum()
    return table


def total_variation_from(combos: Codes, masses: Floats, distribution: Distribution) -> float:
    """TV(P̂, Q) = Σ (P̂(x) − Q(x))₊ over the combinations (c, m) that P̂ holds, with masses (c,)."""
    return float(np.maximum(masses - distribution.probability(combos), 0).sum())


def changed_share(combos: Codes, masses: Floats, distribution: Distribution, keep: float) -> float:
    """Share of the released texts whose combination must change where κ of the records are released:
    Σ (Q(x) − P̂(x)/κ)₊, of which only the combinations (c, m) that P̂ holds need Q. With κ = 1 it is the TV."""
    return 1.0 - float(np.minimum(distribution.probability(combos), masses / keep).sum())


def event_box(event: Event, sizes: Sequence[int]) -> list[Mask]:
    """For each attribute, which of its categories the event admits."""
    return [
        np.isin(np.arange(size), list(event[r])) if r in event else np.ones(size, dtype=bool)
        for r, size in enumerate(sizes)
    ]


def _meet(first: Sequence[Mask], second: Sequence[Mask]) -> list[Mask]:
    return [one & other for one, other in zip(first, second, strict=True)]


def tree_probability(tree: Tree, tables: Sequence[Floats], combos: Codes) -> Floats:
    """Probability of each combination (c, m) under each of b trees, (b, c); tables[i] is (b, ψ_π(i), ψ_i)."""
    values: Floats = np.ones((len(tables[tree.root]), len(combos)))
    for attribute, parent in enumerate(tree.parents):
        rows = combos[:, parent] if parent >= 0 else np.zeros(len(combos), dtype=np.int64)
        values *= tables[attribute][:, rows, combos[:, attribute]]
    return values


def tree_mass(tree: Tree, tables: Sequence[Floats], box: Sequence[Mask]) -> Floats:
    """Mass of a box under each of b trees, (b,), by passing sums from the leaves to the root."""
    return _messages(tree, tables, box)[tree.root][:, 0]


def _messages(tree: Tree, tables: Sequence[Floats], box: Sequence[Mask]) -> dict[int, Floats]:
    messages: dict[int, Floats] = {}
    for attribute in reversed(tree.order):
        below = box[attribute] * np.ones((len(tables[attribute]), 1))
        for child in tree.children(attribute):
            below = below * messages[child]
        messages[attribute] = np.einsum("brx,bx->br", tables[attribute], below)
    return messages


def tree_within(tree: Tree, tables: Sequence[Floats], box: Sequence[Mask]) -> tuple[Floats, ...]:
    """The tables of the tree conditioned on a box of positive mass."""
    messages = _messages(tree, [table[None] for table in tables], box)
    within = []
    for attribute, table in enumerate(tables):
        below = box[attribute].astype(float)
        for child in tree.children(attribute):
            below = below * messages[child][0]
        weighted = table * below
        total = weighted.sum(axis=1, keepdims=True)
        within.append(np.divide(weighted, total, out=np.zeros_like(weighted), where=total > 0))
    return tuple(within)


def empirical_tables(codes: Codes, tree: Tree, sizes: Sequence[int]) -> tuple[NDArray[np.int64], ...]:
    """Counts of each component: counts[i] has shape (ψ_π(i), ψ_i), (1, ψ_i) for the root."""
    counts = []
    for attribute, (parent, rows) in enumerate(zip(tree.parents, tree.rows(sizes), strict=True)):
        keys = (
            codes[:, attribute] if parent < 0 else codes[:, parent] * sizes[attribute] + codes[:, attribute]
        )
        table = np.bincount(keys, minlength=rows * sizes[attribute])
        counts.append(table.reshape(rows, sizes[attribute]).astype(np.int64, copy=False))
    return tuple(counts)
