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

from quantext_graph.data.tables import RecordsError, open_table

REFUSED = {
    "ck_null_byte.csv": "line 2: a NUL byte",
    "ck_ragged.csv": "lines 2, 3:",
    "mt_big5.csv": "perhaps big5; say `encoding:`",
    "mt_cr_only_title_line.csv": "line 1: 1 of 19 columns have a name",
    "dt_unescaped_quotes.csv": "line 2: a quote inside a quoted field",
    "dt_nul_mid_file.txt": "line 5: a NUL byte",
    "fr_duplicate_headers.csv": "two columns are called 'id'",
    "fr_mixed_escape.csv": "lines 2, 3, 4: a quote after a space",
    "fr_defective_rows.csv": "lines 2, 3:",
    "real_cfpb_truncated_mid_quote.csv": "never closed",
    "real_mtsamples_truncated_mid_quote.csv": "never closed",
}
GUESSED = {
    "ck_latin1.csv",
    "mt_spanish_latin1.csv",
    "dt_latin1_header.csv",
    "dt_crcrlf.csv",
    "fr_latin1_semicolon_header_newlines.csv",
    "real_sms_spam_latin1.csv",
}
COUNTS = {
    "clinical/counsel_chat_815_questions.csv": 815,
    "clinical/meqsum_chq_train.jsonl": 1000,
    "clinical/mts_dialog_gender.csv": 1701,
    "clinical/mts_dialog_test1.csv": 200,
    "clinical/mts_dialog_test2.csv": 200,
    "clinical/mts_dialog_train.csv": 1201,
    "clinical/mts_dialog_valid.csv": 100,
    "clinical/mtsamples_401_noheader.csv": "line 1: reads like a record",
    "clinical/mtsamples_500_specialty_gender.csv": 500,
    "complaints/cfpb_1532_narratives.csv": 1532,
    "complaints/cfpb_2085_product_narrative.csv": 2085,
    "complaints/cfpb_6623.csv": 6623,
    "dialogues/diagnosis_600.csv": 600,
    "dialogues/gender_0.3.csv": 600,
    "dialogues/gender_0.5.csv": 600,
    "dialogues/gender_0.7.csv": 600,
    "dialogues/gender_pool.csv": 1517,
    "dialogues/genmedgpt5k_synthetic.csv": 5452,
    "dialogues/real_patient_doctor_qa.csv": 3127,
    "reviews/druglib_4143.tsv": 4143,
    "reviews/druglib_4143_clean.csv": 4143,
    "reviews/womens_clothing_1000.csv": 1000,
    "reviews/yelp_la_reviews_2973.csv": 2973,
    "reviews/yelp_nyc_cuisine_reviews.csv": 3560,
    "stance/test.csv": 1956,
    "stance/train.csv": 2914,
    "stance/tweet.csv": 4870,
    "stance/tweet_no_feminist_3921.csv": 3921,
    "stance/tweet_stance_full.csv": 4870,
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
