"""What befalls a run from outside: signals, disks, clocks, other processes. Nothing that was done is lost,
and what a person reads is one line."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from processes import start, wait_for_some_work
from releases import obedient, small_release, write_data, write_spec
from servers import Act

from quantext_graph.apps.cli import main as cli
from quantext_graph.data.records import open_table
from quantext_graph.release.run import Run, publish
from quantext_graph.release.standing import status
from quantext_graph.workspace.disk import WorkspaceError
from quantext_graph.workspace.folder import purge


def count(folder: Path) -> int:
    return len(open_table(folder / "release" / "data.csv"))


def finish(workspace: Path) -> None:
    with Run.resume(workspace) as run:
        run.go()
        run.answer(True)


def last_line(errors: str) -> str:
    """What the program said at the end, which must be one line of it and no traceback."""
    assert "Traceback" not in errors
    return errors.strip().splitlines()[-1]


def test_sigterm_in_an_outage_ends_the_run_soon_also_after_a_sleep(tmp_path: Path) -> None:
    """Calls that wait for a server which is away would wait for minutes."""
    server = obedient(seconds=0.05)
    write_data(tmp_path, 60)
    model = {"model": "openai:tiny", "base_url": server.url, "timeout": 1.0}
    spec, workspace = write_spec(tmp_path, server.url, models={"chat": model}), tmp_path / "release.work"
    process = start(spec, "release", str(spec), "--yes")
    wait_for_some_work(workspace, process, 0.1)
    process.send_signal(signal.SIGSTOP)  # the machine sleeps for longer than a call may take
    time.sleep(1.5)
    process.send_signal(signal.SIGCONT)
    time.sleep(0.5)
    server.stop()
    time.sleep(2.0)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)  # an outage may last for five minutes
    assert process.returncode == 130
    assert "quantext resume" in last_line(errors)
    assert "waiting for it" in errors, "the outage was told"
    with obedient(seconds=0.02, port=server.port):
        finish(workspace)
    assert count(tmp_path) == 60


def test_a_second_ctrl_c_ends_the_run_at_once(tmp_path: Path) -> None:
    slow = True

    def some(number: int, _: dict[str, Any], act: Act) -> Act:
        return Act(act.text, seconds=30.0 if slow and number > 20 else 0.0)

    with obedient(faulty=some) as server:
        write_data(tmp_path, 30)
        spec, workspace = write_spec(tmp_path, server.url), tmp_path / "release.work"
        process = start(spec, "release", str(spec), "--yes")
        wait_for_some_work(workspace, process, 1.5)
        process.send_signal(signal.SIGINT)
        time.sleep(1.0)
        assert process.poll() is None, "the first one waits for the records in work"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=25)  # a record in work takes 30 s
        assert process.returncode == 130
        assert "again to stop at once" in errors
        slow = False
        before = status(workspace).labeled
        assert before > 0
        finish(workspace)
    assert count(tmp_path) == 30


def test_a_disk_that_is_full_is_one_line_and_the_run_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """The kernel refuses every file of this process over 150 kB."""
    with obedient() as server:
        write_data(tmp_path, 300)
        spec, workspace = write_spec(tmp_path, server.url), tmp_path / "release.work"
        process = start(spec, "release", str(spec), "--yes", largest_file=150_000)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 2, errors
        assert "quantext resume" in last_line(errors)
        assert 0 < status(workspace).rewritten + status(workspace).labeled < 600
        finish(workspace)
    assert count(tmp_path) == 300


def test_a_workspace_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with obedient() as server:
        spec = small_release(tmp_path, server.url, n=8)
        with Run.start(spec) as run:
            run.go()
    for path in [*run.workspace.iterdir(), run.workspace]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    if os.geteuid() == 0:
        _read_only_for_root(run.workspace)
        return
    try:
        with pytest.raises(WorkspaceError, match="cannot be written"), Run.resume(run.workspace) as again:
            again.answer(True)
    finally:
        run.workspace.chmod(0o700)
    assert not (tmp_path / "release").exists()


def _read_only_for_root(workspace: Path) -> None:
    """Root writes everywhere, so somebody else is asked to."""
    for folder in [workspace, *workspace.parents]:
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(0o755)
    for path in workspace.iterdir():
        path.chmod(0o444)
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        try:
            Run.resume(workspace)
        except WorkspaceError as error:
            os._exit(0 if "cannot be written" in str(error) else 3)
        except BaseException:
            os._exit(4)
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_clock_that_jumps_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, real = random.Random(3), time.time
    monkeypatch.setattr(time, "time", lambda: real() + chance.choice([-9e5, -60.0, 0.0, 3600.0, 9e5]))
    busy = [Act(status=429, headers={"Retry-After": "0.1"}), Act(status=503)]
    with obedient(faulty=lambda number, _b, act: busy[number % 2] if number % 10 == 9 else act) as server:
        spec = small_release(tmp_path, server.url, n=20)
        with Run.start(spec) as run:
            run.go()  # a wait until a clock that jumped says so would not end
            run.answer(True)
    assert count(tmp_path) == 20


def test_a_second_process_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with obedient(seconds=0.2) as server:
        write_data(tmp_path, 200)
        spec, workspace = write_spec(tmp_path, server.url), tmp_path / "release.work"
        first = start(spec, "release", str(spec), "--yes")
        wait_for_some_work(workspace, first, 0.1)
        for refused in (Run.resume, publish, purge):
            with pytest.raises(WorkspaceError, match=f"in use by process {first.pid}"):
                refused(workspace)
        first.kill()
        first.communicate()
    Run.resume(workspace)  # what a killed process held is free


def test_failed_records_are_listed_with_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every reply about case 3 is prose."""

    def prose(_: int, body: dict[str, Any], act: Act) -> Act:
        return Act("I would rather not say.") if "Case 3 " in json.dumps(body) else act

    with obedient(faulty=prose) as server:
        spec = small_release(tmp_path, server.url, n=12, limits={"min_verified": 0.5})
        with Run.start(spec) as run:
            run.go()
        cli.status(run.workspace, failed=True)
        said = capsys.readouterr().out
        assert "row 4" in said, "the fourth row of the file"
        assert "label" in said
        assert "no JSON object" in said
        assert "Case 3" not in said
