"""Means, ratios and rankings of hand-made results, and figures whose names do not meet."""

import itertools

import matplotlib
import numpy as np
import pandas as pd
import pytest

from quantext_graph.experiments import results
from quantext_graph.experiments.baselines.method import PRIVATE_RECORDS
from quantext_graph.experiments.drawing import budget_name
from quantext_graph.experiments.figures import (
    at_equal_bound,
    draw_figures,
    error_and_utility,
    relative_error,
    stability,
)
from quantext_graph.experiments.results import Result, tidy
from quantext_graph.experiments.tables import agreements, overview, points, questions, relative, summary
from quantext_graph.spec.errors import QuantextError


def result(method="joint", budget="nats=1", attacker="a", error=0.1, **changed) -> Result:
    row = {
        "texts": "simulation", "scenario": "", "method": method, "budget": budget, "secret": "likes",
        "repeat": 0, "attack": "labelling", "attacker": attacker, "truth": 0.5, "estimate": 0.5 + error,
        "error": error, "prior_error": 0.2, "bound_nats": 1.0, "mechanism_nats": 1.0,
        "metrics": {"knn_precision": 0.7, "fid": 0.1}, "aggregate": 0.8, "length_w2": 1.0,
        "joint_tv": 0.1, "n": 100, "released": 100, "label_source": "the drawn distribution",
        "guarantee": "at most 1 nats", "seconds": 0.1,
    }  # fmt: skip
    return Result(**{**row, **changed})


def test_rankings_agree_oppose_or_cannot_be_compared():
    errors = {"a": [0.1, 0.2, 0.3, 0.4], "b": [0.11, 0.19, 0.5, 0.9], "c": [4, 3, 2, 1], "d": [1, 1, 1, 1]}
    rows = [
        result(budget=f"nats={i}", attacker=name, error=error)
        for name, values in errors.items()
        for i, error in enumerate(values)
    ]
    found = agreements(tidy(rows)).set_index(["attacker", "other attacker"])["spearman_rho"]
    assert found.to_dict() == pytest.approx({("a", "b"): 1, ("a", "c"): -1, ("b", "c"): -1})
    assert agreements(tidy(rows[:2] + rows[4:6])).empty  # two releases make no ranking


def test_means_and_ratios_are_over_repeats():
    rows = [result(error=error, repeat=i) for i, error in enumerate([0.1, 0.2, 0.3])]
    [point] = points(tidy(rows)).to_dict("records")
    assert (point["error"], point["error_sd"]) == (pytest.approx(0.2), pytest.approx(0.1))
    assert point["error_se"] == pytest.approx(0.1 / np.sqrt(3))
    [ratio] = relative(tidy(rows)).to_dict("records")
    assert ratio["middle"] == pytest.approx(1.0)  # of the means, 0.2 / 0.2
    assert 0.5 <= ratio["low"] < 1 < ratio["high"] <= 1.5
    assert relative(tidy([result(prior_error=0.0)])).empty
    assert np.isnan(points(tidy([result()]))["error_sd"][0])


def test_a_metric_is_a_column_and_what_is_not_known_is_empty(tmp_path):
    rows = [result(), result(method="raw", mechanism_nats=None, metrics={"knn_precision": 1.0, "words": 0.5})]
    table = tidy(rows)
    assert list(table["words"].isna()) == [True, False]
    assert list(table.columns).index("knn_precision") == list(table.columns).index("mechanism_nats") + 1
    table.to_csv(tmp_path / "t.csv", index=False)
    assert pd.read_csv(tmp_path / "t.csv")["mechanism_nats"].isna().tolist() == [False, True]


def test_attacks_about_an_attribute_are_no_answer_to_a_question():
    rows = [result(), result(attack="residual", secret="Stance"), result(attack="of a package that is gone")]
    [(title, found)] = questions(tidy(rows))
    assert title == "likes"
    assert list(found["attack"]) == ["labelling", "of a package that is gone"]
    assert len(summary(tidy(rows))) == 2


