"""Which records go out in their own words: as many as is public, by secret coins, the rest public texts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantext_graph.core.targets import released_count
from quantext_graph.mechanism.draw import RecordDraw, quantize_records
from quantext_graph.mechanism.own_words import caps, outlook, share_out, short_combinations
from quantext_graph.spec.errors import QuantextError, SpecError
from quantext_graph.spec.loading import parse_spec
from quantext_graph.spec.models import Spec

SIZES = (2, 3)


def spec_of(shortage: str = "public", **mechanism: Any) -> Spec:
    return parse_spec(
        {
            "data": {"path": "private.csv"},
            "auxiliary": {"path": "public.csv"},
            "attributes": [
                {"name": "gender", "categories": ["female", "male"], "column": "gender"},
                {"name": "topic", "categories": ["a", "b", "c"], "column": "topic"},
            ],
            "secrets": [{"where": {"gender": "female"}}],
            "mechanism": {"budget_nats": 0.5, "keep": 0.6, "pool_size": 300, **mechanism},
            "rewriting": {"recipe": "none", "shortage": shortage},
        }
    )


def sets(seed: int, n: int, public: int, tilt: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Private and public codes; `tilt` makes one gender rarer in the private set."""
    rng = np.random.default_rng(seed)
    masses = np.array([0.1, 0.15, 0.2, 0.15, 0.3, 0.1])
    private = masses * np.repeat([tilt, 1.0], 3)
    codes = [rng.choice(6, size=size, p=p / p.sum()) for size, p in ((n, private), (public, masses))]
    one, two = (np.column_stack(np.unravel_index(cells, SIZES)) for cells in codes)
    return one, two


def by_chance(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng([seed, n]).permutation(n)


def cells(codes: np.ndarray) -> np.ndarray:
    return np.bincount(np.ravel_multi_index(tuple(codes.T), SIZES), minlength=6)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(60, 900),
    tilt=st.sampled_from([1.0, 0.8, 0.3]),
    shortage=st.sampled_from(["public", "notes"]),
)
@settings(deadline=None, max_examples=40)
def test_as_many_go_out_as_are_allowed_wherever_there_are_as_many(
    seed: int, n: int, tilt: float, shortage: str
) -> None:
    labels, public = sets(seed, n, 2 * n, tilt)
    spec = spec_of(shortage)
    drawn, most = quantize_records(spec, labels, public), caps(spec, n, public)
    found = share_out(spec, drawn, labels, public, most, by_chance(seed, n))
    held, demand = cells(labels), cells(drawn.assigned)
    own = cells(drawn.assigned[found.own])
    np.testing.assert_array_equal(own, np.minimum(held, np.minimum(demand, most)))
    enough = held >= np.minimum(demand, most)
    np.testing.assert_array_equal(own[enough], np.minimum(demand, most)[enough])
    assert (labels[found.used][found.own] == drawn.assigned[found.own]).all()
    np.testing.assert_array_equal(labels[found.used], labels[drawn.used])
    assert len(set(found.used.tolist())) == len(drawn.used), "no record twice"
    assert found.own_at_most == np.minimum(demand, most).sum() / released_count(n, 0.6)
    assert short_combinations(spec, labels, most) == (held < most).sum()
    if shortage == "notes":
        assert found.public == {}
        return
    assert set(found.public) | set(found.own.tolist()) == set(range(len(drawn.used)))
    assert not set(found.public) & set(found.own.tolist())
    for place, row in found.public.items():
        assert (public[row] == drawn.assigned[place]).all()
    if (demand - own <= cells(public)).all():
        assert max(Counter(found.public.values()).values(), default=1) == 1


def test_a_public_text_comes_again_only_when_all_have_come() -> None:
    """Ten records of a combination of which the public set has thirty, and three public ones for the rest."""
    spec = spec_of()
    labels, public = sets(1, 400, 800)
    drawn = quantize_records(spec, labels, public)
    few = np.concatenate([public[(public == c).all(axis=1)][:3] for c in np.ndindex(*SIZES)])
    found = share_out(spec, drawn, labels, few, np.zeros(6, dtype=np.int64), by_chance(1, 400))
    times = Counter(found.public.values())
    for cell in range(6):
        counts = [times[row] for row in range(3 * cell, 3 * cell + 3)]
        assert max(counts) - min(counts) <= 1
    assert len(found.public) == 240


def test_which_records_go_out_is_up_to_their_secret_order() -> None:
    """The first of each combination: in an order by chance, each is as likely as any other."""
    spec = spec_of()
    labels, public = sets(2, 120, 400)
    drawn, most = quantize_records(spec, labels, public), caps(spec, 120, public)
    times = np.zeros(120)
    for seed in range(400):
        found = share_out(spec, drawn, labels, public, most, by_chance(seed, 120))
        times[found.used[found.own]] += 1
    label, own = np.ravel_multi_index(tuple(labels.T), SIZES), cells(drawn.assigned[found.own])
    for cell in range(6):
        p = own[cell] / (label == cell).sum()
        reach = 5 * np.sqrt(400 * p * (1 - p)) + 1e-9
        assert (np.abs(times[label == cell] - 400 * p) <= reach).all()


def test_two_releases_show_the_same_records_of_a_combination() -> None:
    """By chance they would share a part of them that tells how many there are."""
    labels, public = sets(3, 500, 900)
    order, label = by_chance(3, 500), np.ravel_multi_index(tuple(labels.T), SIZES)
    shown = []
    for keep in (0.6, 0.6, 0.3):
        spec = spec_of(keep=keep)
        drawn, most = quantize_records(spec, labels, public), caps(spec, 500, public)
        found = share_out(spec, drawn, labels, public, most, order)
        shown.append(set(found.used[found.own].tolist()))
    for cell in range(6):
        sets_ = sorted(({i for i in each if label[i] == cell} for each in shown), key=len)
        assert sets_[0] <= sets_[1] <= sets_[2]


def test_the_outlook_holds_what_a_release_then_has() -> None:
    spec = spec_of()
    labels, public = sets(3, 600, 1200)
    seen = outlook(spec, 600, public)
    low, high = seen.reached["gender = female"]
    for _ in range(20):
        drawn: RecordDraw = quantize_records(spec, labels, public)
        found = share_out(spec, drawn, labels, public, caps(spec, 600, public), by_chance(3, 600))
        assert 1 - found.own_at_most <= seen.others_at_most + 0.03
        assert low - 0.02 <= drawn.shares["gender = female"] <= high + 0.02
    assert seen.others < seen.others_at_most
    assert seen.hidden["gender = female"] == (pytest.approx(0.315, abs=0.03), pytest.approx(0.615, abs=0.03))


def test_the_paper_s_rule_has_an_outlook_too() -> None:
    spec = spec_of("notes", selection="per_component", pool="public", gamma=20, k=5, budget_nats=None)
    assert 0 < outlook(spec, 300, sets(4, 10, 300)[1]).others < 1


def test_what_cannot_be_counted_or_filled_is_one_line() -> None:
    _, public = sets(5, 10, 40)
    with pytest.raises(SpecError, match="can fill 0% of the candidates"):
        outlook(spec_of(), 3_000, public)
    with pytest.raises(QuantextError, match="can fill 0% of the candidates"):
        quantize_records(spec_of(), sets(5, 3_000, 10)[0], public)
    with pytest.raises(SpecError, match="no rows"):
        caps(spec_of(), 100, public[:0])
