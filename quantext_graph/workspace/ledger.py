"""Leakage spent so far on a private data set, over all its releases.

Releases of the same private data compose by addition, so somebody has to keep the sum. The ledger
is one SQLite file of the user. It recognises a data set by its content, whatever the order of the
rows or the name of the file, and holds no text: a record enters as a keyed hash, and the random key
stands in the same file. So a hash copied out of the ledger says nothing, while whoever holds the
whole file can test whether a text that they already know was among the records. For that reason
the file is mode 0600. Another ledger has another key: it knows nothing of what was spent here.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from heapq import nsmallest
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from platformdirs import user_data_dir

from quantext_graph.spec.errors import QuantextError

SKETCH_SIZE = 4096
"""Marks kept of a data set. A copied part of less than about 1/1,000 of a larger set can go unseen."""

NEAR_COPY = 0.5
"""The share of the smaller set above which another data set counts as a near copy."""

BUSY_SECONDS = 30.0
_APPLICATION_ID = 0x51_58_54_4C
_VERSION = 1
_MODULUS = 1 << 256
_SCHEMA = """
CREATE TABLE key (value BLOB NOT NULL);
CREATE TABLE data_set (digest TEXT PRIMARY KEY, n INTEGER NOT NULL, sketch BLOB NOT NULL);
CREATE TABLE release (
    id TEXT PRIMARY KEY, digest TEXT NOT NULL REFERENCES data_set, bound_nats REAL NOT NULL,
    made TEXT NOT NULL, note TEXT NOT NULL
);
CREATE INDEX release_of ON release (digest);
"""


class LedgerError(QuantextError):
    """A ledger that cannot be read or written."""

    public = True


@dataclass(frozen=True)
class Fingerprint:
    """What the ledger knows a data set by.

    `digest` is the same for the same multiset of texts, whatever their order; `sketch` holds the
    `SKETCH_SIZE` smallest marks of its distinct texts, ascending, all of them where there are fewer.
    """

    digest: str
    n: int
    sketch: tuple[int, ...] = field(repr=False)

    def overlap(self, other: Fingerprint) -> float:
        """Estimated share of the smaller set's distinct texts that the other holds too, in [0, 1].

        Both sketches are complete below the lesser of their largest marks, so there the two sets
        can be compared text by text (bottom-k sampling; Cohen and Kaplan 2007).
        """
        limit = min(_complete_below(self.sketch), _complete_below(other.sketch))
        mine = {mark for mark in self.sketch if mark <= limit}
        theirs = {mark for mark in other.sketch if mark <= limit}
        smaller = min(len(mine), len(theirs))
        return len(mine & theirs) / smaller if smaller else 0.0


@dataclass(frozen=True)
class Entry:
    """One release of a data set: its bound in nats and what the run noted about it."""

    release_id: str
    bound_nats: float
    when: datetime
    note: dict[str, Any]


@dataclass(frozen=True)
class NearCopy:
    """Another data set with much the same texts: the share of the smaller of the two that both
    hold, its number of records, the nats spent on it, and when it was last released."""

    share: float
    n: int
    spent_nats: float
    when: datetime


class Ledger:
    """The ledger file, open. `with Ledger.open() as ledger: ...` closes it."""

    def __init__(self, path: Path, connection: sqlite3.Connection, key: bytes) -> None:
        self.path = path
        self._connection = connection
        self._key = key

    @classmethod
    def open(cls, path: str | Path | None = None) -> Self:
        """Open the ledger at `path`, at $QUANTEXT_LEDGER, or in the user's data folder; make it if absent.

        Raises:
            LedgerError: where the file cannot be made, is no ledger, or is damaged.
        """
        path = Path(path) if path is not None else ledger_path()
        with _one_line(path):
            _make_private(path)
            connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                key = _prepare(connection, path)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def fingerprint(self, texts: Iterable[str]) -> Fingerprint:
        """Fingerprint of a data set, in one pass and with memory that does not grow with it.

        Whitespace is folded, so line ends and indents do not make another data set. The digest
        is a keyed sum of hashes (MSet-Add-Hash; Clarke et al. 2003), hence free of order.
        """
        n, total, smallest = 0, 0, set[int]()
        for text in texts:
            folded = " ".join(text.split()).encode("utf-8", "surrogatepass")
            mark = blake2b(folded, key=self._key, digest_size=32).digest()
            n, total = n + 1, (total + int.from_bytes(mark)) % _MODULUS
            smallest.add(int.from_bytes(mark[:8]))
            if len(smallest) >= 16 * SKETCH_SIZE:
                smallest = set(nsmallest(SKETCH_SIZE, smallest))
        whole = n.to_bytes(8) + total.to_bytes(32)
        digest = blake2b(whole, key=self._key, digest_size=16, person=b"data set").hexdigest()
        return Fingerprint(digest, n, tuple(nsmallest(SKETCH_SIZE, smallest)))

    def marks(self, texts: Iterable[str]) -> list[int]:
        """A secret mark of each text, below 2⁶⁴, the same whenever it is asked: in the order of their marks
        texts stand at random for whoever lacks the key, and in one order for all releases made here."""
        seen: Counter[str] = Counter()
        marks = []
        for text in texts:
            folded = " ".join(text.split())
            seen[folded] += 1
            once = f"{seen[folded]} {folded}".encode("utf-8", "surrogatepass")
            marks.append(
                int.from_bytes(blake2b(once, key=self._key, digest_size=8, person=b"order").digest())
            )
        return marks

    def record(
        self, fingerprint: Fingerprint, *, release_id: str, bound_nats: float, note: dict[str, Any]
    ) -> None:
        """Add a release, once: call it when the draw is made, since an aborted run leaks as well.

        A second call for the same release changes nothing. `note` is kept as JSON; it may say what
        the release card says, and nothing private.

        Raises:
            ValueError: `bound_nats` negative or not finite.
            LedgerError: where the release stands in the ledger with another data set or bound, or
                the ledger cannot be written.
        """
        if not (math.isfinite(bound_nats) and bound_nats >= 0):
            raise ValueError(f"bound_nats must be finite and at least 0, got {bound_nats}")
        row = (release_id, fingerprint.digest, bound_nats, datetime.now(UTC).isoformat(), json.dumps(note))
        with _one_line(self.path), _transaction(self._connection) as connection:
            known = connection.execute(
                "SELECT digest, bound_nats FROM release WHERE id = ?", (release_id,)
            ).fetchone()
            if known is None:
                connection.execute(
                    "INSERT OR IGNORE INTO data_set VALUES (?, ?, ?)",
                    (fingerprint.digest, fingerprint.n, _pack(fingerprint.sketch)),
                )
                connection.execute("INSERT INTO release VALUES (?, ?, ?, ?, ?)", row)
            elif known != (fingerprint.digest, bound_nats):
                raise LedgerError(
                    f"{self.path}: release {release_id} stands there with other data or another bound; "
                    "put back the data file it was started with, or start a new run"
                )

    def entries(self, fingerprint: Fingerprint) -> list[Entry]:
        """The releases of this very data set, oldest first."""
        rows = self._select(
            "SELECT id, bound_nats, made, note FROM release WHERE digest = ? ORDER BY made, id",
            fingerprint.digest,
        )
        return [
            Entry(release_id, bound, datetime.fromisoformat(made), json.loads(note))
            for release_id, bound, made, note in rows
        ]

    def spent(self, fingerprint: Fingerprint) -> float:
        """Nats spent on this very data set: the sum over its releases."""
        return math.fsum(entry.bound_nats for entry in self.entries(fingerprint))

    def near_copies(self, fingerprint: Fingerprint) -> list[NearCopy]:
        """Other released data sets that share more than half of the smaller one's texts, nearest first.

        What was spent on them counts for the records they share, and is not in `spent`.
        """
        rows = self._select(
            "SELECT digest, n, sketch, SUM(bound_nats), MAX(made) FROM data_set JOIN release USING (digest)"
            " WHERE digest <> ? GROUP BY digest",
            fingerprint.digest,
        )
        copies = [
            NearCopy(
                fingerprint.overlap(Fingerprint(digest, n, _unpack(sketch))),
                n,
                spent,
                datetime.fromisoformat(made),
            )
            for digest, n, sketch, spent, made in rows
        ]
        near = (copy for copy in copies if copy.share > NEAR_COPY)
        return sorted(near, key=lambda copy: (copy.share, copy.when), reverse=True)

    def _select(self, query: str, digest: str) -> list[tuple[Any, ...]]:
        with _one_line(self.path), closing(self._connection.execute(query, (digest,))) as cursor:
            return cursor.fetchall()


def ledger_path() -> Path:
    """Where the user's ledger is: $QUANTEXT_LEDGER, or `ledger.sqlite` in the user's data folder."""
    named = os.environ.get("QUANTEXT_LEDGER")
    return Path(named) if named else Path(user_data_dir("quantext-graph"), "ledger.sqlite")


def _make_private(path: Path) -> None:
    """Make folder (0700) and file (0600). A folder that is there already is left as it is."""
    if not path.parent.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    path.chmod(0o600)


def _prepare(connection: sqlite3.Connection, path: Path) -> bytes:
    """Lay out an empty file or check that it is a ledger of ours, and return its key."""
    # One lock over look and lay-out: of two first runs at once only one may choose the key.
    with _transaction(connection):
        application, version, tables = (
            connection.execute(query).fetchone()[0]
            for query in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT COUNT(*) FROM sqlite_master",
            )
        )
        if not tables:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute("INSERT INTO key VALUES (?)", (secrets.token_bytes(32),))
        elif (application, version) != (_APPLICATION_ID, _VERSION):
            raise LedgerError(
                f"{path}: no ledger of this version of quantext-graph; name another with QUANTEXT_LEDGER"
            )
        key: bytes = connection.execute("SELECT value FROM key").fetchone()[0]
    return key


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


@contextmanager
def _one_line(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system say into one line that says how to go on."""
    try:
        yield
    except sqlite3.OperationalError as error:
        remedy = (
            "wait for the other run to end"
            if "locked" in str(error)
            else "check rights and free space of its folder"
        )
        raise LedgerError(f"{path}: the ledger cannot be used ({error}); {remedy}") from None
    except sqlite3.DatabaseError as error:
        raise LedgerError(
            f"{path}: the ledger is damaged ({error}); restore it from a backup, since a new one "
            "starts from 0 nats"
        ) from None
    except OSError as error:
        raise LedgerError(
            f"{path}: the ledger cannot be used ({error.strerror}); name another with QUANTEXT_LEDGER"
        ) from None


def _complete_below(sketch: tuple[int, ...]) -> float:
    return sketch[-1] if len(sketch) >= SKETCH_SIZE else math.inf


def _pack(sketch: tuple[int, ...]) -> bytes:
    return b"".join(mark.to_bytes(8) for mark in sketch)


def _unpack(packed: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(packed[start : start + 8]) for start in range(0, len(packed), 8))
