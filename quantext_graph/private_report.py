"""What the data holder may see of a run: figures for the gate and the private report.

`figures` makes two parts: the public one depends on the released texts and their targets alone, the
private one stays in the workspace.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from quantext_graph.card import guarantee
from quantext_graph.core.distribution import distribution_from_json, total_variation_from
from quantext_graph.job import Job
from quantext_graph.spec import Spec
from quantext_graph.steps.verify import Evaluation, evaluate
from quantext_graph.store import Store
from quantext_graph.workspace import Workspace

_CHUNK = 2000  # texts judged at a time


def figures(job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    """Judge the finished release: (public, private) figures, both ready for JSON."""
    spec, store = job.spec, job.store
    judged = [_judge(job, chunk) for chunk in _chunks(store)]
    hits = np.concatenate([hit for hit, _, _ in judged])
    evaluation = judged[0][2]
    names = [attribute.name for attribute in spec.attributes]
    public = {
        "n": store.n,
        "leakage": store.meta("draw")["leakage"],
        "evaluation": {
            "evaluator": evaluation.evaluator,
            "accuracy": dict(zip(names, evaluation.accuracy, strict=True)),
            "on_target": float(hits.all(axis=1).mean()),
            "by_attribute": dict(zip(names, hits.mean(axis=0).tolist(), strict=True)),
        },
    }
    attempts = [share for _, share, _ in judged]
    return public, _private(spec, store, np.concatenate(attempts))


def _chunks(store: Store) -> Iterator[list[dict[str, Any]]]:
    pairs = store.pairs()
    while chunk := list(islice(pairs, _CHUNK)):
        yield chunk


def _judge(job: Job, pairs: list[dict[str, Any]]) -> tuple[Any, Any, Evaluation]:
    """Which attributes of each released text are on target (c, m), and whether all were after 1, 2 ...
    attempts (c, attempts), by a judge that took no part in picking."""
    limit = job.spec.limits.attempts
    target = np.array([pair["target"] for pair in pairs])
    released = evaluate(job.kit, [pair["released"] for pair in pairs])
    after = []
    for count in range(1, limit + 1):
        texts = [_text_after(pair, count) for pair in pairs]
        after.append((evaluate(job.kit, texts).codes == target).all(axis=1))
    return released.codes == target, np.stack(after, axis=1), released


def _text_after(pair: dict[str, Any], count: int) -> str:
    """The text that the record would have had with `count` attempts."""
    tried = pair["attempts"][:count]
    hit = next((attempt for attempt in tried if attempt["on_target"]), tried[-1])
    return str(hit["text"])


def _private(spec: Spec, store: Store, after: Any) -> dict[str, Any]:
    labels, assigned = store.labels(), store.assigned()
    released = distribution_from_json(store.meta("draw")["released"])
    combos, counts = np.unique(labels, axis=0, return_counts=True)
    failures: Counter[str] = Counter()
    fallbacks = 0
    for pair in store.pairs():
        fallbacks += bool(pair["fallback"])
        failures.update(reason for attempt in pair["attempts"] for reason in attempt["failures"])
    totals = store.counts()
    return {
        "labels": {
            attribute.name: {
                name: int((labels[:, i] == code).sum()) for code, name in enumerate(attribute.category_names)
            }
            for i, attribute in enumerate(spec.attributes)
        },
        "secrets": [
            {
                "secret": secret.title,
                "private": _share(labels, spec.secret_codes(secret)),
                "released": _share(assigned, spec.secret_codes(secret)),
            }
            for secret in spec.secrets
        ],
        "tv_to_release": total_variation_from(combos, counts / len(labels), released),
        "mean_changes": float((labels != assigned).sum(axis=1).mean()),
        "verified": totals.verified,
        "unverified": totals.unverified,
        "fallbacks": fallbacks,
        "on_target_after_attempts": after.mean(axis=0).tolist(),
        "failures": dict(failures.most_common()),
        "dropped": store.meta("dropped", {}),
        "label_failures": store.label_failures(),
        "usage": store.usage(),
    }


def _share(codes: Any, where: dict[int, tuple[int, ...]]) -> float:
    inside = np.ones(len(codes), dtype=bool)
    for attribute, wanted in where.items():
        inside &= np.isin(codes[:, attribute], wanted)
    return float(inside.mean())


def gate_lines(workspace: Path) -> list[str]:
    """The headline figures at the gate, private ones among them."""
    opened = Workspace.open(workspace)
    try:
        public, private = opened.store.meta("report"), opened.store.meta("private_report")
        seeded = opened.store.meta("draw")["seeded"]
    finally:
        opened.close()
    evaluation = public["evaluation"]
    accuracy = ", ".join(
        f"{name} {share:.0%}" if share is not None else f"{name} not known"
        for name, share in evaluation["accuracy"].items()
    )
    lines = [
        f"{public['n']} records, all rewritten; {private['verified']} on target by the verifier, "
        f"{private['fallbacks']} written from the target alone.",
        f"On target by {evaluation['evaluator']}: {evaluation['on_target']:.0%} "
        f"(its own accuracy: {accuracy}).",
        f"Private and released distribution differ by {private['tv_to_release']:.2f} in total variation "
        "(private figure).",
    ]
    for leakage in public["leakage"]:
        lines.append(f"{leakage['secret']}: " + " ".join(guarantee(leakage, not seeded)))
    for secret in private["secrets"]:
        lines.append(
            f"{secret['secret']}: {secret['private']:.1%} in private, {secret['released']:.1%} in the "
            "release (private figures)."
        )
    return lines


def sample_pairs(workspace: Path, count: int) -> list[dict[str, Any]]:
    """A few random records before and after, categories by name."""
    if count == 0:
        return []
    opened = Workspace.open(workspace)
    try:
        spec = opened.spec
        chosen = set(secrets.SystemRandom().sample(opened.store.ids(), min(count, opened.store.n)))
        return [named(spec, pair) for pair in opened.store.pairs() if pair["id"] in chosen]
    finally:
        opened.close()


def named(spec: Spec, pair: dict[str, Any]) -> dict[str, Any]:
    """A before/after pair with category names for its codes."""

    def names(codes: list[int]) -> list[str]:
        return [a.category_names[code] for a, code in zip(spec.attributes, codes, strict=True)]

    return {**pair, "labels": names(pair["labels"]), "target": names(pair["target"])}
