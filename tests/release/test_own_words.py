"""`recipe: none`: texts as they are, from a file to a published folder, and no model anywhere."""

from __future__ import annotations

import csv
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from releases import ATTRIBUTES, obedient, write_spec
from typer.testing import CliRunner

from quantext_graph.apps.cli.main import app
from quantext_graph.audit.auditing import audit_workspace
from quantext_graph.data.records import open_table
from quantext_graph.models.chat_model import ModelError
from quantext_graph.release.check import check
from quantext_graph.release.commented_spec import propose_spec
from quantext_graph.release.figures import gate_lines, public_figures
from quantext_graph.release.preview import preview
from quantext_graph.release.run import Interrupted, Run
from quantext_graph.spec.errors import QuantextError, SpecError
from quantext_graph.spec.loading import load_spec, parse_spec
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.folder import Workspace

COLUMNS = [{**attribute, "column": attribute["name"]} for attribute in ATTRIBUTES]
NOWHERE = "http://127.0.0.1:9/v1"
STRANGE = ('  said "so",\n and\tleft ', "{braces} %s \\n", "naïve – 漢字 🙂", "'; DROP TABLE records; --")


def write_sets(folder: Path, n: int, public: int) -> None:
    """A labelled private and a labelled public set of one population, with texts that are hard to keep."""
    chance = random.Random(n)
    for name, count in (("private", n), ("public", public)):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["message", "gender", "diagnosis"])
            for i in range(count):
                gender = chance.choice(["female", "male"])
                diagnosis = chance.choice(["diabetes", "asthma", "migraine", "migraine"])
                rows.writerow([f"{name} {i}{STRANGE[i % 4]}", gender, diagnosis])


def spec_at(folder: Path, n: int = 300, public: int = 400, **sections: Any) -> Spec:
    write_sets(folder, n, public)
    return load_spec(written(folder, **sections))


def written(folder: Path, **sections: Any) -> Path:
    given: dict[str, Any] = {
        "attributes": COLUMNS,
        "mechanism": {"keep": 0.6, "budget_nats": 0.5},
        "rewriting": {"recipe": "none", "shortage": "public"},
        "models": {"chat": "nobody:no-such-model"},
    }
    return write_spec(folder, NOWHERE, **{**given, **sections})


def texts_of(path: Path) -> list[tuple[str | None, ...]]:
    return [row.values for row in open_table(path)]


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a model or prepares one fails."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model was opened")

    for place in ("graph.resources.chat_model", "graph.resources.prepare", "audit.auditing.chat_model"):
        monkeypatch.setattr(f"quantext_graph.{place}", refuse)


@pytest.mark.usefixtures("no_model")
def test_from_file_to_folder_without_a_model(tmp_path: Path) -> None:
    spec = spec_at(tmp_path)
    assert check(spec).estimate.calls_at_most == 0
    events = []
    with Run.start(spec) as run:
        asked = run.go(events.append).question
        run.answer(True)
    assert asked is not None
    assert asked["report"]["models"] is None
    assert {event["stage"] for event in events} == {"label", "match", "rewrite"}
    rows = texts_of(tmp_path / "release" / "data.csv")
    assert len(rows) == 180
    sources = {
        name: {row[0]: row[1:] for row in texts_of(tmp_path / f"{name}.csv")}
        for name in ("private", "public")
    }
    origins = Counter[str]()
    for _, text, *target in rows:
        name = str(text).split()[0]
        assert sources[name][text] == tuple(target), "byte for byte, with its own labels"
        origins[name] += 1
    assert len({row[1] for row in rows}) == 180, "none twice"
    assert min(origins.values()) > 20
    line = gate_lines(run.workspace)[0]
    assert line.startswith(
        f"180 texts: {origins['private']} records in their own words, {origins['public']} public"
    )
    assert public_figures(run.workspace)["records"] == 180
    report = audit_workspace(run.workspace, None, lambda _: None)
    assert len(report.inputs.pairs) == origins["private"], "a public text was no record"
    assert report.channels == ()


@pytest.mark.usefixtures("no_model")
def test_a_run_that_was_stopped_keeps_what_it_decided(tmp_path: Path) -> None:
    spec = spec_at(tmp_path)
    with Run.start(spec) as run:

        def stop(event: Any) -> None:
            if event["stage"] == "match" and event["done"]:
                run.control.request_drain("enough")

        with pytest.raises(Interrupted):
            run.go(stop)
    with Workspace.open(run.workspace) as opened:
        before = [(pair.id, pair.released, pair.detail.origin) for pair in opened.store.pairs()]
    assert len(before) == 180
    with Run.resume(run.workspace, retry_failed=True) as again:
        again.go()
        again.answer(True)
    with Workspace.open(run.workspace) as opened:
        assert [(pair.id, pair.released, pair.detail.origin) for pair in opened.store.pairs()] == before
    assert {row[1] for row in texts_of(tmp_path / "release" / "data.csv")} == {text for _, text, _ in before}


