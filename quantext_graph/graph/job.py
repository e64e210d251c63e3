"""The job of a node's run: its workspace, open and locked, models, progress, and whether to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from langgraph.runtime import Runtime

from quantext_graph.graph.progress import Listener, sparing
from quantext_graph.graph.resources import Resources
from quantext_graph.graph.state import ReleaseContext
from quantext_graph.spec.models import Spec
from quantext_graph.steps.context import Kit
from quantext_graph.workspace.folder import Workspace, default_workspace, open_or_create
from quantext_graph.workspace.store import Store

PROGRESS_SECONDS = 0.1
"""Between two events of a stage."""


@dataclass(frozen=True)
class Job:
    """One run as a stage of it meets it: everything the stage needs, and nothing of LangGraph."""

    spec: Spec
    workspace: Workspace
    output: Path
    resources: Resources
    emit: Listener
    stop: Callable[[], bool]

    @property
    def store(self) -> Store:
        return self.workspace.store

    def idle(self) -> None:
        """Between results: keep what is there, and do not wait for a server once told to stop."""
        self.store.commit()
        self.resources.halt(self.stop())

    @property
    def kit(self) -> Kit:
        return self.resources.kit(self.emit)

    @classmethod
    @contextmanager
    def of(
        cls, spec: Spec, runtime: Runtime[ReleaseContext], resources: Resources, default: ReleaseContext
    ) -> Iterator[Job]:
        """The job of one node's run; holds the workspace's lock while it lasts. As a subgraph the graph
        meets its parent's context, which may be of any kind: then `default` says where the run lives."""
        context = runtime.context if isinstance(runtime.context, ReleaseContext) else default
        folder = Path(context.workspace) if context.workspace else default_workspace(spec)
        workspace = open_or_create(folder, spec)
        output = Path(context.output) if context.output else spec.output.path
        with workspace.locked(stage=True):
            try:
                emit = sparing(runtime.stream_writer, PROGRESS_SECONDS)
                yield cls(spec, workspace, output, resources, emit, lambda: runtime.drain_requested)
            finally:
                workspace.close()
