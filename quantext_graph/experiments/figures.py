"""The figures of an experiment, as PNG and SVG: the paper's Figures 3 to 5 and Table I, and two of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quantext_graph.audit.attack_kinds import attack_kind
from quantext_graph.audit.mechanism_aware import MechanismAware
from quantext_graph.experiments import drawing
from quantext_graph.experiments.drawing import ERROR, UTILITY, Mark, attack_name
from quantext_graph.experiments.tables import (
    ATTACKER,
    QUESTION,
    RELEASE,
    agreements,
    points,
    questions,
    relative,
    shown,
)
from quantext_graph.mechanism.figure_style import marks, styled
from quantext_graph.spec.errors import QuantextError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame, Series

RATIOS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
TICKS = (0.1, 0.3, 0.5, 1, 3, 10, 30, 100)

FLOOR = 0.02
"""The least ratio that is drawn; a raw release has none."""


def draw_figures(results: DataFrame, folder: Path) -> list[Path]:
    """Write the figures that the results allow; returns the PNG files.

    Raises:
        QuantextError: where matplotlib is missing, or the folder cannot be written.
    """
    with styled():
        drawn = _figures(results)
        try:
            folder.mkdir(exist_ok=True)
            for name, figure in drawn.items():
                for suffix in ("svg", "png"):
                    figure.savefig(folder / f"{name}.{suffix}")
        except OSError as error:
            raise QuantextError(f"{folder}: figures cannot be written ({error.strerror})") from None
        return [folder / f"{name}.png" for name in drawn]


def _figures(results: DataFrame) -> dict[str, Figure]:
    drawn: dict[str, Figure | None] = {}
    for title, rows in questions(results):
        name = drawing.slug(title)
        drawn |= {
            f"error_and_utility_{name}": error_and_utility(rows, title),
            f"stability_{name}": stability(rows, title),
            f"relative_error_{name}": relative_error(rows, title),
            f"bound_{name}": at_equal_bound(rows, title),
        }
    drawn["rank_correlation"] = rank_correlation(agreements(results))
    return {name: figure for name, figure in drawn.items() if figure is not None}


def _fixed_ratio(found: DataFrame) -> Series:
    """Which points are of methods whose γ and k grow together; they have a figure of their own."""
    return found["budget"].str.contains("gamma=")


def error_and_utility(rows: DataFrame, title: str) -> Figure:
    """Attack error over utility, one panel for each attacker (Fig. 3 and 4). Private texts released as
    they are stand apart, at the right, where they do not press the rest together."""
    found = shown(points(rows))
    found = found[~_fixed_ratio(found)]
    marked = marks(found["method"])
    attacks = list(found.groupby(ATTACKER, sort=False))
    columns = min(2, len(attacks))
    height = -(-len(attacks) // columns)
    size = (6.4 * columns, 4.2 * height + 1.3)
    figure, grid = drawing.panels(height, 2 * columns, size, width_ratios=[5, 1.3] * columns)
    pairs = grid.reshape(-1, 2)
    for (main, aside), ((attack, attacker), some) in zip(pairs, attacks, strict=False):
        main.set(title=attack_name(attack, attacker), xlabel=UTILITY, ylabel=ERROR)
        _attack_panels(main, aside, some, marked)
    for panel in pairs[len(attacks) :].flat:
        panel.set_visible(False)
    drawing.legend(figure, pairs[0][0], marked, guess=True)
    drawing.headline(figure, f"Attack error and utility: {title}", rows)
    drawing.part_names(figure)
    return figure


def _attack_panels(main: Axes, aside: Axes, found: DataFrame, marked: dict[str, Mark]) -> None:
    """One attacker: what protects in `main`, private texts as they are in `aside`."""
    for method, curve in found.groupby("method", sort=False):
        panel = aside if curve["unprotected"].iloc[0] else main
        drawing.curve(panel, curve, "utility", "error", marked[method])
        drawing.name_ends(panel, curve, "utility", "error", marked[method])
    kind = attack_kind(found["attack"].iloc[0])
    if kind is None or "draw" not in kind.needs:  # else each rule has a prior of its own
        for panel in (main, aside):
            panel.axhline(found["prior_error"].iloc[0], color="0.45", linestyle=":", linewidth=1.2)
    main.margins(x=0.12)
    aside.margins(x=0.35)
    top = max(panel.get_ylim()[1] for panel in (main, aside))
    aside.sharey(main)
    main.set_ylim(-0.03 * top, 1.08 * top)  # a marker at 0 is seen whole, and a name at the top
    aside.tick_params(labelleft=False)


def stability(rows: DataFrame, title: str) -> Figure | None:
    """Error and utility as γ and k grow at a fixed ratio, mean and deviation over repeats (Fig. 5)."""
    found = shown(points(rows))
    found = found[_fixed_ratio(found)]
    if found.empty:
        return None
    budgets = list(found["budget"].unique())
    found = found.assign(place=found["budget"].map(budgets.index).astype(float))
    figure, ((left, right),) = drawing.panels(1, 2, (11.5, 5.0))
    readers = {attack_name(*key): some for key, some in found.groupby(ATTACKER, sort=False)}
    for number, (name, mark) in enumerate(marks(readers).items()):
        aside = 0.08 * (number - (len(readers) - 1) / 2)
        some = readers[name].assign(place=readers[name]["place"] + aside)
        drawing.curve(left, some, "place", "error", mark, bars="sd", label=name)
    once = found.drop_duplicates("budget")
    drawing.curve(right, once, "place", "utility", {"color": "0.2", "marker": "o"}, bars="sd")
    for panel in (left, right):
        panel.set_xticks(range(len(budgets)), [drawing.budget_name(budget) for budget in budgets])
        panel.set(xlabel="γ / k", xlim=(-0.5, len(budgets) - 0.5))
    left.set_ylabel(ERROR)
    left.set_ylim(bottom=0)
    right.set(ylabel=UTILITY, ylim=(0, 1))
    figure.legend(loc="outside lower center", ncols=2)
    drawing.headline(figure, f"Stability over (γ, k) at a fixed ratio: {title}", rows, "sd")
    return figure


def relative_error(rows: DataFrame, title: str) -> Figure | None:
    """Error as a multiple of that of a guess without the release, with 90 % intervals over repeats: of the
    first attacker, and of the one who knows the mechanism."""
    found = shown(relative(rows))
    if found.empty:
        return None
    releases = list(points(rows).groupby(RELEASE, sort=False).groups)
    attacks = {attack_name(*key): some for key, some in found.groupby(ATTACKER, sort=False)}
    asked = list(dict.fromkeys([next(iter(attacks)), MechanismAware.name]))
    figure, ((panel,),) = drawing.panels(1, 1, (9.5, 0.34 * len(releases) + 2.4))
    for number, (name, mark) in enumerate(marks(name for name in asked if name in attacks).items()):
        some = attacks[name]
        place = [releases.index(tuple(key)) for key in some[RELEASE].itertuples(index=False)]
        low, middle, high = (some[column].clip(lower=FLOOR) for column in ("low", "middle", "high"))
        panel.errorbar(
            middle,
            np.array(place) + 0.22 * (number - 0.5) * (len(asked) > 1),
            xerr=np.clip([middle - low, high - middle], 0, None),
            elinewidth=0.8,
            linestyle="none",
            label=name,
            **mark,
        )
    panel.axvline(1, color="0.3", linewidth=1)
    panel.set_xscale("log")
    low, high = FLOOR / 1.3, max(2.0, panel.get_xlim()[1])
    _log_ticks(panel, {tick: f"{tick:g}" for tick in RATIOS if low < tick < high})
    panel.set_xlim(low, high)
    names = [f"{method}  {drawing.budget_name(budget)}" for method, budget in releases]
    panel.set_yticks(range(len(releases)), names)
    panel.invert_yaxis()
    panel.set_xlabel(
        f"error / error of a guess without the release (log scale; 1: nothing learned; at {FLOOR:g}: or less)"
    )
    figure.legend(loc="outside lower center", ncols=2)
    drawing.headline(figure, f"Error relative to a guess without the release: {title}", rows, "interval")
    return figure


def _log_ticks(panel: Axes, ticks: dict[float, str]) -> None:
    panel.set_xscale("log")
    panel.set_xticks(list(ticks), list(ticks.values()))
    panel.minorticks_off()


def at_equal_bound(rows: DataFrame, title: str) -> Figure | None:
    """Utility, and the error of an attacker who knows the mechanism, over the limit on the leakage."""
    everyone = shown(points(rows))
    everyone = everyone[~_fixed_ratio(everyone)]
    found = everyone[everyone["attack"] == MechanismAware.name]
    limits = found["mechanism_nats"][found["mechanism_nats"] > 0]
    if limits.empty:
        return None
    cap, low = found["bound_nats"].max(), limits.min() / 1.6
    end = 2.2 * max(cap, limits.max())  # where methods without a limit stand
    limited = found["mechanism_nats"].notna()
    found = found.assign(limited=limited, nats=found["mechanism_nats"].clip(lower=low).fillna(end))
    figure, ((left, right),) = drawing.panels(1, 2, (12, 5.4))
    marked = {name: mark for name, mark in marks(everyone["method"]).items() if name in set(found["method"])}
    for method, some in found.sort_values("nats", kind="stable").groupby("method", sort=False):
        line = "-" if some["limited"].all() else "none"
        for panel, y in ((left, "utility"), (right, "error")):
            drawing.curve(panel, some, "nats", y, marked[method], linestyle=line)
    for panel in (left, right):
        panel.axvspan(cap, 1.5 * end, color="0.93", zorder=0)
        style = {"va": "top", "fontsize": 9, "color": "0.3", "transform": panel.get_xaxis_transform()}
        panel.text(1.08 * cap, 0.99, "vacuous", **style)
        _log_ticks(panel, {t: f"{t:g}" for t in TICKS if low < t < end / 1.5} | {end: "none"})
        panel.set(xlim=(low, 1.5 * end), xlabel="limit on the leakage (nats, log scale)")
    left.set(ylabel=UTILITY, title="Utility: higher is better")
    right.set(ylabel=ERROR, title="Mechanism-aware attack: higher hides better")
    drawing.legend(figure, left, marked)
    drawing.headline(figure, f"What a bound buys: {title}", rows)
    return figure


def rank_correlation(found: DataFrame) -> Figure | None:
    """Spearman's ρ between attackers as a table (Table I)."""
    if found.empty:
        return None
    table = found.pivot_table("spearman_rho", ["attacker", "other attacker"], QUESTION, sort=False)
    figure, ((panel,),) = drawing.panels(1, 1, (4.5 + 1.9 * table.shape[1], 1.9 + 0.5 * len(table)))
    image = panel.imshow(table, cmap="cividis", vmin=-1, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(table.to_numpy()):
        if not np.isnan(value):
            colour = "black" if value > 0.2 else "white"
            panel.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
    panel.set_xticks(range(table.shape[1]), ["\n".join(filter(None, key)) for key in table])
    panel.set_yticks(range(len(table)), [" – ".join(pair) for pair in table.index])
    panel.grid(visible=False)
    figure.colorbar(image, ax=panel, label="Spearman's ρ")
    title = f"Do two attackers rank {found['methods'].max()} releases alike?"
    figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    return figure
