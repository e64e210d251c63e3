"""Parquet: texts, numbers, truth values and dictionaries of them as cells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from quantext_graph.data.tables.table import Cell, RecordsError, Row, Table, shown

BATCH = 1024
SAMPLE = 10_000


def open_parquet(path: Path) -> Table:
    """Open a Parquet file and read it through once.

    Raises:
        RecordsError: where it is not sound, or two columns have one name.
    """
    with _sound(path), pq.ParquetFile(path) as file:
        schema = file.schema_arrow
    names = tuple(schema.names)
    if not names:
        raise RecordsError(f"{path}: no columns; export it with the text and its attributes")
    for name in names:
        if names.count(name) > 1:
            raise RecordsError(f"{path}: two columns are called {shown(name)}; rename one")
    opaque = frozenset(field.name for field in schema if not _is_plain(field.type))
    n_rows = sum(1 for _ in _rows(path))
    return Table(path, "parquet", names, n_rows, lambda: _rows(path), opaque=opaque)


def copy_first_rows(path: Path, sample: Path) -> int:
    """Write the first rows of a file to `sample`; returns the number of all rows.

    Raises:
        RecordsError: where it is not sound.
    """
    with _sound(path), pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=SAMPLE):
            pq.write_table(pa.Table.from_batches([batch]), sample)
            break
        return int(file.metadata.num_rows)


@contextmanager
def _sound(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RecordsError(
            f"{path}: not a sound Parquet file ({type(error).__name__}); export it again"
        ) from None


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_plain(kind.value_type)
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _rows(path: Path) -> Iterator[Row]:
    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=BATCH):
                for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    number += 1
                    yield Row(number, number, tuple(map(_cell, cells)))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RecordsError(
            f"{path}, after row {number}: damaged ({type(error).__name__}); export it again"
        ) from None


def _cell(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float | Mapping | Sequence) and not isinstance(value, bytes):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def write_parquet(path: Path, columns: Sequence[str], rows: Iterator[tuple[Cell, ...]]) -> None:
    """Write `rows` in batches; a column has the type of its values in the first batch.

    Raises:
        RecordsError: where a number column holds something else later on.
    """
    first = list(islice(rows, BATCH))
    kinds = [_type(values) for values in _by_column(first, len(columns))]
    schema = pa.schema(list(zip(columns, kinds, strict=True)))
    with pq.ParquetWriter(path, schema) as writer:
        batch = first
        while batch:
            writer.write_batch(pa.record_batch(_arrays(path, batch, schema), schema=schema))
            batch = list(islice(rows, BATCH))


def _by_column(batch: Sequence[tuple[Cell, ...]], width: int) -> list[tuple[Cell, ...]]:
    return list(zip(*batch, strict=True)) if batch else [()] * width


def _arrays(path: Path, batch: Sequence[tuple[Cell, ...]], schema: pa.Schema) -> list[pa.Array]:
    arrays = []
    for field, values in zip(schema, _by_column(batch, len(schema)), strict=True):
        if pa.types.is_string(field.type):
            values = tuple(None if value is None else str(value) for value in values)
        try:
            arrays.append(pa.array(values, field.type))
        except (pa.ArrowException, OverflowError):
            raise RecordsError(
                f"{path}, column {shown(field.name)}: numbers and other values mixed, or a number beyond "
                "64 bits; write it as text"
            ) from None
    return arrays


def _type(values: Sequence[Cell]) -> pa.DataType:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds == {float} else pa.string()
