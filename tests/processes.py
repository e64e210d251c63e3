"""Runs in processes of their own, to be killed, stopped and starved."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def start(spec: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """`quantext` with these arguments, in the folder of the spec."""
    command = [sys.executable, "-m", "quantext_graph", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=spec.parent, **options
    )


def wait_for_some_work(workspace: Path, process: subprocess.Popen[str], seconds: float) -> None:
    """Until the process works on records, and `seconds` more."""
    until = time.monotonic() + 60
    before = None
    while time.monotonic() < until and process.poll() is None:
        try:
            with sqlite3.connect(f"file:{workspace / 'store.sqlite'}?mode=ro", uri=True) as db:
                query = "SELECT (SELECT count(*) FROM labels) + (SELECT count(*) FROM rewrites)"
                now = db.execute(query).fetchone()[0]
        except sqlite3.OperationalError:
            now = None
        if before is not None and now is not None and now > before:
            break
        before = now if before is None else before
        time.sleep(0.05)
    time.sleep(seconds)
