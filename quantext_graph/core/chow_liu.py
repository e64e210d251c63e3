"""Step 1: the dependency tree of the attributes (Chow and Liu; Alg. 1 line 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from quantext_graph.core.arrays import Floats, as_codes


@dataclass(frozen=True)
class Tree:
    """Attributes 0..m-1 with `parents[i]` = π(i), and -1 for the root.

    Raises:
        ValueError: where `parents` is not a tree rooted at `root`.
    """

    root: int
    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.parents.count(-1) != 1 or self.parents[self.root] != -1:
            raise ValueError(
                f"parents {self.parents}: exactly the root ({self.root}) has -1; name one root attribute"
            )
        if len(self.order) != len(self.parents):
            raise ValueError(f"parents {self.parents}: not every attribute hangs on the root; mend the cycle")

    @classmethod
    def from_parents(cls, parent_of: Mapping[int, int], m: int) -> Tree:
        """The tree that a {child: parent} mapping over m attributes describes."""
        roots = [attribute for attribute in range(m) if attribute not in parent_of]
        if len(roots) != 1:
            raise ValueError(f"a tree of {m} attributes names {m - 1} parents; got {len(parent_of)}")
        return cls(roots[0], tuple(parent_of.get(attribute, -1) for attribute in range(m)))

    @classmethod
    def from_row(cls, parents: Sequence[int]) -> Tree:
        """The tree with these parents, -1 for its root."""
        return cls(next((i for i, parent in enumerate(parents) if parent < 0), 0), tuple(parents))

    @property
    def order(self) -> tuple[int, ...]:
        """The attributes, every parent before its children."""
        order = [self.root]
        for attribute in order:
            order.extend(child for child, parent in enumerate(self.parents) if parent == attribute)
        return tuple(order)

    def children(self, attribute: int) -> tuple[int, ...]:
        return tuple(child for child, parent in enumerate(self.parents) if parent == attribute)

    def rows(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Components of each attribute: 1 for the root, ψ_π(i) for the others."""
        return tuple(1 if parent < 0 else sizes[parent] for parent in self.parents)

    def parent_sizes(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """ψ_π(i) of every attribute but the root; C = 1 + their sum."""
        return tuple(sizes[parent] for parent in self.parents if parent >= 0)


def mutual_information(codes: ArrayLike, sizes: Sequence[int]) -> Floats:
    """Empirical mutual information in nats of each pair of attributes, (m, m), zero on the diagonal."""
    labels = as_codes(codes, sizes)
    m = len(sizes)
    information = np.zeros((m, m))
    for i in range(m):
        for j in range(i):
            table = np.bincount(labels[:, i] * sizes[j] + labels[:, j], minlength=sizes[i] * sizes[j])
            joint = table.reshape(sizes[i], sizes[j]) / max(len(labels), 1)
            independent = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
            seen = joint > 0
            information[i, j] = np.sum(joint[seen] * np.log(joint[seen] / independent[seen]))
            information[j, i] = information[i, j]
    return information


def learn_tree(codes: ArrayLike, sizes: Sequence[int]) -> Tree:
    """The maximum spanning tree of mutual information, rooted at a node of highest degree.

    Args:
        codes: public auxiliary labels, (N, m).
        sizes: ψ_r.

    Ties, of the root as of the edges, go by the order of the attributes.
    """
    information = mutual_information(codes, sizes)
    m = len(sizes)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(m))
    graph.add_weighted_edges_from((i, j, information[i, j]) for i in range(m) for j in range(i + 1, m))
    spanning = nx.maximum_spanning_tree(graph, algorithm="kruskal")
    root = max(range(m), key=lambda attribute: (spanning.degree(attribute), -attribute))
    parents = dict(nx.bfs_predecessors(spanning, root))
    return Tree(root, tuple(parents.get(attribute, -1) for attribute in range(m)))
