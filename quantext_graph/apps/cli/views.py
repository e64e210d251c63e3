"""What commands of more than one step show and ask on their way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quantext_graph.apps.cli import terminal
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Spec

if TYPE_CHECKING:
    from quantext_graph.release.figures import NamedPair


def show_tradeoff(spec: Spec, as_json: bool, plot: Path | None, records: int | None) -> None:
    """The table of `check --tradeoff`, as JSON or as a picture too."""
    from quantext_graph.mechanism.tradeoff_views import check_plot_path, plot_tradeoff, tables
    from quantext_graph.release.check import check_tradeoff

    if plot is not None:
        check_plot_path(plot)
    with terminal.progress_bars() as bars:
        points = check_tradeoff(spec, n=records, progress=bars)
    if plot is not None:
        plot_tradeoff(points, plot)
    if as_json:
        print(json.dumps([point.to_json() for point in points], indent=2))
        return
    terminal.out.print("What each budget buys, estimated on the auxiliary set alone (mean ± standard error).")
    for title, columns, rows in tables(points):
        terminal.table(title, columns, rows)


def drive(run: Any, yes: bool, samples: int = 0) -> Path | None:
    """Run to the gate, show the figures, ask, publish. Returns the release folder."""
    from quantext_graph.release.run import stoppable

    with run, stoppable(run.control, terminal.warn):
        with terminal.progress_bars() as bars:
            outcome = run.go(bars)
        _show_report(run.workspace, samples)
        target = run.output
        answer = True if yes else terminal.agreed(f"Publish to {target}?")
        if answer is None:
            terminal.out.print(f"Waiting at the gate. Publish: quantext publish {run.workspace} --yes")
            return None
        outcome = run.answer(answer)
    if not answer:
        terminal.out.print(f"Not published; all is kept in {run.workspace}")
        return None
    published = Path(outcome.progress["release"])
    terminal.out.print(f"Published: {published}")
    return published


def _show_report(workspace: Path, samples: int) -> None:
    from quantext_graph.audit.auditing import lines_at_gate
    from quantext_graph.release.figures import gate_lines, sample_pairs

    show_pairs(sample_pairs(workspace, samples))
    terminal.lines(gate_lines(workspace))
    terminal.lines(lines_at_gate(workspace, lambda step: terminal.err.print(f"audit: {step}"), anew=True))


def show_pairs(pairs: Sequence[NamedPair]) -> None:
    from quantext_graph.release.figures import pair_lines

    for pair in pairs:
        for line in pair_lines(pair):
            terminal.out.print(line, style=None if line.startswith(" ") else "bold", markup=False)


def confirm_spending(spec: Spec, yes: bool) -> None:
    """Running again is another release and adds to the ledger; ask where the sum passes the cap."""
    from quantext_graph.release.check import check as look

    found = look(spec)
    for warning in found.warnings:
        terminal.warn(warning)
    for line in found.spending.lines():
        terminal.err.print(line, markup=False)
    if found.spending.over_cap and not yes and terminal.agreed("Release all the same?") is not True:
        raise QuantextError(f"{spec.data.path}: not released; answer y, or give --yes")
