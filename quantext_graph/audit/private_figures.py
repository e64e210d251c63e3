"""True shares and what an audit found, for the person at the terminal and nobody else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from quantext_graph.audit.attacks import share
from quantext_graph.audit.auditing import MOST_AT_GATE, audit_workspace
from quantext_graph.core.arrays import Codes
from quantext_graph.data.records import read_private
from quantext_graph.spec.errors import SpecError
from quantext_graph.spec.loading import load_spec
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.folder import FIGURES, Workspace


def true_shares(source: Path) -> dict[str, float]:
    """The share of each secret among the private records, by its title.

    Args:
        source: the workspace of a run, or a spec whose secrets are labelled by columns.

    Raises:
        SpecError: where the records have no labels yet.
        QuantextError: where the source cannot be read.
    """
    spec, labels = _of_run(source) if source.is_dir() else _of_file(source)
    return {secret.title: share(labels, spec.secret_codes(secret)) or 0.0 for secret in spec.secrets}


def audit_verdict(folder: Path) -> list[str]:
    """The three sentences of a run's audit, made where there is none yet; for a large run the command.

    Raises:
        QuantextError: where the run has not come to the gate.
    """
    if not (folder / FIGURES).is_file():
        if _records(folder) > MOST_AT_GATE:
            return [f"Attacks and utility: quantext audit {folder}"]
        audit_workspace(folder, [], lambda _: None)
    return list(json.loads((folder / FIGURES).read_text(encoding="utf-8"))["verdict"])


def _records(folder: Path) -> int:
    with Workspace.open(folder) as opened:
        return opened.store.n


def _of_run(folder: Path) -> tuple[Spec, Codes]:
    with Workspace.open(folder) as opened:
        counts = opened.store.counts()
        if not counts.n or counts.labeled < counts.n:
            raise SpecError(f"{folder}: its records are not labelled yet; ask again when they are")
        return opened.spec, opened.store.labels()


def _of_file(path: Path) -> tuple[Spec, Codes]:
    spec = load_spec(path)
    asked = {name for secret in spec.secrets for name in secret.where}
    if not asked <= set(spec.label_columns):
        raise SpecError(f"{path}: no column labels {', '.join(sorted(asked))}; ask again when a run has")
    source = read_private(spec)
    codes = [[record.labels.get(i, -1) for i in range(len(spec.attributes))] for record in source]
    return spec, np.array(codes, dtype=np.int64)
