"""The private folder of a run.

Everything private of a run lies here and nowhere else: mode 0700, files 0600.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from quantext_graph.spec.models import Spec
from quantext_graph.workspace.disk import WorkspaceError, one_line
from quantext_graph.workspace.store import Store

REPORT, FIGURES = "report.html", "audit.json"
"""The page and the figures of an audit, in the workspace of its run."""

_held: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())


class Workspace:
    """The folder of one run: its store, its checkpoints, its reports, its lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(folder / "store.sqlite")

    @classmethod
    def create(cls, folder: str | Path, spec: Spec) -> Workspace:
        """Make the folder and its empty store.

        Raises:
            WorkspaceError: where the folder is in use already or cannot be written.
        """
        folder = Path(folder)
        if (folder / "store.sqlite").exists():
            raise WorkspaceError(
                f"{folder}: a run is kept here already; `quantext resume {folder}` goes on with it, "
                f"`quantext purge {folder}` removes it, or name another with --workspace"
            )
        with one_line(folder):
            if folder.exists() and any(path.name != "store.new" for path in folder.iterdir()):
                raise WorkspaceError(f"{folder}: not empty and no workspace; name another with --workspace")
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
            private_file(folder / "store.new")
            store = Store(folder / "store.new")
            store.create()
            store.set_meta("spec", spec.model_dump(mode="json"))
            store.close()
            # The store appears whole or not at all.
            (folder / "store.new").rename(folder / "store.sqlite")
        return cls(folder)

    @classmethod
    def open(cls, folder: str | Path) -> Workspace:
        """Open a workspace that `create` made.

        Raises:
            WorkspaceError: where there is none, or its store is damaged.
        """
        folder = Path(folder)
        if not (folder / "store.sqlite").is_file():
            raise WorkspaceError(f"{folder}: no workspace here; `quantext release SPEC` makes one")
        workspace = cls(folder)
        workspace.store.meta("spec")
        return workspace

    @property
    def spec(self) -> Spec:
        return Spec.model_validate(self.store.meta("spec"))

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.store.close()

    @contextmanager
    def locked(self, *, stage: bool = False) -> Iterator[None]:
        """Hold the workspace; see `lock`."""
        with lock(self.folder, stage=stage):
            yield

    def write_private(self, name: str, content: str) -> Path:
        """Write a private file (mode 0600) of this run, whole or not at all."""
        path = self.folder / name
        with one_line(self.folder):
            draft = private_file(self.folder / f".{name}.new")
            draft.write_text(content, encoding="utf-8")
            draft.replace(path)
        return path


@contextmanager
def lock(folder: Path, *, stage: bool = False) -> Iterator[None]:
    """Hold a workspace for this run. A stage of a run that holds it already need not wait for it.

    Raises:
        WorkspaceError: with the pid of the process that holds it.
    """
    place = folder.resolve()
    if stage and place in _held.get():
        yield
        return
    with one_line(folder):
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            _take(handle)
        except BlockingIOError:
            pid = os.read(handle, 32).decode() or "unknown"
            raise WorkspaceError(
                f"{folder}: in use by process {pid}; wait for it, or stop it and resume"
            ) from None
        os.truncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        token = _held.set(_held.get() | {place})
        try:
            yield
        finally:
            _held.reset(token)
    finally:
        os.close(handle)


def purge(folder: str | Path) -> None:
    """Remove a workspace and all that is in it.

    Raises:
        WorkspaceError: where there is no workspace, or a process works in it.
    """
    workspace = Workspace.open(folder)
    with workspace.locked():
        workspace.close()
        with one_line(workspace.folder):
            shutil.rmtree(workspace.folder)


def _take(handle: int) -> None:
    """Lock a file, or fail. Whoever asks whether a run is at work holds its lock for a moment."""
    for _ in range(3):
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(0.02)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def private_file(path: Path) -> Path:
    """An empty file that only its owner may read; SQLite gives its side files the same mode."""
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return path


def open_or_create(folder: Path, spec: Spec) -> Workspace:
    if (folder / "store.sqlite").is_file():
        return Workspace.open(folder)
    return Workspace.create(folder, spec)


def default_workspace(spec: Spec) -> Path:
    """Beside the release folder: `release` → `release.work`."""
    return spec.output.path.with_name(spec.output.path.name + ".work")
