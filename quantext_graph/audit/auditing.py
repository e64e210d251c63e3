"""The audit of a run, or of a release that anybody's tool made: made, kept and told in three sentences.

The page and the figures are private. For a run they lie in its workspace.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from quantext_graph.audit.assessment import AuditReport, audit
from quantext_graph.audit.inputs import AuditInputs
from quantext_graph.audit.report import render
from quantext_graph.audit.sources import inputs_of_files, inputs_of_run
from quantext_graph.audit.verdict import verdict
from quantext_graph.models.chat_model import ChatModel, chat_model, text_embedding
from quantext_graph.spec.models import ModelSpec, Spec
from quantext_graph.workspace.disk import one_line
from quantext_graph.workspace.folder import FIGURES, REPORT, Workspace, private_file

Progress = Callable[[str], None]
MOST_AT_GATE = 20_000
"""Records up to which a release is audited at the gate: about half a minute on two cores."""

__all__ = ["MOST_AT_GATE", "audit_files", "audit_workspace", "lines_at_gate", "told", "verdict", "write_page"]


def audit_workspace(folder: Path, attackers: Sequence[str] | None, progress: Progress) -> AuditReport:
    """Audit a run that has come to the gate; page and figures are kept in its workspace.

    Args:
        attackers: chat models of the labelling attack; None takes the run's verifier, if it has one.

    Raises:
        QuantextError: where the run has not come to the gate, or a model cannot be had.
    """
    with Workspace.open(folder) as workspace, workspace.locked():
        spec = workspace.spec
        report = _audit(inputs_of_run(workspace), spec, attackers, progress)
        workspace.write_private(REPORT, render(report))
        found = {"verdict": verdict(report), **report.to_json()}
        workspace.write_private(FIGURES, json.dumps(found, indent=2, allow_nan=False))
        return report


def audit_files(
    private: Path, released: Path, spec: Spec, attackers: Sequence[str] | None, progress: Progress
) -> AuditReport:
    """Audit a release by anybody's tool: `private` and `released` are files in the columns of `spec`."""
    return _audit(inputs_of_files(private, released, spec), spec, attackers, progress)


def lines_at_gate(folder: Path, progress: Progress, *, anew: bool = False) -> list[str]:
    """What a person is told of a run's audit before it is published; no chat model is asked.

    The audit is made where there is none yet, or `anew`; of a large run the line names the command.

    Raises:
        QuantextError: where the run has not come to the gate.
    """
    if anew or not (folder / FIGURES).is_file():
        with Workspace.open(folder) as opened:
            n = opened.store.n_released
        if n > MOST_AT_GATE:
            return [f"Attacks and utility: quantext audit {folder}"]
        progress("attacks and utility")
        return told(verdict(audit_workspace(folder, [], lambda _: None)), folder / REPORT)
    return told(json.loads((folder / FIGURES).read_text(encoding="utf-8"))["verdict"], folder / REPORT)


def told(sentences: Sequence[str], page: Path) -> list[str]:
    """An audit in lines: its sentences, and where the page is."""
    return [*sentences, f"The private report: {page}"]


def write_page(report: AuditReport, path: Path) -> None:
    """Write the page of an audit, for its owner's eyes only (mode 0600)."""
    with one_line(path):
        private_file(path).write_text(render(report), encoding="utf-8")


def _audit(
    inputs: AuditInputs, spec: Spec, attackers: Sequence[str] | None, progress: Progress
) -> AuditReport:
    models = spec.models
    if attackers is None and not spec.rewriting.needs_model:
        attackers = []  # who shares texts as they are has no model to ask
    chosen = [models.verify or models.chat] if attackers is None else [ModelSpec(model=m) for m in attackers]
    opened: list[ChatModel] = []
    try:
        for reference in chosen:
            opened.append(chat_model(reference, models, spec.limits))
        embedding = text_embedding(models.embedding, models)
        return audit(inputs, spec, embedding, attackers=opened, progress=progress)
    finally:
        for model in opened:
            model.close()
