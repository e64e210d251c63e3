from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from quantext_graph.core.distribution import TableDistribution
from quantext_graph.data.records import open_table
from quantext_graph.mechanism.public_draw import DrawnTree, PublicDraw, SecretLeakage
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.loading import parse_spec
from quantext_graph.workspace.folder import Workspace
from quantext_graph.workspace.publish import publish
from quantext_graph.workspace.records import Rewrite, RewriteDetail

N = 60


def finished(tmp_path: Path, rewriting: dict[str, str] | None = None, **output: Any) -> Workspace:
    """A workspace as a run leaves it at the gate, filled by hand."""
    spec = parse_spec(
        {
            "data": {"path": "a.csv"},
            "auxiliary": {"path": "b.csv"},
            "attributes": [{"name": "mood", "categories": ["glad", "sad", "NONE"], "column": "mood"}],
            "secrets": [{"name": "glad people", "where": {"mood": "glad"}}],
            "rewriting": rewriting or {},
            "output": output,
        }
    )
    workspace = Workspace.create(tmp_path / "work", spec)
    store = workspace.store
    store.ingest((i + 1, f"PRIVATE {i}", {}) for i in range(N))
    released = TableDistribution((3,), np.array([0.5, 0.25, 0.25]))
    leakage = {"secret": "glad people", "mechanism_nats": 1.0, "cap_nats": 4.11, "bound_nats": 1.0}
    leakage |= {"vacuous": False, "components": 1, "log_l": 0.0, "secret_levels": N + 1}
    draw = PublicDraw(
        mechanism={"selection": "joint", "pool": "public", "M": 1000, "K": 368},
        leakage=(SecretLeakage(**leakage),),
        released=released.to_json(),
        shares={"glad people": 0.5},
        tree=DrawnTree(root=0, parents=(-1,)),
        pool_seed=1,
        choice=(0,),
        seeded=False,
        label_errors="Labels are taken as right: if 5 in 100 were wrong",
    )
    store.put_draw(draw, np.arange(N), np.arange(N)[:, None] % 3)
    for i in range(1, N + 1):
        store.put_labels(i, [0], [1.0])
        store.put_rewrite(
            Rewrite(i, f"new text {i}, with a comma", True, RewriteDetail(snippets=("PRIVATE",)))
        )
    share = {"share": 0.7, "low": 0.6, "high": 0.8}
    evaluation = {
        "evaluator": "a judge",
        "accuracy": {"mood": 0.8},
        "chance": {"mood": 0.5},
        "judge_better_than_chance": {"mood": True},
        "read_on_target": 0.65,
        "read_by_attribute": {"mood": 0.65},
        "corrected": share,
        "corrected_by_attribute": {"mood": share},
    }
    store.set_meta("report", {"n": N, "evaluation": evaluation})
    store.set_meta("private_report", {"labels": "PRIVATE"})
    return workspace


@pytest.mark.parametrize("format_", ["csv", "tsv", "jsonl", "parquet"])
def test_every_record_comes_out_once_with_its_target(tmp_path: Path, format_: str) -> None:
    folder = publish(finished(tmp_path, format=format_), tmp_path / "release")
    table = open_table(folder / f"data.{format_}")
    assert table.columns == ("id", "text", "mood")
    rows = [row.values for row in table]
    assert [row[0] for row in rows] == [str(i) for i in range(1, N + 1)]
    names = ("glad", "sad", "NONE")
    expected = {(f"new text {i}, with a comma", names[(i - 1) % 3]) for i in range(1, N + 1)}
    assert {(row[1], row[2]) for row in rows} == expected


def test_the_order_is_a_fresh_permutation(tmp_path: Path) -> None:
    workspace = finished(tmp_path)
    orders = []
    for name in ("one", "two"):
        folder = publish(workspace, tmp_path / name)
        orders.append([row.values[1] for row in open_table(folder / "data.csv")])
    kept = [f"new text {i}, with a comma" for i in range(1, N + 1)]
    assert orders[0] != orders[1]
    assert orders[0] != kept
    assert sorted(orders[0]) == sorted(kept)


def test_records_are_written_target_by_target_each_once_and_not_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quantext_graph.workspace.store.PAGE", 7)
    store = finished(tmp_path).store
    assert list(store.unwritten()) == []
    store.put_rewrite(Rewrite(5, "missed", False, RewriteDetail(snippets=())))
    store.put_rewrite(Rewrite(9, "missed too", False, RewriteDetail(snippets=())))
    assert store.forget_unverified() == 2
    assert [(id_, target) for id_, _, _, target in store.unwritten()] == [(5, (1,)), (9, (2,))]
    for i in range(1, N + 1):
        store.put_rewrite(Rewrite(i, "missed", False, RewriteDetail(snippets=())))
    store.forget_unverified()
    left = list(store.unwritten())
    assert sorted(id_ for id_, *_ in left) == list(range(1, N + 1))
    assert [target for *_, target in left] == sorted(target for *_, target in left)
    assert {(text, target) for _, text, _, target in left} == {(f"PRIVATE {i}", (i % 3,)) for i in range(N)}


