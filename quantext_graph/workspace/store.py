"""The store of a run: records, labels, targets and rewrites, each keyed by the record's id.

SQLite in WAL mode, committed in groups, so a record that is done is never done again: after
`kill -9` at most one group is repeated.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from quantext_graph.mechanism.public_draw import PublicDraw
from quantext_graph.workspace.disk import WorkspaceError, one_line
from quantext_graph.workspace.records import (
    Counts,
    Failure,
    Origin,
    Rewrite,
    RewriteDetail,
    StoredPair,
    StoredRecord,
    UsageRow,
)
from quantext_graph.workspace.reports import PrivateReport, Report, Seconds

GROUP = 32  # results in one commit
GROUP_SECONDS = 1.0  # and the longest they wait for it
PAGE = 256  # records read at a time

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE records (id INTEGER PRIMARY KEY, row INTEGER NOT NULL, text TEXT NOT NULL, known TEXT NOT NULL);
CREATE TABLE labels (id INTEGER PRIMARY KEY, codes TEXT NOT NULL, confidence TEXT NOT NULL,
                     reason TEXT NOT NULL);
CREATE TABLE targets (id INTEGER PRIMARY KEY, codes TEXT NOT NULL);
CREATE TABLE rewrites (id INTEGER PRIMARY KEY, text TEXT NOT NULL, verified INTEGER NOT NULL,
                       detail TEXT NOT NULL);
CREATE TABLE usage (step TEXT, model TEXT, calls INTEGER, input_tokens INTEGER, output_tokens INTEGER,
                    seconds REAL, PRIMARY KEY (step, model)) WITHOUT ROWID;
"""


