"""The passes over the records on Ray, for when one client process is no longer enough.

The driver hands chunks of records to worker processes, each of which runs the same per-record graph with
models of its own; the driver alone writes the store. A chunk whose worker dies is done again by the one
that takes its place. Nothing of a record is written to disk or to Ray's logs.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from quantext_graph.graph.workers import Step, ahead, run_pass, work
from quantext_graph.models.chat_model import chat_model
from quantext_graph.models.errors import Halted
from quantext_graph.models.privacy import refuse_remote
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Spec
from quantext_graph.steps.context import Kit, prepare

Rows = list[tuple[str, tuple[int, ...]]]

_IN_WORK = 2  # chunks at a worker, so that one's slow last record holds up nobody
_AGAIN = 3  # times that a chunk may lose its worker
_IDLE_SECONDS = 0.5


class RayError(QuantextError):
    """A run that cannot go on Ray as asked."""


class RayWorkers:
    """Worker processes for one spec, started at the first pass and kept for all.

    Args:
        spec: how many workers (`limits.workers`); their concurrency and rates together are the spec's.
        auxiliary: the public texts with their codes.

    Raises:
        RayError: where ray is not installed, the model is embedded, or Ray's machines are not allowed.
    """

    def __init__(self, spec: Spec, auxiliary: Rows) -> None:
        self._ray = _ray()
        self._spec, self._count = spec, spec.limits.workers
        _refuse_embedded(spec)
        self._started = _start(self._ray, spec)
        # One thread more than chunks: `halt` must come through.
        remote = self._ray.remote(
            num_cpus=0, max_restarts=-1, max_task_retries=_AGAIN, max_concurrency=_IN_WORK + 1
        )(_Worker)
        # Kept: a worker that takes another's place reads it again.
        self._shared = self._ray.put((_share(spec, self._count), auxiliary))
        self._workers = [remote.remote(self._shared) for _ in range(self._count)]

    def run_pass(
        self,
        step: Step,
        items: Iterable[Any],
        keep: Callable[[Any], None],
        *,
        stop: Callable[[], bool],
        idle: Callable[[], None] = lambda: None,
    ) -> bool:
        """As `passes.run_pass`, with what workers do with a record at this step."""
        source = _chunks(items, 2 * max(1, self._spec.limits.concurrency // (self._count * _IN_WORK)))
        running: dict[Any, Any] = {}
        free = self._workers * _IN_WORK
        error: Exception | None = None
        exhausted = False
        self._halt(False)
        idle()
        while True:
            while free and not exhausted and error is None and not stop():
                chunk = next(source, None)
                if chunk is None:
                    exhausted = True
                    break
                worker = free.pop()
                running[worker.run.remote(step, chunk)] = worker
            if not running:
                break
            ready, _ = self._ray.wait(list(running), num_returns=1, timeout=_IDLE_SECONDS)
            if not ready:
                idle()
                self._halt(stop())
            for done in ready:
                free.append(running.pop(done))
                results, raised = self._results(done)
                for result in results:
                    keep(result)
                error = error or raised
        if error is not None:
            raise error
        return exhausted

    def pids(self) -> list[int]:
        """Process ids of the workers; waits until they have started."""
        found: list[int] = self._ray.get([worker.pid.remote() for worker in self._workers])
        return found

    def _results(self, done: Any) -> tuple[list[Any], Exception | None]:
        try:
            found: tuple[list[Any], Exception | None] = self._ray.get(done)
        except self._ray.exceptions.RayError as error:
            # Its message quotes what the worker printed.
            return [], RayError(f"ray: a worker was lost {_AGAIN + 1} times ({type(error).__name__}); resume")
        return found

    def _halt(self, halting: bool) -> None:
        for worker in self._workers:
            worker.halt.remote(halting)

    def close(self) -> None:
        """End the workers, and Ray where it was started here."""
        for worker in self._workers:
            self._ray.kill(worker)
        self._workers = []
        if self._started:
            self._ray.shutdown()


class _Worker:
    """In its own process: models, kit, and the graph of a record."""

    def __init__(self, shared: tuple[Spec, Rows]) -> None:
        self._spec, auxiliary = shared
        models, limits = self._spec.models, self._spec.limits
        self._kit: Kit | None = None
        self._failed: QuantextError | None = None
        try:
            self._chat = chat_model(models.chat, models, limits)
            verify = models.verify or models.chat
            self._verify = self._chat if verify == models.chat else chat_model(verify, models, limits)
            self._kit = prepare(self._spec, auxiliary, self._chat, self._verify)
        except QuantextError as error:
            self._failed = error

    def run(self, step: Step, chunk: list[Any]) -> tuple[list[Any], Exception | None]:
        """Results for a chunk, and the error that ended it. Ray would log what is raised."""
        if self._kit is None:
            return [], self._failed
        results: list[Any] = []
        threads = max(1, self._spec.limits.concurrency // _IN_WORK)
        try:
            items = ahead(step, self._kit, chunk)
            run_pass(items, work(step, self._kit), results.append, workers=threads, stop=lambda: False)
        except Halted as error:
            return results, Halted(str(error))
        except QuantextError as error:
            return results, error
        except Exception as error:
            return results, RuntimeError(f"a record failed on a worker ({type(error).__name__})")
        return results, None

    def halt(self, halting: bool) -> None:
        if self._kit is not None:
            self._chat.halt(halting)
            self._verify.halt(halting)

    def pid(self) -> int:
        return os.getpid()


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    source = iter(items)
    while chunk := list(islice(source, size)):
        yield chunk


def _share(spec: Spec, workers: int) -> Spec:
    """The spec of one worker of several, whose limits add up to the run's."""
    limits = spec.limits
    shares = {
        name: value / workers
        for name in ("requests_per_minute", "tokens_per_minute")
        if (value := getattr(limits, name)) is not None
    }
    concurrency = max(1, -(-limits.concurrency // workers))
    return spec.model_copy(
        update={"limits": limits.model_copy(update={"concurrency": concurrency, **shares})}
    )


def _refuse_embedded(spec: Spec) -> None:
    for model in (spec.models.chat, spec.models.verify):
        if model is not None and model.embedded:
            raise RayError(
                f"{model.model}: runs inside one process, and workers would each load it for the same cores; "
                "serve a model (`openai:` or `ollama:` with `base_url`), or leave `executor: threads`"
            )


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # it warns of the arguments kept in `_shared`
    try:
        import ray
    except ImportError:
        raise RayError("executor: ray is not installed; `pip install 'quantext-graph[ray]'`") from None
    return ray


def _start(ray: Any, spec: Spec) -> bool:
    """Join the cluster that RAY_ADDRESS names, or start one here; true where it was started."""
    if not ray.is_initialized():
        given: dict[str, Any] = {}
        if not os.environ.get("RAY_ADDRESS"):
            given = {
                "address": "local",
                "num_cpus": max(1, spec.limits.workers),
                "include_dashboard": False,
                "_node_ip_address": "127.0.0.1",
                "_system_config": {"automatic_object_spilling_enabled": False},  # texts stay off the disk
            }
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **given)
        started = True
    else:
        started = False
    here = ray.util.get_node_ip_address()
    away = sorted({node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]} - {here})
    if away and not spec.models.allow_remote:
        if started:
            ray.shutdown()
        refuse_remote("executor: ray", away[0], allow_remote=False)
    return started
