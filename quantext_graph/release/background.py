"""Runs in the background: each is a process of its own, which outlives whoever started it.

The process goes to the gate and ends there. All that others know of it they read in its workspace, so a
chat that crashes or a client that hangs up loses nothing: ask again later, or start the run again and it
goes on. It is stopped with SIGTERM, which keeps what is done.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from langsmith import tracing_context
from pydantic import TypeAdapter

from quantext_graph.graph.progress import Listener, ProgressEvent, sparing
from quantext_graph.release.run import Run, stoppable
from quantext_graph.release.standing import status
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.disk import WorkspaceError, one_line
from quantext_graph.workspace.folder import Workspace
from quantext_graph.workspace.records import Counts, Kept

Form = TypeVar("Form")
State = Literal["running", "gate", "published", "stopped", "failed"]

_LOCKS = ("runner.lock", "lock")  # held by the process of a run, and by any process while it works there
_STEP, _END = "step.json", "end.json"
_STEP_SECONDS = 0.5

_children: list[subprocess.Popen[bytes]] = []


class End(Kept):
    """Why a run ended short of the gate, in words for its holder and for anybody."""

    reason: str = ""
    public_reason: str = ""
    exit_code: int = 130


_STEP_JSON, _END_JSON = TypeAdapter(ProgressEvent), TypeAdapter(End)


@dataclass(frozen=True)
class Standing:
    """Where a run stands. Public: `state`, `stage`, `n`, `labeled`, `rewritten`, `step`, `public_reason`.
    Private: how many reached their target, and `reason`, why it ended short of the gate.

    `step` is what is being done.
    """

    workspace: Path
    state: State
    counts: Counts
    step: ProgressEvent | None = None
    reason: str = field(default="", repr=False)
    public_reason: str = ""

    def public(self) -> dict[str, Any]:
        """What any chat model may read."""
        counts = self.counts
        said: dict[str, Any] = {
            "workspace": str(self.workspace),
            "state": self.state,
            "records": counts.n,
            "to_be_released": counts.released,
            "labelled": counts.labeled,
            "rewritten": counts.rewritten,
        }
        if self.step is not None and self.state == "running":
            said["doing"] = dict(self.step)
        if self.public_reason and self.state in ("stopped", "failed"):
            said["reason"] = self.public_reason
        return said


def start(spec: Spec, workspace: Path | None = None) -> Path:
    """Start a run of its own process and return its workspace, which must not exist yet.

    Raises:
        WorkspaceError: where the workspace is in use.
    """
    run = Run.start(spec, None if workspace is None else workspace.absolute())
    _spawn(run.workspace)
    return run.workspace


def resume(workspace: Path, *, retry_failed: bool = False) -> None:
    """Go on with a run that ended short of the gate, or (`retry_failed`) write again what missed its target.

    Raises:
        WorkspaceError: where there is no run, it is at work, or it is published.
    """
    found = standing(workspace)
    if found.state == "running":
        raise WorkspaceError(f"{workspace}: at work already")
    if found.state == "published":
        raise WorkspaceError(f"{workspace}: published already; a new release needs a new workspace")
    if found.state == "gate" and not retry_failed:
        raise WorkspaceError(f"{workspace}: done, it waits to be published or refused")
    _spawn(workspace.absolute(), *(["--retry-failed"] if retry_failed else []))


def standing(workspace: Path) -> Standing:
    """Where a run stands; reads only.

    Raises:
        WorkspaceError: where there is none.
    """
    _reap()
    worker = _worker(workspace)
    counts = status(workspace)
    if worker is not None:
        return Standing(workspace, "running", counts, _read(workspace / _STEP, _STEP_JSON))
    if counts.stage in ("gate", "published"):
        return Standing(workspace, "gate" if counts.stage == "gate" else "published", counts)
    end = _read(workspace / _END, _END_JSON) or End()
    state: State = "stopped" if end.exit_code == 130 else "failed"
    return Standing(workspace, state, counts, None, end.reason, end.public_reason)


def cancel(workspace: Path, seconds: float = 10.0) -> Standing:
    """Ask the process of a run to stop after the records in work, and wait so long for it.

    A second call ends a process that is still busy with its first words, at once.

    Raises:
        WorkspaceError: where there is no run, or nothing is at work in it.
    """
    status(workspace)
    worker = _worker(workspace)
    if worker is None:
        raise WorkspaceError(f"{workspace}: nothing is at work here")
    if worker > 0:  # 0, a process that has not written its number yet, would mean our own group
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGTERM)
    return wait(workspace, seconds)


def wait(workspace: Path, seconds: float) -> Standing:
    """Where a run stands once it has ended, or after so many seconds."""
    end = time.monotonic() + seconds
    while (found := standing(workspace)).state == "running" and time.monotonic() < end:
        time.sleep(0.1)
    return found


def workspaces(folder: Path) -> list[Path]:
    """The workspaces in a folder and the folders in it."""
    stores = {*folder.glob("*/store.sqlite"), *folder.glob("*/*/store.sqlite")}
    return sorted(store.parent for store in stores)


def _spawn(folder: Path, *options: str) -> None:
    with one_line(folder):
        handle = os.open(folder / _LOCKS[0], os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # The child inherits the lock: there is no moment at which the run looks abandoned.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for name in (_STEP, _END):
            (folder / name).unlink(missing_ok=True)
        child = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "quantext_graph.release.background", str(folder), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(handle,),
        )
        os.truncate(handle, 0)
        os.pwrite(handle, str(child.pid).encode(), 0)
    except BlockingIOError:
        raise WorkspaceError(f"{folder}: at work already") from None
    finally:
        os.close(handle)
    _children.append(child)


def _reap() -> None:
    _children[:] = [child for child in _children if child.poll() is None]


def _worker(workspace: Path) -> int | None:
    """The process that holds the run: ours, or one of the command line."""
    for name in _LOCKS:
        try:
            handle = os.open(workspace / name, os.O_RDONLY)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(handle, 32)
            return int(pid) if pid.isdigit() else 0
        finally:
            os.close(handle)
    return None


def _read(path: Path, form: TypeAdapter[Form]) -> Form | None:
    """What the process of a run left here; None where there is nothing whole."""
    try:
        return form.validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def _steps(workspace: Workspace) -> Listener:
    """Writes what is being done into the workspace, now and then: counts, nothing of a record."""

    def write(event: ProgressEvent) -> None:
        step = ProgressEvent(stage=event["stage"], done=event["done"], total=event["total"])
        workspace.write_private(_STEP, json.dumps(step))

    return sparing(write, _STEP_SECONDS)


def _work(folder: Path, retry_failed: bool) -> None:
    """Run to the gate, and leave word in the workspace where it does not come so far."""
    workspace = Workspace.open(folder)
    try:
        # Nobody is there to be warned that the counts of a run would leave this machine.
        with (
            tracing_context(enabled=False),
            Run.resume(folder, retry_failed=retry_failed) as run,
            stoppable(run.control, lambda _: None),
        ):
            run.go(_steps(workspace))
    except QuantextError as error:
        end = End(reason=str(error), public_reason=error.public_line, exit_code=error.exit_code)
        workspace.write_private(_END, json.dumps(end.model_dump()))
        sys.exit(error.exit_code)
    except Exception as error:
        # The message of an unknown exception may hold a record's text: it is not kept.
        fault = f"a fault of the program ({type(error).__name__})"
        end = End(reason=fault, public_reason=fault, exit_code=1)
        workspace.write_private(_END, json.dumps(end.model_dump()))
        if os.environ.get("QUANTEXT_DEBUG"):
            raise
        sys.exit(1)
    finally:
        workspace.close()


def main() -> None:
    """`python -m quantext_graph.release.background WORKSPACE`: the process of one run."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("workspace", type=Path)
    arguments.add_argument("--retry-failed", action="store_true")
    given = arguments.parse_args()
    _work(given.workspace, given.retry_failed)


if __name__ == "__main__":
    main()