def test_draw_and_texts_are_kept_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies between them leaves a run without a draw, which makes both anew."""
    spec = spec_at(tmp_path)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with Run.start(spec) as run, monkeypatch.context() as patched:
        patched.setattr("quantext_graph.workspace.store._detail", die)
        with pytest.raises(KeyboardInterrupt):
            run.go()
    with Workspace.open(run.workspace) as opened:
        assert opened.store.draw() is None
        assert list(opened.store.pairs()) == []
    with Run.resume(run.workspace) as again:
        again.go()
    with Workspace.open(run.workspace) as opened:
        assert len(list(opened.store.pairs())) == 180


@pytest.mark.usefixtures("no_model")
def test_the_card_says_what_stands_in_it(tmp_path: Path) -> None:
    with Run.start(spec_at(tmp_path)) as run:
        run.go()
        run.answer(True)
    card = " ".join((tmp_path / "release" / "README.md").read_text(encoding="utf-8").split())
    known = json.loads((tmp_path / "release" / "release.json").read_text())
    assert "this release hides a proportion, not persons" in card
    assert "No model wrote, labelled or judged a text" in card
    assert "a private or a public text, as it was written" in card
    assert "Each combination has at least 70% of its public share" in card
    assert "rewritten" not in card.replace("rewritten text carries", "")
    assert known["models"] is None
    assert (known["rewriting"]["recipe"], known["rewriting"]["shortage"]) == ("none", "public")
    own = known["own_at_most"]
    assert f"At most {own:.0%} of the texts are private ones" in card
    targets = Counter(row[2:] for row in texts_of(tmp_path / "release" / "data.csv"))
    with Workspace.open(run.workspace) as opened:
        from quantext_graph.data.auxiliary import read_auxiliary
        from quantext_graph.mechanism.own_words import caps

        most = caps(opened.spec, 300, read_auxiliary(opened.spec).codes).reshape(opened.spec.sizes)
    names = [attribute["categories"] for attribute in ATTRIBUTES]
    allowed = {(g, d): most[i, j] for i, g in enumerate(names[0]) for j, d in enumerate(names[1])}
    assert own == sum(min(count, allowed[target]) for target, count in targets.items()) / 180, "public alone"


def test_check_says_what_it_means(tmp_path: Path) -> None:
    found = check(spec_at(tmp_path))
    said = " ".join(found.lines())
    assert "Persons in them are not protected, only the proportion is" in said
    assert "The others are public texts" in said
    assert "share of diabetes: hidden while between" in said
    assert "estimate: no model is called" in said
    assert "must change a label" not in said
    assert found.public()["texts"] == [line for line in found.lines() if line in found.public()["texts"]]
    own = found.to_json()["own_words"]
    assert 0 < own["others"] < own["others_at_most"] < 1
    assert not [warning for warning in found.warnings if "fewer private records" in warning]


def test_check_warns_the_holder_of_combinations_that_run_short(tmp_path: Path) -> None:
    """Private: nothing that a chat model reads says it."""
    spec = spec_at(tmp_path)
    rows = [row for row in texts_of(tmp_path / "private.csv") if row[2] != "asthma"]
    with (tmp_path / "private.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["message", "gender", "diagnosis"], *rows])
    found = check(spec)
    assert any("2 combinations of categories have fewer private records" in each for each in found.warnings)
    assert "fewer private records" not in json.dumps(found.public())


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"attributes": ATTRIBUTES}, "shortage public: no model is opened, so 'gender' needs a column"),
        (
            {"attributes": ATTRIBUTES, "rewriting": {"recipe": "none"}},
            "'gender' has no column of labels.*94 % of the time where 82 % are allowed",
        ),
        (
            {"attributes": ATTRIBUTES, "rewriting": {"recipe": "none", "label_error": 0.05}},
            "at 5.0% wrong labels texts as they are give the share away; get it below 2%",
        ),
        ({"rewriting": {"recipe": "notes", "shortage": "public"}}, "is for `recipe: none`"),
        ({"rewriting": {"recipe": "source", "label_error": 0.01}}, "`label_error` is for `recipe: none`"),
        ({"mechanism": {"targets": "iid"}}, "set targets: quota"),
        ({"auxiliary": None}, "add `auxiliary`"),
    ],
)
def test_a_spec_that_would_tell_more_is_one_line(
    tmp_path: Path, sections: dict[str, Any], message: str
) -> None:
    path = written(tmp_path, **sections)
    with pytest.raises(SpecError, match=message) as said:
        load_spec(path)
    assert "\n" not in str(said.value)


def test_a_measured_label_error_is_taken_at_its_word(tmp_path: Path) -> None:
    rewriting = {"recipe": "none", "label_error": 0.01}
    spec = load_spec(written(tmp_path, attributes=ATTRIBUTES, rewriting=rewriting))
    assert spec.rewriting.label_error == 0.01


def test_too_few_public_texts_are_refused_before_the_draw(tmp_path: Path) -> None:
    spec = spec_at(tmp_path, public=30, mechanism={"keep": 0.9})
    with pytest.raises(QuantextError, match=r"30 public texts can fill .* larger auxiliary set") as said:
        check(spec)
    with Run.start(spec) as run, pytest.raises(QuantextError, match="30 public texts can fill"):
        run.go()
    assert "\n" not in str(said.value)
    with Workspace.open(run.workspace) as opened:
        assert opened.store.draw() is None
    result = CliRunner().invoke(app, ["ledger", str(tmp_path / "private.csv"), "--text", "message"])
    assert "no release so far" in result.output


@pytest.mark.usefixtures("no_model")
def test_a_preview_shows_texts_as_they_are(tmp_path: Path) -> None:
    for pair in preview(spec_at(tmp_path), 20, lambda _: None):
        own = pair["text"] == pair["released"]
        assert pair["released"].startswith("private " if own else "public ")
        assert not own or pair["labels"] == pair["target"]


def test_the_first_spec_shows_the_choices_and_proposes_texts_as_they_are(tmp_path: Path) -> None:
    write_sets(tmp_path, 60, 60)
    paths = tmp_path / "private.csv", tmp_path / "public.csv"
    text = propose_spec(*paths, recipe="none")
    (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
    spec = load_spec(tmp_path / "spec.yaml")
    assert (spec.rewriting.recipe, spec.rewriting.shortage) == ("none", "public")
    assert (spec.mechanism.budget_nats, spec.mechanism.keep) == (0.5, 0.6)
    assert "models:" not in text
    usual = propose_spec(*paths)
    for recipe in ("notes", "source", "none"):
        assert f"#   {recipe} " in usual
    (tmp_path / "spec.yaml").write_text(usual, encoding="utf-8")
    usual_spec = load_spec(tmp_path / "spec.yaml")
    assert (usual_spec.rewriting.recipe, usual_spec.mechanism.budget_nats) == ("notes", 1)
    out = tmp_path / "by_command.yaml"
    command = ["init", str(paths[0]), "--auxiliary", str(paths[1]), "--recipe", "none", "--out", str(out)]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert load_spec(out).rewriting.recipe == "none"


def test_a_written_shortage_asks_the_model_for_the_others_alone(tmp_path: Path) -> None:
    with obedient() as server:
        models = {"chat": {"model": "openai:tiny", "base_url": server.url}}
        spec = spec_at(tmp_path, n=120, rewriting={"recipe": "none", "shortage": "notes"}, models=models)
        with Run.start(spec) as run:
            run.go()
            run.answer(True)
        asked = server.asked_for("texts")
    with Workspace.open(run.workspace) as opened:
        origins = Counter(pair.detail.origin for pair in opened.store.pairs())
        own = [pair for pair in opened.store.pairs() if pair.detail.origin == "own"]
    assert origins["own"] + origins["written"] == 72
    assert min(origins.values()) > 10
    assert all(pair.text == pair.released and pair.labels == pair.target for pair in own)
    assert origins["written"] <= asked < 72 * 2
    card = (tmp_path / "release" / "README.md").read_text(encoding="utf-8")
    assert "written by a language model from notes" in " ".join(card.split())
    assert "Written by openai:tiny" in card


def test_a_model_that_is_not_there_is_missed_where_one_is_needed(tmp_path: Path) -> None:
    """The other side of the runs above: their model does not exist."""
    spec = spec_at(tmp_path, rewriting={"recipe": "notes"})
    with Run.start(spec) as run, pytest.raises((ModelError, QuantextError)):
        run.go()


def test_real_tweets_in_a_few_seconds(shared_data: Path, tmp_path: Path) -> None:
    table = open_table(shared_data / "stance" / "tweet.csv")
    rows = [row.values for row in table]
    random.Random(0).shuffle(rows)
    for name, part in (("private", rows[:3000]), ("public", rows[3000:])):
        with (tmp_path / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([table.columns, *part])
    text = propose_spec(tmp_path / "private.csv", tmp_path / "public.csv", recipe="none")
    spec = parse_spec(yaml.safe_load(text), folder=tmp_path)
    began = time.process_time()
    with Run.start(spec) as run:
        run.go()
        run.answer(True)
    assert time.process_time() - began < 10
    assert len(texts_of(tmp_path / "release" / "data.csv")) == 1800
