"""The tools of a release: what each makes public, what it keeps for the person, and what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from releases import obedient, small_release, write_data, write_spec
from servers import Act

from quantext_graph.apps.agent_tools.tools import Reader, release_tools
from quantext_graph.data.records import open_table
from quantext_graph.release import background
from quantext_graph.spec.loading import load_spec
from quantext_graph.workspace.folder import Workspace
from quantext_graph.workspace.ledger import Ledger

NOWHERE = "http://127.0.0.1:9/v1"

Call = Callable[..., tuple[dict[str, Any], dict[str, Any]]]


def caller(folder: Path, *, remote: bool = True) -> Call:
    """Calls a tool as an agent does: (content, artifact)."""
    tools = {tool.name: tool for tool in release_tools(folder, Reader("openai:big", remote))}

    def call(name: str, **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        message = tools[name].invoke({"name": name, "args": arguments, "id": "1", "type": "tool_call"})
        return json.loads(message.content), message.artifact

    return call


@pytest.fixture
def call(tmp_path: Path) -> Call:
    return caller(tmp_path)


def proposal(**more: Any) -> dict[str, Any]:
    return {
        "data": "private.csv",
        "auxiliary": "public.csv",
        "attributes": [{"name": "gender"}, {"name": "diagnosis"}],
        "secrets": [{"where": {"diagnosis": ["diabetes"]}}],
        **more,
    }


def write_wards(folder: Path, *wards: str) -> None:
    rows = [f"a message of some length and number {i},{wards[i % len(wards)]}" for i in range(30)]
    (folder / "wards.csv").write_text("\n".join(["text,ward", *rows]), encoding="utf-8")


def test_a_look_makes_names_and_kinds_public_and_keeps_categories(tmp_path: Path, call: Call) -> None:
    write_wards(tmp_path, "north", "north", "zebra")
    public, private = call("look_at_file", path="wards.csv")
    assert public == {
        "path": "wards.csv",
        "rows": 30,
        "text": "text",
        "columns": [{"name": "text", "kind": "text"}, {"name": "ward", "kind": "categorical"}],
    }
    assert private["shown"] == ["ward: north 67%, zebra 33%"]


@pytest.mark.parametrize(
    "name", ["I am ill and my wife is too", "17", "north", "what the ward was called in the old days"]
)
def test_a_column_name_that_may_be_a_cell_is_withheld(tmp_path: Path, call: Call, name: str) -> None:
    rows = [f"a message of some length and number {i},{('north', 'south')[i % 2]}" for i in range(30)]
    if name == "17":
        rows = [f"a message of some length and number {i},{i}" for i in range(30)]
    (tmp_path / "odd.csv").write_text("\n".join([f"text,{name}", *rows]), encoding="utf-8")
    public, _ = call("look_at_file", path="odd.csv")
    assert name not in json.dumps(public)


def test_a_check_says_nothing_of_how_long_the_private_texts_are(tmp_path: Path, call: Call) -> None:
    small_release(tmp_path, "http://127.0.0.1:9/v1")
    short, shown = call("check_release")
    private = tmp_path / "private.csv"
    private.write_text(private.read_text().replace(" is a ", f" is {'in short ' * 40}a "))
    long, shown_of_long = call("check_release")
    assert long == short
    assert shown_of_long["shown"][0] != shown["shown"][0]
    assert "tokens" in shown["shown"][0]


def test_a_large_file_is_known_by_its_first_rows(tmp_path: Path, call: Call) -> None:
    """Two gigabytes, most of them a hole that would be refused if it were read."""
    with (tmp_path / "large.csv").open("w", encoding="utf-8") as file:
        file.write("text,ward\n")
        for i in range(60_000):
            file.write(
                f'"a message, with a line\nend, of some length and number {i}",{("north", "south")[i % 2]}\n'
            )
        size = file.tell()
    os.truncate(tmp_path / "large.csv", 2 << 30)
    public, private = call("look_at_file", path="large.csv")
    assert public["rows_are_estimated"]
    assert public["rows"] == pytest.approx(60_000 * (2 << 30) / size, rel=0.1)
    assert public["columns"][1] == {"name": "ward", "kind": "categorical"}
    assert private["shown"] == ["ward: north 50%, south 50%"]


def test_a_large_parquet_file_counts_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setattr("quantext_graph.data.inspection.LARGE", 1000)
    n = 25_000
    table = {
        "text": [f"a message of some length and number {i}" for i in range(n)],
        "ward": ["a", "b"] * (n // 2),
    }
    pq.write_table(pa.table(table), tmp_path / "large.parquet")
    public, _ = caller(tmp_path)("look_at_file", path="large.parquet")
    assert public["rows"] == n
    assert "rows_are_estimated" not in public


def test_categories_come_from_the_proposal_and_the_auxiliary_file(tmp_path: Path, call: Call) -> None:
    write_data(tmp_path, 20)
    public, private = call("write_spec", **proposal())
    assert public["attributes"] == {
        "gender": ["female", "male"],
        "diagnosis": ["asthma", "diabetes", "migraine"],
    }
    assert any("diabetes" in line for line in private["shown"])
    assert load_spec(tmp_path / "spec.yaml").secrets[0].title == "diagnosis = diabetes"


def test_a_category_of_the_private_file_alone_must_be_named(tmp_path: Path, call: Call) -> None:
    write_wards(tmp_path, "north", "zebra")
    given = {
        "data": "wards.csv",
        "attributes": [{"name": "ward", "column": "ward", "categories": [{"name": "north"}]}],
        "secrets": [{"where": {"ward": ["north"]}}],
    }
    public, private = call("write_spec", **given)
    assert "the person has been shown which" in public["error"]
    assert "zebra" not in json.dumps(public)
    assert "'zebra'" in private["shown"][0]
    given["attributes"][0]["categories"].append({"name": "zebra"})  # type: ignore[index]
    assert call("write_spec", **given)[0]["attributes"] == {"ward": ["north", "zebra"]}
    assert call("check_release")[0]["records"] == 30


def test_a_spec_written_here_keeps_its_models_on_this_machine(tmp_path: Path, call: Call) -> None:
    write_data(tmp_path, 8)
    call("write_spec", **proposal(model="openai:gpt-4o-mini", base_url="https://models.example/v1"))
    assert load_spec(tmp_path / "spec.yaml").models.allow_remote is False
    public, _ = call("preview_release")
    assert "private text would leave this machine" in public["error"]


def test_files_that_are_no_specs_are_left_alone(tmp_path: Path, call: Call) -> None:
    write_data(tmp_path, 8)
    assert (
        "a spec is called .yaml" in call("write_spec", **proposal(path=".bashrc", overwrite=True))[0]["error"]
    )
    call("write_spec", **proposal())
    assert "stands already" in call("write_spec", **proposal())[0]["error"]
    assert "no spec" in call("check_release", spec="private.csv")[0]["error"]


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("look_at_file", {"path": "nothing.csv"}, "no such file"),
        ("look_at_file", {"path": "."}, "a folder"),
        ("look_at_file", {"path": "empty.csv"}, "the file is empty"),
        ("look_at_file", {"path": "picture.png"}, "not read"),
        ("write_spec", proposal(data="nothing.csv"), "no such file"),
        ("write_spec", proposal(text="mesage"), "no column is called 'mesage'"),
        ("write_spec", proposal(secrets=[{"where": {"ward": ["x"]}}]), "no attribute is called 'ward'"),
        ("write_spec", proposal(attributes=[{"name": "mood"}], auxiliary=None), "no categories are known"),
        ("check_release", {"spec": "nothing.yaml"}, "no such file"),
        ("tradeoff", {"spec": "broken.yaml"}, "data: missing"),
        ("preview_release", {"spec": "spec.yaml"}, "127.0.0.1:9"),
        ("start_release", {"spec": "nothing.yaml"}, "no such file"),
        ("release_status", {"workspace": "nothing.work"}, "no workspace here"),
        ("cancel_release", {"workspace": "nothing.work"}, "no workspace here"),
        ("cancel_release", {"workspace": "idle.work"}, "nothing is at work here"),
        ("explain_audit", {"workspace": "idle.work"}, "no audit yet"),
        ("publish_release", {"workspace": "idle.work"}, "not finished"),
        ("private_share", {"source": "spec.yaml"}, "no column labels diagnosis"),
        ("private_share", {"source": "idle.work"}, "not labelled yet"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path, name: str, arguments: dict[str, Any], words: str
) -> None:
    write_data(tmp_path, 8)
    (tmp_path / "empty.csv").touch()
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / "broken.yaml").write_text("attributes: []\n", encoding="utf-8")
    Workspace.create(tmp_path / "idle.work", load_spec(write_spec(tmp_path, NOWHERE))).close()
    if name == "write_spec":
        arguments = {**arguments, "path": "other.yaml"}
    public, private = caller(tmp_path, remote=False)(name, **arguments)
    assert list(public) == ["error"]
    assert words in public["error"]
    assert "\n" not in public["error"]
    assert len(private["shown"]) == 1


def test_what_is_wrong_with_a_private_row_is_for_the_person(tmp_path: Path, call: Call) -> None:
    write_wards(tmp_path, "north", "zebra")
    write_data(tmp_path, 8)
    raw = {
        "data": {"path": "wards.csv"},
        "attributes": [{"name": "ward", "column": "ward", "categories": ["north"]}],
    }
    (tmp_path / "spec.yaml").write_text(json.dumps(raw), encoding="utf-8")
    for name in ("check_release", "start_release", "preview_release"):
        public, private = call(name)
        assert "for the person alone" in public["error"]
        assert "rows 2, 4, 6" in private["shown"][0]
    write_spec(tmp_path, NOWHERE, auxiliary={"path": "copied.csv"})
    lines = (tmp_path / "private.csv").read_text(encoding="utf-8").splitlines()
    copied = ["message,gender,diagnosis", *(f"{line.split(',')[1]},female,asthma" for line in lines[1:])]
    (tmp_path / "copied.csv").write_text("\n".join(copied), encoding="utf-8")
    public, private = call("check_release")
    assert "8 of the 8 private texts" in private["shown"][0]
    assert "8" not in public["error"]


def test_a_guarantee_is_in_plain_words_and_a_vacuous_one_says_why(tmp_path: Path, call: Call) -> None:
    write_data(tmp_path, 50)
    write_spec(tmp_path, NOWHERE)
    public, _ = call("check_release")
    assert "at most 2.72 times as likely" in public["guarantee"]["share of diabetes"][1]
    assert public["nats_added"] == pytest.approx(1.0, abs=0.01)
    assert "why_vacuous" not in public
    paper = {"selection": "per_component", "gamma": 120, "k": 10, "pool_size": 1200}
    write_spec(tmp_path, NOWHERE, mechanism=paper)
    public, _ = call("check_release")
    assert "vacuous" in public["guarantee"]["share of diabetes"][0]
    assert "joint selection, or more records" in public["why_vacuous"]


def test_what_a_nat_buys(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quantext_graph.mechanism.tradeoff.POOL", 2000)
    write_data(tmp_path, 50, auxiliary=60)
    write_spec(tmp_path, NOWHERE)
    points = call("tradeoff", nats=1.5)[0]["points"]
    own = [point for point in points if point["rule"] == "joint, public, spread 0.3"]
    assert [point["nats"] for point in own] == [0.25, 0.5, 1, 1.5, 2, 4]
    errors = [point["error_of_share"]["share of diabetes"] for point in own]
    assert errors[0] > errors[2] > errors[-1]
    assert {point["nats"] for point in points if point not in own} == {1.5}


def test_a_data_set_that_is_spent_is_not_released_by_an_agent(tmp_path: Path, call: Call) -> None:
    spec = small_release(tmp_path, NOWHERE, n=12)
    with Ledger.open() as ledger:
        texts = [row.values[1] or "" for row in open_table(spec.data.path)]
        ledger.record(ledger.fingerprint(texts), release_id="x", bound_nats=2.0, note={})
    assert "the sum of nats" in call("check_release")[0]["over_cap"]
    public, _ = call("start_release")
    assert "`quantext release`" in public["error"]
    assert not (tmp_path / "release.work").exists()


def test_a_preview_is_shown_to_the_person_alone(tmp_path: Path, call: Call) -> None:
    with obedient() as server:
        small_release(tmp_path, server.url, n=6)
        public, private = call("preview_release", records=2)
    assert public == {"shown_to_the_person": 2}
    assert len(private["pairs"]) == 2
    assert sum("before  (" in line for line in private["shown"]) == 2


def test_a_share_is_refused_to_a_remote_model_and_else_shown_to_the_person(
    tmp_path: Path,
) -> None:
    write_wards(tmp_path, "north", "north", "zebra")
    raw = {
        "data": {"path": "wards.csv"},
        "attributes": [{"name": "ward", "column": "ward", "categories": ["north", "zebra"]}],
        "secrets": [{"where": {"ward": "zebra"}}],
    }
    (tmp_path / "spec.yaml").write_text(json.dumps(raw), encoding="utf-8")
    public, private = caller(tmp_path)("private_share")
    assert public["refused"].startswith("refused: openai:big is not on this machine")
    assert private == {"shown": []}
    public, private = caller(tmp_path, remote=False)("private_share")
    assert public == {"shown_to_the_person": ["ward = zebra"]}
    assert private["shown"] == ["ward = zebra: 33.3% (private figure)"]


def until(condition: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_two_at_once_of_which_one_is_cancelled_killed_and_resumed(tmp_path: Path, call: Call) -> None:
    slow, quick = tmp_path / "slow", tmp_path / "quick"
    slow.mkdir()
    quick.mkdir()
    with obedient(seconds=0.1) as snail, obedient() as hare:
        small_release(slow, snail.url, n=60)
        small_release(quick, hare.url, n=12)
        for name in ("slow", "quick"):
            assert call("start_release", spec=f"{name}/spec.yaml")[0]["state"] == "running"
        work = "slow/release.work"

        def rewritten() -> int:
            return int(call("release_status", workspace=work)[0]["rewritten"])

        until(lambda: call("release_status", workspace=work)[0].get("doing", {}).get("stage") == "rewrite")
        doing = call("release_status", workspace=work)[0]
        assert doing["doing"]["total"] == 60
        assert call("start_release", spec="slow/spec.yaml")[0]["state"] == "running"  # the same run
        stopped, _ = call("cancel_release", workspace=work)
        assert stopped["state"] == "stopped"
        assert "quantext resume" in stopped["reason"]
        assert 0 <= stopped["rewritten"] < 60
        draw = Workspace.open(tmp_path / work).store.meta("draw")

        until(lambda: call("release_status", workspace="quick/release.work")[0]["state"] == "gate")
        assert call("start_release", spec="slow/spec.yaml")[0]["going_on"] is True
        until(lambda: rewritten() > stopped["rewritten"])
        os.kill(int((tmp_path / work / "runner.lock").read_text()), signal.SIGKILL)
        until(lambda: call("release_status", workspace=work)[0]["state"] == "stopped")
        assert rewritten() < 60
        assert call("start_release", spec="slow/spec.yaml")[0]["going_on"] is True
        assert background.wait(tmp_path / work, 300).state == "gate"
        assert Workspace.open(tmp_path / work).store.meta("draw") == draw
    listed = call("list_releases")[0]["releases"]
    assert [(each["state"], each["records"]) for each in listed] == [("gate", 12), ("gate", 60)]
    public, _ = call("publish_release", workspace=work)
    assert len(open_table(Path(public["published"]) / "data.csv")) == 60
    assert call("publish_release", workspace=work)[0]["already"] is True
    assert "published already" in call("start_release", spec="slow/spec.yaml", retry_failed=True)[0]["error"]
    for folder in (slow, quick):
        assert all(oct(path.stat().st_mode)[-2:] == "00" for path in (folder / "release.work").iterdir())


def test_a_run_that_misses_its_targets_fails_and_is_tried_again(tmp_path: Path, call: Call) -> None:
    broken = True

    def mumble(number: int, body: dict[str, Any], act: Act) -> Act:
        if not broken or "snippets" in act.text or "gender" in act.text:
            return act
        if "openings" in act.text:
            return Act(json.dumps({"openings": [f"Well then, number {i} and" for i in range(30)]}))
        return Act(f" on and on it goes, {number} times about nothing at all.")

    with obedient(faulty=mumble) as server:
        small_release(tmp_path, server.url, n=12, limits={"attempts": 1, "min_verified": 0.95})
        call("start_release")
        work = tmp_path / "release.work"
        assert background.wait(work, 300).state == "failed"
        public, private = call("release_status", workspace="release.work")
        assert public["reason"].startswith("too few records reached their target")
        assert "of 12 records" in private["shown"][-1]
        assert "unverified" not in json.dumps(public)
        assert "not finished" in call("publish_release", workspace="release.work")[0]["error"]
        broken = False
        call("start_release", retry_failed=True)
        assert background.wait(work, 300).state == "gate"
    public, private = call("explain_audit", workspace="release.work")
    assert sorted(public) == ["evaluation", "guarantee", "on_target", "private_report", "records"]
    assert any("points from the truth" in line for line in private["shown"])
    assert (work / "report.html").is_file()
