"""Distributions, events and targets against plain enumeration."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantext_graph.core import targets as targets_module
from quantext_graph.core.arrays import combinations, event_mask, grid
from quantext_graph.core.chow_liu import Tree
from quantext_graph.core.distribution import (
    Move,
    TableDistribution,
    TreeDistribution,
    distribution_from_json,
    empirical_tables,
    joint_table,
    total_variation_from,
)
from quantext_graph.core.targets import iid_targets, largest_remainder, quota_targets

TREE = Tree(1, (1, -1, 1, 2))
SIZES = (3, 2, 4, 2)
EVENT = {0: (0, 2), 3: (1,)}


def tree_distribution(seed=0, *, moved=False):
    rng = np.random.default_rng(seed)
    tables = tuple(
        rng.dirichlet(np.ones(size), size=rows) for rows, size in zip(TREE.rows(SIZES), SIZES, strict=True)
    )
    plain = TreeDistribution(TREE, SIZES, tables)
    if not moved:
        return plain
    held = plain.share(EVENT)
    return TreeDistribution(TREE, SIZES, tables, Move(EVENT, 0.7 / held, 0.3 / (1 - held)))


@pytest.mark.parametrize("moved", [False, True])
def test_tree_probabilities_multiply_its_components(moved):
    distribution = tree_distribution(moved=moved)
    tables = distribution.tables
    for x, p in zip(grid(SIZES), distribution.probability(grid(SIZES)), strict=True):
        factor = 1.0
        if moved:
            factor = distribution.move.inside if x[0] != 1 and x[3] == 1 else distribution.move.outside
        by_hand = tables[1][0, x[1]] * tables[0][x[1], x[0]] * tables[2][x[1], x[2]] * tables[3][x[2], x[3]]
        assert p == pytest.approx(by_hand * factor, rel=1e-12)
    assert distribution.probability(grid(SIZES)).sum() == pytest.approx(1)


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("event", [EVENT, {1: (0,)}, {}, {0: (1,), 2: (0, 3)}, {2: ()}])
def test_shares_are_sums_over_the_event(moved, event):
    distribution = tree_distribution(moved=moved)
    mask = event_mask(grid(SIZES), event)
    expected = distribution.probability(grid(SIZES))[mask].sum()
    assert distribution.share(event) == pytest.approx(expected, abs=1e-12)
    table = TableDistribution(SIZES, joint_table(distribution))
    assert table.share(event) == pytest.approx(expected, abs=1e-12)


def test_a_move_gives_the_event_its_share():
    assert tree_distribution(moved=True).share(EVENT) == pytest.approx(0.7)


@pytest.mark.parametrize("moved", [False, True])
def test_json_and_back(moved):
    for distribution in (
        tree_distribution(moved=moved),
        TableDistribution((2, 2), np.array([0.1, 0.2, 0.3, 0.4])),
    ):
        again = distribution_from_json(json.loads(json.dumps(distribution.to_json())))
        combos = grid(distribution.sizes)
        np.testing.assert_array_equal(again.probability(combos), distribution.probability(combos))


def test_total_variation_needs_only_what_occurs():
    distribution = tree_distribution()
    labels = np.random.default_rng(1).integers(SIZES, size=(30, 4))
    combos, counts, _ = combinations(labels)
    full = np.zeros(len(grid(SIZES)))
    np.add.at(full, np.ravel_multi_index(tuple(labels.T), SIZES), 1 / 30)
    expected = 0.5 * np.abs(full - joint_table(distribution)).sum()
    assert total_variation_from(combos, counts / 30, distribution) == pytest.approx(expected)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.lists(st.integers(1, 2**22), min_size=1, max_size=5))
def test_combinations_agree_with_numpy(seed, n, sizes):
    codes = np.random.default_rng(seed).integers(np.minimum(sizes, 3), size=(n, len(sizes)))
    codes[0] = np.array(sizes) - 1
    combos, counts, which = combinations(codes)
    np.testing.assert_array_equal(combos[which], codes)
    assert counts.sum() == n
    assert len(combos) == len(np.unique(codes, axis=0))
    np.testing.assert_array_equal(np.bincount(which), counts)


def test_empirical_tables_count():
    codes = np.array([[0, 1, 0, 0], [0, 1, 0, 1], [2, 0, 3, 1]])
    root = empirical_tables(codes, TREE, SIZES)
    np.testing.assert_array_equal(root[1], [[1, 2]])
    np.testing.assert_array_equal(root[0], [[0, 0, 1], [2, 0, 0]])
    np.testing.assert_array_equal(root[3], [[1, 1], [0, 0], [0, 0], [0, 1]])


@given(st.integers(0, 500), st.lists(st.floats(0, 1), min_size=1, max_size=9).filter(lambda p: sum(p) > 0.01))
def test_largest_remainder_is_within_one_and_adds_up(n, p):
    p = np.array(p) / sum(p)
    counts = largest_remainder(n, p)
    assert counts.sum() == n
    assert (np.abs(counts - n * p) < 1).all()


def test_largest_remainder_by_hand():
    np.testing.assert_array_equal(largest_remainder(10, np.array([0.26, 0.27, 0.47])), [2, 3, 5])


@pytest.mark.parametrize("limit", [10**6, 1])
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("draw_targets", [iid_targets, quota_targets])
def test_targets_follow_the_distribution(monkeypatch, limit, moved, draw_targets):
    monkeypatch.setattr(targets_module, "TABLE_LIMIT", limit)
    distribution = tree_distribution(moved=moved)
    n = 40_000
    targets = draw_targets(distribution, n, rng=np.random.default_rng(5))
    assert targets.shape == (n, 4)
    combos, counts, _ = combinations(targets)
    assert total_variation_from(combos, counts / n, distribution) < 0.015
    assert np.abs(np.corrcoef(np.arange(n), targets[:, 2])[0, 1]) < 0.03


def test_quota_has_no_sampling_noise():
    distribution = tree_distribution()
    targets = quota_targets(distribution, 777, rng=np.random.default_rng(0))
    combos, counts, _ = combinations(targets)
    assert (np.abs(counts - 777 * distribution.probability(combos)) < 1).all()


def test_quota_of_a_huge_product_keeps_the_marginals():
    m = 12
    tree = Tree(0, (-1, *range(m - 1)))
    rng = np.random.default_rng(0)
    tables = tuple(rng.dirichlet(np.ones(6), size=rows) for rows in tree.rows((6,) * m))
    distribution = TreeDistribution(tree, (6,) * m, tables)
    targets = quota_targets(distribution, 3000, rng=rng)
    for r in range(m):
        shares = np.bincount(targets[:, r], minlength=6) / 3000
        expected = [distribution.share({r: (value,)}) for value in range(6)]
        np.testing.assert_allclose(shares, expected, atol=0.02)
