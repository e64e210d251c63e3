"""The figures of an experiment, as PNG and SVG: the paper's Figures 3 to 5 and Table I, and two of ours."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quantext_graph.experiments import drawing
from quantext_graph.experiments.drawing import COLOURS, ERROR, MARKERS, UTILITY, attack_name
from quantext_graph.experiments.results import Result
from quantext_graph.experiments.tables import Agreement, Point, agreements, questions
from quantext_graph.spec.errors import QuantextError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MISSING = "figures need matplotlib; pip install 'quantext-graph[plot]'"
RATIOS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
TICKS = (0.1, 0.3, 0.5, 1, 3, 10, 30, 100)


def draw_figures(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write the figures that the results allow; returns the PNG files.

    Raises:
        QuantextError: where matplotlib is missing, or the folder cannot be written.
    """
    if find_spec("matplotlib") is None:
        raise QuantextError(MISSING)
    from matplotlib import style

    with style.context("default"):  # what the process has set may not fit the panels
        drawn = _figures(results)
        try:
            folder.mkdir(exist_ok=True)
            return [drawing.save(figure, folder / name) for name, figure in drawn.items()]
        except OSError as error:
            raise QuantextError(f"{folder}: figures cannot be written ({error.strerror})") from None


def _figures(results: Sequence[Result]) -> dict[str, Figure]:
    drawn: dict[str, Figure | None] = {}
    for (secret, scenario), rows in questions(results).items():
        title = f"{secret}, {scenario}" if scenario else secret
        name = drawing.slug(title)
        drawn |= {
            f"error_and_utility_{name}": error_and_utility(rows, title),
            f"stability_{name}": stability(rows, title),
            f"relative_error_{name}": relative_error(rows, title),
            f"bound_{name}": at_equal_bound(rows, title),
        }
    found = agreements(results)
    drawn["rank_correlation"] = rank_correlation(found) if found else None
    return {name: figure for name, figure in drawn.items() if figure is not None}