def test_without_pandas_an_experiment_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(results, "find_spec", lambda _: None)
    with pytest.raises(QuantextError, match=r"pip install 'quantext-graph\[experiment\]'"):
        tidy([result()])


def test_the_overview_has_a_row_for_each_release():
    rows = [result(), result(method="raw", budget="", mechanism_nats=None, error=0.0)]
    [(title, columns, lines)] = overview(tidy(rows))
    assert title.startswith("likes: ")
    assert "errs by 0.200" in title
    assert columns[:4] == ("method", "budget", "limit,\nnats", "utility")
    assert [line[2] for line in lines] == ["1", "none"]
    assert lines[1][4] == "0.000"


def test_names_in_a_figure_do_not_meet():
    rng = np.random.default_rng(3)
    rows = [
        result(method, f"nats={b}", error=float(e), aggregate=float(u), repeat=r)
        for method, r, b in itertools.product(("one", "two", "three"), range(3), (0.5, 1, 3))
        for e, u in [rng.normal([0.1, 0.8], 0.01)]
    ]
    figure = error_and_utility(tidy(rows), "likes")
    figure.draw_without_rendering()
    boxes = [note.get_window_extent() for note in figure.axes[0].texts]
    assert len(boxes) == 6
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_no_point_lies_outside_its_panel():
    raw = {"budget": "", "mechanism_nats": None, "label_source": PRIVATE_RECORDS, "aggregate": 1.0}
    rows = [result(error=0.1), result("raw", **raw, error=0.3), result("half", **raw, error=0.0)]
    main, aside = error_and_utility(tidy(rows), "likes").axes
    low, high = main.get_ylim()
    assert aside.get_ylim() == (low, high)
    assert low < 0.0 < 0.3 < high


def test_a_method_has_one_colour_in_all_figures():
    aware = {"attack": "mechanism-aware", "attacker": "median"}
    rows = [result("first", mechanism_nats=None), result("second"), result("second", **aware)]
    colours = [
        {handle.get_label(): handle.get_color() for handle in figure.legends[0].legend_handles}
        for figure in (error_and_utility(tidy(rows), "likes"), at_equal_bound(tidy(rows), "likes"))
    ]
    assert colours[0]["second"] == colours[1]["second"] != colours[0]["first"]
    assert "first" not in colours[1]


def test_figures_do_not_take_the_fonts_of_the_process(tmp_path):
    rows = [result(method, repeat=r, error=0.1 + 0.01 * r) for method in ("one", "two") for r in range(3)]
    plain = draw_figures(tidy(rows), tmp_path / "plain")
    with matplotlib.rc_context({"font.size": 30}):
        large = draw_figures(tidy(rows), tmp_path / "large")
    assert plain
    for one, other in zip(plain, large, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_a_method_that_leaks_nothing_does_not_stand_with_those_that_promise_nothing():
    aware = {"attack": "mechanism-aware"}
    rows = [
        result("none", mechanism_nats=None, **aware),
        result(**aware),
        result("all", mechanism_nats=0.0, **aware),
    ]
    left, _ = at_equal_bound(tidy(rows), "likes").axes
    places = [line.get_xdata()[0] for line in left.lines if len(line.get_xdata()) == 1]
    assert min(places) < 1 < max(places)
    assert len(set(places)) == 3


def test_a_figure_that_the_results_do_not_allow_is_none():
    rows = [result()]
    assert stability(tidy(rows), "likes") is None
    assert at_equal_bound(tidy(rows), "likes") is None  # nobody made the mechanism-aware attack
    assert relative_error(tidy([result(prior_error=0.0)]), "likes") is None
    assert stability(tidy([result(budget="gamma=40 k=10")]), "likes") is not None
    assert at_equal_bound(tidy([result(attack="mechanism-aware")]), "likes") is not None


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("ratio=4", "γ/k = 4"),
        ("nats=0.5", "0.5 nats"),
        ("epsilon=1", "ε = 1"),
        ("gamma=40 k=10", "40/10"),
        ("", ""),
    ],
)
def test_budgets_are_said_as_people_write_them(budget, said):
    assert budget_name(budget) == said
