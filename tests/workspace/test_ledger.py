"""The ledger: recognition by content, composition by addition, and what may go wrong with the file."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantext_graph.workspace.ledger import SKETCH_SIZE, Fingerprint, Ledger, LedgerError, ledger_path

TEXTS = [f"message number {i} of a patient" for i in range(200)]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "private" / "ledger.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    with Ledger.open(tmp_path_factory.mktemp("ledger") / "ledger.sqlite") as opened:
        yield opened


@given(data=st.data(), texts=st.lists(st.text(max_size=20), max_size=30))
def test_order_and_whitespace_make_no_other_data_set(
    shared_ledger: Ledger, data: st.DataObject, texts: list[str]
) -> None:
    shuffled = data.draw(st.permutations(texts))
    spaced = [f"\r\n {text}\t" for text in shuffled]
    assert shared_ledger.fingerprint(spaced) == shared_ledger.fingerprint(texts)


@given(texts=st.lists(st.text(max_size=20), min_size=1, max_size=10), where=st.integers(0, 9))
def test_a_record_more_is_another_data_set(shared_ledger: Ledger, texts: list[str], where: int) -> None:
    doubled = [*texts, texts[where % len(texts)]]
    assert shared_ledger.fingerprint(doubled).digest != shared_ledger.fingerprint(texts).digest


def test_another_ledger_has_another_key(tmp_path: Path, ledger: Ledger) -> None:
    with Ledger.open(tmp_path / "other.sqlite") as other:
        assert other.fingerprint(TEXTS).digest != ledger.fingerprint(TEXTS).digest
    with Ledger.open(ledger.path) as again:
        assert again.fingerprint(TEXTS) == ledger.fingerprint(TEXTS)


def test_releases_add_up_and_each_counts_once(ledger: Ledger) -> None:
    mine, other = ledger.fingerprint(TEXTS), ledger.fingerprint(["something else"])
    assert ledger.spent(mine) == 0
    ledger.record(mine, release_id="a", bound_nats=1.0, note={"secret": "share of diabetes"})
    ledger.record(mine, release_id="a", bound_nats=1.0, note={})
    ledger.record(mine, release_id="b", bound_nats=0.25, note={})
    ledger.record(other, release_id="c", bound_nats=7.0, note={})
    assert ledger.spent(mine) == 1.25
    assert [entry.release_id for entry in ledger.entries(mine)] == ["a", "b"]
    assert ledger.entries(mine)[0].note == {"secret": "share of diabetes"}
    assert ledger.near_copies(mine) == []


def test_release_with_other_data_or_bound_is_refused_and_changes_nothing(ledger: Ledger) -> None:
    mine, other = ledger.fingerprint(TEXTS), ledger.fingerprint(TEXTS[1:])
    ledger.record(mine, release_id="a", bound_nats=1.0, note={})
    for fingerprint, bound in ((other, 1.0), (mine, 2.0)):
        with pytest.raises(LedgerError, match="other data or another bound"):
            ledger.record(fingerprint, release_id="a", bound_nats=bound, note={})
    assert ledger.spent(mine) == 1.0
    assert ledger.spent(other) == 0


@pytest.mark.parametrize("bound", [-0.1, float("nan"), float("inf")])
def test_a_bound_that_is_no_number_of_nats_is_refused(ledger: Ledger, bound: float) -> None:
    with pytest.raises(ValueError, match="bound_nats"):
        ledger.record(ledger.fingerprint(TEXTS), release_id="a", bound_nats=bound, note={})


@pytest.mark.parametrize(
    ("texts", "share"),
    [
        (TEXTS[:100], 1.0),  # the first half of an earlier set
        ([*TEXTS, *(f"new {i}" for i in range(200))], 1.0),  # an earlier set that has grown
        ([*TEXTS[:150], *(f"new {i}" for i in range(50))], 0.75),
    ],
)
def test_near_copies_are_seen(ledger: Ledger, texts: list[str], share: float) -> None:
    ledger.record(ledger.fingerprint(TEXTS), release_id="a", bound_nats=1.0, note={})
    ledger.record(ledger.fingerprint(TEXTS), release_id="b", bound_nats=2.0, note={})
    (copy,) = ledger.near_copies(ledger.fingerprint(texts))
    assert (copy.share, copy.n, copy.spent_nats) == (share, 200, 3.0)


def test_a_set_that_shares_little_is_no_near_copy(ledger: Ledger) -> None:
    ledger.record(ledger.fingerprint(TEXTS), release_id="a", bound_nats=1.0, note={})
    little = [*TEXTS[:99], *(f"new {i}" for i in range(101))]
    assert ledger.near_copies(ledger.fingerprint(little)) == []


def test_overlap_of_large_sets_is_estimated_from_the_sketches(ledger: Ledger) -> None:
    """Sets of five sketches' size: 60 % shared, and a tenth that lies wholly within the other."""
    n = 5 * SKETCH_SIZE
    whole = ledger.fingerprint(f"record {i}" for i in range(n))
    moved = ledger.fingerprint(f"record {i}" for i in range(int(0.4 * n), int(1.4 * n)))
    tenth = ledger.fingerprint(f"record {i}" for i in range(n // 10))
    assert whole.n == n
    assert len(whole.sketch) == SKETCH_SIZE
    assert whole.overlap(moved) == pytest.approx(0.6, abs=0.05)
    assert whole.overlap(tenth) == tenth.overlap(whole) == 1.0


def test_sketch_keeps_the_smallest_marks_of_a_long_stream(ledger: Ledger) -> None:
    """The stream is thinned on the way; what is left must be what sorting all marks would leave."""
    n = 20 * SKETCH_SIZE
    parts = [ledger.fingerprint(f"record {i}" for i in range(start, n, 25)).sketch for start in range(25)]
    every_mark = sorted(mark for part in parts for mark in part)
    assert len(every_mark) == n
    assert ledger.fingerprint(f"record {i}" for i in range(n)).sketch == tuple(every_mark[:SKETCH_SIZE])


def test_an_empty_set_overlaps_with_nothing() -> None:
    empty = Fingerprint("", 0, ())
    assert empty.overlap(empty) == 0.0


def test_no_text_reaches_the_file_or_a_repr(ledger: Ledger) -> None:
    fingerprint = ledger.fingerprint(["plantedtoken"])
    ledger.record(fingerprint, release_id="a", bound_nats=1.0, note={})
    assert b"plantedtoken" not in ledger.path.read_bytes()
    assert "plantedtoken" not in repr(fingerprint)


def test_folder_and_file_are_private(ledger: Ledger) -> None:
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(ledger.path.parent.stat().st_mode) == 0o700


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger.open(path).close()
    path.chmod(0o644)
    Ledger.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_environment_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUANTEXT_LEDGER", str(tmp_path / "mine.sqlite"))
    assert ledger_path() == tmp_path / "mine.sqlite"
    monkeypatch.delenv("QUANTEXT_LEDGER")
    assert ledger_path().name == "ledger.sqlite"


RECORD = """
import sys
from quantext_graph.workspace.ledger import Ledger
for i in range(30):
    with Ledger.open(sys.argv[1]) as ledger:
        mine = ledger.fingerprint(["one", "two"])
        ledger.record(mine, release_id=f"{sys.argv[2]}-{i}", bound_nats=0.5, note={})
        ledger.record(mine, release_id=f"both-{i}", bound_nats=0.5, note={})
"""


def test_two_runs_at_once_lose_nothing(tmp_path: Path) -> None:
    """Both start without a ledger, so they also agree on one key."""
    path = tmp_path / "ledger.sqlite"
    runs = [subprocess.Popen([sys.executable, "-c", RECORD, path, name]) for name in ("left", "right")]
    assert [run.wait(timeout=60) for run in runs] == [0, 0]
    with Ledger.open(path) as ledger:
        assert ledger.spent(ledger.fingerprint(["two", "one"])) == 0.5 * 90


def test_a_ledger_held_by_another_run_says_so(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quantext_graph.workspace.ledger.BUSY_SECONDS", 0.05)
    with sqlite3.connect(ledger.path) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerError, match="wait for the other run") as refused:
            Ledger.open(ledger.path)
    assert "\n" not in str(refused.value)


def test_damaged_and_foreign_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    damaged, foreign = tmp_path / "damaged.sqlite", tmp_path / "foreign.sqlite"
    damaged.write_bytes(b"this is no database" * 100)
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE holidays (day TEXT)")
    connection.close()
    for path, words in ((damaged, "damaged"), (foreign, "no ledger")):
        before = path.read_bytes()
        with pytest.raises(LedgerError, match=words) as refused:
            Ledger.open(path)
        assert "\n" not in str(refused.value)
        assert path.read_bytes() == before


def test_damage_inside_a_ledger_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        mine = ledger.fingerprint(TEXTS)
        ledger.record(mine, release_id="a", bound_nats=1.0, note={})
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(LedgerError, match="damaged"), Ledger.open(path) as ledger:
        ledger.near_copies(mine)


def test_a_path_where_no_file_can_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "ledger.sqlite"):
        with pytest.raises(LedgerError, match="QUANTEXT_LEDGER"):
            Ledger.open(path)


def test_marks_order_texts_alike_in_every_release(tmp_path: Path) -> None:
    texts = ["one", "two", "two", " two ", "three \ud83d"]
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        marks = ledger.marks(texts)
        assert ledger.marks(reversed(texts[:1])) == marks[:1]
        assert len(set(marks)) == 5, "each of several equal texts has its own"
        assert all(0 <= mark < 2**64 for mark in marks)
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.marks(texts) == marks
    with Ledger.open(tmp_path / "other.sqlite") as ledger:
        assert not set(ledger.marks(texts)) & set(marks), "another key, another order"
