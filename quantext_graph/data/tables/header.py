"""Whether the first row of a file names its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from quantext_graph.data.tables.table import RecordsError, Row, shown

LONGEST_NAME = 200
WORDS_OF_A_SENTENCE = 10
NUMBER = re.compile(r"\s*[-+]?[\d.,/:-]*\d[\d.,/:%-]*\s*")


def check_header(path: Path, line: int, names: Sequence[str], rows: Sequence[Row]) -> None:
    """Refuse a first row that clearly is no header: a title, or the first of the records.

    Args:
        path: the file, for messages.
        line: where the first row stands.
        names: its cells.
        rows: some of the rows below.

    Raises:
        RecordsError: for a title line, a missing header or two columns of one name; a cell that may
            belong to a record is not quoted.
    """
    filled = [name for name in names if name.strip()]
    if not filled or (len(names) > 2 and len(filled) == 1):
        raise RecordsError(
            f"{path}, line {line}: {len(filled)} of {len(names)} columns have a name; "
            "remove title lines above the header, or add a header"
        )
    if _is_a_record(names, filled, rows):
        raise RecordsError(
            f"{path}, line {line}: reads like a record, not like a header; "
            "add a first line with the names of the columns"
        )
    for name in filled:
        if names.count(name) > 1:
            raise RecordsError(f"{path}, line {line}: two columns are called {shown(name)}; rename one")


def _is_a_record(names: Sequence[str], filled: Sequence[str], rows: Sequence[Row]) -> bool:
    if any(len(name) > LONGEST_NAME for name in filled):
        return True
    if all(NUMBER.fullmatch(name) for name in filled):
        return True
    recurring = sum(_recurs(name, index, rows) for index, name in enumerate(names))
    sentence = any(len(name.split()) >= WORDS_OF_A_SENTENCE for name in filled)
    return recurring > 1 or (recurring == 1 and sentence)


def _recurs(name: str, index: int, rows: Sequence[Row]) -> bool:
    """Whether the name is a frequent value of its own column, as a category would be."""
    same = sum(index < len(row.values) and row.values[index] == name for row in rows)
    return bool(name.strip()) and same > 1 and same >= len(rows) / 50
