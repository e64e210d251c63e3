"""Algorithm 2: distributions, far apart, none twice."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantext_graph.core.candidates import candidate_pool, farthest_points, total_variation


@settings(deadline=None)
@given(st.integers(2, 8), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_candidates_are_distinct_distributions(size, gamma, seed):
    pool = candidate_pool(size, gamma, rng=np.random.default_rng(seed))
    assert pool.shape == (gamma, size)
    assert (pool >= 0).all()
    np.testing.assert_allclose(pool.sum(axis=1), 1)
    assert len(np.unique(pool, axis=0)) == gamma


@given(st.integers(0, 2**32 - 1))
def test_incremental_distances_choose_what_the_plain_algorithm_chooses(seed):
    pool = np.random.default_rng(seed).dirichlet(np.ones(4), size=25)
    chosen = [0]
    while len(chosen) < 10:
        nearest = [min(np.abs(q - pool[c]).sum() for c in chosen) for q in pool]
        chosen.append(int(np.argmax(nearest)))
    assert farthest_points(pool, 10) == chosen


def test_duplicated_points_are_never_chosen_twice():
    pool = np.array([[1.0, 0], [1.0, 0], [0, 1.0], [0, 1.0], [0.5, 0.5]])
    assert farthest_points(pool, 3) == [0, 2, 4]
    with pytest.raises(ValueError, match="only 3 of 5 draws differ"):
        farthest_points(pool, 4)


def test_more_candidates_than_draws_is_refused():
    with pytest.raises(ValueError, match="gamma = 11 candidates cannot be chosen of L = 10"):
        candidate_pool(3, 11, pool_size=10, rng=np.random.default_rng(0))


def test_a_single_category_has_a_single_distribution():
    np.testing.assert_array_equal(candidate_pool(1, 4, rng=np.random.default_rng(0)), np.ones((4, 1)))


def test_total_variation_of_known_distributions():
    distances = total_variation(np.array([[1.0, 0, 0], [0.2, 0.3, 0.5]]), np.array([0.2, 0.3, 0.5]))
    np.testing.assert_allclose(distances, [0.8, 0], atol=1e-15)


def test_far_pools_cover_better_than_plain_draws():
    rng = np.random.default_rng(1)
    pool, plain = candidate_pool(3, 120, rng=rng), rng.dirichlet(np.ones(3), size=120)
    truths = rng.dirichlet(np.ones(3), size=300)
    worst = [max(total_variation(p, t).min() for t in truths) for p in (pool, plain)]
    assert worst[0] < worst[1]
