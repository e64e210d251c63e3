"""Whatever bytes come: a sound table, or one line that holds none of them."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strange_files import CSV_BYTES, JSON_BYTES, PIECES

from quantext_graph.data.inspection import inspect
from quantext_graph.data.tables import RecordsError, open_table

ANY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=120)
TOKEN = b"Xq7Zsecret"


def sound_or_one_line(path: Path) -> None:
    try:
        table = open_table(path)
        rows = list(table)
    except RecordsError as error:
        said = str(error)
    else:
        said = ""
    assert "\n" not in said
    assert TOKEN.decode() not in said
    if said:
        return
    assert len(rows) == len(table)
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert all(len(row.values) == len(table.columns) for row in rows)
    assert "\n" not in "".join(table.warnings)
    inspect(path)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
@given(content=st.one_of(st.binary(max_size=200), CSV_BYTES, JSON_BYTES))
@ANY
def test_any_bytes(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"any.{suffix}"
    path.write_bytes(content)
    sound_or_one_line(path)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
@given(before=st.one_of(CSV_BYTES, JSON_BYTES), after=CSV_BYTES)
@ANY
def test_no_message_quotes_a_cell(tmp_path: Path, suffix: str, before: bytes, after: bytes) -> None:
    header = b'{"text": "x", "label": "y"}\n' if suffix == "jsonl" else b"text,label\nw,z\n"
    path = tmp_path / f"planted.{suffix}"
    path.write_bytes(header + before + TOKEN + after)
    sound_or_one_line(path)


@given(content=st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join))
@ANY
def test_an_accepted_file_reads_as_the_csv_module_reads_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "same.csv"
    path.write_bytes(b"text,label\n" + content)
    try:
        table = open_table(path, delimiter=",")
    except RecordsError:
        return
    lenient = csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))
    rows = [tuple(row) for row in lenient if row]
    assert [table.columns, *(row.values for row in table)] == rows
    assert {len(row) for row in rows} == {2}


@given(flips=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=8))
@ANY
def test_damaged_parquet(tmp_path: Path, flips: list[tuple[int, int]]) -> None:
    from quantext_graph.data.tables import write_table

    path = tmp_path / "damaged.parquet"
    write_table(path, ["text", "n"], [(f"row {n}", n) for n in range(40)], format="parquet")
    content = bytearray(path.read_bytes())
    for place, value in flips:
        content[place % len(content)] = value
    path.write_bytes(content)
    sound_or_one_line(path)
