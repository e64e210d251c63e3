"""Runs in processes of their own, to be killed, stopped and starved.

They are forked from one that has imported the program: what is tested begins at `main`, and a process
that imports for two seconds before it can be killed tells nothing more.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "pytest",
        "quantext_graph.apps.cli.main",
        "quantext_graph.release.run",
        "quantext_graph.models.resolve",
        "quantext_graph.audit.quantification",
    ]
)


class Started:
    """A process of `quantext`, with the words of `subprocess.Popen` that the tests use."""

    def __init__(self, folder: Path, arguments: tuple[str, ...], largest_file: int | None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="quantext-test-")  # goes with this object
        self._said = Path(self._folder.name)
        self._process = FORKS.Process(
            target=_main, args=(folder, arguments, self._said, dict(os.environ), largest_file)
        )
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutError(f"process {self.pid} still runs after {timeout} s")
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        self.wait(timeout)
        return (self._said / "out").read_text(), (self._said / "err").read_text()


def start(spec: Path, *arguments: str, largest_file: int | None = None) -> Started:
    """`quantext` in the folder of the spec; no file that it writes grows beyond `largest_file` bytes."""
    return Started(spec.parent, arguments, largest_file)


def _main(
    folder: Path,
    arguments: tuple[str, ...],
    said: Path,
    environment: dict[str, str],
    largest_file: int | None,
) -> None:
    from quantext_graph.apps.cli.main import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(said / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))
    sys.argv = ["quantext", *arguments]
    main()


def wait_for_some_work(workspace: Path, process: Started, seconds: float) -> None:
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
