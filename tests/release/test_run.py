"""Whole runs over real sockets with a model that does as it is told."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from processes import start, wait_for_some_work
from releases import obedient, small_release, write_data, write_spec
from servers import Act

from quantext_graph.audit.auditing import lines_at_gate
from quantext_graph.data.records import open_table
from quantext_graph.graph.nodes import NotEnoughVerified
from quantext_graph.release.run import Interrupted, Run, publish
from quantext_graph.release.standing import status
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.loading import load_spec
from quantext_graph.workspace.folder import FIGURES, REPORT, Workspace
from quantext_graph.workspace.ledger import Ledger
from quantext_graph.workspace.store import GROUP


def released_rows(folder: Path) -> list[tuple[str | None, ...]]:
    return [row.values for row in open_table(folder / "data.csv")]


def test_from_file_to_release_folder(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    with obedient() as server, Run.start(small_release(tmp_path, server.url)) as run:
        outcome = run.go(events.append)
        assert outcome.question is not None
        assert outcome.question["report"]["n"] == 40
        assert not (tmp_path / "release").exists()
        done = run.answer(True)
    assert done.progress["decision"] == "approved"
    rows = released_rows(tmp_path / "release")
    assert len(rows) == 40
    assert all(row[2] in row[1] and row[3] in row[1] for row in rows)
    stages = [event["stage"] for event in events]
    assert [s for s in ("label", "match", "rewrite", "report") if s in stages] == [
        "label",
        "match",
        "rewrite",
        "report",
    ]
    assert status(tmp_path / "release.work").verified == 40
    private = json.loads((tmp_path / "release.work" / "report.json").read_text())["private"]
    assert sum(private["labels"]["diagnosis"].values()) == 40
    assert private["failures"] == {}
    assert {row["step"] for row in private["usage"]} == {"label", "extract", "rewrite", "verify", "judge"}
    known = json.loads((tmp_path / "release" / "release.json").read_text())
    targets = Counter(row[3] for row in rows)
    share = known["released_shares"]["share of diabetes"]
    assert abs(targets["diabetes"] / 40 - share) <= 1.5 / 40


def test_a_refused_release_stays_home_and_can_be_published_later(tmp_path: Path) -> None:
    with obedient() as server, Run.start(small_release(tmp_path, server.url)) as run:
        run.go()
        refused = run.answer(False, reason="ask the board first")
    assert refused.progress["decision"] == "refused"
    assert not (tmp_path / "release").exists()
    publish(tmp_path / "release.work")
    assert len(released_rows(tmp_path / "release")) == 40


def test_an_answer_that_is_none_is_asked_for_again(tmp_path: Path) -> None:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    from quantext_graph import ReleaseContext, build_graph

    with obedient() as server:
        spec = small_release(tmp_path, server.url, n=6)
        graph = build_graph(spec, checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "1"}}
        context = ReleaseContext(str(tmp_path / "work"), str(tmp_path / "out"))
        graph.invoke({}, config, context=context)
        for nonsense in ("yes", {"aprove": True}, 7):
            asked = graph.invoke(Command(resume=nonsense), config, context=context)
            assert "not an answer" in asked["__interrupt__"][0].value["error"]
        assert not (tmp_path / "out").exists()
        graph.invoke(Command(resume={"approve": True}), config, context=context)
    assert len(released_rows(tmp_path / "out")) == 6


def test_every_draw_is_entered_in_the_ledger_also_of_a_run_that_ends_there(tmp_path: Path) -> None:
    with obedient() as server:
        spec = small_release(tmp_path, server.url, limits={"min_verified": 1.0, "attempts": 1})
        with Run.start(spec) as run:
            run.go()
        with Run.start(spec, tmp_path / "second") as run:
            run.go()
    with Ledger.open() as ledger:
        texts = [row.values[1] or "" for row in open_table(tmp_path / "private.csv")]
        assert len(ledger.entries(ledger.fingerprint(texts))) == 2
        assert ledger.spent(ledger.fingerprint(texts)) == pytest.approx(2.0, abs=0.01)


def test_too_few_on_target_publishes_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    broken = True

    def mumble(number: int, body: dict[str, Any], act: Act) -> Act:
        if not broken or "snippets" in act.text or "gender" in act.text:
            return act
        if "openings" in act.text:
            return Act(json.dumps({"openings": [f"Well then, number {i} and" for i in range(30)]}))
        return Act(f" on and on it goes, {number} times about nothing at all.")

    with obedient(faulty=mumble) as server:
        spec = small_release(tmp_path, server.url, n=12, limits={"attempts": 1, "min_verified": 0.95})
        with Run.start(spec) as run, pytest.raises(NotEnoughVerified, match="nothing is published") as caught:
            run.go()
        assert caught.value.exit_code == 3
        before = status(run.workspace)
        assert before.rewritten == 12
        assert before.unverified > 0
        with pytest.raises(QuantextError, match="not finished"):
            publish(run.workspace)
        draw = Workspace.open(run.workspace).store.meta("draw")
        broken = False
        with Run.resume(run.workspace, retry_failed=True) as run:
            run.go()
            run.answer(True)
        assert Workspace.open(run.workspace).store.meta("draw") == draw
    assert len(released_rows(tmp_path / "release")) == 12


def test_a_second_try_forgets_the_audit_of_the_first(tmp_path: Path) -> None:
    """Whoever begins it: what stands in the report would be about texts that are no more."""
    with obedient() as server:
        spec = small_release(tmp_path, server.url, n=12)
        with Run.start(spec) as run:
            run.go()
        first = lines_at_gate(run.workspace, lambda _: None)
        assert first == lines_at_gate(run.workspace, lambda _: None)
        assert str(run.workspace / REPORT) in first[-1]
        Run.resume(run.workspace).__exit__()
        assert (run.workspace / REPORT).is_file()
        Run.resume(run.workspace, retry_failed=True).__exit__()
        assert not (run.workspace / REPORT).exists()
        assert not (run.workspace / FIGURES).exists()


def test_the_auxiliary_set_must_not_be_the_private_one(tmp_path: Path) -> None:
    with obedient() as server:
        write_data(tmp_path, 30)
        rows = (tmp_path / "private.csv").read_text(encoding="utf-8").splitlines()[1:]
        lines = ["message,gender,diagnosis", *(f"{row.split(',')[1]},female,asthma" for row in rows)]
        (tmp_path / "public.csv").write_text("\n".join(lines), encoding="utf-8")
        spec = load_spec(write_spec(tmp_path, server.url))
        with (
            Run.start(spec) as run,
            pytest.raises(QuantextError, match="30 of the 30 private texts stand in"),
        ):
            run.go()


def test_no_token_of_a_private_text_leaves_the_store(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A unique token in every text, label and id; snippets that cannot carry it; then a search."""
    token = "zqxjk7731"
    (tmp_path / "cache").mkdir()
    os.environ["QUANTEXT_CACHE"] = str(tmp_path / "cache")
    try:
        with obedient() as server:
            write_data(tmp_path, 30, mark=token)
            spec = load_spec(write_spec(tmp_path, server.url))
            with Run.start(spec) as run:
                run.go(lambda event: print(event))
                run.answer(True)
    finally:
        del os.environ["QUANTEXT_CACHE"]
    printed = capfd.readouterr()
    assert token not in printed.out + printed.err
    store = {"store.sqlite", "store.sqlite-wal", "store.sqlite-shm"}
    assert token not in (tmp_path / "release.work" / "report.json").read_text()
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name not in store]
    files += [path for path in Path(os.environ["QUANTEXT_LEDGER"]).parent.rglob("*") if path.is_file()]
    assert {"checkpoints.sqlite", "data.csv", "README.md", "release.json"} <= {path.name for path in files}
    leaks = [
        path.name for path in files if token.encode() in path.read_bytes() and path.name != "private.csv"
    ]
    assert leaks == []
    assert token.encode() in (tmp_path / "private.csv").read_bytes()


