"""Where a run stands; reads only, and starts nothing that takes seconds to import."""

from __future__ import annotations

from pathlib import Path

from quantext_graph.release.estimate import Spent, spent
from quantext_graph.workspace.folder import Workspace
from quantext_graph.workspace.records import Counts, Failure


def status(workspace: Path) -> Counts:
    """How far a run is; reads only."""
    with Workspace.open(workspace) as opened:
        return opened.store.counts()


def failures(workspace: Path) -> list[Failure]:
    """Records that a step failed on, with the reasons; reads only. Private."""
    with Workspace.open(workspace) as opened:
        return list(opened.store.failures())


def usage(workspace: Path) -> list[Spent]:
    """Calls, tokens, seconds and money so far by step and model, retries included; reads only."""
    with Workspace.open(workspace) as opened:
        return spent(opened.spec, opened.store.usage())
