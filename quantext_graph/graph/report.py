"""What the data holder may see of a run: figures for the gate and the private report.

`figures` makes two parts: the public one depends on the released texts and their targets alone, the
private one stays in the workspace.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import numpy as np

from quantext_graph.audit.on_target import judgement
from quantext_graph.core.distribution import distribution_from_json, total_variation_from
from quantext_graph.graph.job import Job
from quantext_graph.graph.workers import run_pass
from quantext_graph.mechanism import own_words
from quantext_graph.mechanism.public_draw import PublicDraw
from quantext_graph.steps.verify import Evaluation, evaluate
from quantext_graph.steps.wording import spec_words
from quantext_graph.workspace.records import StoredPair
from quantext_graph.workspace.reports import ModelNames, PrivateReport, Report, SecretShares

Array = np.ndarray[Any, Any]

_CHUNK = 2000  # texts judged at a time


def figures(job: Job) -> tuple[Report, PrivateReport, Array]:
    """Judge the finished release: public figures, private figures, and what the evaluator read off each
    released text, (n, m) codes in order of id."""
    spec, store = job.spec, job.store
    draw = store.draw()
    assert draw is not None
    realised, after, evaluation = _judge(job)
    off = np.array([pair.released == spec_words(spec, pair.target) for pair in store.pairs()])
    judged = judgement(
        realised,
        store.assigned(),
        job.kit.held_out if spec.rewriting.needs_model else None,
        [attribute.name for attribute in spec.attributes],
        evaluator=evaluation.evaluator,
        off=off,
    )
    assert judged is not None  # every text that is released has a target
    public = Report(n=store.n_released, leakage=draw.leakage, models=_models(job), evaluation=judged)
    return public, _private(job, draw, after, int(off.sum())), realised


def _models(job: Job) -> ModelNames | None:
    if not job.spec.rewriting.needs_model:
        return None
    return ModelNames(rewriter=job.kit.chat.name, verifier=job.kit.verify.name)


def _judge(job: Job) -> tuple[Array, Array, Evaluation]:
    if not job.spec.rewriting.needs_model:
        return _judge_by_labels(job)
    return (_judge_by_classifier if job.kit.evaluator is not None else _judge_by_model)(job)


def _judge_by_labels(job: Job) -> tuple[Array, Array, Evaluation]:
    """Where every text is a row of a file, what it says is what the file's columns say of it: its target."""
    realised = job.store.assigned()
    evaluation = Evaluation(realised, "the labels of the rows they come from")
    return realised, np.ones((len(realised), 1), dtype=bool), evaluation


def _judge_by_classifier(job: Job) -> tuple[Array, Array, Evaluation]:
    """What each released text says, (n, m) codes, and whether it was on target after 1, 2 ... attempts,
    (n, attempts), by the evaluator, which took no part in picking."""
    realised, after = [], []
    done = 0
    pairs = job.store.pairs()
    while chunk := list(islice(pairs, _CHUNK)):
        target = np.array([pair.target for pair in chunk])
        released = evaluate(job.kit, [pair.released for pair in chunk])
        realised.append(released.codes)
        for_limit = [
            evaluate(job.kit, [pair.after(k).text for pair in chunk]).codes == target
            for k in range(1, job.spec.limits.attempts + 1)
        ]
        after.append(np.stack([hits.all(axis=1) for hits in for_limit], axis=1))
        done += len(chunk)
        job.emit({"stage": "report", "done": done, "total": job.store.n_released})
    return np.concatenate(realised), np.concatenate(after), released


def _judge_by_model(job: Job) -> tuple[Array, Array, Evaluation]:
    """The same where nothing but the verifying model can judge: one more look at each released text;
    what was on target after each attempt is what it said then."""
    realised: dict[int, Array] = {}
    after: dict[int, list[bool]] = {}

    def work(pair: StoredPair) -> tuple[StoredPair, Evaluation]:
        return pair, evaluate(job.kit, [pair.released])

    def keep(result: tuple[StoredPair, Evaluation]) -> None:
        pair, found = result
        realised[pair.id] = found.codes[0]
        job.store.add_usage("judge", job.kit.verify.name, found.usage)
        limits = range(1, job.spec.limits.attempts + 1)
        after[pair.id] = [pair.after(k).on_target for k in limits]
        job.emit({"stage": "report", "done": len(realised), "total": job.store.n_released})

    workers = job.spec.limits.concurrency
    run_pass(job.store.pairs(), work, keep, workers=workers, stop=lambda: False)
    ids = sorted(realised)
    evaluation = evaluate(job.kit, [])
    return np.array([realised[i] for i in ids]), np.array([after[i] for i in ids]), evaluation


def _private(job: Job, draw: PublicDraw, after: Array, worded: int) -> PrivateReport:
    spec, store = job.spec, job.store
    labels, assigned = store.labels(), store.assigned()
    released = distribution_from_json(draw.released)
    combos, counts = np.unique(labels, axis=0, return_counts=True)
    failures: Counter[str] = Counter()
    origins: Counter[str] = Counter()
    fallbacks = 0
    for pair in store.pairs():
        fallbacks += pair.detail.fallback
        origins[pair.detail.origin] += 1
        failures.update(reason for attempt in pair.detail.attempts for reason in attempt.failures)
    totals = store.counts()
    return PrivateReport(
        labels={
            attribute.name: {
                name: int((labels[:, i] == code).sum()) for code, name in enumerate(attribute.category_names)
            }
            for i, attribute in enumerate(spec.attributes)
        },
        secrets=tuple(
            SecretShares(
                secret=secret.title,
                private=_share(labels, spec.secret_codes(secret)),
                released=_share(assigned, spec.secret_codes(secret)),
            )
            for secret in spec.secrets
        ),
        tv_to_release=total_variation_from(combos, counts / len(labels), released),
        mean_changes=float((store.used_labels() != assigned).sum(axis=1).mean()),
        verified=totals.verified,
        unverified=totals.unverified,
        fallbacks=fallbacks - worded,
        spec_words=worded,
        origins=dict(origins),
        short_combinations=_short(job, labels),
        on_target_after_attempts=tuple(after.mean(axis=0).tolist()),
        failures=dict(failures.most_common()),
        dropped=store.meta("dropped", {}),
        label_failures=store.label_failures(),
        usage=tuple(store.usage()),
        seconds=store.seconds(),
    )


def _short(job: Job, labels: Array) -> int:
    if not job.spec.rewriting.own_words:
        return 0
    most = own_words.caps(job.spec, len(labels), job.resources.auxiliary.codes)
    return own_words.short_combinations(job.spec, labels, most)


def _share(codes: Any, where: dict[int, tuple[int, ...]]) -> float:
    inside = np.ones(len(codes), dtype=bool)
    for attribute, wanted in where.items():
        inside &= np.isin(codes[:, attribute], wanted)
    return float(inside.mean())
