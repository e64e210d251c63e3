"""A run that releases fewer texts than there are records."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from releases import obedient, small_release, write_data, write_spec

from quantext_graph.audit.auditing import audit_workspace
from quantext_graph.data.records import open_table
from quantext_graph.release.check import check
from quantext_graph.release.run import Interrupted, Run, publish
from quantext_graph.release.standing import status
from quantext_graph.spec.loading import load_spec
from quantext_graph.workspace.folder import Workspace


def test_so_many_come_out_as_keep_says(tmp_path: Path) -> None:
    events = []
    with obedient() as server:
        spec = small_release(tmp_path, server.url, mechanism={"keep": 0.6})
        with Run.start(spec) as run:
            outcome = run.go(events.append)
            assert outcome.question is not None
            assert outcome.question["report"]["n"] == 24
            run.answer(True)
        assert server.asked_for("labels") <= 40 + 2 * 24 + 4, "all are labelled; those released are judged"
    rows = [row.values for row in open_table(tmp_path / "release" / "data.csv")]
    assert len(rows) == 24
    assert sorted(int(row[0] or 0) for row in rows) == list(range(1, 25))
    counts = status(run.workspace)
    assert (counts.n, counts.released, counts.labeled, counts.rewritten) == (40, 24, 40, 24)
    assert {event["total"] for event in events if event["stage"] == "rewrite"} == {24}
    known = json.loads((tmp_path / "release" / "release.json").read_text())
    assert known["n"] == 24
    assert known["mechanism"]["keep"] == 0.6
    assert known["leakage"][0]["secret_levels"] == 41, "the secret is a share of all records"


def test_no_record_serves_twice_and_who_has_the_target_keeps_it(tmp_path: Path) -> None:
    with obedient() as server:
        spec = small_release(tmp_path, server.url, n=60, mechanism={"keep": 0.5})
        with Run.start(spec) as run:
            run.go()
    with Workspace.open(run.workspace) as opened:
        pairs = list(opened.store.pairs())
        labels = [tuple(row) for row in opened.store.labels().tolist()]
    assert len({pair.id for pair in pairs}) == len(pairs) == 30
    stayed = Counter(pair.target for pair in pairs if pair.labels == pair.target)
    assert stayed == Counter(labels) & Counter(pair.target for pair in pairs)


def test_the_audit_knows_all_private_records(tmp_path: Path) -> None:
    with obedient() as server:
        with Run.start(small_release(tmp_path, server.url, mechanism={"keep": 0.6})) as run:
            run.go()
        report = audit_workspace(run.workspace, [], lambda _: None)
    assert len(report.inputs.private_texts) == len(report.inputs.private_codes) == 40
    assert len(report.inputs.released_texts) == len(report.inputs.pairs) == 24
    publish(run.workspace)


def test_a_run_that_was_stopped_goes_on_with_the_same_records(tmp_path: Path) -> None:
    with obedient(seconds=0.02) as server:
        spec = small_release(tmp_path, server.url, mechanism={"keep": 0.6})
        with Run.start(spec) as run:

            def stop(event) -> None:
                if event["stage"] == "rewrite" and event["done"] >= 5:
                    run.control.request_drain("enough")

            with pytest.raises(Interrupted):
                run.go(stop)
        with Workspace.open(run.workspace) as opened:
            chosen = opened.store.used()
        with Run.resume(run.workspace) as again:
            again.go()
            again.answer(True)
        with Workspace.open(run.workspace) as opened:
            assert opened.store.used() == chosen
    assert len(open_table(tmp_path / "release" / "data.csv")) == 24


def test_check_says_what_keep_does(tmp_path: Path) -> None:
    write_data(tmp_path, 40, auxiliary=60)
    spec = load_spec(write_spec(tmp_path, "http://127.0.0.1:9/v1", mechanism={"keep": 0.6}))
    found = check(spec)
    assert (found.records, found.released) == (40, 24)
    assert found.changes[0.6] <= found.changes[1.0]
    line = next(line for line in found.lines() if line.startswith("keep"))
    assert line.startswith("keep 0.6: 24 of the 40 records are released; about ")
    whole = check(spec.model_copy(update={"mechanism": spec.mechanism.model_copy(update={"keep": 1.0})}))
    assert found.estimate.calls < whole.estimate.calls
