"""The split of a budget over components."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantext_graph.core.budget import distance_curve, split_budget
from quantext_graph.core.candidates import candidate_pool


def curves_of(gamma, components, seed):
    rng = np.random.default_rng(seed)
    return [
        distance_curve(rng.integers(0, 50, size=3).astype(float), candidate_pool(3, gamma, rng=rng), rng)
        for _ in range(components)
    ]


def spent(gamma, sizes):
    return sum(math.log(gamma / k) for k in sizes)


def expected(curves, masses, sizes):
    return sum(m * c[k - 1] for c, m, k in zip(curves, masses, sizes, strict=True))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(1, 6), st.floats(0, 12), st.integers(0, 2**32 - 1))
def test_a_split_keeps_the_budget_and_is_never_worse_than_the_equal_one(gamma, components, budget, seed):
    curves = curves_of(gamma, components, seed)
    masses = [1.0, *np.random.default_rng(seed).dirichlet(np.ones(components))[1:]]
    sizes = split_budget(curves, masses, budget)
    assert all(1 <= k <= gamma for k in sizes)
    assert spent(gamma, sizes) <= budget + 1e-9
    equal = (max(1, math.ceil(gamma * math.exp(-budget / components) - 1e-9)),) * components
    assert expected(curves, masses, sizes) <= expected(curves, masses, equal) + 1e-12


def test_a_split_is_near_the_best_of_all_splits():
    curves, masses = curves_of(8, 3, 1), [1.0, 0.7, 0.1]
    for budget in (0.5, 1.5, 3.0):
        best = min(
            expected(curves, masses, sizes)
            for sizes in itertools.product(range(1, 9), repeat=3)
            if spent(8, sizes) <= budget
        )
        nothing = expected(curves, masses, (8, 8, 8))
        reached = expected(curves, masses, split_budget(curves, masses, budget))
        assert nothing - reached >= 0.9 * (nothing - best)


def test_a_rare_parent_value_gets_none():
    curves = [curves_of(60, 1, 2)[0]] * 3
    sizes = split_budget(curves, [1.0, 0.999, 0.001], 2.0)
    assert sizes[2] == 60
    assert sizes[0] < 60
    assert sizes[1] < 60


def test_no_budget_keeps_all_and_plenty_keeps_one():
    curves = curves_of(20, 2, 3)
    assert split_budget(curves, [1.0, 1.0], 0.0) == (20, 20)
    assert split_budget(curves, [1.0, 1.0], 100.0) == (1, 1)
    with pytest.raises(ValueError, match="budget_nats"):
        split_budget(curves, [1.0, 1.0], -1.0)


def test_the_distance_curve_rises_with_what_is_kept():
    curve = curves_of(40, 1, 0)[0]
    assert (np.diff(curve) >= 0).all()
    assert 0 < curve[0] < curve[-1] < 1
