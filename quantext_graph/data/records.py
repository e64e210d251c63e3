"""Records as a run sees them: a text and the codes of its labels, from a table and the spec."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from quantext_graph.data.tables import RecordsError, Row, Table, open_table, write_table
from quantext_graph.data.tables.table import Places, shown
from quantext_graph.spec.models import Attribute, Source, Spec

__all__ = [
    "Record",
    "Records",
    "RecordsError",
    "Row",
    "Table",
    "open_table",
    "read_private",
    "read_source",
    "write_table",
]

OnMissing = Literal["error", "drop"]


@dataclass(frozen=True, repr=False)
class Record:
    """One text with its labels.

    `row` is the number of its data row in the file, from 1; `labels` is {index of an attribute in the
    spec: code of its category}, for the attributes that a column labels.
    """

    row: int
    text: str
    labels: Mapping[int, int]

    def __repr__(self) -> str:
        return f"Record(row={self.row})"


@dataclass(frozen=True)
class Records:
    """The records of one source, found complete; iterating reads the file again, one record at a time.

    `len()` is n. `dropped` counts the rows left out by what they lacked ("text", or the name of an
    attribute); a row that lacks several counts once, under the first.
    """

    table: Table
    n: int
    dropped: Mapping[str, int]
    _reader: _Reader = field(repr=False, compare=False)

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Record]:
        for row in self.table:
            record = self._reader.record(row)
            if isinstance(record, Record):
                yield record


def read_source(
    source: Source,
    attributes: Sequence[Attribute],
    *,
    columns: Mapping[str, str],
    on_missing: OnMissing = "error",
) -> Records:
    """Check a whole source against the spec and return its records.

    Args:
        source: the file, its text column, and how to read it.
        attributes: those of the spec.
        columns: {attribute: column that labels it}, for those that a column labels.
        on_missing: what to do with a row whose text is empty or blank, or that lacks a label:
            refuse the file, or leave the row out.

    Raises:
        RecordsError: one line with the numbers of the rows for every kind of problem: empty texts,
            missing labels, labels outside the categories.
    """
    table = open_table(source.path, encoding=source.encoding, delimiter=source.delimiter)
    reader = _Reader.of(table, source.text, attributes, columns)
    survey = _Survey()
    for row in table:
        survey.add(row.number, reader.record(row))
    survey.refuse(table, reader, on_missing)
    return Records(table, survey.n, {what: places.count for what, places in survey.missing.items()}, reader)


def read_private(spec: Spec) -> Records:
    """The private records of a spec, as it says to read them; raises as `read_source`."""
    return read_source(
        spec.data, spec.attributes, columns=spec.label_columns, on_missing=spec.limits.on_missing
    )


@dataclass(frozen=True)
class _Missing:
    what: str


@dataclass(frozen=True, repr=False)
class _Unknown:
    index: int
    label: str


@dataclass(frozen=True)
class _Reader:
    """Turns a row into a record, or says what keeps it from being one."""

    text: int
    attributes: tuple[Attribute, ...]
    places: Mapping[int, int]
    codes: tuple[Mapping[str, int], ...]

    @classmethod
    def of(
        cls, table: Table, text: str, attributes: Sequence[Attribute], columns: Mapping[str, str]
    ) -> _Reader:
        index = table.column(text)
        if text in table.opaque:
            raise RecordsError(f"{table.path}, column {shown(text)}: holds objects or lists, not texts")
        places = {
            number: table.column(columns[attribute.name])
            for number, attribute in enumerate(attributes)
            if attribute.name in columns
        }
        return cls(index, tuple(attributes), places, tuple(map(_codes, attributes)))

    def record(self, row: Row) -> Record | _Missing | _Unknown:
        text = row.values[self.text]
        if text is None or not text.strip():
            return _Missing("text")
        labels: dict[int, int] = {}
        for index, place in self.places.items():
            label = row.values[place]
            if label is None or not label.strip():
                return _Missing(self.attributes[index].name)
            codes = self.codes[index]
            code = codes.get(label, codes.get(label.strip()))
            if code is None:
                return _Unknown(index, label)
            labels[index] = code
        return Record(row.number, text, labels)


def _codes(attribute: Attribute) -> dict[str, int]:
    """Category names, exact and without the spaces around them, to codes."""
    exact = {name: code for code, name in enumerate(attribute.category_names)}
    return {name.strip(): code for name, code in reversed(exact.items())} | exact


@dataclass
class _Survey:
    """What one reading of a source found, by kind of problem."""

    n: int = 0
    missing: dict[str, Places] = field(default_factory=dict)
    unknown: dict[int, Places] = field(default_factory=dict)
    example: dict[int, str] = field(default_factory=dict)

    def add(self, number: int, found: Record | _Missing | _Unknown) -> None:
        if isinstance(found, Record):
            self.n += 1
        elif isinstance(found, _Missing):
            self.missing.setdefault(found.what, Places()).add(number)
        else:
            self.unknown.setdefault(found.index, Places()).add(number)
            self.example.setdefault(found.index, found.label.strip())

    def refuse(self, table: Table, reader: _Reader, on_missing: OnMissing) -> None:
        problems = []
        for index, places in self.unknown.items():
            attribute = reader.attributes[index]
            near = difflib.get_close_matches(self.example[index], attribute.category_names, n=1)
            hint = f" (the first is close to {shown(near[0])})" if near else ""
            problems.append(
                f"{places.say('row')}: a label outside the categories of {shown(attribute.name)}{hint}; "
                "add the category to the spec, or correct the rows"
            )
        if on_missing == "error":
            for what, places in self.missing.items():
                lack = "no text" if what == "text" else f"no label for {shown(what)}"
                problems.append(
                    f"{places.say('row')}: {lack}; fill in, or say `limits: {{on_missing: drop}}`"
                )
        if problems:
            raise RecordsError(f"{table.path}, {'; and '.join(problems)}")
        if not self.n:
            raise RecordsError(
                f"{table.path}: no records with a text and labels; name another file or column"
            )