def error_and_utility(results: Sequence[Result], title: str) -> Figure:
    """Attack error over utility, one panel for each attacker (Fig. 3 and 4). Private texts released as
    they are stand apart, at the right, where they do not press the rest together."""
    found = [p for p in drawing.without_corrected(results) if not _fixed_ratio(p)]
    attacks = list(dict.fromkeys((p.attack, p.attacker) for p in found))
    columns = min(2, len(attacks))
    rows = -(-len(attacks) // columns)
    size = (6.4 * columns, 4.2 * rows + 1.3)
    figure, grid = drawing.panels(rows, 2 * columns, size, widths=[5, 1.3] * columns)
    styles = drawing.styles(found)
    names: list[drawing.Name] = []
    for number in range(rows * columns):
        pair = grid[number // columns][2 * (number % columns) :][:2]
        if number < len(attacks):
            some = [p for p in found if (p.attack, p.attacker) == attacks[number]]
            names += _attack_panels(pair[0], pair[1], some, styles)
        else:
            pair[0].set_visible(False)
            pair[1].set_visible(False)
    drawing.legend(figure, styles, guess=True)
    drawing.headline(figure, f"Attack error and utility: {title}", results)
    drawing.write_names(figure, names)
    return figure


def _attack_panels(
    main: Axes, aside: Axes, found: Sequence[Point], styles: dict[str, drawing.Style]
) -> list[drawing.Name]:
    """One attacker: what protects in `main`, private texts as they are in `aside`. Returns the names."""
    names: list[drawing.Name] = []
    for method, style in styles.items():
        curve = [p for p in found if p.method == method]
        if not curve:
            continue
        xs, ys = [p.utility for p in curve], [p.error for p in curve]
        drawing.curve(aside if curve[0].unprotected else main, xs, ys, style)
        names += drawing.ends(main, xs, ys, [drawing.budget_name(p.budget) for p in curve], style[0])
    if found[0].attack != "mechanism-aware":  # there each rule has a prior of its own
        for panel in (main, aside):
            panel.axhline(found[0].prior_error.mean, color="0.45", linestyle=":", linewidth=1.2)
    main.set_title(attack_name(found[0].attack, found[0].attacker), loc="left", fontsize=11)
    main.set_xlabel(UTILITY)
    main.set_ylabel(ERROR)
    main.margins(x=0.12)
    top = max(panel.get_ylim()[1] for panel in (main, aside))
    aside.sharey(main)
    main.set_ylim(-0.03 * top, 1.08 * top)  # a marker at 0 is seen whole, and a name at the top
    aside.tick_params(labelleft=False)
    aside.margins(x=0.35)
    return names


def _fixed_ratio(point: Point) -> bool:
    return "gamma=" in point.budget


def stability(results: Sequence[Result], title: str) -> Figure | None:
    """Error and utility as γ and k grow at a fixed ratio, mean and deviation over repeats (Fig. 5)."""
    found = [p for p in drawing.without_corrected(results) if _fixed_ratio(p)]
    if not found:
        return None
    figure, grid = drawing.panels(1, 2, (11.5, 5.0))
    left, right = grid[0]
    budgets = list(dict.fromkeys(p.budget for p in found))
    readers = list(dict.fromkeys((p.attack, p.attacker) for p in found))
    for number, key in enumerate(readers):
        some = [p for p in found if (p.attack, p.attacker) == key]
        aside = 0.08 * (number - (len(readers) - 1) / 2)
        places = [budgets.index(p.budget) + aside for p in some]
        style = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        drawing.curve(left, places, [p.error for p in some], style, label=attack_name(*key), deviation=True)
    utilities = [next(p for p in found if p.budget == budget).utility for budget in budgets]
    drawing.curve(right, list(range(len(budgets))), utilities, ("0.2", "o"), deviation=True)
    for panel in (left, right):
        panel.set_xticks(range(len(budgets)), [drawing.budget_name(budget) for budget in budgets])
        panel.set_xlabel("γ / k")
        panel.set_xlim(-0.5, len(budgets) - 0.5)
    left.set_ylabel(ERROR)
    left.set_ylim(bottom=0)
    right.set_ylabel(UTILITY)
    right.set_ylim(0, 1)
    drawing.panel_legend(figure, left)
    drawing.headline(figure, f"Stability over (γ, k) at a fixed ratio: {title}", results, drawing.DEVIATION)
    return figure


def relative_error(results: Sequence[Result], title: str) -> Figure | None:
    """Error as a multiple of that of a guess without the release, with 90 % intervals over repeats."""
    found = drawing.without_corrected(results)
    attacks = list(dict.fromkeys((p.attack, p.attacker) for p in found))
    attacks = [key for number, key in enumerate(attacks) if number == 0 or key[0] == "mechanism-aware"]
    releases = list(dict.fromkeys((p.method, p.budget) for p in found))
    measured = {(p.method, p.budget, p.attack, p.attacker): p.relative() for p in found}
    figure, grid = drawing.panels(1, 1, (9.5, 0.34 * len(releases) + 2.4))
    panel = grid[0][0]
    for number, key in enumerate(attacks):
        aside = 0.22 * (number - (len(attacks) - 1) / 2)
        ratios = [(place, measured.get((*name, *key))) for place, name in enumerate(releases)]
        known = [(place + aside, ratio) for place, ratio in ratios if ratio is not None]
        panel.errorbar(
            [max(middle, FLOOR) for _, (middle, _, _) in known],
            [place for place, _ in known],
            xerr=np.array([_reach(*ratio) for _, ratio in known]).reshape(-1, 2).T,
            color=COLOURS[number],
            marker=MARKERS[number],
            markersize=5,
            capsize=2.5,
            elinewidth=0.8,
            linestyle="none",
            label=attack_name(*key),
        )
    if not any(measured.values()):
        return None
    panel.axvline(1, color="0.3", linewidth=1)
    panel.set_xscale("log")
    low, high = FLOOR / 1.3, max(2.0, panel.get_xlim()[1])
    ticks = [tick for tick in RATIOS if low < tick < high]
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    panel.set_xlim(low, high)
    names = [f"{method}  {drawing.budget_name(budget)}" for method, budget in releases]
    panel.set_yticks(range(len(releases)), names)
    panel.invert_yaxis()
    panel.set_xlabel(
        f"error / error of a guess without the release (log scale; 1: nothing learned; at {FLOOR:g}: or less)"
    )
    drawing.panel_legend(figure, panel)
    drawing.headline(
        figure, f"Error relative to a guess without the release: {title}", results, drawing.INTERVAL
    )
    return figure


FLOOR = 0.02
"""The least ratio that is drawn; a raw release has none."""


def _reach(middle: float, low: float, high: float) -> tuple[float, float]:
    middle = max(middle, FLOOR)
    return max(0.0, middle - max(low, FLOOR)), max(0.0, high - middle)


def at_equal_bound(results: Sequence[Result], title: str) -> Figure | None:
    """Utility, and the error of an attacker who knows the mechanism, over the limit on the leakage."""
    shown = [p for p in drawing.without_corrected(results) if not _fixed_ratio(p)]
    found = [p for p in shown if p.attack == "mechanism-aware"]
    limits = [p.mechanism_nats for p in found if p.mechanism_nats]
    if not limits:
        return None
    cap = max(row.bound_nats for p in found for row in p.rows)
    end = 2.2 * max(cap, *limits)
    figure, grid = drawing.panels(1, 2, (12, 5.4))
    left, right = grid[0]
    methods = {p.method for p in found}
    styles = {name: style for name, style in drawing.styles(shown).items() if name in methods}
    for method, style in styles.items():
        some = sorted((p for p in found if p.method == method), key=lambda p: p.mechanism_nats or end)
        xs = [p.mechanism_nats or end for p in some]
        line = "-" if all(p.mechanism_nats for p in some) else "none"
        drawing.curve(left, xs, [p.utility for p in some], style, line=line)
        drawing.curve(right, xs, [p.error for p in some], style, line=line)
    for panel in (left, right):
        _nats_axis(panel, min(limits) / 1.6, cap, end)
    left.set_ylabel(UTILITY)
    left.set_title("Utility: higher is better", loc="left", fontsize=11)
    right.set_ylabel(ERROR)
    right.set_title("Mechanism-aware attack: higher hides better", loc="left", fontsize=11)
    drawing.legend(figure, styles)
    drawing.headline(figure, f"What a bound buys: {title}", results)
    return figure


def _nats_axis(panel: Axes, low: float, cap: float, end: float) -> None:
    """Nats on a log scale; beyond the cap a limit is vacuous, and at `end` stand methods without one."""
    panel.set_xscale("log")
    panel.set_xlim(low, 1.5 * end)
    panel.axvspan(cap, 1.5 * end, color="0.93", zorder=0)
    panel.text(
        1.08 * cap, 0.99, "vacuous", va="top", fontsize=9, color="0.3", transform=panel.get_xaxis_transform()
    )
    ticks = [tick for tick in TICKS if low < tick < end / 1.5]
    panel.set_xticks([*ticks, end], [*(f"{tick:g}" for tick in ticks), "none"])
    panel.minorticks_off()
    panel.set_xlabel("limit on the leakage (nats, log scale)")


def rank_correlation(found: Sequence[Agreement]) -> Figure:
    """Spearman's ρ between attackers as a table (Table I)."""
    pairs = list(dict.fromkeys((a.first, a.second) for a in found))
    asked = list(dict.fromkeys((a.secret, a.scenario) for a in found))
    figure, grid = drawing.panels(1, 1, (4.5 + 1.9 * len(asked), 1.9 + 0.5 * len(pairs)))
    panel = grid[0][0]
    values = np.full((len(pairs), len(asked)), np.nan)
    for a in found:
        values[pairs.index((a.first, a.second)), asked.index((a.secret, a.scenario))] = a.rho
    image = panel.imshow(values, cmap="cividis", vmin=-1, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            colour = "black" if value > 0.2 else "white"
            panel.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
    panel.set_xticks(range(len(asked)), ["\n".join(filter(None, key)) for key in asked], parse_math=False)
    panel.set_yticks(range(len(pairs)), [f"{one} – {other}" for one, other in pairs])
    panel.grid(visible=False)
    figure.colorbar(image, ax=panel, label="Spearman's ρ")
    count = max(a.methods for a in found)
    figure.suptitle(f"Do two attackers rank {count} releases alike?", x=0.01, ha="left", fontsize=12)
    return figure
