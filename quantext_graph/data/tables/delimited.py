"""CSV and TSV after RFC 4180, read strictly: a file is read rightly or refused with the line.

Delimiter and quoting are found from the file; what Python's csv reader forgives in silence (a quote
that is never closed, rows of other widths, NUL bytes, duplicate names) is refused here.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from quantext_graph.data.tables.dialect import Dialect, find_delimiter
from quantext_graph.data.tables.encoding import find_encoding
from quantext_graph.data.tables.header import check_header
from quantext_graph.data.tables.table import Places, RecordsError, Row, Table

FIELD_LIMIT = 1 << 26
"""Characters in one field; beyond, a quote was opened and never closed."""

SAMPLE_ROWS = 200


@dataclass(frozen=True)
class _Layout:
    """How the bytes of a file become rows."""

    path: Path
    encoding: str
    dialect: Dialect


def open_delimited(
    path: Path, kind: str, *, encoding: str | None = None, delimiter: str | None = None
) -> Table:
    """Find encoding, delimiter and quoting of a file and read it through once.

    Raises:
        RecordsError: as `open_table`.
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n\0'):
        raise RecordsError(f"{path}: delimiter {delimiter!r} is not one character such as ',' or a tab")
    codec, warnings = find_encoding(path, encoding)
    csv.field_size_limit(max(csv.field_size_limit(), FIELD_LIMIT))
    found = delimiter or find_delimiter(path, codec, preferred="\t" if kind == "tsv" else ",")
    layout = _Layout(path, codec, Dialect(found))
    layout, columns, n_rows = _read_through(layout)
    if not layout.dialect.quoted:
        warnings += (f"{path}: quotes stand inside its fields; read as characters like any other",)

    def read() -> Iterator[Row]:
        return _data_rows(layout, len(columns))

    return Table(path, kind, columns, n_rows, read, encoding=codec, delimiter=found, warnings=warnings)


def _read_through(layout: _Layout) -> tuple[_Layout, tuple[str, ...], int]:
    """Settle whether quotes quote. Tab-separated files are written both ways.

    Where both readings are sound and differ, nothing in the file says which is meant, unless its
    header stands in quotes.
    """
    bare = replace(layout, dialect=replace(layout.dialect, quoted=False))
    first = next((row for row in _raw_rows(bare) if row.fields), None)
    may_be_bare = layout.dialect.delimiter == "\t" and first is not None and '"' not in first.raw
    try:
        columns, n_rows = _checked(layout)
    except RecordsError:
        if not may_be_bare:
            raise
        bare_reading = _sound(bare)
        if bare_reading is None:
            raise
        return bare, *bare_reading
    if may_be_bare and len(columns) > 1:
        bare_reading = _sound(bare)
        if bare_reading is not None and bare_reading[1] != n_rows:
            raise RecordsError(
                f"{layout.path}: {n_rows} rows if quotes enclose fields, {bare_reading[1]} if they are "
                "characters like any other; put the header in quotes, or write the file as .jsonl"
            )
    return layout, columns, n_rows


def _sound(layout: _Layout) -> tuple[tuple[str, ...], int] | None:
    try:
        return _checked(layout)
    except RecordsError:
        return None


@dataclass(frozen=True)
class _RawRow:
    line: int
    fields: list[str]
    raw: str


def _raw_rows(layout: _Layout) -> Iterator[_RawRow]:
    """Rows as the csv reader sees them, with the line each starts at and its characters."""
    csv.field_size_limit(max(csv.field_size_limit(), FIELD_LIMIT))
    pending: list[str] = []
    with layout.path.open(encoding=layout.encoding, newline="") as file:

        def lines() -> Iterator[str]:
            for text in file:
                if "\0" in text:
                    raise RecordsError(
                        f"{layout.path}, line {reader.line_num + 1}: a NUL byte; remove it or say `encoding:`"
                    )
                pending.append(text)
                yield text

        reader = layout.dialect.reader(lines())
        start = 1
        try:
            for fields in reader:
                yield _RawRow(start, fields, "".join(pending))
                pending.clear()
                start = reader.line_num + 1
        except csv.Error as error:
            raise RecordsError(f"{layout.path}, line {start}: {_in_words(error)}") from None
        except UnicodeError:
            raise RecordsError(f"{layout.path}: changed while it was read; run again") from None


def _in_words(error: csv.Error) -> str:
    said = str(error)
    if "end of data" in said:
        return (
            "a quoted field that starts in this row is never closed; "
            "close it, or remove the row if the file was cut off"
        )
    if "field limit" in said:
        return "a field of over 64 million characters, so probably a quote that is never closed; close it"
    return "a quote inside a quoted field; double it"


def _below_header(layout: _Layout, width: int) -> Iterator[_RawRow]:
    """Rows below the header. A blank line is no row, except that in a file of one column it is one
    with an empty cell."""
    rows = _raw_rows(layout)
    next(row for row in rows if row.fields)
    for row in rows:
        if row.fields:
            yield row
        elif width == 1:
            yield replace(row, fields=[""])


def _data_rows(layout: _Layout, width: int) -> Iterator[Row]:
    for number, row in enumerate(_below_header(layout, width), start=1):
        yield Row(number, row.line, tuple(row.fields))


def _checked(layout: _Layout) -> tuple[tuple[str, ...], int]:
    """Columns and number of rows of a file all of whose rows are sound."""
    path = layout.path
    header = next((row for row in _raw_rows(layout) if row.fields), None)
    if header is None:
        raise RecordsError(f"{path}: no header; write the names of the columns into the first line")
    columns = tuple(header.fields)
    width = len(columns)
    check_header(path, header.line, columns, list(islice(_data_rows(layout, width), SAMPLE_ROWS)))

    ragged, quotes, widths = Places(), Places(), Counter[int]()
    if layout.dialect.has_stray_quote(header.raw):
        quotes.add(header.line)
    n_rows = 0
    for row in _below_header(layout, width):
        n_rows += 1
        if len(row.fields) != width:
            ragged.add(row.line)
            widths[len(row.fields)] += 1
        if layout.dialect.has_stray_quote(row.raw):
            quotes.add(row.line)
    if ragged.count:
        raise RecordsError(f"{path}, {ragged.say('line')}: {_ragged(widths, width, n_rows)}")
    if quotes.count:
        raise RecordsError(
            f"{path}, {quotes.say('line')}: a quote after a space inside a field that is not in quotes; "
            "put the whole field in quotes and double those in it"
        )
    return columns, n_rows


def _ragged(widths: Counter[int], width: int, n_rows: int) -> str:
    other, count = widths.most_common(1)[0]
    found = f"{other} fields" if len(widths) == 1 else "more or fewer fields"
    if count == n_rows and other > width:
        return (
            f"{found} in every row where the first line has {width}; remove a title line, or name all columns"
        )
    return f"{found} where the header has {width}; put quotes around fields that hold the delimiter"
