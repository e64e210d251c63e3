"""What is done with one record, wherever that is: in a thread of this process or on a Ray worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from langsmith import tracing_context

from quantext_graph.graph.record_graph import RecordState, build_record_graph
from quantext_graph.models.chat_model import Usage
from quantext_graph.steps.context import Kit
from quantext_graph.steps.label import Labels
from quantext_graph.steps.label import label as label_text
from quantext_graph.workspace.store import Rewrite, StoredRecord

Step = Literal["label", "rewrite"]

Unwritten = tuple[int, str, tuple[int, ...], tuple[int, ...]]
"""A record to be rewritten: its id, text, labels and target."""

_KEPT = ["snippets", "attempts", "usage", "result"]
"""What of a record's state is looked at when its graph is through."""

Labelled = tuple[StoredRecord, Labels]
Written = tuple[Rewrite, list[tuple[str, Usage]]]


def work(step: Step, kit: Kit) -> Callable[[Any], Any]:
    """The work of a pass: record in, what the store keeps of it out. Safe to call from many threads."""
    return _labelling(kit) if step == "label" else _writing(kit)


def _labelling(kit: Kit) -> Callable[[StoredRecord], Labelled]:
    def label(record: StoredRecord) -> Labelled:
        with tracing_context(enabled=False):
            return record, label_text(kit, record.text, record.known)

    return label


def _writing(kit: Kit) -> Callable[[Unwritten], Written]:
    graph = build_record_graph()

    def write(item: Unwritten) -> Written:
        id_, text, labels, target = item
        given: RecordState = {"record": id_, "text": text, "labels": labels, "target": target}
        with tracing_context(enabled=False):
            state: Any = graph.invoke(given, context=kit, output_keys=_KEPT, version="v2").value
        result = state["result"]
        detail = {
            "snippets": list(state["snippets"]),
            "fallback": result.fallback,
            "attempts": [
                {"text": a.text, "on_target": a.on_target, "failures": list(a.failures)}
                for a in state["attempts"]
            ],
        }
        return Rewrite(id_, result.text, result.on_target, detail), state["usage"]

    return write
