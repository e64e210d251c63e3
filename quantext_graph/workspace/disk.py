"""What the disk refuses, in one line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quantext_graph.spec.errors import QuantextError


class WorkspaceError(QuantextError):
    """A workspace that cannot be used as asked."""

    public = True


@contextmanager
def one_line(folder: Path) -> Iterator[None]:
    """Turn what the disk refuses into one line."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise WorkspaceError(f"{folder}: {_disk_reason(str(error))}") from None
    except OSError as error:
        raise WorkspaceError(f"{folder}: {_disk_reason(error.strerror or type(error).__name__)}") from None


def _disk_reason(message: str) -> str:
    lowered = message.lower()
    if "full" in lowered or "no space" in lowered:
        return "the disk is full; free some space and run `quantext resume`: what is done is kept"
    if (
        "readonly" in lowered
        or "read-only" in lowered
        or "permission" in lowered
        or "unable to open" in lowered
    ):
        return f"cannot be written ({message}); check its permissions, or name another with --workspace"
    if "malformed" in lowered or "not a database" in lowered:
        return f"the store is damaged ({message}); restore it from a copy, or purge it and release anew"
    return f"the store refused ({message}); nothing that was committed is lost, `quantext resume` goes on"