def test_killed_ten_times_it_ends_with_every_record_and_one_draw(tmp_path: Path) -> None:
    chance = random.Random(5)
    with obedient(seconds=0.03) as server:
        write_data(tmp_path, 240)
        spec = write_spec(tmp_path, server.url, limits={"concurrency": 4})
        workspace = tmp_path / "release.work"
        process = start(spec, "release", str(spec), "--yes")
        draws, kills = set(), 0
        while kills < 10:
            wait_for_some_work(workspace, process, chance.uniform(0.0, 0.3))
            if process.poll() is not None:
                break
            process.kill()
            process.wait()
            kills += 1
            opened = Workspace.open(workspace)
            if (draw := opened.store.meta("draw")) is not None:
                draws.add(json.dumps(draw))
            opened.close()
            process = start(spec, "resume", str(workspace), "--yes")
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert kills == 10
    assert len(draws) == 1
    assert len(released_rows(tmp_path / "release")) == 240
    assert 240 <= server.asked_for("texts") <= 240 + kills * (GROUP + 4)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_keeps_what_was_in_work_and_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    with obedient(seconds=0.03) as server:
        write_data(tmp_path, 60)
        spec = write_spec(tmp_path, server.url)
        workspace = tmp_path / "release.work"
        process = start(spec, "release", str(spec), "--yes")
        wait_for_some_work(workspace, process, 0.3)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "quantext resume" in errors
        before = status(workspace)
        assert before.labeled > 0
        second = start(spec, "resume", str(workspace), "--yes")
        _, errors = second.communicate(timeout=120)
        assert second.returncode == 0, errors
        # A text is labelled, verified and judged: what was labelled is not labelled again.
        assert server.asked_for("labels") <= 3 * 60 + 4
    assert len(released_rows(tmp_path / "release")) == 60


