"""Selection rules: what is kept, what is drawn, and the bound by enumeration of the code as it runs."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantext_graph.core import selection
from quantext_graph.core.chow_liu import Tree
from quantext_graph.core.leakage import secret_levels
from quantext_graph.core.rules import MechanismParameters, build_rule
from quantext_graph.core.selection import (
    JointRule,
    draw,
    draw_choice,
    joint_selection_size,
    likelihood,
    nearest,
    select_joint,
    select_per_component,
)

SIZES = (2, 3)
TREE = Tree(0, (-1, 0))
RULES = {
    "paper": {"selection": "per_component", "pool": "dirichlet", "gamma": 4, "k": 2},
    "paper, split": {"selection": "per_component", "pool": "dirichlet", "gamma": 4, "budget_nats": 1.5},
    "paper, public": {"selection": "per_component", "pool": "public", "gamma": 4, "k": 3},
    "paper, public, split, spread": {
        "selection": "per_component",
        "pool": "public",
        "gamma": 4,
        "budget_nats": 1.0,
        "spread": 0.3,
    },
    "joint": {"selection": "joint", "pool": "dirichlet", "pool_size": 40, "budget_nats": 1.0},
    "joint, public": {"selection": "joint", "pool": "public", "pool_size": 40, "budget_nats": 0.5},
    "joint, public, spread": {"pool": "public", "pool_size": 40, "budget_nats": 2.0, "spread": 0.3},
    "joint, public, spread, blind": {"pool_size": 40, "budget_nats": 1.0, "spread": 0.3, "blind": True},
    "joint, public, spread, one kept": {"pool_size": 30, "budget_nats": math.log(30), "spread": 0.5},
}


def rule_of(name, pool_seed=7):
    auxiliary = np.random.default_rng(1).integers(SIZES, size=(50, 2))
    secrets = [{0: (1,)}, {0: (0,), 1: (2,)}]
    return build_rule(
        MechanismParameters(**RULES[name]),
        tree=TREE,
        sizes=SIZES,
        n=4,
        auxiliary=auxiliary,
        secrets=secrets,
        pool_seed=pool_seed,
    )


def private_sets():
    """The 126 multisets of 4 records over the 6 combinations, some without one of the parent values."""
    combos = list(itertools.product(range(2), range(3)))
    return [np.array(rows) for rows in itertools.combinations_with_replacement(combos, 4)]


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("pool_seed", [7, 8])
def test_the_bound_holds_by_enumeration(name, pool_seed):
    rule = rule_of(name, pool_seed)
    largest: dict[tuple[int, ...], float] = {}
    for labels in private_sets():
        kept = rule.kept(labels)
        reached = 0.0
        for choice in itertools.product(*(map(int, indices) for indices in kept)):
            probability = likelihood(choice, kept)
            reached += probability
            largest[choice] = max(largest.get(choice, 0.0), probability)
        assert reached == pytest.approx(1)
    total = sum(largest.values())
    leakage = rule.leakage(secret_levels=secret_levels(4))
    assert math.log(total) <= leakage.mechanism_nats + 1e-12
    assert total > 1.05  # the kept candidates do depend on the labels, else the test says nothing


@pytest.mark.parametrize("name", RULES)
def test_likelihood_is_how_often_it_is_drawn(name):
    rule = rule_of(name)
    kept = rule.kept(private_sets()[17])
    rng = np.random.default_rng(0)
    draws = [draw_choice(kept, rng) for _ in range(4000)]
    choice = draws[0]
    expected = likelihood(choice, kept)
    assert draws.count(choice) / 4000 == pytest.approx(expected, abs=4 * math.sqrt(expected / 4000) + 1e-9)
    impossible = tuple(10**6 for _ in kept)
    assert likelihood(impossible, kept) == 0


def test_the_draw_is_the_operating_systems(monkeypatch):
    asked = []
    monkeypatch.setattr(selection.secrets, "randbelow", lambda count: asked.append(count) or count - 1)
    assert draw(5) == 4
    assert draw_choice([np.array([9, 7, 3]), np.array([2])]) == (3, 2)
    assert asked == [5, 3, 1]


def test_the_draw_is_uniform_over_the_kept():
    counts = np.bincount([draw(4) for _ in range(4000)], minlength=4)
    assert (np.abs(counts - 1000) < 200).all()


def test_nearest_by_hand_ties_by_index():
    np.testing.assert_array_equal(nearest(np.array([0.3, 0.1, 0.3, 0.2]), 3), [1, 3, 0])
    np.testing.assert_array_equal(select_joint(np.array([0.3, 0.1]), 1)[0], [1])
    for k in (0, 3):
        with pytest.raises(ValueError, match=f"k = {k} candidates cannot be kept of gamma = 2"):
            nearest(np.zeros(2), k)


def test_an_absent_parent_value_keeps_every_candidate():
    pool = np.array([[1.0, 0], [0, 1.0], [0.5, 0.5]])
    kept = select_per_component([np.array([0.9, 0.1]), None], [pool, pool], 1)
    assert kept[0].tolist() == [0]
    assert sorted(kept[1].tolist()) == [0, 1, 2]


@given(st.integers(1, 10**6), st.floats(0, 20))
def test_the_joint_selection_never_spends_more_than_the_budget(pool, budget):
    kept = joint_selection_size(pool, budget)
    assert 1 <= kept <= pool
    assert math.log(pool / kept) <= budget + 1e-9
    assert kept == 1 or math.log(pool / (kept - 1)) > budget


def test_the_joint_selection_of_known_pools():
    assert joint_selection_size(1000, 0.0) == 1000
    assert joint_selection_size(100_000, 1.0) == 36788
    assert joint_selection_size(100_000, 3.0) == 4979
    for budget in (-0.1, math.inf, math.nan):
        with pytest.raises(ValueError, match="budget_nats"):
            joint_selection_size(10, budget)


def test_the_joint_rule_keeps_the_nearest_of_its_pool():
    rule = rule_of("joint, public, spread")
    assert isinstance(rule, JointRule)
    labels = private_sets()[60]
    full = np.zeros(6)
    np.add.at(full, np.ravel_multi_index(tuple(labels.T), SIZES), 0.25)
    every = np.indices(SIZES).reshape(2, -1).T
    distances = [0.5 * np.abs(rule.release((j,)).probability(every) - full).sum() for j in range(40)]
    kept = rule.kept(labels)[0]
    assert set(kept) == set(np.argsort(distances, kind="stable")[: rule.selection_size])