class Store:
    """Reads and writes of one process; writers call `commit` or let groups commit themselves."""

    def __init__(self, path: Path) -> None:
        self.folder = path.parent
        self._guard = threading.RLock()
        self._waiting = 0
        self._last_commit = time.monotonic()
        with one_line(self.folder):
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")

    def create(self) -> None:
        """Make the empty tables."""
        with one_line(self.folder):
            self._db.executescript(_SCHEMA)

    def close(self) -> None:
        self.commit()
        self._db.close()

    # -- meta -----------------------------------------------------------------------------------

    def meta(self, key: str, default: Any = None) -> Any:
        with self._reading() as db:
            row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return default if row is None else json.loads(row[0])

    def set_meta(self, key: str, value: Any) -> None:
        self._write("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    # -- records --------------------------------------------------------------------------------

    def ingest(self, records: Iterable[tuple[int, str, Mapping[int, int]]]) -> int:
        """Take in (row, text, known codes) in one transaction and return their number n."""
        with self._whole():
            self._db.execute("DELETE FROM records")
            self._db.executemany(
                "INSERT INTO records (row, text, known) VALUES (?, ?, ?)",
                ((row, text, json.dumps(dict(known))) for row, text, known in records),
            )
            n: int = self._db.execute("SELECT count(*) FROM records").fetchone()[0]
            self.set_meta("n", n)
        return n

    @property
    def n(self) -> int:
        return int(self.meta("n", 0))

    @property
    def n_released(self) -> int:
        """n′ = ⌊κ·n⌋, which is fixed when the records are taken in."""
        return int(self.meta("released", self.n))

    def texts(self) -> Iterator[str]:
        """All private texts, read a page at a time."""
        for _, text in self._pages("SELECT id, text FROM records WHERE id > ?"):
            yield text

    def unlabelled(self) -> Iterator[StoredRecord]:
        """Records without labels, in order of id, read a page at a time."""
        query = "SELECT id, row, text, known FROM records WHERE id > ? AND id NOT IN (SELECT id FROM labels)"
        for id_, row, text, known in self._pages(query):
            yield StoredRecord(id_, row, text, {int(k): v for k, v in json.loads(known).items()})

    def put_labels(
        self, id_: int, codes: Iterable[int], confidence: Iterable[float], reason: str = ""
    ) -> None:
        """Keep the labels of one record; `reason` is empty where the labeller answered."""
        values = (id_, json.dumps(list(codes)), json.dumps([round(c, 4) for c in confidence]), reason)
        self._write("INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?)", values)

    def labels(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """All labels as (n, m) codes, in order of id."""
        return self._codes("labels")

    def confidence(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """The probability given to each label, (n, m), in order of id; private."""
        with self._reading() as db:
            rows = db.execute("SELECT confidence FROM labels ORDER BY id")
            return np.array([json.loads(row[0]) for row in rows], dtype=np.float64)

    def label_failures(self) -> dict[str, int]:
        with self._reading() as db:
            rows = db.execute("SELECT reason, count(*) FROM labels WHERE reason != '' GROUP BY reason")
            return dict(rows.fetchall())

    def failures(self) -> Iterator[Failure]:
        """Records that a step failed on so far, with the reasons, in order of row; private."""
        query = (
            "SELECT r.id, r.row, coalesce(l.reason, ''), coalesce(w.verified, 1), w.detail FROM records r "
            "LEFT JOIN labels l ON l.id = r.id LEFT JOIN rewrites w ON w.id = r.id WHERE r.id > ? AND "
            "(l.reason != '' OR w.verified = 0)"
        )
        for _, row, reason, verified, detail in self._pages(query):
            if reason:
                yield Failure(row, "label", reason)
            if not verified:
                attempts = json.loads(detail)["attempts"]
                missed = dict.fromkeys(reason for attempt in attempts for reason in attempt["failures"])
                yield Failure(row, "rewrite", ", ".join(missed))

    # -- the draw -------------------------------------------------------------------------------

    def draw(self) -> PublicDraw | None:
        """What is public of this run's draw; None before it is made."""
        found = self.meta("draw")
        return None if found is None else PublicDraw.model_validate(found)

    def put_draw(
        self,
        draw: PublicDraw,
        used: np.ndarray[Any, Any],
        assigned: np.ndarray[Any, Any],
        *,
        own: Iterable[int] = (),
        public: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """Keep the one draw of this run and the targets (n′, m) of the records at the places `used` (n′,) of
        all in order of id, in one transaction, and with them the texts that nobody has to write.

        Args:
            own: of the n′ places those whose record is published in its own words.
            public: {place: public text} of those that a text of the auxiliary set fills.

        Raises:
            WorkspaceError: where the run has its draw already.
            ValueError: not one target for each of the n′ records.
        """
        if len(used) != self.n_released:
            raise ValueError(f"{len(used)} records with a target; {self.n_released} are to be released")
        if self.meta("draw") is not None:
            raise WorkspaceError(f"{self.folder}: the draw of this run is made; it is never made twice")
        with self._whole():
            known = [row[0] for row in self._db.execute("SELECT id FROM records ORDER BY id").fetchall()]
            ids = [known[place] for place in used.tolist()]
            pairs = zip(ids, assigned.tolist(), strict=True)
            self._db.executemany("INSERT INTO targets VALUES (?, ?)", ((i, json.dumps(c)) for i, c in pairs))
            of_own, of_public = _detail("own"), _detail("public")
            self._db.executemany(
                "INSERT INTO rewrites SELECT id, text, 1, ? FROM records WHERE id = ?",
                ((of_own, ids[place]) for place in own),
            )
            self._db.executemany(
                "INSERT INTO rewrites VALUES (?, ?, 1, ?)",
                ((ids[place], text, of_public) for place, text in public.items()),
            )
            self.set_meta("draw", draw.model_dump())

    def assigned(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Targets of the records that are used, as (n′, m) codes, in order of id."""
        return self._codes("targets")

    def used_labels(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Labels of the records that are used, as (n′, m) codes, in order of id."""
        return self._codes("labels WHERE id IN (SELECT id FROM targets)")

    # -- rewrites -------------------------------------------------------------------------------

    def unwritten(self) -> Iterator[tuple[int, str, tuple[int, ...], tuple[int, ...]]]:
        """(id, text, labels, target) of the records that have no rewrite yet, those of one target together:
        a model server need not read again what their prompts share."""
        with self._reading() as db:
            left = "SELECT id FROM targets WHERE id NOT IN (SELECT id FROM rewrites) ORDER BY codes, id"
            order = [row[0] for row in db.execute(left)]
        query = (
            "SELECT r.id, r.text, l.codes, t.codes FROM records r JOIN labels l ON l.id = r.id "
            "JOIN targets t ON t.id = r.id WHERE r.id IN (SELECT value FROM json_each(?)) "
            "ORDER BY t.codes, r.id"
        )
        for start in range(0, len(order), PAGE):
            with self._reading() as db:
                page = db.execute(query, (json.dumps(order[start : start + PAGE]),)).fetchall()
            for id_, text, codes, target in page:
                yield id_, text, tuple(json.loads(codes)), tuple(json.loads(target))

    def put_rewrite(self, rewrite: Rewrite) -> None:
        values = (rewrite.id, rewrite.text, int(rewrite.verified), json.dumps(rewrite.detail.model_dump()))
        self._write("INSERT OR REPLACE INTO rewrites VALUES (?, ?, ?, ?)", values)

    def forget_unverified(self) -> int:
        """Drop the rewrites that missed their target, so that `resume` writes them again."""
        with self._guard:
            self.commit()
            dropped = self._db.execute("DELETE FROM rewrites WHERE verified = 0").rowcount
            self.set_meta("stage", "rewrite")
            self.set_meta("report", None)
            self.commit()
        return dropped

    def pairs(self) -> Iterator[StoredPair]:
        """Before and after of every record that is used, for the private report and the audit."""
        query = (
            "SELECT r.id, r.row, r.text, l.codes, t.codes, w.text, w.verified, w.detail FROM records r "
            "JOIN labels l ON l.id = r.id JOIN targets t ON t.id = r.id JOIN rewrites w ON w.id = r.id "
            "WHERE r.id > ?"
        )
        for id_, row, text, codes, target, written, verified, detail in self._pages(query):
            labels, wanted = tuple(json.loads(codes)), tuple(json.loads(target))
            known = RewriteDetail.of_json(json.loads(detail))
            yield StoredPair(id_, row, text, labels, wanted, written, bool(verified), known)

    def used(self) -> list[int]:
        """Ids of the records that have a target."""
        with self._reading() as db:
            return [row[0] for row in db.execute("SELECT id FROM targets ORDER BY id")]

    def released(self, ids: Iterable[int]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """(released text, target) of the records with these ids, in this order."""
        query = "SELECT w.text, t.codes FROM rewrites w JOIN targets t ON t.id = w.id WHERE w.id = ?"
        for id_ in ids:
            with self._reading() as db:
                text, target = db.execute(query, (id_,)).fetchone()
            yield text, tuple(json.loads(target))

    # -- counts and usage -----------------------------------------------------------------------

    def counts(self) -> Counts:
        with self._reading() as db:
            labeled = db.execute("SELECT count(*) FROM labels").fetchone()[0]
            done, verified = db.execute(
                "SELECT count(*), coalesce(sum(verified), 0) FROM rewrites"
            ).fetchone()
        stage, n, released = self.meta("stage", "new"), self.n, self.n_released
        return Counts(stage, n, released, labeled, done, verified, done - verified)

    def add_usage(self, step: str, model: str, usage: Any) -> None:
        """Add a `models.Usage` to what this step has spent on this model."""
        self._write(
            "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (step, model) DO UPDATE SET "
            "calls = calls + excluded.calls, input_tokens = input_tokens + excluded.input_tokens, "
            "output_tokens = output_tokens + excluded.output_tokens, seconds = seconds + excluded.seconds",
            (step, model, usage.calls, usage.input_tokens, usage.output_tokens, usage.seconds),
            counted=False,
        )

    def usage(self) -> list[UsageRow]:
        with self._reading() as db:
            rows = db.execute("SELECT step, model, calls, input_tokens, output_tokens, seconds FROM usage")
            return [UsageRow(**dict(zip(UsageRow.model_fields, row, strict=True))) for row in rows]

    def seconds(self) -> dict[str, Seconds]:
        """What each pass has taken so far."""
        return {stage: Seconds(**spent) for stage, spent in self.meta("seconds", {}).items()}

    def add_seconds(self, stage: str, spent: Seconds) -> None:
        known = self.seconds()
        known[stage] = known.get(stage, Seconds()) + spent
        self.set_meta("seconds", {name: each.model_dump() for name, each in known.items()})

    # -- the report -----------------------------------------------------------------------------

    def report(self) -> Report | None:
        """The public figures; None before the run has come to the gate."""
        found = self.meta("report")
        return None if found is None else Report.model_validate(found)

    def private_report(self) -> PrivateReport:
        return PrivateReport.model_validate(self.meta("private_report"))

    def put_report(self, public: Report, private: PrivateReport, realised: np.ndarray[Any, Any]) -> None:
        """Keep the figures, and what the evaluator read off each released text, (n, m) codes."""
        self.set_meta("realised", realised.tolist())
        self.set_meta("private_report", private.model_dump())
        self.set_meta("report", public.model_dump())

    # -- the store ------------------------------------------------------------------------------

    def commit(self) -> None:
        with self._guard, one_line(self.folder):
            if self._db.in_transaction:
                self._db.commit()
            self._waiting = 0
            self._last_commit = time.monotonic()

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """What is written within is kept whole or, where it fails, not at all."""
        with self._guard, one_line(self.folder):
            self.commit()
            self._begin()
            try:
                yield
            except BaseException:
                self._db.rollback()
                raise
            self.commit()

    def _begin(self) -> None:
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")

    def _write(self, statement: str, values: tuple[Any, ...], *, counted: bool = True) -> None:
        with self._guard, one_line(self.folder):
            self._begin()
            self._db.execute(statement, values)
            self._waiting += counted
            if self._waiting >= GROUP or time.monotonic() - self._last_commit > GROUP_SECONDS:
                self.commit()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._guard, one_line(self.folder):
            yield self._db

    def _pages(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Rows of a query that starts with an id and filters on `id > ?`, a page at a time."""
        last = 0
        while True:
            with self._reading() as db:
                page = db.execute(f"{query} ORDER BY 1 LIMIT {PAGE}", (last,)).fetchall()
            if not page:
                return
            yield from page
            last = page[-1][0]

    def _codes(self, table: str) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        with self._reading() as db:
            rows = db.execute(f"SELECT codes FROM {table} ORDER BY id")  # noqa: S608  (a name of ours)
            codes = np.array([json.loads(row[0]) for row in rows], dtype=np.int64)
        return codes.reshape(len(codes), -1)


def _detail(origin: Origin) -> str:
    """The detail of a text that nobody wrote."""
    return json.dumps(RewriteDetail(origin=origin).model_dump())
