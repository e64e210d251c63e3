"""The command line: what a user does wrong is one line and exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from releases import obedient, small_release, write_data, write_spec

from quantext_graph.apps.cli.main import main
from quantext_graph.release.run import Run
from quantext_graph.workspace.folder import Workspace


class Shell:
    """Runs `quantext ...` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capfd = monkeypatch, capfd

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["quantext", *map(str, arguments)])
        self._capfd.readouterr()
        try:
            main()
            code = 0
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        said = self._capfd.readouterr()
        return code, said.out, said.err

    def refused(self, *arguments: object) -> str:
        """The one line of a command that must be refused."""
        code, _, error = self(*arguments)
        assert code == 2, error
        lines = [line for line in error.splitlines() if line.startswith("quantext:")]
        assert len(lines) == 1
        assert error.splitlines()[-1] == lines[0]
        assert "Traceback" not in error
        return lines[0]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capfd)


def test_check_says_what_a_release_would_be(tmp_path: Path, shell: Shell) -> None:
    write_data(tmp_path, 50)
    spec = write_spec(tmp_path, "http://127.0.0.1:9/v1")  # no server is asked
    code, out, _ = shell("check", spec, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["records"] == 50
    assert list(found["attributes"]) == ["gender", "diagnosis"]
    assert found["components"] in (1 + 2, 1 + 3)
    assert found["leakage"]["bound_nats"] == pytest.approx(1.0, abs=0.01)
    assert found["leakage"]["vacuous"] is False
    assert found["estimate"]["calls"] >= 2 * 50
    assert sorted(path.name for path in tmp_path.iterdir()) == ["private.csv", "public.csv", "spec.yaml"]
    code, out, _ = shell("check", spec)
    assert code == 0
    assert "at most 2.72 times as likely" in out


def test_check_calls_a_vacuous_bound_vacuous(tmp_path: Path, shell: Shell) -> None:
    write_data(tmp_path, 50)
    mechanism = {"selection": "per_component", "gamma": 120, "k": 10, "pool_size": 1200}
    spec = write_spec(tmp_path, "http://127.0.0.1:9/v1", mechanism=mechanism)
    code, out, _ = shell("check", spec)
    assert code == 0
    assert "The bound is vacuous" in out


def test_status_counts(tmp_path: Path, shell: Shell) -> None:
    with obedient() as server, Run.start(small_release(tmp_path, server.url, n=8)) as run:
        run.go()
    code, out, _ = shell("status", tmp_path / "release.work", "--json")
    assert code == 0
    expected = {"stage": "gate", "n": 8, "labeled": 8, "rewritten": 8, "verified": 8, "unverified": 0}
    found = json.loads(out)
    assert {key: found[key] for key in expected} == expected
    steps = {row["step"]: row["calls"] for row in found["usage"]}
    assert steps["extract"] == 8
    assert set(steps) == {"label", "extract", "rewrite", "verify", "judge"}


def test_release_waits_at_the_gate_where_nobody_can_answer(tmp_path: Path, shell: Shell) -> None:
    with obedient() as server:
        write_data(tmp_path, 8)
        spec = write_spec(tmp_path, server.url)
        code, out, _ = shell("release", spec)
        assert code == 0
        assert "quantext publish" in out
        assert not (tmp_path / "release").exists()
        assert "in use already" not in shell.refused("publish", tmp_path / "release.work")
        code, _, _ = shell("publish", tmp_path / "release.work", "--yes")
        assert code == 0
        assert (tmp_path / "release" / "data.csv").is_file()
        assert "holds something already" in shell.refused("publish", tmp_path / "release.work", "--yes")
        code, out, _ = shell("ledger", tmp_path / "private.csv", "--text", "message")
        assert "1 releases so far, 1.00 nats spent" in out


def test_preview_keeps_nothing(tmp_path: Path, shell: Shell) -> None:
    with obedient() as server:
        write_data(tmp_path, 8)
        spec = write_spec(tmp_path, server.url)
        code, out, _ = shell("preview", spec, "-n", 2)
    assert code == 0
    assert out.count("before  (") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["private.csv", "public.csv", "spec.yaml"]


def edit(path: Path, line: int, text: str) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[line] = text
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"data": {"path": "privat.csv"}}, ["privat.csv", "no such file"]),
        ({"data": {"text": "mesage"}}, ["private.csv", "mesage", "message"]),
        ({"auxiliary": {"columns": {"gender": "sex"}}}, ["public.csv", "sex"]),
        ({"limits": {"attemps": 2}}, ["limits.attemps", "did you mean 'attempts'?"]),
        ({"mechanism": {"budget_nats": -1}}, ["mechanism.budget_nats"]),
        ({"mechanism": {"budget_nats": 9, "pool_size": 100}}, ["pool", "budget"]),
        ({"auxiliary": None}, ["2 attributes", "auxiliary"]),
        ({"models": {"chat": "openai:gpt-4o-mini"}}, ["allow_remote"]),
        ({"models": {"chat": "embedded:no-such-model"}}, ["no-such-model"]),
        (
            {"models": {"chat": {"model": "openai:tiny", "base_url": "http://127.0.0.1:9/v1"}}},
            ["127.0.0.1:9"],
        ),
    ],
)
def test_a_mistake_in_the_spec_is_one_line(
    tmp_path: Path, shell: Shell, sections: dict[str, Any], words: list[str]
) -> None:
    write_data(tmp_path, 8)
    spec = write_spec(tmp_path, "http://127.0.0.1:9/v1", **sections)
    line = shell.refused("release", spec, "--yes")
    assert [word for word in words if word not in line] == []


