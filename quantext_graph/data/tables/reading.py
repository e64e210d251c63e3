"""The one door to files of rows: the suffix says the format."""

from __future__ import annotations

from pathlib import Path

from quantext_graph.data.tables.delimited import open_delimited
from quantext_graph.data.tables.json_lines import open_json_lines
from quantext_graph.data.tables.table import FileRefused, Table, need_pyarrow

DELIMITED = {".csv": "csv", ".txt": "csv", ".tsv": "tsv"}
JSON_LINES = (".jsonl", ".ndjson")
KNOWN = ".csv, .tsv, .txt, .jsonl, .ndjson or .parquet"


def open_table(path: str | Path, *, encoding: str | None = None, delimiter: str | None = None) -> Table:
    """Read a file through once, to be sure that it can be read, and return its table.

    Args:
        path: a file called .csv, .tsv, .txt (read as CSV), .jsonl, .ndjson or .parquet.
        encoding: of a text file; without it UTF-8, or what the byte order mark says, or a guess
            that `Table.warnings` names.
        delimiter: of a CSV or TSV file; without it found among comma, semicolon, tab and bar.

    Raises:
        FileRefused: no such file, no access, a format that is not read, or Parquet without pyarrow.
        RecordsError: whatever is missing, broken or ambiguous, with the line and what to do.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if path.is_dir():
        raise FileRefused(f"{path}: a folder, not a file; name a {KNOWN} file in it")
    try:
        if path.stat().st_size == 0:
            raise FileRefused(f"{path}: the file is empty; name one with a header and records")
        if suffix in DELIMITED:
            return open_delimited(path, DELIMITED[suffix], encoding=encoding, delimiter=delimiter)
        if suffix in JSON_LINES:
            return open_json_lines(path, encoding=encoding)
        if suffix == ".parquet":
            need_pyarrow(path)
            from quantext_graph.data.tables.parquet import open_parquet  # pyarrow takes half a second

            return open_parquet(path)
    except FileNotFoundError:
        raise FileRefused(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise FileRefused(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    kind = f"files called {suffix} are not read" if suffix else "the name has no suffix to tell the format"
    raise FileRefused(f"{path}: {kind}; convert it to {KNOWN}")
