"""One pass over the records: a sliding window of worker threads, results kept as they come.

Not waves: a slow record holds up nobody. The caller's thread alone writes; workers only compute.
"""

from __future__ import annotations

import contextvars
import queue
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, TypeVar

from langsmith import tracing_context

from quantext_graph.graph.record_graph import RecordGraph, RecordState, build_record_graph
from quantext_graph.models.chat_model import Usage
from quantext_graph.steps.context import Kit
from quantext_graph.steps.label import Labels, Learned, read_ahead
from quantext_graph.steps.label import label as label_text
from quantext_graph.workspace.records import Rewrite, RewriteDetail, StoredAttempt, StoredRecord

_IDLE_SECONDS = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_pass(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    keep: Callable[[Result], None],
    *,
    workers: int,
    stop: Callable[[], bool],
    idle: Callable[[], None] = lambda: None,
) -> bool:
    """Give every item to `work` in one of `workers` threads and every result to `keep`, here.

    `stop` is asked before each start; once it answers true no item is started and those in work
    are waited for. `idle` is called at the start and whenever nothing was done for half a second.
    Returns whether all items were done.

    Raises:
        Exception: the first that `work` raised, after the results still in work have been kept.
    """
    done: queue.SimpleQueue[Future[Result]] = queue.SimpleQueue()
    source = iter(items)
    error: BaseException | None = None
    running, exhausted = 0, False
    idle()
    with ThreadPoolExecutor(workers, thread_name_prefix="quantext") as pool:
        while True:
            while not exhausted and error is None and running < workers and not stop():
                try:
                    item = next(source)
                except StopIteration:
                    exhausted = True
                    break
                # A fresh context: callbacks and tracing of the calling graph stay out of record steps.
                future = pool.submit(contextvars.Context().run, work, item)
                future.add_done_callback(done.put)
                running += 1
            if running == 0:
                break
            try:
                future = done.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                idle()
                continue
            running -= 1
            if (raised := future.exception()) is None:
                keep(future.result())
            elif error is None:
                error = raised
    if error is not None:
        raise error
    return exhausted


Step = Literal["label", "rewrite"]


Unwritten = tuple[int, str, tuple[int, ...], tuple[int, ...]]
"""A record to be rewritten: its id, text, labels and target."""


_KEPT = ["kept", "attempts", "usage", "result"]
"""What of a record's state is looked at when its graph is through."""


Labelled = tuple[StoredRecord, Labels]


Written = tuple[Rewrite, list[tuple[str, Usage]]]


def work(step: Step, kit: Kit, record_graph: RecordGraph | None = None) -> Callable[[Any], Any]:
    """The work of a pass: what `ahead` gives of a record in, what the store keeps of it out. Safe to call
    from many threads.

    Args:
        record_graph: what a record goes through; it is run without checkpoints, whatever it was
            compiled for.
    """
    return _labelling(kit) if step == "label" else _writing(kit, record_graph or build_record_graph())


def ahead(step: Step, kit: Kit, items: Iterable[Any]) -> Iterable[Any]:
    """The records of a pass with what is cheaper made for many at once than by each worker for its own."""
    return read_ahead(kit, items) if step == "label" else items


def _labelling(kit: Kit) -> Callable[[tuple[StoredRecord, Learned]], Labelled]:
    def label(item: tuple[StoredRecord, Learned]) -> Labelled:
        record, learned = item
        with tracing_context(enabled=False):
            return record, label_text(kit, record.text, record.known, learned)

    return label


def _writing(kit: Kit, record_graph: RecordGraph) -> Callable[[Unwritten], Written]:
    graph = record_graph.copy(update={"checkpointer": False})

    def write(item: Unwritten) -> Written:
        id_, text, labels, target = item
        given: RecordState = {"record": id_, "text": text, "labels": labels, "target": target}
        with tracing_context(enabled=False):
            state: Any = graph.invoke(given, context=kit, output_keys=_KEPT, version="v2").value
        result = state["result"]
        # Of what this process made itself: to validate it again would be paid for each record.
        attempts = tuple(
            StoredAttempt.model_construct(text=a.text, on_target=a.on_target, failures=a.failures)
            for a in state["attempts"]
        )
        detail = RewriteDetail.model_construct(
            snippets=state["kept"].lines, fallback=result.fallback, attempts=attempts
        )
        return Rewrite(id_, result.text, result.on_target, detail), state["usage"]

    return write
