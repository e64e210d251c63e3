from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from quantext_graph.mechanism.public_draw import DrawnTree, PublicDraw
from quantext_graph.models.chat_model import Usage
from quantext_graph.spec.loading import parse_spec
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.disk import WorkspaceError
from quantext_graph.workspace.folder import Workspace, purge
from quantext_graph.workspace.records import Rewrite
from quantext_graph.workspace.store import GROUP, Store


@pytest.fixture
def spec() -> Spec:
    return parse_spec({"data": {"path": "a.csv"}, "attributes": [{"name": "x", "categories": ["a", "b"]}]})


@pytest.fixture
def workspace(tmp_path: Path, spec: Spec) -> Workspace:
    made = Workspace.create(tmp_path / "work", spec)
    made.store.ingest((i + 2, f"text {i}", {0: i % 2}) for i in range(100))
    return made


def test_only_the_owner_can_read_it(workspace: Workspace) -> None:
    workspace.write_private("report.html", "<p>")
    assert stat.S_IMODE(workspace.folder.stat().st_mode) == 0o700
    files = list(workspace.folder.iterdir())
    assert len(files) >= 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_records_come_back_in_order_and_only_while_unlabelled(workspace: Workspace) -> None:
    store = workspace.store
    first = next(store.unlabelled())
    assert (first.text, first.row, first.known) == ("text 0", 2, {0: 0})
    for record in list(store.unlabelled())[:60]:
        store.put_labels(record.id, [record.known[0]], [1.0])
    assert [record.text for record in store.unlabelled()] == [f"text {i}" for i in range(60, 100)]
    assert store.labels().tolist() == [[i % 2] for i in range(60)]


DRAW = PublicDraw(
    mechanism={"selection": "joint"},
    leakage=(),
    released={"kind": "table"},
    shares={},
    tree=DrawnTree(root=0, parents=(-1,)),
    pool_seed=1,
    choice=(0,),
    seeded=False,
)


def test_a_draw_is_made_once(workspace: Workspace) -> None:
    targets = np.zeros((100, 1), dtype=np.int64)
    workspace.store.put_draw(DRAW, np.arange(len(targets)), targets)
    with pytest.raises(WorkspaceError, match="never made twice"):
        workspace.store.put_draw(DRAW.model_copy(update={"pool_seed": 2}), np.arange(len(targets)), targets)
    assert workspace.store.draw() == DRAW
    assert workspace.store.assigned().shape == (100, 1)


def test_a_draw_without_a_target_for_every_record_is_not_kept(workspace: Workspace) -> None:
    with pytest.raises(ValueError, match="99 records"):
        workspace.store.put_draw(DRAW, np.arange(99), np.zeros((99, 1), dtype=np.int64))
    assert Workspace.open(workspace.folder).store.draw() is None


def test_a_killed_writer_loses_at_most_one_group(workspace: Workspace) -> None:
    workspace.close()
    code = (
        "import os, sys\n"
        "from quantext_graph.workspace.folder import Workspace\n"
        "from quantext_graph.workspace.records import Rewrite\n"
        "store = Workspace.open(sys.argv[1]).store\n"
        "for i in range(1, 91): store.put_rewrite(Rewrite(i, 'new', True))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(workspace.folder)], check=False)
    counts = Workspace.open(workspace.folder).store.counts()
    assert 90 - GROUP < counts.rewritten <= 90


def test_unverified_rewrites_can_be_asked_for_again(workspace: Workspace) -> None:
    store = workspace.store
    for i in range(1, 11):
        store.put_rewrite(Rewrite(i, "new", i > 3))
    assert store.forget_unverified() == 3
    assert store.counts().rewritten == 7


def test_usage_adds_up(workspace: Workspace) -> None:
    for _ in range(3):
        workspace.store.add_usage("label", "m", Usage(calls=1, input_tokens=10, output_tokens=2, seconds=0.5))
    (row,) = workspace.store.usage()
    assert row.model_dump() == {
        "step": "label",
        "model": "m",
        "calls": 3,
        "input_tokens": 30,
        "output_tokens": 6,
        "seconds": 1.5,
    }


def test_a_second_process_is_refused_with_the_pid_of_the_first(workspace: Workspace) -> None:
    code = (
        "import sys, quantext_graph.workspace.folder as w; w.Workspace.open(sys.argv[1]).locked().__enter__()"
    )
    with workspace.locked():
        second = subprocess.run(
            [sys.executable, "-c", code, str(workspace.folder)], capture_output=True, text=True, check=False
        )
    assert f"in use by process {os.getpid()}" in second.stderr
    with workspace.locked():
        pass


def test_a_run_that_is_kept_is_not_written_over(workspace: Workspace, spec: Spec) -> None:
    with pytest.raises(WorkspaceError, match="quantext resume"):
        Workspace.create(workspace.folder, spec)


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path, spec: Spec) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(WorkspaceError, match="not empty"):
        Workspace.create(tmp_path, spec)
    with pytest.raises(WorkspaceError, match="no workspace here"):
        purge(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_purge_removes_all(workspace: Workspace) -> None:
    workspace.close()
    purge(workspace.folder)
    assert not workspace.folder.exists()


def test_a_damaged_store_is_one_line(workspace: Workspace) -> None:
    workspace.close()
    (workspace.folder / "store.sqlite").write_bytes(b"not a database at all, but long enough" * 100)
    with pytest.raises(WorkspaceError, match="damaged"):
        Workspace.open(workspace.folder)


def test_a_full_disk_is_one_line_and_what_is_done_stays(workspace: Workspace) -> None:
    store: Store = workspace.store
    store.put_rewrite(Rewrite(1, "new", True))
    store.commit()
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")

    def fill() -> None:
        for i in range(2, 101):
            store.put_rewrite(Rewrite(i, "x" * 10_000, True))
        store.commit()

    with pytest.raises(WorkspaceError, match="disk is full"):
        fill()
    assert Workspace.open(workspace.folder).store.counts().rewritten >= 1
