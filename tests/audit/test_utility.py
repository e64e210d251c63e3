import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantext_graph.audit import utility
from quantext_graph.audit.metrics import FrechetDistance, compare
from quantext_graph.audit.utility import (
    Reference,
    category_tv,
    frechet_distance,
    knn_precision_recall,
    length_wasserstein,
    token_length,
    unit_norm,
)

# Computed apart from this project, by the metrics' definitions.
VECTORS = json.loads((Path(__file__).parent / "vectors" / "metrics.json").read_text())


@pytest.mark.parametrize("case", VECTORS["embedding"])
def test_embedding_metrics_have_their_right_values(case):
    precision, recall = knn_precision_recall(case["real"], case["generated"], case["k"])
    assert precision == pytest.approx(case["knn_precision"], abs=1e-6)
    assert recall == pytest.approx(case["knn_recall"], abs=1e-6)
    assert frechet_distance(case["real"], case["generated"]) == pytest.approx(case["fid"], abs=1e-4)


@pytest.mark.parametrize("case", VECTORS["length_w2"])
def test_length_has_its_right_value(case):
    assert length_wasserstein(case["real"], case["generated"]) == pytest.approx(case["w2"], abs=1e-6)


@pytest.mark.parametrize("case", VECTORS["category_tv"])
def test_category_has_its_right_value(case):
    assert category_tv(case["real"], case["generated"]) == pytest.approx(case["tv"], abs=1e-6)


def test_the_same_corpus_on_both_sides_is_perfect():
    points = unit_norm(np.random.default_rng(0).normal(size=(300, 32)))
    assert knn_precision_recall(points, points[::-1]) == (1.0, 1.0)
    assert frechet_distance(points, points[::-1]) == pytest.approx(0, abs=1e-9)


def test_equal_texts_are_inside_each_other_far_from_the_origin():
    points = np.full((50, 8), 1e3) + np.pi
    assert knn_precision_recall(points, points[:20]) == (1.0, 1.0)
    assert knn_precision_recall(points, points[:20] + 1e-2) == (0.0, 0.0)
    assert frechet_distance(points, points[:20]) == pytest.approx(0, abs=1e-9)


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(1)
    private, released = rng.normal(size=(157, 5)), rng.normal(0.4, 1, size=(211, 5))
    whole = knn_precision_recall(private, released)
    monkeypatch.setattr(utility, "BLOCK_ENTRIES", 1000)
    assert knn_precision_recall(private, released) == whole
    assert 0 < whole.precision < 1


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), m=st.integers(1, 12), k=st.integers(1, 4),
    step=st.sampled_from([0.5, 1e-3]),
)  # fmt: skip
def test_precision_and_recall_equal_their_definition(seed, n, m, k, step):
    """By brute force on a coarse lattice, where duplicates and ties of distance abound."""
    rng = np.random.default_rng(seed)
    private, released = (rng.integers(-2, 3, size=(size, 2)) * step for size in (n, m))

    def inside(points, manifold):
        gaps = np.linalg.norm(manifold[:, None] - manifold[None], axis=-1)
        np.fill_diagonal(gaps, -1)  # the point itself comes first and is not counted
        radii = np.sort(gaps, axis=1)[:, min(k, len(manifold) - 1)] if len(manifold) > 1 else np.zeros(1)
        distances = np.linalg.norm(points[:, None] - manifold[None], axis=-1)
        return float((distances <= radii + 1e-9).any(axis=1).mean())

    assert knn_precision_recall(private, released, k) == (
        inside(released, private),
        inside(private, released),
    )


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=20),
    st.lists(st.integers(0, 50), min_size=1, max_size=20),
)
def test_length_equals_the_sorted_pairing_of_repeated_samples(private, released):
    first = np.sort(np.repeat(private, len(released)))
    second = np.sort(np.repeat(released, len(private)))
    assert length_wasserstein(private, released) == pytest.approx(np.sqrt(np.mean((first - second) ** 2.0)))


@pytest.mark.parametrize(
    ("private", "released", "message"),
    [
        (np.zeros((0, 3)), np.zeros((2, 3)), "private"),
        (np.zeros((2, 3)), np.zeros((2, 4)), "dimension"),
        (np.zeros((2, 3)), np.full((2, 3), np.nan), "finite"),
    ],
)
def test_what_has_no_answer_is_refused(private, released, message):
    with pytest.raises(ValueError, match=message):
        knn_precision_recall(private, released)
    with pytest.raises(ValueError, match=message):
        frechet_distance(private, released)


def test_one_text_has_an_answer():
    assert knn_precision_recall([[1.0, 0.0]], [[1.0, 0.0]]) == (1.0, 1.0)
    assert knn_precision_recall([[1.0, 0.0]], [[0.0, 1.0]]) == (0.0, 0.0)
    assert frechet_distance([[1.0, 0.0]], [[0.0, 1.0]]) == pytest.approx(2.0)


def test_the_aggregate_is_the_mean_of_the_four_rescaled():
    rng = np.random.default_rng(4)
    texts, points = ["ten"] * 10, rng.normal(size=(2, 10, 4))
    value = compare(
        Reference(texts, points[0]),
        ["two words"] * 10,
        points[1],
        attribute_tv={"Stance": 0.1, "Target": 0.3},
    )
    assert value.length_w2 == 1
    assert value.values["attribute_match"] == pytest.approx((0 + 0.9 + 0.7) / 3)
    assert value.rescaled["fid"] == pytest.approx(1 - value.values["fid"] / 2)
    assert list(value.rescaled) == ["knn_precision", "knn_recall", "fid", "attribute_match"]
    assert value.aggregate == pytest.approx(np.mean(list(value.rescaled.values())))


def test_rescaled_metrics_lie_between_nothing_and_all():
    assert [FrechetDistance().rescaled(value) for value in (0, 0.4, 3)] == [1, pytest.approx(0.8), 0]


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("I'm fine, thanks!", 7), ("我很好。", 4), ("naïve café", 2)]
)
def test_token_length(text, tokens):
    assert token_length(text) == tokens


def test_a_text_without_a_direction_stays_finite():
    assert np.isfinite(unit_norm([[0.0, 0.0], [3.0, 4.0]])).all()
