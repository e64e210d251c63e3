"""Releasing fewer than there are: what is promised of `keep`."""

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantext_graph.core.arrays import combinations
from quantext_graph.core.distribution import TableDistribution, changed_share, total_variation_from
from quantext_graph.core.matching import UNUSED
from quantext_graph.core.quantize import quantize
from quantext_graph.core.targets import released_count

SIZES = (3, 2)


def sample(n, seed):
    return np.random.default_rng(seed).integers(SIZES, size=(n, 2))


@pytest.mark.parametrize(
    ("n", "keep", "count"), [(100, 0.29, 29), (10, 0.7, 7), (3000, 0.6, 1800), (5, 1.0, 5), (7, 1, 7)]
)
def test_the_count_is_the_floor_of_the_number_that_was_written(n, keep, count):
    assert released_count(n, keep) == count


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 60), st.sampled_from([0.5, 0.6, 0.9, 1.0]), st.sampled_from(["quota", "iid"]))
def test_so_many_targets_come_out_each_to_a_record_of_its_own(n, keep, targets):
    labels, public = sample(n, n), sample(80, 1)
    drawn = quantize(
        labels, SIZES, auxiliary=public, keep=keep, targets=targets, pool_size=200, budget_nats=1.0
    )
    count = released_count(n, keep)
    assert drawn.targets.shape == drawn.assigned.shape == (count, 2)
    assert sorted(drawn.rows[drawn.used]) == list(range(count))
    assert (drawn.rows == UNUSED).sum() == n - count
    np.testing.assert_array_equal(drawn.assigned, drawn.targets[drawn.rows[drawn.used]])
    assert drawn.changed == (labels[drawn.used] != drawn.assigned).any(axis=1).mean()


def test_the_share_that_must_change_is_what_the_matching_reaches():
    labels, public = sample(4000, 2), sample(500, 3)
    for keep in (1.0, 0.8, 0.6):
        drawn = quantize(labels, SIZES, auxiliary=public, keep=keep, pool_size=500, budget_nats=0.5)
        combos, counts, _ = combinations(labels)
        stated = changed_share(combos, counts / len(labels), drawn.released, keep)
        assert drawn.changed == pytest.approx(stated, abs=0.01)


def test_without_slack_it_is_the_total_variation():
    combos, masses = np.array([[0, 0], [1, 1]]), np.array([0.7, 0.3])
    released = TableDistribution(SIZES, np.full(6, 1 / 6))
    assert changed_share(combos, masses, released, 1.0) == pytest.approx(
        total_variation_from(combos, masses, released)
    )


@pytest.mark.parametrize("keep", [0.0, -0.1, 1.01, 0.001])
def test_a_share_that_leaves_nothing_is_refused(keep):
    with pytest.raises(ValueError, match="keep"):
        quantize(sample(20, 1), SIZES, auxiliary=sample(40, 2), keep=keep, pool_size=50)


STATED = {1.0: 0.140, 0.9: 0.098, 0.8: 0.063, 0.7: 0.037, 0.6: 0.018, 0.5: 0.007}
"""Share of texts whose labels must change, 3,000 tweets at 0.5 nats; computed apart from this project."""


def test_real_tweets(shared_data):
    with (shared_data / "stance/tweet.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = ["Target", "Stance", "Sentiment"]
    names = [sorted({row[column] for row in rows}) for column in columns]
    codes = np.array([[known.index(row[c]) for c, known in zip(columns, names, strict=True)] for row in rows])
    secret = {0: [names[0].index("Legalization of Abortion")]}
    rng = np.random.default_rng(0)
    found = {keep: [] for keep in STATED}
    for _ in range(4):
        order = rng.permutation(len(codes))
        private, public = codes[order[:3000]], codes[order[3000:]]
        combos, counts, _ = combinations(private)
        drawn = [
            quantize(
                private,
                tuple(map(len, names)),
                auxiliary=public,
                secrets=[secret],
                spread=0.3,
                budget_nats=0.5,
                pool_size=5000,
            )
            for _ in range(40)
        ]
        for keep, shares in found.items():
            shares += [changed_share(combos, counts / 3000, each.released, keep) for each in drawn]
    for keep, stated in STATED.items():
        assert np.mean(found[keep]) == pytest.approx(stated, rel=0.15, abs=0.004), keep
