"""One pass over the records: a sliding window of worker threads, results kept as they come.

Not waves: a slow record holds up nobody. The caller's thread alone writes; workers only compute.
"""

from __future__ import annotations

import contextvars
import queue
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

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
