"""How all figures look, in matplotlib's own terms; it is imported when a figure is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import Any

from quantext_graph.spec.errors import QuantextError

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, which colour-blind readers tell apart."""

MARKERS = "osD^vPX"

STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "errorbar.capsize": 2.5,
    "figure.constrained_layout.use": True,
    "grid.color": "0.9",
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 5,
    "savefig.dpi": 150,
    "text.parse_math": False,  # a category may be called "$5 to $10"
}


def styled() -> AbstractContextManager[None]:
    """Figures are drawn and saved in this context, whatever the process has set.

    Raises:
        QuantextError: where matplotlib is missing.
    """
    need_matplotlib()
    from matplotlib import style

    return style.context(["default", STYLE])


def need_matplotlib() -> None:
    """Refuse a figure that could not be drawn.

    Raises:
        QuantextError: where matplotlib is missing.
    """
    if find_spec("matplotlib") is None:
        raise QuantextError("figures need matplotlib; pip install 'quantext-graph[plot]'")


def marks(names: Iterable[str], colours: Sequence[str] = COLOURS) -> dict[str, dict[str, Any]]:
    """Colour and marker of each name."""
    return {
        name: {"color": colours[number % len(colours)], "marker": MARKERS[number % len(MARKERS)]}
        for number, name in enumerate(dict.fromkeys(names))
    }
