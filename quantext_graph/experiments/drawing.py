"""What the figures of an experiment share: curves with error bars, names of points, legends, headlines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from quantext_graph.mechanism.figure_style import MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from pandas import DataFrame

UTILITY = "utility (aggregate, 0 to 1)"
ERROR = "attack error |estimate − true share|"
SHORT = {"ratio": "γ/k", "epsilon": "ε", "sigma": "σ"}
BARS = {"se": "standard error", "sd": "standard deviation", "interval": "90 % interval over repeats"}

Mark = dict[str, Any]
Place = tuple[int, int, Literal["left", "right"]]


def panels(rows: int, columns: int, size: tuple[float, float], **layout: Any) -> tuple[Figure, Any]:
    """A figure of `size` inches and its panels, an array (rows, columns)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size)
    return figure, figure.subplots(rows, columns, squeeze=False, **layout)


def curve(
    panel: Axes, points: DataFrame, x: str, y: str, mark: Mark, *, bars: str = "se", **options: Any
) -> None:
    """The columns `x` and `y` of `points` joined by a line, with `bars` where there are columns of them."""
    reach = {f"{side}err": points.get(f"{name}_{bars}") for side, name in (("x", x), ("y", y))}
    panel.errorbar(points[x], points[y], **reach, elinewidth=0.8, **mark, **options)


def name_ends(panel: Axes, points: DataFrame, x: str, y: str, mark: Mark) -> None:
    """Write the budgets of the first and the last point of a curve beside them."""
    from matplotlib.patheffects import withStroke

    halo = withStroke(linewidth=2.5, foreground="white")
    for _, point in points.iloc[[0, -1][: len(points)]].iterrows():
        if point["budget"]:
            panel.annotate(
                budget_name(point["budget"]),
                (point[x], point[y]),
                xytext=(0, 0),  # `part_names` has the last word
                textcoords="offset points",
                color=mark["color"],
                fontsize=8,
                path_effects=[halo],
                zorder=5,
            )


PLACES: Sequence[Place] = (
    *((6, 5, "left"), (-6, 5, "right"), (6, -13, "left"), (-6, -13, "right")),
    *((6, 17, "left"), (-6, 17, "right"), (6, -25, "left"), (-6, -25, "right"), (16, -4, "left")),
)
"""Where a name may stand: points right of and above its point, and how it is aligned."""


def part_names(figure: Figure) -> None:
    """Move each name of a point to where it meets fewest other names and points: none, if it can."""
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()  # the layout is known from here on
    taken = [
        Bbox.from_bounds(x - 4, y - 4, 8, 8)
        for panel in figure.axes
        for line in panel.lines
        if line.get_marker() in [*MARKERS]
        for x, y in line.get_transform().transform(line.get_xydata())
    ]
    for note in (note for panel in figure.axes for note in panel.texts):
        best = min(PLACES, key=partial(_met, note, taken))
        _met(note, taken, best)
        taken.append(note.get_window_extent())


def _met(note: Text, taken: Sequence[Any], place: Place) -> int:
    """Put the name there; how many others it meets."""
    note.set(x=place[0], y=place[1], ha=place[2])
    return int(note.get_window_extent().count_overlaps(taken))


def budget_name(budget: str) -> str:
    """A budget as a figure says it: γ/k = 4, ε = 1."""
    parts = dict(part.split("=") for part in budget.split())
    if list(parts) == ["gamma", "k"]:
        return f"{parts['gamma']}/{parts['k']}"
    said = (f"{v} nats" if key == "nats" else f"{SHORT.get(key, key)} = {v}" for key, v in parts.items())
    return ", ".join(said)


def attack_name(attack: str, attacker: str) -> str:
    return f"{attack}: {attacker}" if attacker else attack


def legend(figure: Figure, panel: Axes, marked: dict[str, Mark], *, guess: bool = False) -> None:
    """Name the methods below the panels; `guess` adds the dotted line."""
    handles = [panel.plot([], [], label=method, **mark)[0] for method, mark in marked.items()]
    if guess:
        handles += panel.plot([], [], color="0.45", linestyle=":", label="guess without the release")
    figure.legend(handles=handles, loc="outside lower center", ncols=3)


def headline(figure: Figure, title: str, rows: DataFrame, bars: str = "se") -> None:
    """What is seen, of how many texts and repeats, simulated or written by models."""
    first, repeats = rows.iloc[0], rows["repeat"].nunique()
    how = "simulated perfect rewriter" if first["texts"] == "simulation" else "real models"
    told = f"{how}, n = {first['n']:,}, "
    told += f"{repeats} repeats; bars: {BARS[bars]}" if repeats > 1 else "1 repeat"
    figure.suptitle(f"{title}\n", x=0.01, ha="left", fontsize=12)
    figure.text(0.01, 0.985, f"\n{told}", ha="left", va="top", fontsize=9, color="0.35")


def slug(title: str) -> str:
    return re.sub(r"\W+", "_", title.lower()).strip("_")
