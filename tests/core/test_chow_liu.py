"""The tree: values computed apart from this project, and what must not change it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantext_graph.core.chow_liu import Tree, learn_tree, mutual_information

VECTORS = json.loads((Path(__file__).parent / "vectors/chow_liu.json").read_text())


def test_mutual_information_of_a_hand_computed_table():
    codes = np.array([[0, 0]] * 4 + [[0, 1]] * 1 + [[1, 1]] * 3)
    expected = (
        4 / 8 * np.log((4 / 8) / (5 / 8 * 4 / 8))
        + 1 / 8 * np.log((1 / 8) / (5 / 8 * 4 / 8))
        + 3 / 8 * np.log((3 / 8) / (3 / 8 * 4 / 8))
    )
    information = mutual_information(codes, [2, 2])
    assert information[0, 1] == information[1, 0] == pytest.approx(expected, abs=1e-12)
    assert information[0, 0] == 0


@pytest.mark.parametrize("index", range(len(VECTORS)))
def test_values_of_real_data_sets(shared_data, index):
    case = VECTORS[index]
    csv.field_size_limit(10**9)
    with (shared_data.parent / case["file"]).open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == case["rows"]
    columns = case["columns"]
    names = [sorted({row[c] for row in rows}) for c in columns]
    codes = np.array([[n.index(row[c]) for c, n in zip(columns, names, strict=True)] for row in rows])
    sizes = [len(n) for n in names]
    information = mutual_information(codes, sizes)
    for pair, value in case["mutual_information_nats"].items():
        i, j = (columns.index(c) for c in pair.split("|"))
        assert information[i, j] == pytest.approx(value, abs=1e-10)
    tree = learn_tree(codes, sizes)
    edges = {frozenset((columns[i], columns[p])) for i, p in enumerate(tree.parents) if p >= 0}
    assert edges == {frozenset(edge) for edge in case["tree_edges"]}


def test_root_has_the_highest_degree_and_ties_go_by_order():
    rng = np.random.default_rng(0)
    hub = rng.integers(2, size=4000)
    flip = [np.where(rng.random(4000) < p, 1 - hub, hub) for p in (0.1, 0.2, 0.3)]
    tree = learn_tree(np.column_stack([flip[0], flip[1], hub, flip[2]]), [2] * 4)
    assert tree == Tree(2, (2, 2, -1, 2))
    assert learn_tree(np.column_stack([hub, hub]), [2, 2]) == Tree(0, (-1, 0))


@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_order_of_rows_does_not_matter(m, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=(30, m))
    assert learn_tree(codes, [3] * m) == learn_tree(rng.permutation(codes), [3] * m)


def test_one_attribute_and_constant_attributes():
    assert learn_tree(np.zeros((5, 1), int), [1]) == Tree(0, (-1,))
    tree = learn_tree(np.zeros((5, 3), int), [1, 2, 1])
    assert tree.order[0] == tree.root
    assert sorted(tree.order) == [0, 1, 2]


def test_tree_counts_components():
    tree = Tree.from_parents({1: 0, 2: 0}, 3)
    assert tree.parents == (-1, 0, 0)
    assert tree.rows((6, 3, 3)) == (1, 6, 6)
    assert 1 + sum(tree.parent_sizes((6, 3, 3))) == 13


@pytest.mark.parametrize(("parent_of", "m"), [({0: 1, 1: 0}, 2), ({}, 2), ({1: 2, 2: 1}, 3), ({0: 0}, 1)])
def test_what_is_no_tree_is_refused(parent_of, m):
    with pytest.raises(ValueError, match=r"tree|root"):
        Tree.from_parents(parent_of, m)


def test_codes_out_of_range_are_refused_by_place_not_value():
    with pytest.raises(ValueError, match=r"row 1: the code of attribute 0 is not in 0..1"):
        learn_tree(np.array([[0], [77]]), [2])
    with pytest.raises(ValueError, match="integer"):
        learn_tree(np.array([[0.5]]), [2])
