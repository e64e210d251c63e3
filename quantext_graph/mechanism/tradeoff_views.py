"""The trade-off as a picture, as tables for a terminal, and as figures for a chat model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quantext_graph.mechanism.figure_style import marks, need_matplotlib, styled
from quantext_graph.mechanism.tradeoff import TradeoffPoint
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")

COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#D55E00", "#CC79A7", "#000000")
"""The palette in an order that gives related pools related colours; docs/choosing-a-budget.md names them."""

LINES = ("-", "--", ":", "-.")
"""One line style a secret."""

LONGEST_TITLE = 60

BEYOND_CAP = 1.2
"""The axis ends at this multiple of the cap; what lies beyond is vacuous all the same."""


def public_points(points: Sequence[TradeoffPoint], mechanism: Mechanism, nats: float) -> list[dict[str, Any]]:
    """The points of the spec's own rule and pool, and every rule at the budget that was asked about.

    What comes of public data alone, so any chat model may read it.
    """
    own = (mechanism.selection, mechanism.pool, mechanism.spread)
    return [
        {
            "rule": point.rule,
            "nats": point.budget_nats,
            "bound_nats": round(point.bound_nats, 3),
            "chance_grows_at_most_by": None
            if point.leakage.vacuous
            else round(point.leakage.success_factor, 2),
            "vacuous": point.leakage.vacuous,
            "distance_tv": round(point.expected_tv, 3),
            "error_of_share": {name: round(error, 3) for name, error in point.expected_error.items()},
        }
        for point in points
        if point.gamma_over_k is None
        and ((point.selection, point.pool, point.spread) == own or point.budget_nats == nats)
    ]


def check_plot_path(path: Path) -> None:
    """Refuse a picture that could not be written, before the time for its figures is spent.

    Raises:
        QuantextError: an unknown format, a folder that is not there, or no matplotlib.
    """
    if path.suffix.lower() not in FORMATS:
        raise QuantextError(f"{path}: the picture's name ends in {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise QuantextError(f"{path}: there is no folder {path.parent}; make it, or name another")
    need_matplotlib()


def plot_tradeoff(points: Sequence[TradeoffPoint], path: Path) -> None:
    """Write two panels over the bound in nats: the expected TV, and the expected error of each secret.

    Settings beyond the cap stand at the bound they would have without it, in the shaded region.

    Raises:
        QuantextError: as `check_plot_path`, or where the file cannot be written.
    """
    check_plot_path(path)
    with styled():
        figure = draw_tradeoff(points)
        try:
            figure.savefig(path)
        except OSError as error:
            raise QuantextError(f"{path}: cannot be written ({error.strerror})") from None


def draw_tradeoff(points: Sequence[TradeoffPoint]) -> Figure:
    """The figure itself; `points` are those of `tradeoff`, at least one."""
    from matplotlib.figure import Figure

    titles = list(points[0].expected_error)
    figure = Figure(figsize=(11, 5) if titles else (7, 5))
    distance, *rest = figure.subplots(1, 2 if titles else 1, squeeze=False)[0]
    distance.set_title("Distance of the release: lower is nearer")
    distance.set_ylabel("expected TV from the private joint")
    _curves(distance, points, [point.expected_tv for point in points], "-", named=True)
    for error in rest:
        error.set_title("Error on the secret: higher hides better")
        error.set_ylabel("expected |released share − true share|")
        for title, line in zip(titles, cycle(LINES), strict=False):
            _curves(error, points, [point.expected_error[title] for point in points], line)
            error.plot([], [], color="0.3", linestyle=line, label=f"secret: {_shortened(title)}")
    for axes in (distance, *rest):
        _nats_axis(axes, max(point.leakage.cap_nats for point in points))
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def _shortened(title: str) -> str:
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1] + "…"


def _curves(
    axes: Axes, points: Sequence[TradeoffPoint], values: Sequence[float], line: str, *, named: bool = False
) -> None:
    """A curve for each rule and pool."""
    for rule, mark in marks((point.rule for point in points), COLOURS).items():
        curve = [(p.uncapped_nats, value) for p, value in zip(points, values, strict=True) if p.rule == rule]
        axes.plot(*zip(*curve, strict=True), linestyle=line, **mark, label=rule if named else None)


def _nats_axis(axes: Axes, cap: float) -> None:
    axes.axvspan(cap, BEYOND_CAP * cap, color="0.9", zorder=0)
    middle = (1 + BEYOND_CAP) / 2 * cap
    axes.text(middle, 0.98, "vacuous", ha="center", va="top", transform=axes.get_xaxis_transform())
    axes.set(xlim=(-0.02 * cap, BEYOND_CAP * cap), xlabel="bound (nats)")
    axes.set_ylim(bottom=0)


Cells = tuple[str, ...]


def tables(points: Sequence[TradeoffPoint]) -> list[tuple[str, Cells, list[Cells]]]:
    """Title, columns and rows for a terminal, a table for each rule and pool.

    A mean stands with its standard error over the splits. The last table says of the first rule what `keep`
    buys: the share of the released texts whose labels must change where κ of the records are released.
    """
    titles = list(points[0].expected_error) if points else []
    columns = ("nats", "bound", "chance at most", "TV", *(f"error: {title}" for title in titles))
    rules: dict[str, list[TradeoffPoint]] = {}
    for point in points:
        rules.setdefault(point.rule, []).append(point)
    drawn: list[tuple[str, Cells, list[Cells]]] = []
    for rule, curve in rules.items():
        rows = [_row(point) for point in curve]
        if curve[0].gamma_over_k is None:
            drawn.append((rule, columns, rows))
        else:
            ratios = [f"{point.gamma_over_k:.3g}" for point in curve]
            rows = [(ratio, *row) for ratio, row in zip(ratios, rows, strict=True)]
            drawn.append((rule, ("γ/k", *columns), rows))
    for rule, curve in list(rules.items())[:1]:
        head = ("nats", *(f"κ {keep:g}" for keep in curve[0].changed))
        shares = [
            (f"{point.budget_nats:.2f}", *(f"{s:.1%}" for s in point.changed.values())) for point in curve
        ]
        drawn.append((f"texts whose labels must change, by keep (κ): {rule}", head, shares))
    return drawn


def _row(point: TradeoffPoint) -> Cells:
    factor = "vacuous" if point.leakage.vacuous else f"× {point.leakage.success_factor:,.1f}"
    errors = zip(point.expected_error.values(), point.error_standard_error.values(), strict=True)
    return (
        f"{point.budget_nats:.2f}",
        f"{point.bound_nats:.2f}",
        factor,
        f"{point.expected_tv:.3f} ± {point.tv_standard_error:.3f}",
        *(f"{mean:.3f} ± {error:.3f}" for mean, error in errors),
    )