def test_nothing_private_is_in_the_folder(tmp_path: Path) -> None:
    folder = publish(finished(tmp_path), tmp_path / "release")
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "data.csv", "release.json"]
    assert not [path for path in folder.iterdir() if b"PRIVATE" in path.read_bytes()]


def test_without_attributes_the_targets_stay_home(tmp_path: Path) -> None:
    folder = publish(finished(tmp_path, attributes=False), tmp_path / "release")
    assert open_table(folder / "data.csv").columns == ("id", "text")


def test_the_card_says_the_bound_and_its_assumptions(tmp_path: Path) -> None:
    folder = publish(finished(tmp_path), tmp_path / "release")
    card = (folder / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(card.split("---")[1])
    assert front["configs"] == [{"config_name": "default", "data_files": "data.csv"}]
    assert "\n- Labels are taken as right: if 5 in 100 were wrong" in card
    assert front["size_categories"] == ["n<1K"]
    assert "at most 1.00 nats" in card
    assert "at most 2.72 times as likely" in card
    assert "right at most 27%" in card
    assert "style term" in card
    assert "What it tells an attacker by itself is not counted as leakage" in card
    assert "On target in all attributes at once: 70% (90 % interval 60% to 80%)" in card
    assert "| mood | 70% (90 % interval 60% to 80%) | 80% | 50% |" in card
    known = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    assert known["n"] == N
    assert known["leakage"][0]["bound_nats"] == 1.0


def test_the_card_tells_no_share_where_the_judge_is_at_chance(tmp_path: Path) -> None:
    workspace = finished(tmp_path)
    report: Any = workspace.store.meta("report")
    report["evaluation"] |= {
        "accuracy": {"mood": 0.53},
        "chance": {"mood": 0.52},
        "judge_better_than_chance": {"mood": False},
        "corrected": None,
        "corrected_by_attribute": {},
    }
    workspace.store.set_meta("report", report)
    card = (publish(workspace, tmp_path / "release") / "README.md").read_text(encoding="utf-8")
    assert (
        "The judge reads mood right 53% of the time, by chance 52%: no share on target can be told." in card
    )
    assert "| mood | cannot be told | 53% | 52% |" in card
    assert "65%" not in card


@pytest.mark.parametrize(
    ("rewriting", "words", "never"),
    [
        (
            {},
            ("from notes of a private text", "as “mood: glad”, and counts as off target"),
            (),
        ),
        ({"recipe": "source"}, ("rewrote each private text towards",), ("from notes",)),
        (
            {"recipe": "none"},
            ("as they were written", "written by a language model from notes", "off target"),
            (),
        ),
        (
            {"recipe": "none", "shortage": "public"},
            ("as they were written", "are public texts"),
            ("written by", "off target"),
        ),
    ],
)
def test_the_card_says_in_words_how_texts_may_have_been_made(
    tmp_path: Path, rewriting: dict[str, str], words: tuple[str, ...], never: tuple[str, ...]
) -> None:
    card = (publish(finished(tmp_path, rewriting), tmp_path / "release") / "README.md").read_text(
        encoding="utf-8"
    )
    intro = card.split("## What it hides")[0]
    assert [word for word in words if word not in intro] == []
    assert [word for word in never if word in intro] == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seeded": True}, "Not private: seeded"),
        ({"vacuous": True}, "The bound is vacuous"),
    ],
)
def test_what_promises_nothing_is_said_to(tmp_path: Path, change: dict[str, bool], words: str) -> None:
    workspace = finished(tmp_path)
    draw: Any = workspace.store.meta("draw")
    draw["seeded"] = change.get("seeded", False)
    draw["leakage"][0]["vacuous"] = change.get("vacuous", False)
    workspace.store.set_meta("draw", draw)
    card = (publish(workspace, tmp_path / "release") / "README.md").read_text(encoding="utf-8")
    assert words in card
    assert "times as likely" not in card


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "mine.txt").write_text("mine")
    with pytest.raises(QuantextError, match="name another with --out"):
        publish(finished(tmp_path), tmp_path / "release")
    assert [path.name for path in (tmp_path / "release").iterdir()] == ["mine.txt"]


def test_an_unfinished_run_is_not_published(tmp_path: Path) -> None:
    workspace = finished(tmp_path)
    workspace.store.set_meta("report", None)
    with pytest.raises(QuantextError, match="quantext resume"):
        publish(workspace, tmp_path / "release")
    assert not (tmp_path / "release").exists()


def test_a_failed_write_leaves_no_half_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quantext_graph.workspace.publish.write_table", fail)
    with pytest.raises(QuantextError, match="the disk is full"):
        publish(finished(tmp_path), tmp_path / "release")
    assert [path.name for path in tmp_path.iterdir()] == ["work"]
