"""Runs the cells of an experiment: release, attack, measure. What a cell found is kept, so that a run
that was stopped goes on, and one that asks for more does the new cells alone."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from quantext_graph.audit.attack_kinds import ATTACKS
from quantext_graph.audit.metrics import METRICS
from quantext_graph.experiments.baselines import Released
from quantext_graph.experiments.bench import Bench
from quantext_graph.experiments.measures import measure
from quantext_graph.experiments.plan import Cell, Experiment, cells
from quantext_graph.experiments.results import Result, need_pandas, tidy
from quantext_graph.experiments.splits import Data
from quantext_graph.spec.errors import QuantextError

Progress = Callable[[dict[str, Any]], None]

VERSION = 3
"""Of what a cell keeps; another version is computed anew."""


@dataclass(frozen=True)
class Failure:
    """A cell that gave no result, and why (for people; never a text)."""

    method: str
    budget: str
    reason: str


@dataclass
class Outcome:
    """What a run of the experiment found, and what it left out."""

    folder: Path
    results: list[Result] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    reused: int = 0


def run_experiment(
    experiment: Experiment, folder: Path, *, simulate: bool, progress: Progress = lambda _: None
) -> Outcome:
    """Run what `folder` does not hold yet; write `results.csv` there.

    A method whose package is missing, or that cannot be simulated, is left out with a reason; one that
    fails leaves the results of the others.

    Raises:
        QuantextError: data that cannot be used, no attacker, or one that cannot be had.
    """
    need_pandas()
    data = Data.read(experiment)
    if not simulate and not experiment.attackers:
        raise QuantextError(
            "attackers: none are named; name chat models that read the released texts, or give --simulate"
        )
    _make(folder)
    broken = [*ATTACKS.known().broken.values(), *METRICS.known().broken.values()]
    outcome = Outcome(folder, left_out=broken)
    asked = [cell for cell in cells(experiment) if _can_run(cell, simulate, outcome)]
    with Bench(experiment, data, folder, simulate=simulate, progress=progress) as bench:
        bench.readers  # noqa: B018  (a model that is not there is refused before others are asked)
        for number, cell in enumerate(asked):
            named = f"{cell.entry.title()} {cell.budget_name}".strip()
            progress({"stage": "experiment", "done": number, "total": len(asked), "note": named})
            release, key = _keys(experiment, data, cell, simulate)
            place, work = folder / "cells" / f"{key}.json", folder / "work" / release
            kept = _read(place)
            outcome.reused += kept is not None
            outcome.results += kept if kept is not None else _run(cell, bench, place, work, outcome)
    progress({"stage": "experiment", "done": len(asked), "total": len(asked)})
    tidy(outcome.results).to_csv(folder / "results.csv", index=False, float_format="%.6g")
    return outcome


def _run(cell: Cell, bench: Bench, place: Path, work: Path, outcome: Outcome) -> list[Result]:
    started = time.monotonic()
    try:
        setting = bench.setting(cell)
        with threadpool_limits(1 if bench.simulate else None):
            released: Released = cell.method.release(bench.task(cell, setting, work))
        with threadpool_limits(1):  # matrices this small lose by threads
            results = measure(cell, setting, released, bench, lambda: time.monotonic() - started)
    except QuantextError as error:
        reason = str(error)
    except (ValueError, ArithmeticError, RuntimeError, MemoryError, LookupError, TypeError, OSError) as error:
        if os.environ.get("QUANTEXT_DEBUG"):
            raise
        reason = f"failed ({type(error).__name__}); QUANTEXT_DEBUG=1 shows where"  # a message may hold a text
    else:
        if not bench.simulate:
            work.mkdir(parents=True, exist_ok=True)
            (work / "release.json").write_text(
                json.dumps(_described(cell, released), indent=2), encoding="utf-8"
            )
        _write(place, results)
        return results
    failure = Failure(cell.entry.title(), cell.budget_name, reason)
    if failure not in outcome.failures:
        outcome.failures.append(failure)
    return []


def _described(cell: Cell, released: Released) -> dict[str, Any]:
    """What a method says of its release: guarantee, where its label proportions come from, its figures."""
    return {
        "method": cell.entry.title(),
        "budget": cell.budget_name,
        "repeat": cell.repeat,
        "settings": cell.method.model_dump(),
        "guarantee": released.guarantee.words,
        "label_source": released.label_source,
        "texts": len(released.texts),
        **released.detail,
    }


def _can_run(cell: Cell, simulate: bool, outcome: Outcome) -> bool:
    method = cell.method
    reason = method.missing()
    if not reason and simulate and not method.simulates:
        reason = f"{method.name}: cannot be simulated, since it trains a model; run it without --simulate"
    if reason and reason not in outcome.left_out:
        outcome.left_out.append(reason)
    return not reason


def _keys(experiment: Experiment, data: Data, cell: Cell, simulate: bool) -> tuple[str, str]:
    """Digests of all that a cell's release depends on, and of all that its results do."""
    shares = experiment.split.shares
    parts: dict[str, Any] = {
        "version": VERSION,
        "data": data.digest,
        "split": [experiment.split.private, experiment.split.auxiliary],
        "share": shares[cell.scenario] if shares else None,
        "first": experiment.secrets[0].model_dump(),
        "secrets": [secret.model_dump() for secret in cell.secrets],
        "attributes": [attribute.model_dump() for attribute in experiment.attributes],
        "seed": experiment.seed,
        "repeat": cell.repeat,
        "method": [cell.entry.method, cell.entry.title(), cell.budget_name, cell.method.model_dump()],
        "embedding": experiment.models.embedding,
        "simulate": simulate,
    }
    if not simulate:
        limits = experiment.limits.model_dump(include={"attempts", "candidates"})
        parts["models"] = [experiment.models.model_dump(), limits]
    release = _digest(parts)
    if not simulate:
        parts["attackers"] = [attacker.model_dump() for attacker in experiment.attackers]
    return release, _digest(parts)


def _digest(parts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _make(folder: Path) -> None:
    """The folder of an experiment holds private texts: for its owner alone."""
    try:
        (folder / "cells").mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise QuantextError(
            f"{folder}: cannot be written ({error.strerror}); name another with --out"
        ) from None


def _read(place: Path) -> list[Result] | None:
    try:
        return [Result.from_json(row) for row in json.loads(place.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return None


def _write(place: Path, results: Sequence[Result]) -> None:
    part = place.with_suffix(".part")
    part.write_text(json.dumps([result.to_json() for result in results]), encoding="utf-8")
    part.replace(place)
