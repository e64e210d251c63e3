"""What a budget buys, estimated on public data: what it may read, what it states, and how it looks."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quantext_graph.apps.cli.main import main
from quantext_graph.core.arrays import Codes
from quantext_graph.mechanism.guarantees import guarantees
from quantext_graph.mechanism.tradeoff import TradeoffPoint, tradeoff
from quantext_graph.mechanism.tradeoff_views import check_plot_path, draw_tradeoff, plot_tradeoff, tables
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.loading import parse_spec
from quantext_graph.spec.models import Spec

N = 3000
BUDGETS = (0.0, 0.5, 1.0, 3.0)
KEYS = ["selection", "pool", "spread", "budget_nats", "bound_nats", "expected_tv", "expected_error"]


def spec_of(sizes: tuple[int, ...], **fields: Any) -> Spec:
    """Attributes a0, a1, ... with categories c0, c1, ...; its private file does not exist."""
    raw: dict[str, Any] = {
        "data": {"path": "/nowhere/private.csv"},
        "attributes": [
            {"name": f"a{r}", "categories": [f"c{x}" for x in range(size)]} for r, size in enumerate(sizes)
        ],
        "secrets": [{"name": "share of c0", "where": {"a0": "c0"}}],
    }
    return parse_spec(raw | fields)


def labels(sizes: tuple[int, ...], rows: int) -> Codes:
    """Labels that depend on one another, and are far from uniform."""
    rng = np.random.default_rng(3)
    hidden = rng.beta(1.0, 3.0, size=(rows, 1))
    codes: Codes = np.floor((0.7 * hidden + 0.3 * rng.random((rows, len(sizes)))) * sizes).astype(np.int64)
    return codes


@pytest.fixture(scope="module", autouse=True)
def _small_pools() -> Iterator[None]:
    """Fewer candidates, for speed: what is asserted here hangs on K/M."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quantext_graph.mechanism.tradeoff.POOL", 3000)
        yield


@pytest.fixture(scope="module")
def points(_small_pools: None) -> list[TradeoffPoint]:
    sizes = (3, 2)
    return tradeoff(spec_of(sizes), labels(sizes, 400), n=N, budgets=BUDGETS, splits=3)


def curve(
    points: list[TradeoffPoint], selection: str, pool: str, spread: float | None
) -> list[TradeoffPoint]:
    wanted = (selection, pool, spread)
    return [p for p in points if (p.selection, p.pool, p.spread) == wanted and p.gamma_over_k is None]


RULES = [
    ("joint", "public", 0.3),
    ("joint", "public", None),
    ("joint", "dirichlet", None),
    ("per_component", "dirichlet", None),
    ("per_component", "public", 0.3),
]


@pytest.mark.parametrize("rule", RULES)
def test_more_nats_bring_the_release_nearer(
    points: list[TradeoffPoint], rule: tuple[str, str, float]
) -> None:
    found = curve(points, *rule)
    assert [point.budget_nats for point in found] == list(BUDGETS)
    distances = [point.expected_tv for point in found]
    noise = max(point.tv_standard_error for point in found)
    assert all(later < earlier + noise for earlier, later in pairwise(distances))
    assert distances[-1] < distances[0] - 2 * noise
    assert found[-1].expected_error["share of c0"] < found[0].expected_error["share of c0"]


def test_a_share_moves_the_joint_by_at_least_as_much(points: list[TradeoffPoint]) -> None:
    """TV(P, Q) ≥ |P(S) − Q(S)| for any event S, so the means obey it too."""
    for point in points:
        assert 0 <= point.expected_error["share of c0"] <= point.expected_tv <= 1


def test_the_public_pool_is_nearer_and_its_spread_hides(points: list[TradeoffPoint]) -> None:
    spread, plain, dirichlet = (curve(points, *rule)[2] for rule in RULES[:3])
    assert plain.expected_tv < spread.expected_tv < dirichlet.expected_tv
    assert spread.expected_error["share of c0"] > plain.expected_error["share of c0"]


