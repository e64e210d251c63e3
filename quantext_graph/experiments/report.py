"""An experiment from file to folder: run it, write tables and figures, say what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quantext_graph.experiments.figures import draw_figures
from quantext_graph.experiments.plan import Experiment
from quantext_graph.experiments.results import Result, tidy
from quantext_graph.experiments.runner import Progress, run_experiment
from quantext_graph.experiments.tables import overview, write_tables
from quantext_graph.spec.errors import QuantextError

Table = tuple[str, tuple[str, ...], Sequence[tuple[str, ...]]]


@dataclass(frozen=True)
class Report:
    """What a person is told: tables, warnings, and lines; `failed` where a method gave no result."""

    tables: Sequence[Table]
    warnings: Sequence[str]
    lines: Sequence[str]
    failed: bool


def run_and_report(
    experiment: Experiment, folder: Path, *, simulate: bool, progress: Progress = lambda _: None
) -> Report:
    """Run an experiment and write `results.csv`, `summary.csv`, `rank_correlation.csv` and `figures/`.

    Raises:
        QuantextError: as `run_experiment`, or where no method gave a result.
    """
    outcome = run_experiment(experiment, folder, simulate=simulate, progress=progress)
    warnings = [f"left out: {reason}" for reason in outcome.left_out]
    warnings += [f"{f.method} {f.budget}: {f.reason}".replace(" :", ":") for f in outcome.failures]
    if not outcome.results:
        raise QuantextError(f"{folder}: no method gave a result; " + "; ".join(warnings))
    found = tidy(outcome.results)
    write_tables(found, folder)
    lines = list(_promises(outcome.results))
    lines += [f"Results: {folder / 'results.csv'} ({'simulated rewriter' if simulate else 'real models'})"]
    try:
        drawn = draw_figures(found, folder / "figures")
        lines.append(f"Figures: {len(drawn)} in {folder / 'figures'}, as PNG and SVG")
    except QuantextError as error:
        warnings.append(str(error))
    if outcome.reused:
        lines.append(f"{outcome.reused} releases were there already")
    return Report(list(overview(found)), warnings, lines, bool(outcome.failures))


def _promises(results: Sequence[Result]) -> Iterator[str]:
    """What each method promises at each budget, and where its label proportions come from."""
    for (method, budget), row in {result.point: result for result in results}.items():
        yield f"{method} {budget}".strip() + f": {row.guarantee}; label proportions: {row.label_source}"
