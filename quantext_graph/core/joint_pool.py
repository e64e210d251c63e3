"""Pools of whole joint distributions: M candidates, made in blocks and never held all at once.

A block is a function of (seed, its number), so the candidate that is drawn is made again when it is
needed, and anyone who knows the public inputs and the seed can make the whole pool, as an attacker may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quantext_graph.core.arrays import Codes, Event, Floats, cells, event_mask, grid
from quantext_graph.core.chow_liu import Tree
from quantext_graph.core.distribution import (
    Distribution,
    Move,
    TableDistribution,
    TreeDistribution,
    event_box,
    tree_mass,
    tree_probability,
)
from quantext_graph.core.event_atoms import Atom, Events, atoms
from quantext_graph.core.public_pool import (
    event_cells,
    move_tables,
    spread_shares,
    tilted_components,
    tilted_tables,
)

BLOCK_FLOATS = 2**20
"""Numbers held at once: 8 MB, and a few times that while a block is made."""


class Block(Protocol):
    """Some candidates of a pool, `count` of them."""

    @property
    def count(self) -> int: ...

    def probability(self, combos: Codes) -> Floats:
        """Probability of each combination (c, m) under each candidate, (b, c)."""
        ...

    def share(self, event: Event) -> Floats:
        """Share of the event under each candidate, (b,)."""
        ...

    def distribution(self, index: int) -> Distribution: ...


class Source(Protocol):
    """What makes candidates. `width` is how many numbers one takes."""

    @property
    def width(self) -> int: ...

    def block(self, count: int, rng: np.random.Generator) -> Block: ...


@dataclass(frozen=True)
class JointPool:
    """M = `size` candidates from a source, reproducible from `seed`."""

    source: Source
    size: int
    seed: int

    @property
    def block_size(self) -> int:
        return max(1, min(self.size, 4096, BLOCK_FLOATS // self.source.width))

    def distances(self, combos: Codes, masses: Floats, *, blind_to: Events = ()) -> Floats:
        """Joint TV from every candidate to P̂, (M,).

        TV(P̂, Q) = Σ (P̂(x) − Q(x))₊ needs the combinations that P̂ holds only: `combos` (c, m) with
        their masses (c,). With `blind_to`, Q is first given the shares that the events, and what they
        have in common, have in P̂: the distance then sees how the rest lies within them, not the shares.
        """
        parts = atoms(combos, masses, blind_to)
        return np.concatenate(
            [self._block_distances(block, combos, masses, parts) for block in self._blocks()]
        )

    def _block_distances(self, block: Block, combos: Codes, masses: Floats, parts: Sequence[Atom]) -> Floats:
        total: Floats = np.zeros(self.block_size)
        step = max(1, BLOCK_FLOATS // self.block_size)
        for atom in parts:
            factor = 1.0 if not atom.events else _over(atom.mass, atom.share(block.share))[:, None]
            for start in range(0, len(atom.members), step):
                some = atom.members[start : start + step]
                probability = block.probability(combos[some])
                distance = np.maximum(masses[some] - factor * probability, 0).sum(axis=1)
                total[: len(distance)] += distance
        return total[: block.count]

    def shares(self, event: Event) -> Floats:
        """Share of the event under every candidate, (M,)."""
        return np.concatenate([block.share(event) for block in self._blocks()])

    def candidate(self, index: int) -> Distribution:
        """Candidate `index` as a distribution."""
        number, within = divmod(index, self.block_size)
        return self._block(number).distribution(within)

    def _blocks(self) -> Iterator[Block]:
        return (self._block(number) for number in range(-(-self.size // self.block_size)))

    def _block(self, number: int) -> Block:
        count = min(self.block_size, self.size - number * self.block_size)
        return self.source.block(count, np.random.default_rng([self.seed, number]))


def _over(mass: float, held: Floats) -> Floats:
    """mass / held, and 0 where a candidate holds nothing there."""
    return np.divide(mass, held, out=np.zeros_like(held), where=held > 1e-12)


@dataclass(frozen=True)
class DirichletSource:
    """The paper's candidates for the whole joint: one independent Dirichlet(α) draw a component."""

    tree: Tree
    sizes: tuple[int, ...]
    alpha: float

    @property
    def width(self) -> int:
        return sum(rows * size for rows, size in zip(self.tree.rows(self.sizes), self.sizes, strict=True))

    def block(self, count: int, rng: np.random.Generator) -> Block:
        tables = [
            rng.dirichlet(np.full(size, self.alpha), size=(count, rows))
            for rows, size in zip(self.tree.rows(self.sizes), self.sizes, strict=True)
        ]
        return TreeBlock(self.tree, self.sizes, tables)


