"""How the figures of an experiment are drawn: panels, one style a method, curves with error bars, legends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from quantext_graph.experiments.results import Result
from quantext_graph.experiments.tables import Mean, Point, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.transforms import Bbox

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, which colour-blind readers tell apart; one colour and marker a method."""

MARKERS = "osD^vPX"
UTILITY = "utility (aggregate, 0 to 1)"
ERROR = "attack error |estimate − true share|"
SHORT = {"ratio": "γ/k", "nats": "nats", "epsilon": "ε", "sigma": "σ", "noise": "noise"}

HorizontalAlignment = Literal["left", "center", "right"]
Style = tuple[str, str]
Reading = Callable[[Point], Mean]


def panels(
    rows: int, columns: int, size: tuple[float, float], *, widths: Sequence[float] | None = None
) -> tuple[Figure, list[list[Axes]]]:
    """A figure of `size` inches and its panels, row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, width_ratios=widths)
    for panel in grid.flat:
        panel.grid(visible=True, color="0.9")
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    return figure, [list(row) for row in grid]


def styles(found: Iterable[Point]) -> dict[str, Style]:
    """Colour and marker of each method."""
    methods = dict.fromkeys(point.method for point in found)
    return {
        method: (COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)])
        for number, method in enumerate(methods)
    }


def curve(
    panel: Axes,
    xs: Sequence[Mean | float],
    ys: Sequence[Mean],
    style: Style,
    *,
    line: str = "-",
    label: str = "",
    deviation: bool = False,
) -> None:
    """Means joined by a line, with the standard error to either side, or the standard deviation."""
    colour, marker = style
    across = [x for x in xs if isinstance(x, Mean)]
    panel.errorbar(
        [x.mean if isinstance(x, Mean) else x for x in xs],
        [y.mean for y in ys],
        xerr=_bars(across, deviation) if across else None,
        yerr=_bars(ys, deviation),
        color=colour,
        marker=marker,
        markersize=5,
        capsize=2.5,
        linewidth=1.3,
        elinewidth=0.8,
        linestyle=line,
        label=label or None,
    )


def _bars(means: Sequence[Mean], deviation: bool) -> list[float] | None:
    """None where there is one repeat."""
    bars = [m.sd if deviation else m.se for m in means]
    return None if any(np.isnan(bars)) else bars


@dataclass(frozen=True)
class Name:
    """What a point of a panel is called; "" where it is only in the way of other names."""

    panel: Axes
    place: tuple[float, float]
    text: str
    colour: str


def ends(
    panel: Axes, xs: Sequence[Mean], ys: Sequence[Mean], texts: Sequence[str], colour: str
) -> list[Name]:
    """The points of a curve, of which the first and the last have their names."""
    named = {0, len(xs) - 1}
    places = [(x.mean, y.mean) for x, y in zip(xs, ys, strict=True)]
    return [Name(panel, place, texts[i] if i in named else "", colour) for i, place in enumerate(places)]


_ASIDE: tuple[tuple[int, int, HorizontalAlignment], ...] = (
    *((6, 5, "left"), (-6, 5, "right"), (6, -13, "left"), (-6, -13, "right")),
    *((6, 17, "left"), (-6, 17, "right"), (6, -25, "left"), (-6, -25, "right"), (16, -4, "left")),
)
"""Where a name may stand: points right of and above its place, and how it is aligned."""


def write_names(figure: Figure, names: Sequence[Name]) -> None:
    """Write each name beside its point, where it meets fewest other names and points: none, if it can."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    figure.draw_without_rendering()  # the layout is known from here on
    taken = [_around(name) for name in names]
    for name in (name for name in names if name.text):
        written = []
        for dx, dy, side in _ASIDE:
            note = name.panel.annotate(
                name.text,
                name.place,
                xytext=(dx, dy),
                textcoords="offset points",
                ha=side,
                color=name.colour,
                fontsize=8,
                path_effects=halo,
                zorder=5,
            )
            box = note.get_window_extent()
            written.append((sum(box.overlaps(other) for other in taken), note, box))
            if written[-1][0] == 0:
                break
        _, best, box = min(written, key=lambda each: each[0])
        for _, note, _ in written:
            if note is not best:
                note.remove()
        taken.append(box)


def _around(name: Name) -> Bbox:
    """The box of a point's marker on the page."""
    from matplotlib.transforms import Bbox

    x, y = name.panel.transData.transform(name.place)
    return Bbox([[x - 4, y - 4], [x + 4, y + 4]])


def budget_name(budget: str) -> str:
    """A budget as a figure says it: γ/k = 4, ε = 1."""
    pairs = [part.split("=") for part in budget.split()]
    if [key for key, _ in pairs] == ["gamma", "k"]:
        return f"{pairs[0][1]}/{pairs[1][1]}"
    return ", ".join(
        f"{value} nats" if key == "nats" else f"{SHORT.get(key, key)} = {value}" for key, value in pairs
    )


def legend(figure: Figure, found: dict[str, Style], *, guess: bool = False) -> None:
    """Name the methods below the panels; `guess` adds the dotted line."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker=marker, label=method)
        for method, (colour, marker) in found.items()
    ]
    if guess:
        handles.append(Line2D([], [], color="0.45", linestyle=":", label="guess without the release"))
    plain(figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9))


def panel_legend(figure: Figure, panel: Axes) -> None:
    """The panel's own labels, each once, below it."""
    handles, labels = panel.get_legend_handles_labels()
    first = {label: handle for handle, label in reversed(list(zip(handles, labels, strict=True)))}
    names = sorted(first, key=labels.index)
    plain(
        figure.legend(
            [first[name] for name in names],
            names,
            loc="outside lower center",
            ncols=2,
            frameon=False,
            fontsize=9,
        )
    )


def plain(drawn: Legend) -> None:
    for text in drawn.get_texts():
        text.set_parse_math(False)  # a category may be called "$5 to $10"


STANDARD_ERROR, DEVIATION, INTERVAL = "standard error", "standard deviation", "90 % interval over repeats"


def headline(figure: Figure, title: str, results: Sequence[Result], bars: str = STANDARD_ERROR) -> None:
    """What is seen, of how many texts and repeats, simulated or written by models."""
    first = results[0]
    how = "simulated perfect rewriter" if first.texts == "simulation" else "real models"
    repeats = len({row.repeat for row in results})
    told = f"{how}, n = {first.n:,}, " + (f"{repeats} repeats; bars: {bars}" if repeats > 1 else "1 repeat")
    figure.suptitle(f"{title}\n", x=0.01, ha="left", fontsize=12, parse_math=False)
    figure.text(0.01, 0.985, f"\n{told}", ha="left", va="top", fontsize=9, color="0.35")


def without_corrected(results: Iterable[Result]) -> list[Point]:
    """The points of the attacks that a figure shows."""
    return [p for p in points(results) if p.attack in ("labelling", "mechanism-aware")]


def attack_name(attack: str, attacker: str) -> str:
    return f"{attack}: {attacker}" if attacker else attack


def save(figure: Figure, path: Path) -> Path:
    """Write PNG and SVG; returns the PNG."""
    figure.savefig(path.with_suffix(".svg"))
    figure.savefig(path.with_suffix(".png"), dpi=150)
    return path.with_suffix(".png")


def slug(title: str) -> str:
    return re.sub(r"\W+", "_", title.lower()).strip("_")