def test_a_category_outside_the_list_is_named_with_its_row(tmp_path: Path, shell: Shell) -> None:
    write_data(tmp_path, 8)
    edit(tmp_path / "public.csv", 3, "A letter,femal,diabetes")
    line = shell.refused("release", write_spec(tmp_path, "http://127.0.0.1:9/v1"), "--yes")
    assert "row 3" in line
    assert "gender" in line


def test_an_empty_text_is_refused_with_its_row_or_dropped(tmp_path: Path, shell: Shell) -> None:
    write_data(tmp_path, 8)
    edit(tmp_path / "private.csv", 5, "4,   ")
    assert "row 5" in shell.refused("check", write_spec(tmp_path, "http://127.0.0.1:9/v1"))
    code, out, _ = shell(
        "check", write_spec(tmp_path, "http://x.invalid", limits={"on_missing": "drop"}), "--json"
    )
    assert code == 0
    assert json.loads(out)["records"] == 7
    assert json.loads(out)["dropped"] == {"text": 1}


def test_a_second_run_on_the_same_workspace_is_refused(tmp_path: Path, shell: Shell) -> None:
    write_data(tmp_path, 8)
    with obedient() as server:
        spec = write_spec(tmp_path, server.url)
        Workspace.create(
            tmp_path / "release.work", Run.start(small_release(tmp_path, server.url, 8), tmp_path / "x").spec
        )
        assert "quantext resume" in shell.refused("release", spec, "--yes")
        with Workspace.open(tmp_path / "release.work").locked():
            assert "in use by process" in shell.refused("resume", tmp_path / "release.work", "--yes")


@pytest.mark.parametrize("command", ["status", "resume", "publish", "purge"])
def test_no_workspace_is_one_line(tmp_path: Path, shell: Shell, command: str) -> None:
    assert "no workspace here" in shell.refused(command, tmp_path / "nothing")


def test_usage_is_one_line(shell: Shell) -> None:
    assert "spec" in shell.refused("check").lower()
    assert "relese" in shell.refused("relese")


def test_purge_asks_and_removes(tmp_path: Path, shell: Shell) -> None:
    spec = small_release(tmp_path, "http://127.0.0.1:9/v1")
    Workspace.create(tmp_path / "work", spec).close()
    assert "kept" in shell.refused("purge", tmp_path / "work")
    code, _, _ = shell("purge", tmp_path / "work", "--yes")
    assert code == 0
    assert not (tmp_path / "work").exists()


def test_init_writes_a_spec_that_loads(tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    write_data(tmp_path, 8, auxiliary=24)
    public = (tmp_path / "public.csv").read_text(encoding="utf-8")
    (tmp_path / "labelled.csv").write_text(public.replace("Public", "Private"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code, _, _ = shell("init", "labelled.csv", "--auxiliary", "public.csv", "--text", "message")
    assert code == 0
    code, said, error = shell("check", "spec.yaml")
    assert code == 0, error
    assert said.startswith("24 records in labelled.csv")
    assert "stands already" in shell.refused("init", "labelled.csv")


LEARN = {"sklearn", "torch", "pandas", "matplotlib", "pyarrow"}
CALL = {
    "openai",
    "ollama",
    "langchain_openai",
    "langchain_ollama",
    "langchain_core",
    "langgraph",
    "scipy.optimize",
}


@pytest.mark.parametrize(
    ("module", "slow"),
    [
        ("apps.cli.main", LEARN | CALL),
        ("release.check", LEARN | CALL),
        ("release.standing", LEARN | CALL),
        ("release.run", LEARN | {"openai", "ollama", "scipy.optimize"}),
        ("release.background", LEARN | {"openai", "ollama", "scipy.optimize"}),
        ("apps.mcp.server", LEARN),
        ("apps.chat.session", LEARN),
    ],
)
def test_what_starts_often_starts_without_the_packages_that_take_seconds(module: str, slow: set[str]) -> None:
    told = f"import sys, quantext_graph.{module}; print(sorted({slow} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