@pytest.mark.parametrize("rule", RULES)
def test_the_bound_is_the_one_a_release_states(
    points: list[TradeoffPoint], rule: tuple[str, str, float]
) -> None:
    sizes = (3, 2)
    for point in curve(points, *rule):
        fields = {"selection": point.selection, "pool": point.pool, "budget_nats": point.budget_nats}
        spread = {} if point.spread is None else {"spread": point.spread}
        spec = spec_of(sizes, mechanism={**fields, **spread} | ({"spread": None} if not spread else {}))
        assert point.leakage == guarantees(spec, N, labels(sizes, 400)).worst
        assert point.bound_nats <= point.budget_nats + 1e-9


def test_the_papers_rule_states_components_times_log_ratio(points: list[TradeoffPoint]) -> None:
    """C·log(γ/k), by hand: a root and one component for each of its values."""
    paper = [point for point in points if point.gamma_over_k is not None]
    assert [point.gamma_over_k for point in paper][-3:] == [2.0, 4.0, 12.0]
    cap = math.log(N + 1)
    components = paper[0].leakage.components
    assert components in {1 + 3, 1 + 2}
    for point in paper:
        assert point.gamma_over_k is not None
        nats = components * math.log(point.gamma_over_k)
        assert point.budget_nats == pytest.approx(nats)
        assert point.bound_nats == pytest.approx(min(nats, cap))
        assert point.leakage.vacuous == (nats >= cap)
    assert paper[-1].leakage.vacuous


def test_json_has_the_names_of_the_documentation(points: list[TradeoffPoint]) -> None:
    first = json.loads(json.dumps([point.to_json() for point in points], allow_nan=False))[0]
    assert list(first)[: len(KEYS)] == KEYS
    assert list(first["expected_error"]) == ["share of c0"]
    assert first["success_factor"] == pytest.approx(math.exp(first["bound_nats"]))


def test_the_default_budgets_go_to_the_cap() -> None:
    sizes = (2,)
    events: list[dict[str, Any]] = []
    found = tradeoff(
        spec_of(sizes), labels(sizes, 60), n=24, splits=2, progress=lambda event: events.append(dict(event))
    )
    budgets = [point.budget_nats for point in curve(found, "joint", "public", 0.3)]
    assert budgets[0] == 0
    assert budgets[-1] == pytest.approx(math.log(25))
    assert all(later > earlier for earlier, later in pairwise(budgets))
    assert events[-1]["done"] == events[-1]["total"] == len(events)


def test_the_same_public_data_gives_the_same_figures() -> None:
    sizes = (2, 2)
    once, again = (
        tradeoff(spec_of(sizes), labels(sizes, 60), n=24, budgets=(1.0,), splits=2) for _ in range(2)
    )
    assert once == again


def test_several_secrets_get_an_error_each_and_the_coarser_its_own_cap() -> None:
    secrets = [
        {"where": {"a0": "c0"}, "precision": 0.1},
        {"name": "both", "where": {"a0": ["c0", "c1"], "a1": "c1"}},
    ]
    found = tradeoff(spec_of((3, 2), secrets=secrets), labels((3, 2), 100), n=N, budgets=(1.0, 9.0), splits=2)
    assert list(found[0].expected_error) == ["a0 = c0", "both"]
    assert max(point.leakage.cap_nats for point in found) == pytest.approx(math.log(N + 1))


