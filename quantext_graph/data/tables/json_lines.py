"""JSON lines: an object a line, its keys the columns."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quantext_graph.data.tables.encoding import find_encoding
from quantext_graph.data.tables.table import RecordsError, Row, Table, shown


class _RefusedError(ValueError):
    """What is wrong with a line, in words that hold nothing of it but a key."""


def open_json_lines(path: Path, *, encoding: str | None = None) -> Table:
    """Read a JSON-lines file through once; the columns are the union of its keys in order of first sight.

    Raises:
        RecordsError: with the first line that is not a sound JSON object.
    """
    codec, warnings = find_encoding(path, encoding)
    columns: dict[str, None] = {}
    opaque: set[str] = set()
    n_rows = 0
    for _, record in _objects(path, codec):
        n_rows += 1
        columns.update(dict.fromkeys(record))
        opaque.update(key for key, value in record.items() if isinstance(value, dict | list))
    if not columns:
        raise RecordsError(f"{path}: no records; every line is to be a JSON object with named values")
    names = tuple(columns)

    def read() -> Iterator[Row]:
        for number, (line, record) in enumerate(_objects(path, codec), start=1):
            yield Row(number, line, tuple(_cell(record.get(name)) for name in names))

    return Table(
        path, "jsonl", names, n_rows, read, encoding=codec, opaque=frozenset(opaque), warnings=warnings
    )


def _objects(path: Path, codec: str) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding=codec, newline="\n") as file:
        for line, text in enumerate(file, start=1):
            if text.isspace():
                continue
            try:
                record = json.loads(
                    text, object_pairs_hook=_distinct, parse_constant=_no_constant, parse_float=_finite
                )
                if not isinstance(record, dict):
                    raise _RefusedError("not a JSON object; write one {...} a line")
                if "\\ud" in text.lower():
                    _whole_characters(record)
            except json.JSONDecodeError as error:
                raise RecordsError(
                    f"{path}, line {line}: not valid JSON ({error.msg.lower()} at column {error.colno}); "
                    "write one object a line"
                ) from None
            except (_RefusedError, RecursionError, ValueError) as error:
                reason = (
                    str(error)
                    if isinstance(error, _RefusedError)
                    else "too deep, or a number too long; mend it"
                )
                raise RecordsError(f"{path}, line {line}: {reason}") from None
            yield line, record


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        double = next(key for key in keys if keys.count(key) > 1)
        raise _RefusedError(f"the key {shown(double)} stands twice in one object; keep one")
    return record


def _no_constant(name: str) -> Any:
    raise _RefusedError(f"{name} is not JSON; write null")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _RefusedError("a number too large; write it as a string")
    return value


def _whole_characters(record: dict[str, Any]) -> None:
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _RefusedError("half of a surrogate pair (\\ud800 to \\udfff); mend the escape") from None


def _cell(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
