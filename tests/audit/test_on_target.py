"""The share on target, corrected for its judge: against releases whose true share is known."""

from __future__ import annotations

import numpy as np
import pytest

from quantext_graph.audit.on_target import judgement

NAMES = ["gender", "topic"]
TOPICS = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.15, 0.2, 0.65]])
GOOD = (np.array([[0.85, 0.15], [0.25, 0.75]]), TOPICS)
AT_CHANCE = (np.array([[0.6, 0.4], [0.6, 0.4]]), TOPICS)


def read(true, confusion, rng):
    """What a judge with these confusion matrices, P(read | true), reads off texts that say `true` (n, m)."""
    columns = []
    for column, matrix in zip(true.T, confusion, strict=True):
        beyond = rng.random(len(column))[:, None] > matrix[column].cumsum(axis=1)
        columns.append(beyond.sum(axis=1))
    return np.column_stack(columns)


def labels(n, rng):
    return np.column_stack([rng.choice(2, n, p=[0.6, 0.4]), rng.choice(3, n, p=[0.5, 0.3, 0.2])])


def release(n, shares, confusion, rng, known=400):
    """A judgement of n texts that hit each attribute with these shares, and the share that hit both."""
    targets, known_true = labels(n, rng), labels(known, rng)
    missed = np.column_stack([1 - targets[:, 0], (targets[:, 1] + rng.integers(1, 3, n)) % 3])
    says = np.where(rng.random((n, 2)) < shares, targets, missed)
    found = judgement(
        read(says, confusion, rng),
        targets,
        (read(known_true, confusion, rng), known_true),
        NAMES,
        evaluator="a judge",
        rng=rng,
    )
    assert found is not None
    hits = says == targets
    return found, (*hits.mean(axis=0), hits.all(axis=1).mean())


@pytest.mark.parametrize("shares", [(0.7, 0.8), (0.95, 0.98), (0.3, 0.9)])
@pytest.mark.parametrize("n", [60, 600])
def test_a_judge_of_known_mistakes_recovers_the_true_share_within_its_interval(n, shares):
    rng = np.random.default_rng(5)
    covered, gaps, raw = [], [], []
    for _ in range(25):
        found, truth = release(n, shares, GOOD, rng)
        told = [found.corrected_by_attribute[name] for name in NAMES]
        assert found.corrected is not None
        for each, true in zip([*told, found.corrected], truth, strict=True):
            assert 0 <= each.low <= each.share <= each.high <= 1
            covered.append(each.low <= true <= each.high)
        gaps.append(found.corrected.share - truth[2])
        raw.append(found.read_on_target - truth[2])
    assert np.mean(covered) > 0.8  # of a 90 % interval, in 75 tries that hang together
    assert abs(np.mean(gaps)) < (0.05 if n > 100 else 0.1), "a share is held to 1, and so a little low"
    if min(shares) > 0.6:
        assert np.mean(raw) < -0.1, "as read it is far off"


def test_a_judge_at_chance_gives_no_headline():
    found, _ = release(300, (0.6, 0.9), AT_CHANCE, np.random.default_rng(0))
    assert found.judge_better_than_chance == {"gender": False, "topic": True}
    assert found.corrected is None
    assert set(found.corrected_by_attribute) == {"topic"}
    assert found.headline.startswith("The judge reads gender right ")
    assert found.headline.endswith("no share on target can be told.")
    assert "topic" not in found.headline
    assert f"{found.read_on_target:.0%}" not in found.headline


def test_few_known_labels_do_not_show_that_a_judge_is_better_than_chance():
    true = np.array([[0], [1]] * 4)
    said = true.copy()
    said[:2] = 1 - said[:2]
    found = judgement(true, true, (said, true), ["mood"], evaluator="a judge")
    assert found.accuracy == {"mood": 0.75}
    assert found.corrected is None


def test_a_judge_of_whom_nothing_is_known_gives_no_headline():
    codes = np.zeros((30, 1), dtype=int)
    for known in (None, (codes, codes - 1)):
        found = judgement(codes, codes, known, ["mood"], evaluator="a judge")
        assert found.read_on_target == 1
        assert found.headline == "How often a judge is right is not known: no share on target can be told."
    assert judgement(codes, codes - 1, None, ["mood"], evaluator="a judge") is None, "no text has a target"


def test_all_texts_hit_is_no_certainty_where_texts_are_few():
    targets = np.array([[0], [1]] * 12)
    known = np.array([[0], [1]] * 200)
    found = judgement(targets, targets, (known, known), ["mood"], evaluator="a judge")
    assert found.corrected.share == 1
    assert 0.85 < found.corrected.low < 0.97


def test_texts_of_the_spec_alone_are_off_target_whatever_is_read():
    targets = np.array([[0], [1]] * 30)
    known = np.array([[0], [1]] * 200)
    off = np.arange(60) < 15
    found = judgement(targets, targets, (known, known), ["mood"], evaluator="a judge", off=off)
    assert found.read_on_target == found.read_by_attribute["mood"] == 0.75
    assert found.corrected.share == found.corrected.high == 0.75
    none = judgement(targets, targets, (known, known), ["mood"], evaluator="a judge", off=off | True)
    assert (none.read_on_target, none.corrected.share, none.corrected.high) == (0, 0, 0)


def test_a_category_that_the_known_texts_lack_counts_for_nothing():
    targets = np.array([[0], [1], [2]] * 20)
    known = np.array([[0], [1]] * 200)
    read_off = np.where(targets == 2, 0, targets)  # the judge has never seen the third
    found = judgement(read_off, targets, (known, known), ["mood"], evaluator="a judge")
    assert found.read_on_target == pytest.approx(2 / 3)
    assert found.corrected.share == 1


def test_what_cannot_be_read_is_missed_on_either_side():
    rng = np.random.default_rng(2)
    targets = rng.integers(0, 2, (400, 1))
    unread = np.where(rng.random((400, 1)) < 0.2, -1, targets)
    found = judgement(
        unread[:200], targets[:200], (unread[200:], targets[200:]), ["mood"], evaluator="a judge"
    )
    assert found.read_on_target == pytest.approx(0.8, abs=0.07)
    assert found.corrected.low < 1 <= found.corrected.high
