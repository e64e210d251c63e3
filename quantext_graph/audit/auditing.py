"""The audit of a run, or of a release that anybody's tool made: what goes in, and where it is kept.

The page and the figures are private. For a run they lie in its workspace.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quantext_graph.audit.assessment import AuditReport, audit
from quantext_graph.audit.attacks import UNKNOWN
from quantext_graph.audit.inputs import AuditInputs, Draw, Pair
from quantext_graph.audit.report import render
from quantext_graph.audit.verdict import verdict
from quantext_graph.core.arrays import Codes
from quantext_graph.core.leakage import Leakage
from quantext_graph.core.rules import MechanismParameters
from quantext_graph.data.auxiliary import read_auxiliary
from quantext_graph.data.records import open_table
from quantext_graph.mechanism.guarantees import mechanism_parameters, public_codes, release_rule
from quantext_graph.models.chat_model import ChatModel, chat_model, text_embedding
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import ModelSpec, Source, Spec
from quantext_graph.workspace.folder import FIGURES, REPORT, Workspace, private_file
from quantext_graph.workspace.store import one_line

Progress = Callable[[str], None]
MOST_AT_GATE = 20_000
"""Records up to which a release is audited at the gate: about half a minute on two cores."""

__all__ = ["MOST_AT_GATE", "audit_files", "audit_workspace", "verdict", "write_page"]


def audit_workspace(folder: Path, attackers: Sequence[str] | None, progress: Progress) -> AuditReport:
    """Audit a run that has come to the gate; page and figures are kept in its workspace.

    Args:
        attackers: chat models of the labelling attack; None takes the run's verifier.

    Raises:
        QuantextError: where the run has not come to the gate, or a model cannot be had.
    """
    with Workspace.open(folder) as workspace, workspace.locked():
        if workspace.store.meta("report") is None:
            raise QuantextError(f"{folder}: not at the gate yet; `quantext resume {folder}` goes on")
        spec = workspace.spec
        report = _audit(_inputs_of(workspace), spec, attackers, progress)
        workspace.write_private(REPORT, render(report))
        found = {"verdict": verdict(report), **report.to_json()}
        workspace.write_private(FIGURES, json.dumps(found, indent=2, allow_nan=False))
        return report


def audit_files(
    private: Path, released: Path, spec: Spec, attackers: Sequence[str] | None, progress: Progress
) -> AuditReport:
    """Audit a release by anybody's tool: `private` and `released` are files in the columns of `spec`.

    In both, the attributes are read from the column that the spec names, else from one of the
    attribute's own name, where there is one.
    """
    texts, codes = _labelled(spec.data.model_copy(update={"path": private}), spec)
    new_texts, targets = _labelled(_released_source(spec, released), spec)
    auxiliary_texts, auxiliary = read_auxiliary(spec)
    inputs = AuditInputs(
        private_texts=texts,
        private_codes=codes,
        released_texts=new_texts,
        targets=None if (targets == UNKNOWN).all() else targets,
        auxiliary_texts=auxiliary_texts,
        auxiliary_codes=auxiliary if len(auxiliary) else None,
    )
    return _audit(inputs, spec, attackers, progress)


def write_page(report: AuditReport, path: Path) -> None:
    """Write the page of an audit, for its owner's eyes only (mode 0600)."""
    with one_line(path):
        private_file(path).write_text(render(report), encoding="utf-8")


def _audit(
    inputs: AuditInputs, spec: Spec, attackers: Sequence[str] | None, progress: Progress
) -> AuditReport:
    models = spec.models
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


def _inputs_of(workspace: Workspace) -> AuditInputs:
    spec, store = workspace.spec, workspace.store
    report, private, draw = (store.meta(key) for key in ("report", "private_report", "draw"))
    realised = np.array(store.meta("realised"), dtype=np.int64)
    pairs = [_pair(found, tuple(said)) for found, said in zip(store.pairs(), realised.tolist(), strict=True)]
    auxiliary_texts, auxiliary = read_auxiliary(spec)
    accuracy = report["evaluation"]["accuracy"].values()
    return AuditInputs(
        private_texts=[pair.before for pair in pairs],
        private_codes=store.labels(),
        released_texts=[pair.after for pair in pairs],
        targets=store.assigned(),
        realised=realised,
        evaluator=report["evaluation"]["evaluator"],
        evaluator_accuracy=[np.nan if share is None else share for share in accuracy],
        pairs=pairs,
        after_attempts=private["on_target_after_attempts"],
        auxiliary_texts=auxiliary_texts,
        auxiliary_codes=auxiliary if len(auxiliary) else None,
        draw=_draw(spec, draw, store.n, auxiliary),
    )


def _pair(found: dict[str, Any], realised: tuple[int, ...]) -> Pair:
    return Pair(
        before=found["text"],
        after=found["released"],
        labels=tuple(found["labels"]),
        target=tuple(found["target"]),
        realised=realised,
        snippets=tuple(found["snippets"]),
        attempts=len(found["attempts"]),
        failures=tuple(reason for attempt in found["attempts"] for reason in attempt["failures"]),
        verified=found["verified"],
        fallback=bool(found["fallback"]),
    )


def _draw(spec: Spec, draw: dict[str, Any], n: int, auxiliary: Codes) -> Draw:
    """The rule of the release with its very pool, made again from what is public."""
    codes = public_codes(spec, auxiliary)
    leakage = {
        each["secret"]: Leakage(**{key: value for key, value in each.items() if key != "secret"})
        for each in draw["leakage"]
    }
    return Draw(
        parameters=MechanismParameters(**mechanism_parameters(spec)),
        rule=release_rule(spec, n, codes, pool_seed=draw["pool_seed"]),
        choice=tuple(draw["choice"]),
        leakage=leakage,
        seeded=draw["seeded"],
    )


def _released_source(spec: Spec, path: Path) -> Source:
    columns = open_table(path).columns
    text = spec.data.text if spec.data.text in columns else "text"
    return Source(path=path, text=text)


def _labelled(source: Source, spec: Spec) -> tuple[list[str], Codes]:
    """Texts and (n, m) codes of a file; `UNKNOWN` where there is no column or no known category."""
    table = open_table(source.path, encoding=source.encoding, delimiter=source.delimiter)
    text = table.column(source.text)
    places = []
    for attribute in spec.attributes:
        named = [name for name in (attribute.column, attribute.name) if name in table.columns]
        places.append(table.columns.index(named[0]) if named else None)
    names = [{name: code for code, name in enumerate(a.category_names)} for a in spec.attributes]
    texts: list[str] = []
    codes: list[list[int]] = []
    for row in table:
        said = row.values[text]
        if said is None or not said.strip():
            continue
        texts.append(said)
        codes.append(
            [
                UNKNOWN if place is None else known.get((row.values[place] or "").strip(), UNKNOWN)
                for place, known in zip(places, names, strict=True)
            ]
        )
    return texts, np.array(codes, dtype=np.int64).reshape(len(texts), len(spec.attributes))