def test_without_a_secret_there_is_no_spread_and_the_distance_alone_is_drawn(tmp_path: Path) -> None:
    found = tradeoff(spec_of((2, 2), secrets=[]), labels((2, 2), 60), n=24, budgets=(1.0,), splits=2)
    assert {point.spread for point in found} == {None}
    assert found[0].expected_error == {}
    plot_tradeoff(found, tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_bytes().startswith(b"<?xml")


def test_twelve_attributes_work() -> None:
    sizes = (3,) * 12
    spec = spec_of(sizes, mechanism={"gamma": 24, "k": 6})
    found = tradeoff(spec, labels(sizes, 60), n=24, budgets=(0.0, 2.0), splits=2)
    near, far = (curve(found, "joint", "public", None)[i].expected_tv for i in (1, 0))
    assert near < far < 1


@pytest.mark.parametrize(
    ("rows", "arguments", "told"),
    [
        (19, {"n": 24}, "auxiliary: 19 rows"),
        (60, {"n": 0}, "0 records"),
        (60, {"n": 24, "budgets": [-1.0]}, "a budget is negative"),
        (60, {"n": 24, "budgets": [math.inf]}, "not finite"),
    ],
)
def test_what_a_user_can_mend_is_one_line(rows: int, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(QuantextError, match=told) as raised:
        tradeoff(spec_of((2, 2)), labels((2, 2), rows), **arguments)
    assert "\n" not in str(raised.value)


def test_a_tree_that_is_none_is_refused_in_one_line() -> None:
    spec = spec_of((2, 2, 2), mechanism={"tree": {"a0": "a1", "a1": "a0"}})
    with pytest.raises(QuantextError, match=r"mechanism: .*root"):
        tradeoff(spec, labels((2, 2, 2), 60), n=24)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_is_written(points: list[TradeoffPoint], tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"plot.{suffix}"
    plot_tradeoff(points, path)
    magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(magic)


def test_the_picture_shows_every_point_and_shades_what_is_vacuous(points: list[TradeoffPoint]) -> None:
    distance, error = draw_tradeoff(points).axes
    for axes in (distance, error):
        assert sum(len(line.get_xdata()) for line in axes.lines) == len(points)
        assert axes.patches[0].get_x() == pytest.approx(math.log(N + 1))  # type: ignore[attr-defined]


def test_a_dollar_in_a_title_is_no_formula(tmp_path: Path) -> None:
    secrets = [{"name": "from $5 to $\\frac", "where": {"a0": "c0"}}]
    found = tradeoff(spec_of((2,), secrets=secrets), labels((2,), 40), n=24, budgets=(1.0,), splits=2)
    plot_tradeoff(found, tmp_path / "plot.png")


def test_a_picture_that_cannot_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(QuantextError, match=r"ends in \.png"):
        check_plot_path(tmp_path / "plot.bmp")
    with pytest.raises(QuantextError, match="no folder"):
        check_plot_path(tmp_path / "absent" / "plot.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(QuantextError, match=r"pip install 'quantext-graph\[plot\]'"):
        check_plot_path(tmp_path / "plot.png")


def test_a_table_for_each_rule_says_vacuous(points: list[TradeoffPoint]) -> None:
    *found, kept = tables(points)
    assert kept[0] == f"texts whose labels must change, by keep (κ): {points[0].rule}"
    shares = [float(cell.rstrip("%")) for cell in kept[2][3][1:]]
    assert shares == sorted(shares, reverse=True), "the fewer are released, the fewer change"
    assert [title for title, _, _ in found] == list(dict.fromkeys(point.rule for point in points))
    assert sum(len(rows) for _, _, rows in found) == len(points)
    assert {len(row) - len(columns) for _, columns, rows in found for row in rows} == {0}
    assert found[0][2][0][2] == "× 1.0"
    assert found[-1][2][-1][3] == "vacuous"


def test_the_command_line_needs_no_private_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = labels((3, 2), 60).tolist()
    public = [["text", "a0", "a1"], *([f"text {i}", f"c{a}", f"c{b}"] for i, (a, b) in enumerate(codes))]
    (tmp_path / "public.csv").write_text("\n".join(map(",".join, public)), encoding="utf-8")
    spec = {
        "data": {"path": "absent.csv"},
        "auxiliary": {"path": "public.csv"},
        "attributes": [
            {"name": "a0", "categories": ["c0", "c1", "c2"]},
            {"name": "a1", "categories": ["c0", "c1"]},
        ],
        "secrets": [{"where": {"a0": "c0"}}],
    }
    (tmp_path / "spec.yaml").write_text(json.dumps(spec), encoding="utf-8")
    plot = tmp_path / "plot.png"
    arguments = ["check", str(tmp_path / "spec.yaml"), "--tradeoff", "--records", "24", "--json"]
    monkeypatch.setattr(sys, "argv", ["quantext", *arguments, "--plot", str(plot)])
    main()
    found = json.loads(capsys.readouterr().out)
    assert {point["bound_nats"] for point in found if point["vacuous"]} == {math.log(25)}
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_the_command_line_counts_the_records_where_n_is_not_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spec.yaml").write_text(json.dumps(spec_of((2,)).model_dump(mode="json")), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["quantext", "check", str(tmp_path / "spec.yaml"), "--tradeoff"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "private.csv" in capsys.readouterr().err
