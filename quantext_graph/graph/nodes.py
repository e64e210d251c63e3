"""The stages of a run, one function each: job in, progress out. Each may be entered again and goes on
where it stopped."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantext_graph.core.arrays import Codes, Indices
from quantext_graph.core.targets import released_count
from quantext_graph.data.auxiliary import refuse_private_auxiliary
from quantext_graph.data.records import read_private
from quantext_graph.graph.job import Job
from quantext_graph.graph.ray_workers import RayWorkers
from quantext_graph.graph.record_graph import RecordGraph
from quantext_graph.graph.report import figures
from quantext_graph.graph.state import Progress
from quantext_graph.graph.workers import Step, Written, ahead, run_pass, work
from quantext_graph.mechanism import own_words
from quantext_graph.mechanism.draw import RecordDraw, quantize_records
from quantext_graph.mechanism.label_errors import HeldOut
from quantext_graph.mechanism.slack import share_for_doubt
from quantext_graph.models.errors import Halted
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Spec
from quantext_graph.steps.context import Kit
from quantext_graph.steps.held_out import held_out
from quantext_graph.steps.label import Labels, in_doubt
from quantext_graph.steps.passages import is_small
from quantext_graph.workspace.ledger import Ledger
from quantext_graph.workspace.records import StoredRecord
from quantext_graph.workspace.reports import Seconds
from quantext_graph.workspace.speeds import remember_speed
from quantext_graph.workspace.store import Store


class NotEnoughVerified(QuantextError):
    """Too few records reached their target: nothing is published."""

    exit_code = 3
    withheld = "too few records reached their target, so nothing is published; they can be tried again"


def ingest(job: Job) -> None:
    """Take the private records into the workspace; refuse an auxiliary set that holds them."""
    spec, store = job.spec, job.store
    if store.n:
        return
    source = read_private(spec)
    refuse_private_auxiliary(spec, source, job.resources.auxiliary[0])
    if store.ingest((record.row, record.text, dict(record.labels)) for record in source) == 0:
        raise QuantextError(f"{spec.data.path}: no records; a release needs at least one")
    store.set_meta("released", released_count(store.n, spec.mechanism.keep))
    store.set_meta("dropped", dict(source.dropped))
    store.set_meta("release_id", secrets.token_hex(16))
    store.commit()


def label(job: Job) -> Progress:
    """Alg. 1 line 1: the labels of every record, by column, classifier or model."""
    ingest(job)
    spec, store = job.spec, job.store
    store.set_meta("stage", "label")
    n, m = store.n, len(spec.attributes)
    done = store.counts().labeled
    kit = None if _by_columns(spec) else job.kit

    def keep(result: tuple[StoredRecord, Labels | None]) -> None:
        nonlocal done
        record, labels = result
        if labels is None or kit is None:
            store.put_labels(record.id, (record.known[i] for i in range(m)), [1.0] * m)
        else:
            store.put_labels(record.id, labels.codes, labels.confidence, labels.reason)
            store.add_usage("label", kit.verify.name, labels.usage)
        done += 1
        job.emit({"stage": "label", "done": done, "total": n})

    job.emit({"stage": "label", "done": done, "total": n})
    with _timed(store, "label"):
        if kit is None:
            run_pass(store.unlabelled(), lambda r: (r, None), keep, workers=1, stop=job.stop, idle=job.idle)
        else:
            _pass(job, "label", store.unlabelled(), keep)
    return {"n": n, "released": store.n_released, "labeled": done}


def _pass(
    job: Job,
    step: Step,
    items: Iterable[Any],
    keep: Callable[[Any], None],
    record_graph: RecordGraph | None = None,
) -> None:
    """One pass over the records that are left, in threads or on Ray. A run told to stop does not wait
    for a server that is away."""
    spec = job.spec
    try:
        if spec.executor == "ray":
            _ray_workers(job).run_pass(step, items, keep, stop=job.stop, idle=job.idle)
        else:
            done, workers = work(step, job.kit, record_graph), at_a_time(step, job.kit)
            given = ahead(step, job.kit, items)
            run_pass(given, done, keep, workers=workers, stop=job.stop, idle=job.idle)
    except Halted:
        if not job.stop():
            raise


def at_a_time(step: Step, kit: Kit) -> int:
    """How many records are in work at a time. An embedded model labels one after the other: a label is all
    reading, which several slots share the cores for, and the questions on one text share what was read. With
    eight at a time it read the same prompts again and again, for three times the CPU."""
    return 1 if step == "label" and is_small(kit.verify.name) else kit.spec.limits.concurrency


def _ray_workers(job: Job) -> RayWorkers:
    if job.resources.given:
        raise QuantextError(
            "executor: ray: a model that was made in this process cannot go to workers; "
            "name it in the spec, or leave `executor: threads`"
        )

    def make() -> RayWorkers:
        texts, codes = job.resources.auxiliary
        return RayWorkers(job.spec, list(zip(texts, map(tuple, codes.tolist()), strict=True)))

    workers: RayWorkers = job.resources.once("ray", make)
    return workers


@contextmanager
def _timed(store: Store, stage: str) -> Iterator[None]:
    """Add what this process spends on a pass to the private report, and commit whatever comes: wall
    and CPU seconds, an embedded model's included."""
    wall, cpu, calls = time.monotonic(), time.process_time(), _calls(store)
    try:
        yield
    finally:
        store.add_seconds(stage, Seconds(wall=time.monotonic() - wall, cpu=time.process_time() - cpu))
        store.commit()
        made = _calls(store) - calls
        for model, share in made.most_common(1):
            if share > made.total() / 2:
                remember_speed(model, made.total(), time.monotonic() - wall)


