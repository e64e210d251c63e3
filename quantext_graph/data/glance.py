"""A look at a data set of any size: a large one is known by its first rows, and never read whole."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from quantext_graph.data.tables import RecordsError
from quantext_graph.tools.inspect_dataset import DatasetSummary, inspect

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
            rows, exact = _first_batch(path, sample), True
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


def _first_batch(path: Path, sample: Path) -> int:
    """Write the first rows of a Parquet file to `sample`; returns the number of all rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            rows = int(file.metadata.num_rows)
            for batch in file.iter_batches(batch_size=10_000):
                pq.write_table(pa.Table.from_batches([batch]), sample)
                break
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RecordsError(
            f"{path}: not a sound Parquet file ({type(error).__name__}); export it again"
        ) from None
    return rows
