"""Matching: optima computed apart from this project, and against a dense solver."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from quantext_graph.core import matching
from quantext_graph.core.matching import UNUSED, assign, total_cost

VECTORS = json.loads((Path(__file__).parent / "vectors/matching.json").read_text())


def dense_cost(labels, targets, weights):
    cost = sum(w * (labels[:, r][:, None] != targets[:, r]) for r, w in enumerate(weights))
    return cost[linear_sum_assignment(cost)].sum()


@st.composite
def instances(draw):
    m = draw(st.integers(1, 4))
    n = draw(st.integers(1, 40))
    sizes = draw(st.lists(st.integers(1, 5), min_size=m, max_size=m))
    weights = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.25]), min_size=m, max_size=m))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.integers(sizes, size=(n, m)), rng.integers(sizes, size=(n, m)), weights


@pytest.mark.parametrize("case", VECTORS)
def test_optima(case):
    labels, targets = np.array(case["labels"]), np.array(case["targets"])
    rows = assign(labels, targets, weights=case["weights"])
    assert sorted(rows) == list(range(len(labels)))
    assert total_cost(labels, targets[rows], case["weights"]) == case["optimum_total_cost"]


@settings(max_examples=200, deadline=None)
@given(instances())
def test_cost_equals_a_dense_solver_and_targets_are_kept(instance):
    labels, targets, weights = instance
    rows = assign(labels, targets, weights=weights)
    assert sorted(rows) == list(range(len(labels)))
    assert total_cost(labels, targets[rows], weights) == pytest.approx(dense_cost(labels, targets, weights))


@settings(max_examples=50, deadline=None)
@given(instances(), st.integers(0, 2**32 - 1))
def test_order_of_records_and_targets_does_not_matter(instance, seed):
    labels, targets, weights = instance
    rng = np.random.default_rng(seed)
    again, others = rng.permutation(labels), rng.permutation(targets)
    first = total_cost(labels, targets[assign(labels, targets, weights=weights)], weights)
    second = total_cost(again, others[assign(again, others, weights=weights)], weights)
    assert first == pytest.approx(second)


@settings(max_examples=50, deadline=None)
@given(instances())
def test_products_too_large_for_the_network_are_still_exact_when_few_records_are_left(instance):
    labels, targets, weights = instance
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "NETWORK_LIMIT", 0)
        rows = assign(labels, targets, weights=weights)
    assert total_cost(labels, targets[rows], weights) == pytest.approx(dense_cost(labels, targets, weights))


def test_huge_products_stay_near_the_optimum(monkeypatch):
    monkeypatch.setattr(matching, "DENSE_LIMIT", 100)
    rng = np.random.default_rng(3)
    sizes, weights = [40, 30, 20, 50, 8], [1.0, 2.0, 1.0, 1.0, 3.0]
    skew = [rng.dirichlet(np.full(size, 0.3)) for size in sizes]
    labels = np.column_stack([rng.choice(len(p), size=1000, p=p) for p in skew])
    targets = np.column_stack([rng.choice(len(p), size=1000, p=p) for p in skew])
    rows = assign(labels, targets, weights=weights)
    assert sorted(rows) == list(range(1000))
    reached = total_cost(labels, targets[rows], weights)
    optimum = dense_cost(labels, targets, weights)
    assert optimum <= reached <= 1.25 * optimum


def test_which_of_like_records_goes_where_is_random():
    labels = np.zeros((20, 1), int)
    targets = np.array([[0]] * 10 + [[1]] * 10)
    moved = {tuple(np.flatnonzero(targets[assign(labels, targets)][:, 0])) for _ in range(20)}
    assert len(moved) > 15


def test_equal_labels_and_targets_cost_nothing():
    labels = np.random.default_rng(0).integers(4, size=(50, 3))
    rows = assign(labels, labels[::-1])
    np.testing.assert_array_equal(labels[::-1][rows], labels)


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, np.inf]])
def test_weights_that_make_no_metric_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        assign(np.zeros((3, 2), int), np.zeros((3, 2), int), weights=weights)


@pytest.mark.parametrize(
    ("labels", "targets", "said"), [((3, 2), (4, 2), "at most"), ((3, 2), (3, 1), "shapes")]
)
def test_shapes_that_do_not_fit_are_refused(labels, targets, said):
    with pytest.raises(ValueError, match=said):
        assign(np.zeros(labels, int), np.zeros(targets, int))


# -- slack: fewer targets than records ---------------------------------------------------------------


@st.composite
def slack_instances(draw):
    labels, targets, weights = draw(instances())
    return labels, targets[: draw(st.integers(0, len(targets)))], weights


def slack_cost(labels, targets, weights):
    cost = sum(w * (labels[:, r][:, None] != targets[:, r]) for r, w in enumerate(weights))
    return cost[linear_sum_assignment(cost)].sum()  # rectangular: rows that get no column cost nothing


@pytest.mark.parametrize("limit", [matching.NETWORK_LIMIT, 0])
@settings(max_examples=150, deadline=None)
@given(instance=slack_instances())
def test_with_slack_the_cost_equals_a_dense_solver_and_no_record_serves_twice(instance, limit):
    labels, targets, weights = instance
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "NETWORK_LIMIT", limit)
        rows = assign(labels, targets, weights=weights)
    used = np.flatnonzero(rows != UNUSED)
    assert sorted(rows[used]) == list(range(len(targets))), "every target once, so its marginals are exact"
    reached = total_cost(labels[used], targets[rows[used]], weights)
    assert reached == pytest.approx(slack_cost(labels, targets, weights))


@settings(max_examples=100, deadline=None)
@given(slack_instances())
def test_a_target_goes_to_a_record_that_has_it_wherever_there_is_one(instance):
    labels, targets, weights = instance
    rows = assign(labels, targets, weights=weights)
    used = np.flatnonzero(rows != UNUSED)
    stayed = Counter(map(tuple, labels[used][(labels[used] == targets[rows[used]]).all(axis=1)].tolist()))
    have, wanted = Counter(map(tuple, labels.tolist())), Counter(map(tuple, targets.tolist()))
    assert stayed == have & wanted


def test_which_of_like_records_stay_unused_is_uniform():
    """3 of 6 alike records serve: each of the 20 choices equally often (χ², 19 degrees, p = 0.001: 43.8)."""
    labels, targets = np.zeros((6, 1), int), np.array([[0], [0], [1]])
    rng = np.random.default_rng(0)
    seen = Counter(tuple(np.flatnonzero(assign(labels, targets, rng=rng) != UNUSED)) for _ in range(4000))
    assert len(seen) == 20
    assert sum((count - 200) ** 2 / 200 for count in seen.values()) < 43.8


def test_huge_products_with_slack_stay_near_the_optimum(monkeypatch):
    monkeypatch.setattr(matching, "DENSE_LIMIT", 100)
    rng = np.random.default_rng(4)
    sizes, weights = [40, 30, 20, 50, 8], [1.0, 2.0, 1.0, 1.0, 3.0]
    skew = [rng.dirichlet(np.full(size, 0.3)) for size in sizes]
    labels = np.column_stack([rng.choice(len(p), size=1500, p=p) for p in skew])
    targets = np.column_stack([rng.choice(len(p), size=900, p=p) for p in skew])
    rows = assign(labels, targets, weights=weights)
    used = np.flatnonzero(rows != UNUSED)
    assert sorted(rows[used]) == list(range(900))
    reached = total_cost(labels[used], targets[rows[used]], weights)
    assert reached <= 1.25 * slack_cost(labels, targets, weights)


# -- records that are used last ----------------------------------------------------------------------


@st.composite
def doubtful_instances(draw):
    labels, targets, weights = draw(slack_instances())
    share = draw(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return labels, targets, weights, rng.random(len(labels)) < share


@settings(max_examples=200, deadline=None)
@given(doubtful_instances())
def test_no_record_is_used_last_while_another_is_idle_and_the_cost_is_the_least_of_those_at_hand(instance):
    labels, targets, weights, last = instance
    rows = assign(labels, targets, weights=weights, last=last)
    used = rows != UNUSED
    assert sorted(rows[used]) == list(range(len(targets)))
    late = max(0, len(targets) - int((~last).sum()))
    assert (used & last).sum() == late
    at_hand = ~last | used
    reached = total_cost(labels[used], targets[rows[used]], weights)
    assert reached == pytest.approx(slack_cost(labels[at_hand], targets, weights))


def test_with_none_to_be_used_last_nothing_changes():
    rng = np.random.default_rng(2)
    labels, targets = rng.integers(3, size=(60, 2)), rng.integers(3, size=(40, 2))
    plain = assign(labels, targets)
    with_last = assign(labels, targets, last=np.zeros(60, dtype=bool))
    used, also = plain != UNUSED, with_last != UNUSED
    assert total_cost(labels[used], targets[plain[used]]) == total_cost(
        labels[also], targets[with_last[also]]
    )


def test_who_is_used_of_either_group_is_uniform_whatever_the_labels():
    """Of 5 doubtful records two are wanting: each of the 10 pairs equally often, though all of the targets
    are like the first three (χ², 9 degrees, 0.001). Of 4 certain ones two: each of the 6."""
    labels = np.array([[0]] * 3 + [[1]] * 3)
    targets, last = np.zeros((3, 1), int), np.array([True, True, False, True, True, True])
    rng = np.random.default_rng(0)
    seen = Counter(
        tuple(np.flatnonzero((assign(labels, targets, last=last, rng=rng) != UNUSED) & last))
        for _ in range(4000)
    )
    assert len(seen) == 10
    assert sum((count - 400) ** 2 / 400 for count in seen.values()) < 27.9
    labels, targets, last = (
        np.zeros((6, 1), int),
        np.array([[0], [0]]),
        [True, False, True, False, False, False],
    )
    seen = Counter(
        tuple(np.flatnonzero(assign(labels, targets, last=last, rng=rng) != UNUSED)) for _ in range(3000)
    )
    assert set().union(*seen) == {1, 3, 4, 5}
    assert len(seen) == 6
    assert sum((count - 500) ** 2 / 500 for count in seen.values()) < 20.5


def test_doubt_that_does_not_fit_the_records_is_refused():
    with pytest.raises(ValueError, match="last"):
        assign(np.zeros((3, 2), int), np.zeros((2, 2), int), last=[True, False])
