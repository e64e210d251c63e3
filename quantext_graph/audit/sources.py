"""Where the inputs of an audit come from: the workspace of a run, or two files in the columns of a spec."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from quantext_graph.audit.attacks import UNKNOWN, share
from quantext_graph.audit.inputs import AuditInputs, Draw, Pair
from quantext_graph.core.arrays import Codes
from quantext_graph.core.rules import MechanismParameters
from quantext_graph.data.auxiliary import read_auxiliary
from quantext_graph.data.records import open_table, read_private
from quantext_graph.mechanism.guarantees import mechanism_parameters, public_codes, release_rule
from quantext_graph.mechanism.public_draw import PublicDraw
from quantext_graph.spec.errors import QuantextError, SpecError
from quantext_graph.spec.loading import load_spec
from quantext_graph.spec.models import Source, Spec
from quantext_graph.steps.wording import spec_words
from quantext_graph.workspace.folder import Workspace
from quantext_graph.workspace.records import StoredPair


def inputs_of_run(workspace: Workspace) -> AuditInputs:
    """What a run knows of its release.

    Raises:
        QuantextError: where it has not come to the gate.
    """
    spec, store = workspace.spec, workspace.store
    report, draw = store.report(), store.draw()
    if report is None or draw is None:
        raise QuantextError(
            f"{workspace.folder}: not at the gate yet; `quantext resume {workspace.folder}` goes on"
        )
    realised = np.array(store.meta("realised"), dtype=np.int64)
    released: list[str] = []
    pairs = []
    for found, said in zip(store.pairs(), realised.tolist(), strict=True):
        released.append(found.released)
        if found.detail.origin != "public":  # a public text was no record before
            pairs.append(_pair(spec, found, tuple(said)))
    auxiliary_texts, auxiliary = read_auxiliary(spec)
    return AuditInputs(
        private_texts=list(store.texts()),
        private_codes=store.labels(),
        released_texts=released,
        targets=store.assigned(),
        realised=realised,
        judgement=report.evaluation,
        pairs=pairs,
        after_attempts=store.private_report().on_target_after_attempts,
        auxiliary_texts=auxiliary_texts,
        auxiliary_codes=auxiliary if len(auxiliary) else None,
        draw=_draw(spec, draw, store.n, auxiliary),
    )


def _pair(spec: Spec, found: StoredPair, realised: tuple[int, ...]) -> Pair:
    attempts = found.detail.attempts
    return Pair(
        before=found.text,
        after=found.released,
        labels=found.labels,
        target=found.target,
        realised=realised,
        snippets=tuple(found.detail.snippets),
        attempts=len(attempts),
        failures=tuple(reason for attempt in attempts for reason in attempt.failures),
        verified=found.verified,
        fallback=found.detail.fallback,
        spec_words=found.released == spec_words(spec, found.target),
    )


def _draw(spec: Spec, draw: PublicDraw, n: int, auxiliary: Codes) -> Draw:
    """The rule of the release with its very pool, made again from what is public."""
    codes = public_codes(spec, auxiliary)
    return Draw(
        parameters=MechanismParameters(**mechanism_parameters(spec)),
        rule=release_rule(spec, n, codes, pool_seed=draw.pool_seed),
        choice=draw.choice,
        leakage={each.secret: each.leakage for each in draw.leakage},
        seeded=draw.seeded,
    )


def inputs_of_files(private: Path, released: Path, spec: Spec) -> AuditInputs:
    """What two files tell of a release by anybody's tool. In both, the attributes are read from the column
    that the spec names, else from one of the attribute's own name, where there is one."""
    texts, codes = _labelled(spec.data.model_copy(update={"path": private}), spec)
    new_texts, targets = _labelled(_released_source(spec, released), spec)
    auxiliary_texts, auxiliary = read_auxiliary(spec)
    return AuditInputs(
        private_texts=texts,
        private_codes=codes,
        released_texts=new_texts,
        targets=None if (targets == UNKNOWN).all() else targets,
        auxiliary_texts=auxiliary_texts,
        auxiliary_codes=auxiliary if len(auxiliary) else None,
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
