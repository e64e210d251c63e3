"""Start, resume, status, publish: what the command line, the chat and the MCP server all call."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command

from quantext_graph.graph.progress import Listener
from quantext_graph.graph.release_graph import build_graph
from quantext_graph.graph.resources import OwnModels, Resources
from quantext_graph.graph.state import Progress, Question, ReleaseContext
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.disk import one_line
from quantext_graph.workspace.folder import (
    FIGURES,
    REPORT,
    Workspace,
    default_workspace,
    lock,
    private_file,
)
from quantext_graph.workspace.publish import publish as publish_folder

_THREAD: RunnableConfig = {"configurable": {"thread_id": "release"}}


class Interrupted(QuantextError):
    """A run that was told to stop; what is done is kept."""

    exit_code = 130
    public = True


@dataclass(frozen=True)
class Outcome:
    """Where a run stands: at the gate (`question` is set), published, or refused."""

    workspace: Path
    progress: Progress
    question: Question | None = None


class Run:
    """One release in its workspace; `**own` are an app's own models, as for `build_graph`.

    Use as a context manager: leaving it closes the models that were opened.
    """

    def __init__(
        self,
        spec: Spec,
        workspace: Path,
        *,
        output: Path | None = None,
        resources: Resources | None = None,
        control: RunControl | None = None,
        **own: Unpack[OwnModels],
    ) -> None:
        self.spec = spec
        self.workspace = workspace
        self.control = control or RunControl()
        self.output = output or spec.output.path
        self._resources = Resources.held(spec, resources, own)

    @classmethod
    def start(cls, spec: Spec, workspace: Path | None = None, **options: Any) -> Run:
        """A new run; its workspace must not exist yet.

        Raises:
            QuantextError: where the workspace is in use already.
        """
        folder = workspace or default_workspace(spec)
        Workspace.create(folder, spec).close()
        return cls(spec, folder, **options)

    @classmethod
    def resume(
        cls,
        workspace: Path,
        *,
        retry_failed: bool = False,
        min_verified: float | None = None,
        **options: Any,
    ) -> Run:
        """Go on with a run where it stopped: same draw, nothing done twice."""
        with Workspace.open(workspace) as opened, opened.locked():
            spec = opened.spec
            if min_verified is not None:
                limits = spec.limits.model_copy(update={"min_verified": min_verified})
                spec = spec.model_copy(update={"limits": limits})
                opened.store.set_meta("spec", spec.model_dump(mode="json"))
            if retry_failed:
                opened.store.forget_unverified()
                for name in ("checkpoints.sqlite", FIGURES, REPORT):  # of texts that will be others
                    (workspace / name).unlink(missing_ok=True)
        return cls(spec, workspace, **options)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def go(self, listener: Listener | None = None) -> Outcome:
        """Run to the gate, or on from wherever the last process stopped.

        Raises:
            Interrupted: after a drain request; the run can be resumed.
            QuantextError: what stops a run, in one line.
        """
        return self._stream(None, listener)

    def answer(self, approve: bool, reason: str = "", listener: Listener | None = None) -> Outcome:
        """Answer the gate's question; publishes where `approve` is true."""
        return self._stream(Command(resume={"approve": approve, "reason": reason}), listener)

    def _stream(self, command: Command[Any] | None, listener: Listener | None) -> Outcome:
        path = self.workspace / "checkpoints.sqlite"
        context = ReleaseContext(str(self.workspace), str(self.output))
        question = None
        with lock(self.workspace), _checkpoints(path) as saver:
            graph = build_graph(self.spec, checkpointer=saver, resources=self._resources)
            begun = bool(graph.get_state(_THREAD).next)
            given: Any = command if command is not None else (None if begun else {})
            stream: Any = graph.stream(
                given, _THREAD, context=context, stream_mode=["custom", "updates"], control=self.control
            )
            try:
                for mode, chunk in stream:
                    if mode == "custom" and listener is not None:
                        listener(chunk)
                    elif mode == "updates" and "__interrupt__" in chunk:
                        question = chunk["__interrupt__"][0].value
            except GraphDrained:
                raise Interrupted(
                    f"{self.workspace}: stopped, what is done is kept; "
                    f"`quantext resume {self.workspace}` goes on"
                ) from None
            progress = graph.get_state(_THREAD).values.get("quantext", {})
        return Outcome(self.workspace, progress, question)


@contextmanager
def _checkpoints(path: Path) -> Iterator[SqliteSaver]:
    if not path.exists():
        private_file(path)
    try:
        with SqliteSaver.from_conn_string(str(path)) as saver:
            yield saver
    except sqlite3.DatabaseError:
        with one_line(path.parent):
            raise


def publish(workspace: Path, output: Path | None = None) -> Path:
    """Publish a run that stands at the gate, or was refused there and is wanted now.

    Raises:
        QuantextError: where the run is not finished.
    """
    with Workspace.open(workspace) as opened, opened.locked():
        return publish_folder(opened, output or opened.spec.output.path)


@contextmanager
def stoppable(control: RunControl, say: Callable[[str], None]) -> Iterator[None]:
    """Within this block SIGINT and SIGTERM end the run after the records in work; a second one at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _: object) -> None:
        if control.drain_requested:
            os._exit(130)
        control.request_drain(signal.Signals(number).name)
        say("stopping after the records in work; again to stop at once")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
