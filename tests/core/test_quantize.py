"""Algorithm 1, lines 1-14, as a whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantext_graph.core import selection
from quantext_graph.core.arrays import combinations
from quantext_graph.core.chow_liu import Tree
from quantext_graph.core.leakage import secret_levels
from quantext_graph.core.quantize import quantize

SETTINGS = [
    {"selection": "per_component", "pool": "dirichlet", "gamma": 12, "k": 3, "targets": "iid"},
    {"selection": "per_component", "pool": "dirichlet", "gamma": 12, "budget_nats": 2.0},
    {"selection": "per_component", "gamma": 12, "k": 12, "spread": 0.2},
    {"selection": "joint", "pool": "dirichlet", "pool_size": 300, "budget_nats": 2.0},
    {"pool_size": 300, "spread": 0.3, "budget_nats": 1.0},
]


@st.composite
def problems(draw):
    m = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, 4), min_size=m, max_size=m))
    n = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.integers(sizes, size=(n, m)), sizes, rng.integers(sizes, size=(25, m)), rng


@settings(max_examples=80, deadline=None)
@given(problems(), st.sampled_from(SETTINGS))
def test_every_record_gets_one_target_of_the_drawn_distribution(problem, mechanism):
    labels, sizes, auxiliary, rng = problem
    secret = {0: (0,)}
    result = quantize(labels, sizes, auxiliary=auxiliary, secrets=[secret], rng=rng, **mechanism)
    n = len(labels)
    assert sorted(result.rows) == list(range(n))
    np.testing.assert_array_equal(result.assigned, result.targets[result.rows])
    assert result.cost == pytest.approx((labels != result.assigned).sum() / n)
    assert result.leakage.secret_levels == n + 1
    assert 0 <= result.released.share(secret) <= 1 + 1e-9
    if mechanism.get("targets", "quota") == "quota":
        combos, counts, _ = combinations(result.targets)
        assert (np.abs(counts - n * result.released.probability(combos)) < 1 + 1e-6).all()


@settings(max_examples=30, deadline=None)
@given(problems(), st.sampled_from(SETTINGS))
def test_the_order_of_the_records_does_not_matter(problem, mechanism):
    labels, sizes, auxiliary, rng = problem
    shuffled = rng.permutation(labels)
    first, second = (
        quantize(rows, sizes, auxiliary=auxiliary, rng=np.random.default_rng(3), **mechanism)
        for rows in (labels, shuffled)
    )
    assert first.choice == second.choice
    assert first.cost == pytest.approx(second.cost)


def test_the_draw_is_secret_by_default_and_a_seed_is_told(monkeypatch):
    asked = []
    monkeypatch.setattr(selection.secrets, "randbelow", lambda count: asked.append(count) or 0)
    labels = np.zeros((10, 1), int)
    secret = quantize(labels, [2], selection="per_component", pool="dirichlet", gamma=20, k=5)
    assert asked == [5]
    assert not secret.seeded
    assert quantize(
        labels, [2], selection="per_component", pool="dirichlet", rng=np.random.default_rng(0)
    ).seeded
    assert asked == [5]


def test_pools_differ_from_run_to_run_and_come_back_with_their_seed():
    labels, auxiliary = np.zeros((10, 1), int), np.array([[0], [1], [1]])
    first, other = (quantize(labels, [2], auxiliary=auxiliary, pool_size=50) for _ in range(2))
    assert first.pool_seed != other.pool_seed
    again = quantize(labels, [2], auxiliary=auxiliary, pool_size=50, pool_seed=first.pool_seed)
    event = {0: (1,)}
    np.testing.assert_array_equal(again.rule.pool.shares(event), first.rule.pool.shares(event))


def test_private_labels_change_neither_tree_nor_pool_nor_selection_sizes():
    rng = np.random.default_rng(0)
    auxiliary = rng.integers([3, 2], size=(40, 2))
    event = {0: (1,)}
    results = [
        quantize(
            rng.integers([3, 2], size=(20, 2)),
            [3, 2],
            auxiliary=auxiliary,
            secrets=[event],
            pool_seed=5,
            spread=0.3,
        )
        for _ in range(2)
    ]
    assert results[0].tree == results[1].tree
    assert results[0].rule.selection_size == results[1].rule.selection_size
    np.testing.assert_array_equal(*(result.rule.pool.shares(event) for result in results))


def test_each_secret_has_its_cap():
    labels = np.zeros((10, 1), int)
    result = quantize(
        labels,
        [2],
        secrets=[{0: (0,)}, {0: (1,)}],
        levels=[3, 101],
        selection="per_component",
        pool="dirichlet",
        gamma=100,
        k=10,
    )
    assert [leakage.secret_levels for leakage in result.leakages] == [3, 101]
    assert result.leakages[0].vacuous
    assert not result.leakages[1].vacuous
    assert result.leakage is result.leakages[1]
    bare = quantize(labels, [2], selection="per_component", pool="dirichlet")
    assert bare.leakage.secret_levels == secret_levels(10)


def test_a_given_tree_replaces_the_learned_one():
    tree = Tree(1, (1, -1))
    labels = np.random.default_rng(0).integers(2, size=(20, 2))
    result = quantize(labels, [2, 2], tree=tree, selection="per_component", pool="dirichlet")
    assert result.tree is tree
    assert result.missing == ()


def test_categories_that_the_auxiliary_set_lacks_are_told():
    labels = np.array([[0], [2]])
    result = quantize(labels, [3], auxiliary=np.array([[0], [1]]), pool_size=50)
    assert result.missing == ((0, 2),)


def test_many_attributes():
    sizes = [5, 4, 3, 6, 2, 7, 3, 2, 4, 5, 3, 2]
    rng = np.random.default_rng(0)
    labels, auxiliary = rng.integers(sizes, size=(200, 12)), rng.integers(sizes, size=(300, 12))
    result = quantize(
        labels, sizes, auxiliary=auxiliary, secrets=[{5: (1,), 3: (0, 2)}], spread=0.3, pool_size=200, rng=rng
    )
    assert sorted(result.rows) == list(range(200))
    assert result.leakage.bound_nats <= 1.0


@pytest.mark.parametrize(
    ("labels", "sizes", "message"),
    [
        (np.zeros((0, 1), int), [2], "no records"),
        (np.zeros((5, 2), int), [2, 2], "no public source for their tree"),
        (np.full((5, 1), 2), [2], "row 0"),
        (np.zeros(5, int), [2], "shape"),
    ],
)
def test_what_cannot_be_quantized_is_refused(labels, sizes, message):
    with pytest.raises(ValueError, match=message):
        quantize(labels, sizes, selection="per_component", pool="dirichlet")


def test_nothing_private_shows_in_the_repr():
    result = quantize(np.zeros((5, 1), int), [2], selection="per_component", pool="dirichlet")
    assert repr(result) == f"Quantization(n=5, m=1, bound_nats={result.leakage.bound_nats:.4g})"
