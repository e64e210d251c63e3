"""A few records before and after, without a run: nothing is kept and no draw is made.

The targets come from the attributes alone, uniformly at random, so a preview says nothing about the
draw of a release and adds nothing to the ledger.
"""

from __future__ import annotations

import secrets
from typing import Any

from langsmith import tracing_context

from quantext_graph.data.auxiliary import Auxiliary
from quantext_graph.data.records import Record, read_private
from quantext_graph.graph.progress import Listener
from quantext_graph.graph.record_graph import build_record_graph
from quantext_graph.graph.resources import Resources
from quantext_graph.release.figures import NamedPair, named
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Spec
from quantext_graph.steps.label import label


def preview(spec: Spec, count: int, emit: Listener, resources: Resources | None = None) -> list[NamedPair]:
    """Label and rewrite up to `count` random records."""
    chosen = _sample(spec, count)  # a file that cannot be read is said before a model is opened
    held = resources or Resources(spec)
    if not spec.rewriting.needs_model:
        return [_unwritten(spec, record, held.auxiliary) for record in chosen]
    try:
        kit = held.kit(emit)
        graph = build_record_graph()
        pairs = []
        with tracing_context(enabled=False):
            for number, record in enumerate(chosen, start=1):
                labels = label(kit, record.text, dict(record.labels)).codes
                target = tuple(secrets.randbelow(size) for size in spec.sizes)
                given: Any = {"record": number, "text": record.text, "labels": labels, "target": target}
                state: Any = graph.invoke(given, context=kit)
                result = state["result"]
                pairs.append(named(spec, record.text, labels, target, result.text, result.on_target))
                emit({"stage": "rewrite", "done": number, "total": len(chosen)})
        return pairs
    finally:
        held.close()


def _unwritten(spec: Spec, record: Record, public: Auxiliary) -> NamedPair:
    """A record as a release without a model may show it: in its own words, or a public text in its place."""
    labels = tuple(record.labels[i] for i in range(len(spec.attributes)))
    if secrets.randbelow(2):
        return named(spec, record.text, labels, labels, record.text, True)
    row = secrets.randbelow(len(public.texts))
    return named(spec, record.text, labels, public.codes[row].tolist(), public.texts[row], True)


def _sample(spec: Spec, count: int) -> list[Record]:
    """A uniform sample of the records in one reading (reservoir)."""
    kept: list[Record] = []
    source = read_private(spec)
    for seen, record in enumerate(source):
        if len(kept) < count:
            kept.append(record)
        elif (place := secrets.randbelow(seen + 1)) < count:
            kept[place] = record
    if not kept:
        raise QuantextError(f"{spec.data.path}: no records; a release needs at least one")
    return kept
