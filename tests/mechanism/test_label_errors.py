"""What wrong labels tell: the formula against figures and simulations made apart from it, and its words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from quantext_graph.core.arrays import Codes
from quantext_graph.mechanism.label_errors import HeldOut, SideErrors, success, what_errors_cost
from quantext_graph.spec.loading import parse_spec
from quantext_graph.spec.models import Spec

SUBJECTS = 6


def spec_of(**fields: Any) -> Spec:
    categories = [f"c{code}" for code in range(SUBJECTS)]
    raw: dict[str, Any] = {
        "data": {"path": "/nowhere/private.csv"},
        "attributes": [
            {"name": "subject", "categories": categories},
            {"name": "mood", "categories": ["a", "b"]},
        ],
        "secrets": [{"name": "posts on c0", "where": {"subject": "c0"}}],
    }
    return parse_spec(raw | fields)


def public(rows: int = 2000, share: float = 0.25) -> Codes:
    rng = np.random.default_rng(0)
    p = [share, *[(1 - share) / (SUBJECTS - 1)] * (SUBJECTS - 1)]
    return np.column_stack([rng.choice(SUBJECTS, rows, p=p), rng.integers(0, 2, rows)])


@pytest.mark.parametrize(("wrong", "seen"), [(0.02, 0.85), (0.05, 0.94), (0.1, 0.98), (0.2, 1.0)])
def test_it_says_what_was_seen_on_real_tweets(wrong: float, seen: float) -> None:
    """600 tweets, keep 0.6, shares of 15 and 35 %, an attacker right 74 % of the time by the draw alone;
    computed apart from this project."""
    errors = SideErrors(wrong, wrong / (SUBJECTS - 1))
    assert success(360, (0.15, 0.35), errors, 0.74) == pytest.approx(seen, abs=0.015)


@pytest.mark.parametrize(
    ("released", "wrong", "hint"), [(100, 0.05, 0.6), (400, 0.03, 0.7), (900, 0.01, 0.55)]
)
def test_it_is_what_the_best_attacker_reaches(released: int, wrong: float, hint: float) -> None:
    """Bayes by the counts themselves, whose distribution is known, and a hint that is right so often."""
    shares, errors = (0.2, 0.4), SideErrors(wrong, wrong / 3)
    rng = np.random.default_rng(1)
    texts = np.array([int(0.3 * released), released - int(0.3 * released)])
    inside = []
    for share in shares:
        labelled = share * (1 - errors.missed) + (1 - share) * errors.added
        inside.append([share * (1 - errors.missed) / labelled, share * errors.missed / (1 - labelled)])
    p = np.array(inside)
    truth = rng.integers(0, 2, 40_000)
    counts = rng.binomial(texts, p[truth])
    told = np.where(rng.random(len(truth)) < hint, truth, 1 - truth)
    odds = counts @ np.log(p[1] / p[0]) + (texts - counts) @ np.log((1 - p[1]) / (1 - p[0]))
    odds += np.where(told, 1, -1) * math.log(hint / (1 - hint))
    assert success(released, shares, errors, hint) == pytest.approx(((odds > 0) == truth).mean(), abs=0.02)


def test_without_errors_it_is_what_the_draw_tells() -> None:
    assert success(10_000, (0.2, 0.4), SideErrors(0.0, 0.0), 0.7) == 0.7
    assert success(10_000, (0.2, 0.4), SideErrors(0.1, 0.1), 1.0) == 1.0


def test_errors_of_a_labeller_are_counted_by_side() -> None:
    codes = np.array([[0, 0], [0, 1], [1, 0], [2, 0], [3, 1], [4, 1]])
    predicted = np.array([[0, 0], [5, 1], [0, 0], [3, 0], [3, 0], [4, 1]])
    assert SideErrors.of(HeldOut(codes, predicted), {0: (0,)}) == SideErrors(0.5, 0.25)


def test_even_errors_go_to_any_other_category() -> None:
    codes, rng = public(200_000), np.random.default_rng(2)
    event, sizes, share = {0: (0, 1), 1: (1,)}, (SUBJECTS, 2), 0.2
    read = codes.copy()
    for r, size in enumerate(sizes):
        wrong = rng.random(len(codes)) < share
        read[wrong, r] = (read[wrong, r] + rng.integers(1, size, wrong.sum())) % size
    seen, said = SideErrors.of(HeldOut(codes, read), event), SideErrors.even(codes, sizes, event, share)
    assert (said.missed, said.added) == pytest.approx((seen.missed, seen.added), abs=0.006)


def test_where_nothing_is_known_of_the_labels_it_says_what_five_in_a_hundred_cost() -> None:
    said = what_errors_cost(spec_of(), 360, 0.5, public())
    assert said == (
        "Labels are taken as right: if 5 in 100 were wrong and texts said what their record said, an "
        "attacker who reads without mistakes tells two shares 20 points apart 95 times in 100 where 82 are "
        "allowed; texts written to their target do not say it."
    )


def test_where_a_classifier_labels_it_says_how_often_that_errs() -> None:
    codes = public()
    predicted = codes.copy()
    wrong = np.arange(0, len(codes), 10)
    predicted[wrong, 0] = (predicted[wrong, 0] + 1) % SUBJECTS
    said = what_errors_cost(spec_of(), 360, 0.5, codes, HeldOut(codes, predicted))
    assert said.startswith(
        "The program's classifier puts 3.8 in 100 public texts on the wrong side of “posts on c0”: where"
    )
    perfect = what_errors_cost(spec_of(), 360, 0.5, codes, HeldOut(codes, codes))
    assert perfect == what_errors_cost(spec_of(), 360, 0.5, codes)


def test_texts_in_their_own_words_do_say_it() -> None:
    own = {"recipe": "none", "label_error": 0.01}
    spec = spec_of(rewriting=own, auxiliary={"path": "/nowhere/public.csv"})
    said = what_errors_cost(spec, 360, 0.5, public())
    assert said.endswith("and by `recipe: none` they do.")


def test_it_is_silent_where_there_is_no_promise_to_break() -> None:
    assert what_errors_cost(spec_of(), 360, 0.7, public()) == ""
    assert what_errors_cost(spec_of(secrets=[]), 360, 0.1, public()) == ""


def test_without_a_public_set_every_combination_counts_once() -> None:
    assert "20 points apart" in what_errors_cost(spec_of(), 360, 0.0, None)
