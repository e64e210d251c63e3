"""A run that releases fewer texts than there are records."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from releases import ATTRIBUTES, obedient, small_release, write_data, write_spec

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


def test_records_whose_labels_are_in_doubt_stay_out_while_there_are_others(tmp_path: Path) -> None:
    """One message in five names no diagnosis; the classifier alone labels, and is unsure of those."""
    write_data(tmp_path, 120, auxiliary=600)
    unclear = _without_diagnosis(tmp_path / "private.csv") | _without_diagnosis(tmp_path / "public.csv")
    attributes = [{**attribute, "labels": "classifier"} for attribute in ATTRIBUTES]
    mechanism = {"keep": 0.5, "budget_nats": 3.0}
    with obedient() as server:
        spec = load_spec(write_spec(tmp_path, server.url, attributes=attributes, mechanism=mechanism))
        with Run.start(spec) as run:
            run.go()
        assert server.asked_for("labels") <= 60 * 4, "no record was labelled by the model"
    with Workspace.open(run.workspace) as opened:
        used = set(opened.store.used())
        sure = opened.store.confidence().prod(axis=1)
        texts = list(opened.store.texts())
    out = [text for number, text in enumerate(texts, 1) if number not in used]
    assert len(used) == 60
    assert sum(text in unclear for text in out) >= 0.8 * sum(text in unclear for text in texts)
    assert np.mean([sure[i - 1] for i in used]) > sure.mean()


def _without_diagnosis(path: Path) -> set[str]:
    """Take the diagnosis out of every fifth message of a file; returns those messages."""
    rows = [list(row.values) for row in open_table(path)]
    head = path.read_text(encoding="utf-8").splitlines()[0].split(",")
    place, done = head.index("message"), set()
    for row in rows[::5]:
        said = re.sub("diabetes|asthma|migraine", "it", row[place] or "")
        row[place] = said
        done.add(said)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
    return done


def test_check_says_what_wrong_labels_cost(tmp_path: Path) -> None:
    write_data(tmp_path, 120, auxiliary=400)
    attributes = [{**attribute, "labels": "both"} for attribute in ATTRIBUTES]
    mechanism = {"keep": 0.6, "budget_nats": 0.3}
    spec = load_spec(
        write_spec(tmp_path, "http://127.0.0.1:9/v1", attributes=attributes, mechanism=mechanism)
    )
    found = check(spec)
    said = found.guarantees.label_errors
    assert said.startswith("Labels are taken as right"), "the classifier makes no mistake on such texts"
    assert said in found.lines()
    assert found.to_json()["wrong_labels"] == found.public()["wrong_labels"] == said