def _calls(store: Store) -> Counter[str]:
    """Calls so far by model."""
    calls: Counter[str] = Counter()
    for row in store.usage():
        calls[row.model] += row.calls
    return calls


def match_assign(job: Job) -> Progress:
    """Alg. 1 lines 2-14: the one draw of this run, and who gets which target, by a call of the `quantize`
    tool."""
    store, spec = job.store, job.spec
    if store.draw() is None:
        from quantext_graph.graph.quantize_node import draw_by_tool

        job.emit({"stage": "match", "done": 0, "total": 1})
        store.set_meta("stage", "match")
        labels, public = store.labels(), job.resources.auxiliary.codes
        most = own_words.caps(spec, len(labels), public) if spec.rewriting.own_words else None
        drawn = quantize_records(
            spec, labels, public, last=_doubtful(job), held_out=_held_out(job), by=draw_by_tool
        )
        # The ledger first: a draw that was made counts, whatever becomes of the run.
        with Ledger.open() as ledger:
            fingerprint = ledger.fingerprint(store.texts())
            ledger.record(
                fingerprint,
                release_id=store.meta("release_id"),
                bound_nats=drawn.leakage.bound_nats,
                note={"secrets": [secret.title for secret in spec.secrets]},
            )
        if most is None:
            store.put_draw(drawn.public, drawn.used, drawn.assigned)
        else:
            _put_as_they_are(job, drawn, labels, most)
        job.emit({"stage": "match", "done": 1, "total": 1})
    return {"rewritten": store.counts().rewritten}


def _doubtful(job: Job) -> NDArray[np.bool_] | None:
    """Which records are set aside, (n,): those in doubt of their labels, as far as `keep` leaves slack."""
    if job.spec.mechanism.keep == 1 or _by_columns(job.spec):
        return None
    share = share_for_doubt(job.spec, job.resources.auxiliary.codes)
    return in_doubt(job.kit, job.store.confidence(), share)


def _held_out(job: Job) -> HeldOut | None:
    """How well the run's classifier labels public texts; None where it labels nothing."""
    if _by_columns(job.spec) or job.kit.labeller is None:
        return None
    return held_out(job.spec, job.resources.auxiliary.codes, job.kit.labeller)


def _by_columns(spec: Spec) -> bool:
    return all(attribute.by_column for attribute in spec.attributes)


def _put_as_they_are(job: Job, drawn: RecordDraw, labels: Codes, most: Indices) -> None:
    """Keep the draw, and with it which records are published in their own words and what fills the rest."""
    store, (texts, public) = job.store, job.resources.auxiliary
    with Ledger.open() as ledger:
        order = np.argsort(np.array(ledger.marks(store.texts()), np.uint64), kind="stable")
    sources = own_words.share_out(job.spec, drawn, labels, public, most, order)
    store.put_draw(
        drawn.public.model_copy(update={"own_at_most": sources.own_at_most}),
        sources.used,
        drawn.assigned,
        own=sources.own.tolist(),
        public={place: texts[row] for place, row in sources.public.items()},
    )


def rewrite(job: Job, record_graph: RecordGraph) -> Progress:
    """Alg. 1 lines 15-18: every record that is used to its target, also one that has it already. What the
    draw has settled, texts in their own words and public ones, is done; where nothing is left no model is
    opened."""
    store = job.store
    store.set_meta("stage", "rewrite")
    before = store.counts()
    done, verified = before.rewritten, before.verified
    if done == before.released:
        job.emit({"stage": "rewrite", "done": done, "total": done, "verified": verified})
        return {"rewritten": done, "verified": verified, "unverified": done - verified}
    kit = job.kit

    def keep(result: Written) -> None:
        nonlocal done, verified
        written, spent = result
        store.put_rewrite(written)
        for step, usage in spent:
            model = kit.verify.name if step == "verify" else kit.chat.name
            store.add_usage(step, model, usage)
        done += 1
        verified += written.verified
        job.emit({"stage": "rewrite", "done": done, "total": before.released, "verified": verified})

    job.emit({"stage": "rewrite", "done": done, "total": before.released, "verified": verified})
    with _timed(store, "rewrite"):
        _pass(job, "rewrite", store.unwritten(), keep, record_graph)
    return {"rewritten": done, "verified": verified, "unverified": done - verified}


def report(job: Job) -> Progress:
    """Judge the finished release; the private part stays in the workspace, the public part goes on."""
    store, limits = job.store, job.spec.limits
    counts = store.counts()
    if counts.verified < limits.min_verified * counts.released:
        share = counts.verified / counts.released
        raise NotEnoughVerified(
            f"{job.workspace.folder}: {counts.verified} of {counts.released} records ({share:.0%}) reached "
            f"their target, limits.min_verified asks for {limits.min_verified:.0%}; nothing is published. "
            f"`quantext resume {job.workspace.folder} --retry-failed` tries those again, "
            "--min-verified SHARE lowers the bar"
        )
    public = store.report()
    if public is None:
        public, private, realised = figures(job)
        store.put_report(public, private, realised)
        said = {**public.model_dump(), "private": private.model_dump()}
        job.workspace.write_private("report.json", json.dumps(said, indent=2))
    store.set_meta("stage", "gate")
    store.commit()
    return {"report": public.model_dump(mode="json")}