def test_a_run_without_a_server_is_one_line_and_resumes_when_it_is_back(tmp_path: Path) -> None:
    with obedient() as server:
        port = server.port
    spec = small_release(tmp_path, f"http://127.0.0.1:{port}/v1", n=8)
    with Run.start(spec) as run, pytest.raises(QuantextError) as caught:
        run.go()
    assert "\n" not in str(caught.value)
    with obedient(port=port), Run.resume(tmp_path / "release.work") as run:
        run.go()
        run.answer(True)
    assert len(released_rows(tmp_path / "release")) == 8


def test_progress_has_the_ends_of_a_stage_and_between_them_is_sparing(tmp_path: Path) -> None:
    said: list[tuple[float, int]] = []

    def watch(event: dict[str, Any]) -> None:
        if event["stage"] == "rewrite":
            said.append((time.monotonic(), event["done"]))

    with obedient(seconds=0.02) as server, Run.start(small_release(tmp_path, server.url, n=60)) as run:
        run.go(watch)
    assert (said[0][1], said[-1][1]) == (0, 60)
    took = said[-1][0] - said[0][0]
    assert took > 0.3, "long enough to tell"
    assert 3 <= len(said) <= 2 + took / 0.1


def test_stopping_by_the_control_is_an_interrupted_run(tmp_path: Path) -> None:
    with obedient(seconds=0.05) as server, Run.start(small_release(tmp_path, server.url)) as run:

        def stop_early(event: dict[str, Any]) -> None:
            if event["stage"] == "label" and event["done"] >= 5:
                run.control.request_drain("test")

        with pytest.raises(Interrupted, match="quantext resume"):
            run.go(stop_early)
        assert 5 <= status(run.workspace).labeled < 40


def test_a_seeded_release_says_that_it_is_not_private_and_is_the_same_again(tmp_path: Path) -> None:
    texts = []
    with obedient() as server:
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            spec = small_release(folder, server.url, n=20, mechanism={"seed": 7})
            with Run.start(spec) as run:
                run.go()
                run.answer(True)
            texts.append(Workspace.open(folder / "release.work").store.assigned().tolist())
            assert "Not private: seeded" in (folder / "release" / "README.md").read_text(encoding="utf-8")
    assert texts[0] == texts[1]
