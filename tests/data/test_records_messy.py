"""Real and hostile files: each has the count that was determined apart from this project, or is refused.

The true encodings, delimiters and counts are those of `messy/EXPECTED.json`, made with Python's csv
reader at the true encoding; csv-spectrum and csv-test-data bring their own expected readings.
"""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from strange_files import COUNTS, REFUSED

from quantext_graph.data.tables import RecordsError, open_table

GUESSED = {
    "ck_latin1.csv",
    "mt_spanish_latin1.csv",
    "dt_latin1_header.csv",
    "dt_crcrlf.csv",
    "fr_latin1_semicolon_header_newlines.csv",
    "real_sms_spam_latin1.csv",
}


def refusal(path: Path) -> str:
    with pytest.raises(RecordsError) as caught:
        open_table(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_messy_file_is_read_as_expected_or_refused(shared_data: Path) -> None:
    expected: dict[str, dict[str, Any]] = json.loads((shared_data / "messy/EXPECTED.json").read_text("utf-8"))
    csv.field_size_limit(1 << 26)
    files = sorted((shared_data / "messy").glob("*.*sv")) + sorted((shared_data / "messy").glob("*.txt"))
    assert len(files) == 31
    for path in files:
        if path.name in REFUSED:
            assert REFUSED[path.name] in refusal(path), path.name
            continue
        table = open_table(path)
        facts = expected[path.name]
        if "nonblank_rows" in facts:
            assert len(table) == facts["nonblank_rows"] - 1, path.name
        assert table.delimiter == facts.get("delimiter", ","), path.name
        encoding = facts.get("encoding", "utf-8-sig").replace("latin-1", "cp1252")  # as its Š and ® show
        text = path.read_bytes().decode(encoding)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=table.delimiter or ",")
        rows = [tuple(row) for row in reader if row]
        assert [table.columns, *(row.values for row in table)] == rows, path.name
        assert bool(table.warnings) == (path.name in GUESSED), path.name


def test_the_synthetic_files(shared_data: Path) -> None:
    mixed = open_table(shared_data / "messy/synthetic_emoji_rtl_mixed_eol.csv")
    assert [row.values[1] for row in mixed] == list("ABABAB")
    assert [row.values[0] for row in mixed][-2:] == ["NA", ""]
    large = open_table(shared_data / "messy/synthetic_1MB_field.csv")
    assert max(len(cell or "") for row in large for cell in row.values) == 1_048_575
    assert len(large) == 2
    assert len(open_table(shared_data / "messy/blns_labelled.csv")) == 515


def test_a_named_encoding_is_followed(shared_data: Path) -> None:
    table = open_table(shared_data / "messy/mt_big5.csv", encoding="big5")
    assert table.columns[1] == "景點編號"
    assert len(table) == 382


def test_csv_spectrum(shared_data: Path) -> None:
    folder = shared_data / "messy/csv-spectrum"
    files = sorted((folder / "csvs").glob("*.csv"))
    assert len(files) == 12
    for path in files:
        expected = json.loads((folder / f"json/{path.stem}.json").read_text("utf-8"))
        if path.stem == "location_coordinates":  # its JSON holds another phone number than its CSV
            assert len(open_table(path)) == 1
            continue
        table = open_table(path)
        if path.stem == "newlines_crlf":  # stored with LF, though its JSON has kept CRLF
            expected[1]["a"] = expected[1]["a"].replace("\r\n", "\n")
        assert [dict(zip(table.columns, row.values, strict=True)) for row in table] == expected, path.name


def test_csv_test_data(shared_data: Path) -> None:
    folder = shared_data / "messy/csv-test-data"
    files = sorted((folder / "csv").glob("*.csv"))
    assert len(files) == 25
    for path in files:
        if path.stem == "bad-header-wrong-header":  # wrong only for a reader that wants foo, bar and baz
            with pytest.raises(RecordsError, match="no column is called 'foo'"):
                open_table(path).column("foo")
        elif path.stem.startswith("bad-") or path.stem == "all-empty":
            refusal(path)
        else:
            expected = json.loads((folder / f"json/{path.stem}.json").read_text("utf-8"))
            table = open_table(path)
            read = [list(table.columns), *(list(row.values) for row in table)]
            if path.stem.startswith("header-"):
                expected = [["foo", "bar", "baz"], *(list(row.values()) for row in expected)]
            assert read == expected, path.name


@pytest.mark.parametrize(("name", "expected"), COUNTS.items())
def test_every_data_set(shared_data: Path, name: str, expected: int | str) -> None:
    if isinstance(expected, str):
        assert expected in refusal(shared_data / name)
        return
    table = open_table(shared_data / name)
    assert len(table) == expected
    assert sum(1 for _ in table) == expected


def test_no_data_set_is_forgotten(shared_data: Path) -> None:
    sets = {str(path.relative_to(shared_data)) for path in shared_data.glob("[!m]*/*")}
    assert sets == set(COUNTS)
