"""How the lines of a CSV or TSV file become rows: which delimiter, and what a quote means."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from quantext_graph.data.tables.table import RecordsError

if TYPE_CHECKING:
    from _csv import Reader

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
SAMPLE_LINES = 500
SAMPLE_CHARACTERS = 1 << 22


@dataclass(frozen=True)
class Dialect:
    """The delimiter, and whether quotes enclose fields (RFC 4180) or are characters like any other."""

    delimiter: str
    quoted: bool = True

    def reader(self, lines: Iterable[str]) -> Reader:
        """The strict csv reader of this dialect."""
        if self.quoted:
            return csv.reader(lines, delimiter=self.delimiter, strict=True)
        return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE, strict=True)

    def has_stray_quote(self, row: str) -> bool:
        """Whether a quote follows a space in a field of `row` that is not in quotes.

        It may have been meant to open a field, so the row may be split at the wrong places. An inch
        or second mark (37.8") follows no space. Beside tabs, quotes in fields are usual.
        """
        if not self.quoted or self.delimiter.isspace() or '"' not in row:
            return False
        return ' "' in self._enclosed.sub("", row)

    @cached_property
    def _enclosed(self) -> re.Pattern[str]:
        mark = re.escape(self.delimiter)
        return re.compile(rf'(?:^|(?<={mark}))"[^"]*(?:""[^"]*)*"(?={mark}|[\r\n]|$)')


def find_delimiter(path: Path, encoding: str, preferred: str) -> str:
    """The delimiter of a file, by its opening lines; `preferred` where they hold none.

    It is the one that splits all of them into equally many fields; where none does, the one that
    splits the header into most.

    Raises:
        RecordsError: where several would do, or the first line is a title above the header.
    """
    with path.open(encoding=encoding, newline="") as file:
        lines, size = [], 0
        for line in islice(file, SAMPLE_LINES):
            lines.append(line)
            size += len(line)
            if size > SAMPLE_CHARACTERS:
                break
    widths = {delimiter: _widths(lines, delimiter) for delimiter in DELIMITERS}
    even = [delimiter for delimiter, found in widths.items() if len(set(found)) == 1 and found[0] > 1]
    if preferred in even and (preferred == "\t" or len(even) == 1):
        return preferred
    if len(even) > 1:
        names = " or ".join(DELIMITERS[delimiter] for delimiter in even)
        raise RecordsError(f"{path}: the delimiter may be {names}; say `delimiter:` in the spec")
    if even:
        return even[0]
    widest = max(DELIMITERS, key=lambda delimiter: (widths[delimiter][:1] or [0], delimiter == preferred))
    if widths[widest][:1] == [1]:
        _refuse_title(path, widths)
    return widest


def _widths(lines: list[str], delimiter: str) -> list[int]:
    """Numbers of fields of the rows that `lines` hold, up to where quotes go wrong or the sample ends."""
    found: list[int] = []
    for quoted in (True, False) if delimiter == "\t" else (True,):
        found.clear()
        try:
            for fields in Dialect(delimiter, quoted).reader(lines):
                if fields:
                    found.append(len(fields))
            break
        except csv.Error as error:
            if "end of data" in str(error) and found:
                break
    return found


def _refuse_title(path: Path, widths: dict[str, list[int]]) -> None:
    for delimiter in (";", "\t", "|"):
        below = widths[delimiter][1:]
        if len(below) > 1 and len(set(below)) == 1 and below[0] > 1:
            raise RecordsError(
                f"{path}, line 1: a title rather than a header, for the lines below have {below[0]} fields "
                f"(by {DELIMITERS[delimiter]}); remove the lines above the header"
            )
