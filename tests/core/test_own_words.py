"""How many texts of a combination may go out as they are: a public number, low enough for private sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from quantext_graph.core.distribution import TableDistribution
from quantext_graph.core.joint_pool import TableBlock, TableSource
from quantext_graph.core.own_words import (
    LEAST,
    MOVED,
    RISK,
    FilledSource,
    fill_limits,
    hidden_range,
    own_words_caps,
)
from quantext_graph.core.quantize import quantize
from quantext_graph.core.targets import largest_remainder, released_count

MASSES = arrays(np.float64, 6, elements=st.floats(0.001, 1)).map(lambda masses: masses / masses.sum())


@given(masses=MASSES, n=st.integers(1, 5_000))
@settings(deadline=None)
def test_a_private_set_of_the_least_shares_seldom_has_fewer(masses: np.ndarray, n: int) -> None:
    caps = own_words_caps(TableDistribution((6,), masses), n)
    assert (caps <= LEAST * n * masses).all()
    assert sum(binom.cdf(cap - 1, n, LEAST * mass) for cap, mass in zip(caps, masses, strict=True)) <= RISK


def test_no_cap_could_be_raised_at_the_same_risk() -> None:
    masses, n = np.array([0.5, 0.3, 0.15, 0.05]), 400
    caps = own_words_caps(TableDistribution((4,), masses), n)

    def risk(of: np.ndarray) -> float:
        return float(binom.cdf(of - 1, n, LEAST * masses).sum())

    for cell in range(4):
        assert risk(caps + np.eye(4, dtype=int)[cell]) > RISK
        for other in range(4):  # nor one for the other
            moved = caps + 2 * np.eye(4, dtype=int)[cell] - np.eye(4, dtype=int)[other]
            assert other == cell or risk(moved) > RISK


def test_of_many_records_nearly_all_that_the_least_share_gives() -> None:
    masses = np.full(20, 0.05)
    few, many = (own_words_caps(TableDistribution((20,), masses), n).sum() / n for n in (200, 200_000))
    assert few < 0.3
    assert 0.67 < many <= LEAST


def test_the_range_of_a_share_is_where_both_sides_keep_the_least() -> None:
    low, high = hidden_range(0.2)
    assert (low, high) == (pytest.approx(0.14), pytest.approx(0.44))


def filled(masses: np.ndarray, texts: np.ndarray, n: int, keep: float, spread: float | None) -> FilledSource:
    joint = TableDistribution((2, 3), masses)
    limits = fill_limits(own_words_caps(joint, n), texts, released_count(n, keep))
    return FilledSource(TableSource(joint, ({0: (0,)},), spread), limits)


@given(
    masses=MASSES, seed=st.integers(0, 2**32 - 1), n=st.integers(50, 2_000), keep=st.sampled_from([0.4, 0.6])
)
@settings(deadline=None, max_examples=50)
def test_candidates_can_be_filled(masses: np.ndarray, seed: int, n: int, keep: float) -> None:
    texts = np.random.default_rng(seed).multinomial(n, masses)
    source = filled(masses, texts, n, keep, 0.3)
    if source.fitting(np.random.default_rng(0)) < 0.05:
        return
    block = source.block(50, np.random.default_rng(seed))
    assert isinstance(block, TableBlock)
    assert block.tables.shape == (50, 6)
    np.testing.assert_allclose(block.tables.sum(axis=1), 1)
    again = source.block(50, np.random.default_rng(seed))
    assert (block.tables == again.distribution(0).probabilities).all(axis=1)[0]
    caps, count = own_words_caps(TableDistribution((2, 3), masses), n), released_count(n, keep)
    for table in block.tables:
        assert (largest_remainder(count, table) <= np.where(texts > 0, caps + texts, 0)).all()


def test_a_candidate_keeps_its_shape_where_texts_are_plenty() -> None:
    masses = np.full(6, 1 / 6)
    source = filled(masses, np.full(6, 10_000), 1_000, 0.6, None)
    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    block, before = source.block(20, rng), source.source.block(20, same)
    assert isinstance(block, TableBlock)
    assert isinstance(before, TableBlock)
    np.testing.assert_array_equal(block.tables, before.tables)


def test_what_is_over_goes_to_the_others_in_proportion() -> None:
    joint = TableDistribution((4,), np.array([0.4, 0.3, 0.2, 0.1]))

    class Fixed:
        width = 4

        def block(self, count: int, rng: np.random.Generator) -> TableBlock:
            return TableBlock((4,), np.tile(joint.probabilities, (count, 1)))

    limits = np.array([0.4 - MOVED / 2, 1, 1, 1])
    table = (
        FilledSource(Fixed(), limits)
        .block(1, np.random.default_rng(0))
        .distribution(0)
        .probability(np.arange(4)[:, None])
    )
    rest = 1 - limits[0]
    np.testing.assert_allclose(table, [limits[0], rest / 2, rest / 3, rest / 6])


def test_a_public_set_that_is_too_small_is_refused_with_what_to_do() -> None:
    rng = np.random.default_rng(0)
    labels, public = (rng.integers(0, [2, 3], size=(n, 2)) for n in (4_000, 60))
    with pytest.raises(
        ValueError, match=r"60 public texts can fill 0% .* larger auxiliary set, or lower"
    ) as said:
        quantize(labels, (2, 3), auxiliary=public, keep=0.9, filled=True)
    assert "3600 texts" in str(said.value)


@pytest.mark.parametrize(
    "mechanism", [{"pool": "dirichlet"}, {"selection": "per_component", "gamma": 10, "k": 5}]
)
def test_only_candidates_around_the_public_joint_are_filled(mechanism: dict[str, object]) -> None:
    codes = np.random.default_rng(0).integers(0, [2, 3], size=(100, 2))
    with pytest.raises(ValueError, match="selection: joint and pool: public"):
        quantize(codes, (2, 3), auxiliary=codes, filled=True, **mechanism)


def test_the_bound_is_that_of_the_draw() -> None:
    rng = np.random.default_rng(0)
    labels, public = (rng.integers(0, [2, 3], size=(n, 2)) for n in (500, 400))
    given_ = {"auxiliary": public, "keep": 0.5, "budget_nats": 0.5, "pool_size": 500, "spread": 0.3}
    plain, kept = (
        quantize(labels, (2, 3), secrets=[{0: [0]}], filled=filled, **given_) for filled in (False, True)
    )
    assert plain.leakage == kept.leakage
