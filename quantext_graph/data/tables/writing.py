"""Writing a file of rows so that it reads back as it was, or not at all."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from quantext_graph.data.tables.table import Cell, RecordsError, need_pyarrow, shown

FORMATS = ("csv", "tsv", "jsonl", "parquet")


def write_table(
    path: str | Path,
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    format: str,  # noqa: A002
) -> None:
    """Write a table whole or not at all: into a new file beside `path` that then takes its name.

    Read by `open_table`, the cells are what they were; numbers come back as text, and `None` as an
    empty cell from CSV and TSV, which have no other. Formulas ("=1+1") are texts like any other.

    Raises:
        RecordsError: for what the format cannot hold (NUL in CSV, half of a surrogate pair), a row
            of another width than `columns`, an unknown format, or a file that cannot be written.
    """
    path = Path(path)
    if format not in FORMATS:
        raise RecordsError(f"{path}: no format is called {format!r}; use {', '.join(FORMATS)}")
    if format == "parquet":
        need_pyarrow(path)
    if not columns or len(set(columns)) < len(columns) or not all(columns):
        raise RecordsError(f"{path}: columns need names that differ; rename them")
    writable = _checked(path, columns, rows, refuse_nul=format in ("csv", "tsv"))
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _unwritable(path, error) from None
    part = Path(name)
    try:
        os.close(descriptor)
        _write(part, columns, writable, format)
        part.chmod(0o666 & ~_umask())
        _to_disk(part)
        part.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> RecordsError:
    return RecordsError(f"{path}: cannot be written ({error.strerror}); choose another place or make room")


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _checked(
    path: Path, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, refuse_nul: bool
) -> Iterator[tuple[Cell, ...]]:
    def check(cell: Cell, where: str) -> None:
        if not isinstance(cell, str):
            return
        if refuse_nul and "\0" in cell:
            raise RecordsError(f"{path}, {where}: a NUL character, which CSV cannot hold; write jsonl")
        try:
            cell.encode()
        except UnicodeEncodeError:
            raise RecordsError(f"{path}, {where}: half of a surrogate pair; mend the text") from None

    def sound() -> Iterator[tuple[Cell, ...]]:
        for number, row in enumerate(rows, start=1):
            if len(row) != len(columns):
                raise RecordsError(f"{path}, row {number}: {len(row)} cells for {len(columns)} columns")
            for name, cell in zip(columns, row, strict=True):
                check(cell, f"row {number}, column {shown(name)}")
            yield tuple(row)

    for name in columns:
        check(name, f"column {shown(name)}")
    return sound()


def _write(path: Path, columns: Sequence[str], rows: Iterator[tuple[Cell, ...]], kind: str) -> None:
    if kind == "parquet":
        from quantext_graph.data.tables.parquet import write_parquet  # pyarrow takes half a second

        write_parquet(path, columns, rows)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if kind == "jsonl":
            _write_json_lines(file, columns, rows)
        else:
            _write_delimited(file, columns, rows, "\t" if kind == "tsv" else ",")


def _write_json_lines(file: TextIO, columns: Sequence[str], rows: Iterator[tuple[Cell, ...]]) -> None:
    for row in rows:
        file.write(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n")


def _write_delimited(
    file: TextIO, columns: Sequence[str], rows: Iterator[tuple[Cell, ...]], delimiter: str
) -> None:
    # All text in quotes: a reader that sees a quoted header knows that quotes quote (delimited.py).
    writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