@dataclass(frozen=True)
class TableSource:
    """Tilts of the public joint as a table, moved along a secret chosen at random where there is a spread."""

    joint: TableDistribution
    events: Events
    spread: float | None

    @property
    def width(self) -> int:
        return cells(self.joint.sizes)

    def block(self, count: int, rng: np.random.Generator) -> Block:
        tables = tilted_tables(self.joint, count, rng)
        if self.spread is not None and self.events:
            along = rng.integers(len(self.events), size=count)
            for number, event in enumerate(self.events):
                chosen = along == number
                shares = spread_shares(self.joint.share(event), self.spread, int(chosen.sum()), rng)
                moved = tables[chosen]
                move_tables(moved, event_cells(event, self.joint.sizes), shares)
                tables[chosen] = moved
        return TableBlock(self.joint.sizes, tables)


@dataclass(frozen=True)
class TreeSource:
    """Tilts of the components of the public tree model, for products too large for a table."""

    model: TreeDistribution
    events: Events
    spread: float | None

    @property
    def width(self) -> int:
        return sum(table.size for table in self.model.tables)

    def block(self, count: int, rng: np.random.Generator) -> Block:
        tables = tilted_components(self.model, count, rng)
        block = TreeBlock(self.model.tree, self.model.sizes, tables)
        if self.spread is None or not self.events:
            return block
        along = rng.integers(len(self.events), size=count)
        inside, outside = np.ones(count), np.ones(count)
        for number, event in enumerate(self.events):
            chosen = along == number
            held = block.share(event)[chosen]
            shares = spread_shares(self.model.share(event), self.spread, int(chosen.sum()), rng)
            inside[chosen], outside[chosen] = shares / held, (1 - shares) / (1 - held)
        return TreeBlock(
            self.model.tree, self.model.sizes, tables, Moves(self.events, along, inside, outside)
        )


@dataclass(frozen=True)
class TableBlock:
    """Candidates as tables (b, Π ψ_r)."""

    sizes: tuple[int, ...]
    tables: Floats

    @property
    def count(self) -> int:
        return len(self.tables)

    def probability(self, combos: Codes) -> Floats:
        values: Floats = self.tables[:, np.ravel_multi_index(tuple(combos.T), self.sizes)]
        return values

    def share(self, event: Event) -> Floats:
        shares: Floats = self.tables[:, event_mask(grid(self.sizes), event)].sum(axis=1)
        return shares

    def distribution(self, index: int) -> Distribution:
        return TableDistribution(self.sizes, self.tables[index].copy())


@dataclass(frozen=True)
class Moves:
    """The event that each of b candidates is moved along, and its factors inside and outside, all (b,)."""

    events: Events
    along: NDArray[np.int64]
    inside: Floats
    outside: Floats

    def each(self) -> Iterator[tuple[dict[int, tuple[int, ...]], NDArray[np.int64]]]:
        """Every event with the candidates that are moved along it."""
        for number, event in enumerate(self.events):
            yield event, np.flatnonzero(self.along == number)


@dataclass(frozen=True)
class TreeBlock:
    """Candidates as trees, tables[i] of shape (b, ψ_π(i), ψ_i), each moved along an event, if any."""

    tree: Tree
    sizes: tuple[int, ...]
    tables: list[Floats]
    moves: Moves | None = None

    @property
    def count(self) -> int:
        return len(self.tables[0])

    def probability(self, combos: Codes) -> Floats:
        values = tree_probability(self.tree, self.tables, combos)
        if self.moves is not None:
            for event, chosen in self.moves.each():
                inside, outside = self.moves.inside[chosen, None], self.moves.outside[chosen, None]
                values[chosen] *= np.where(event_mask(combos, event), inside, outside)
        return values

    def share(self, event: Event) -> Floats:
        box = event_box(event, self.sizes)
        total = tree_mass(self.tree, self.tables, box)
        if self.moves is None:
            return total
        shares = total.copy()
        for moved, chosen in self.moves.each():
            both = [a & b for a, b in zip(box, event_box(moved, self.sizes), strict=True)]
            held = tree_mass(self.tree, self.tables, both)[chosen]
            shares[chosen] = self.moves.inside[chosen] * held + self.moves.outside[chosen] * (
                total[chosen] - held
            )
        return shares

    def distribution(self, index: int) -> Distribution:
        tables = tuple(table[index].copy() for table in self.tables)
        move = None
        if self.moves is not None:
            event = self.moves.events[int(self.moves.along[index])]
            move = Move(event, float(self.moves.inside[index]), float(self.moves.outside[index]))
        return TreeDistribution(self.tree, self.sizes, tables, move)
