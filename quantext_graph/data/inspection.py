"""A look at a data set's columns: which one holds the texts, which could be attributes.

Column names and kinds are public; whatever counts or quotes cells is private."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from quantext_graph.data.tables import RecordsError, Table, open_table
from quantext_graph.data.tables.table import need_pyarrow

Kind = Literal["text", "categorical", "number", "other", "empty"]


MOST_CATEGORIES = 20


LONGEST_CATEGORY = 80


SHORTEST_TEXT = 15.0


LONGEST_NAME = 40


WORDS_OF_A_NAME = 4


@dataclass(frozen=True)
class ColumnSummary:
    """One column. Public: `name` and `kind`. Private: all else.

    `counts` holds {category: rows} of a categorical column and is empty for others; `distinct` stops
    at 21; `empty` counts blank cells and nulls; `mean_length` is in characters, over filled cells.
    """

    name: str
    kind: Kind
    distinct: int = field(repr=False)
    empty: int = field(repr=False)
    mean_length: float = field(repr=False)
    counts: dict[str, int] = field(repr=False)

    @property
    def reads_like_a_cell(self) -> bool:
        """Whether the name may be a cell of a file without a header: long, or a value of its own column."""
        return (
            len(self.name) > LONGEST_NAME
            or len(self.name.split()) > WORDS_OF_A_NAME
            or self.name in self.counts
            or (self.kind == "number" and _is_number(self.name))
        )

    @property
    def categories(self) -> tuple[str, ...]:
        """Category names in alphabetical order, which says nothing about the order of the rows."""
        return tuple(sorted(self.counts))


@dataclass(frozen=True)
class DatasetSummary:
    """What a look at `looked_at` of `rows` rows showed. `rows` is public: a release has as many records."""

    path: Path
    rows: int
    looked_at: int = field(repr=False)
    columns: tuple[ColumnSummary, ...]
    text: str | None
    warnings: tuple[str, ...] = ()

    @property
    def categorical(self) -> tuple[ColumnSummary, ...]:
        return tuple(column for column in self.columns if column.kind == "categorical")

    def public(self) -> dict[str, Any]:
        """What any chat model may read. A name that may be a cell is withheld: `column 3` stands for it."""
        names = {
            column.name: f"column {number}" if column.reads_like_a_cell else column.name
            for number, column in enumerate(self.columns, 1)
        }
        return {
            "rows": self.rows,
            "text": None if self.text is None else names[self.text],
            "columns": [{"name": names[column.name], "kind": column.kind} for column in self.columns],
        }

    def private(self) -> dict[str, Any]:
        """What stays on this machine: category names, their shares, counts of blank cells."""
        return {
            "looked_at": self.looked_at,
            "columns": [
                {
                    "name": column.name,
                    "categories": list(column.categories),
                    "shares": {name: column.counts[name] / self.looked_at for name in column.categories},
                    "empty": column.empty,
                }
                for column in self.columns
            ],
            "warnings": list(self.warnings),
        }


def inspect(
    path: str | Path,
    sample: int | None = 10_000,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> DatasetSummary:
    """Look at the first `sample` rows of a data set (all of them for `None`).

    The text column is the one with the longest cells, of those that a tenth of the rows fill and
    that mostly differ. A column with 2 to 20 short values, at most half as many as rows, is
    categorical.

    Raises:
        RecordsError: where the file cannot be read.
    """
    table = open_table(path, encoding=encoding, delimiter=delimiter)
    looks = [_Look() for _ in table.columns]
    looked_at = 0
    for row in islice(table, sample):
        looked_at += 1
        for look, cell in zip(looks, row.values, strict=True):
            look.add(cell)
    text = _text_column(table, looks, looked_at)
    columns = tuple(
        look.summary(name, looked_at, is_text=index == text)
        for index, (name, look) in enumerate(zip(table.columns, looks, strict=True))
    )
    name = None if text is None else table.columns[text]
    return DatasetSummary(table.path, len(table), looked_at, columns, name, table.warnings)


@dataclass
class _Look:
    """What is gathered of one column in one pass; values are kept only while they are few."""

    filled: int = 0
    empty: int = 0
    length: int = 0
    numbers: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    hashes: set[int] = field(default_factory=set)

    def add(self, cell: str | None) -> None:
        value = (cell or "").strip()
        if not value:
            self.empty += 1
            return
        self.filled += 1
        self.length += len(value)
        self.numbers += _is_number(value)
        self.hashes.add(hash(value))
        if len(self.counts) <= MOST_CATEGORIES:
            self.counts[value[: LONGEST_CATEGORY + 1]] += 1

    @property
    def mean_length(self) -> float:
        return self.length / self.filled if self.filled else 0.0

    def summary(self, name: str, rows: int, *, is_text: bool) -> ColumnSummary:
        kind = "text" if is_text else self._kind(name, rows)
        counts = dict(self.counts) if kind == "categorical" else {}
        distinct = min(len(self.hashes), MOST_CATEGORIES + 1)
        return ColumnSummary(name, kind, distinct, self.empty, self.mean_length, counts)

    def _kind(self, name: str, rows: int) -> Kind:
        if not self.filled:
            return "empty"
        few = 2 <= len(self.counts) <= min(MOST_CATEGORIES, rows / 2)
        if name and few and max(map(len, self.counts)) <= LONGEST_CATEGORY:
            return "categorical"
        return "number" if self.numbers == self.filled else "other"


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _text_column(table: Table, looks: list[_Look], rows: int) -> int | None:
    likely = [
        index
        for index, (name, look) in enumerate(zip(table.columns, looks, strict=True))
        if name
        and name not in table.opaque
        and look.mean_length >= SHORTEST_TEXT
        and look.filled * 10 >= rows
        and len(look.hashes) > look.filled / 2
    ]
    return max(likely, key=lambda index: looks[index].mean_length, default=None)


LARGE = 64 << 20
"""Bytes from which on a file is sampled."""


HEAD = 4 << 20
"""Bytes of a large file that are looked at, up to its last whole row."""


_WIDE = (b"\xff\xfe", b"\xfe\xff")  # UTF-16 and 32, where a byte is no character


def glance(path: Path) -> tuple[DatasetSummary, bool]:
    """The columns of a file and its number of rows, and whether the number is an estimate.

    Raises:
        RecordsError: as `inspect`.
    """
    if not path.is_file():
        return inspect(path), False
    found = path.stat()
    return _glance(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=4)
def _glance(path: Path, size: int, _: int) -> tuple[DatasetSummary, bool]:
    """Of a file as it stands: a conversation comes back to the same one with every question."""
    if size <= LARGE:
        return inspect(path), False
    with tempfile.TemporaryDirectory(prefix="quantext-") as folder:  # mode 0700
        sample = Path(folder, f"head{path.suffix}")
        if path.suffix.lower() == ".parquet":
            need_pyarrow(path)
            from quantext_graph.data.tables.parquet import copy_first_rows

            rows, exact = copy_first_rows(path, sample), True
        else:
            rows, exact = None, False
            sample.write_bytes(_whole_rows(path))
        look = inspect(sample)
        if rows is None:
            rows = round(look.rows * size / sample.stat().st_size)
    return replace(look, path=path, rows=rows), not exact


def _whole_rows(path: Path) -> bytes:
    """The first rows of a text file. A line end within quotes is none: before it quotes are odd in number."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    if head.startswith(_WIDE):
        raise RecordsError(f"{path}: large and in UTF-16; write it as UTF-8 to look at its first rows")
    end = head.rfind(b"\n")
    lines = path.suffix.lower() in (".jsonl", ".ndjson")
    while end > 0 and not lines and head.count(b'"', 0, end) % 2:
        end = head.rfind(b"\n", 0, end)
    return head[: end + 1] if end > 0 else head
