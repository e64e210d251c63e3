"""What every format gives: a table that streams its rows, any number of times."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from quantext_graph.spec.errors import QuantextError

Cell = str | int | float | None
"""What can be written; what is read is text or `None`."""

SHOWN = 10
"""How many row numbers, line numbers or names a message lists before it says `...`."""


class RecordsError(QuantextError):
    """A file that cannot be read, or written, as it is: `FILE, line N: what; how to mend`.

    The message never holds the content of a cell; the name of a column may stand in it.
    """


class FileRefused(RecordsError):
    """A file that is not there or of no known format: its content was not looked at."""

    public = True


@dataclass(frozen=True, repr=False)
class Row:
    """One data row: its number from 1, the line of the file where it starts, and its cells.

    A cell is `None` where the format itself says that nothing is there (JSON and Parquet null). In
    Parquet, which has no lines, `line` is the number of the row.
    """

    number: int
    line: int
    values: tuple[str | None, ...]

    def __repr__(self) -> str:
        return f"Row(number={self.number}, line={self.line})"


@dataclass(frozen=True)
class Table:
    """A file that was read through once and found sound; iterating reads it again, row by row.

    `columns` are the names as they stand in the file ("" for a column without one). `opaque` names
    the columns that somewhere hold something other than text, number or truth value (JSON objects
    and lists, Parquet binaries), which are given as JSON and cannot be the text of a record.
    `warnings` are lines for the user: a guessed encoding, quotes that were taken as characters.
    """

    path: Path
    format: str
    columns: tuple[str, ...]
    n_rows: int
    read: Callable[[], Iterator[Row]] = field(repr=False, compare=False)
    encoding: str | None = None
    delimiter: str | None = None
    opaque: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Row]:
        return self.read()

    def __len__(self) -> int:
        return self.n_rows

    def column(self, name: str) -> int:
        """Index of the column called `name`.

        Raises:
            RecordsError: where there is none, with the nearest name or the known ones.
        """
        if name and name in self.columns:
            return self.columns.index(name)
        named = [column for column in self.columns if column]
        near = difflib.get_close_matches(name, named, n=1)
        hint = (
            f"did you mean {shown(near[0])}?" if near else f"there are: {listed([shown(n) for n in named])}"
        )
        raise RecordsError(f"{self.path}: no column is called {shown(name)}; {hint}")


def need_pyarrow(path: Path) -> None:
    """Refuse a Parquet file where what reads and writes it is not installed.

    Raises:
        FileRefused: with the extra that brings it.
    """
    if find_spec("pyarrow") is None:
        raise FileRefused(
            f"{path}: Parquet needs pyarrow; pip install 'quantext-graph[parquet]', or use .csv or .jsonl"
        )


def shown(name: str) -> str:
    """A column name on one line and at most 40 characters long."""
    return repr(name if len(name) <= 40 else name[:37] + "...")


def listed(items: Sequence[object]) -> str:
    """The first ten of `items`, separated by commas."""
    return ", ".join(str(item) for item in items[:SHOWN]) + (", ..." if len(items) > SHOWN else "")


@dataclass
class Places:
    """Line or row numbers at which one kind of problem was met: the first ten, and how many in all."""

    count: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, place: int) -> None:
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(place)

    def say(self, word: str) -> str:
        """`line 3` or `lines 3, 8, ... (17 in all)`, with `word` for "line"."""
        if self.count == 1:
            return f"{word} {self.first[0]}"
        rest = f", ... ({self.count} in all)" if self.count > SHOWN else ""
        return f"{word}s {', '.join(map(str, self.first))}{rest}"
