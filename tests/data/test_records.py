"""Reading and writing tables, and records after the spec."""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantext_graph.data.inspection import inspect
from quantext_graph.data.records import RecordsError, open_table, read_source, write_table
from quantext_graph.spec.errors import SpecError
from quantext_graph.spec.loading import parse_spec
from quantext_graph.spec.models import Attribute, Source

FORMATS = ("csv", "tsv", "jsonl", "parquet")
PIECES = [
    *(
        '"',
        '""',
        ",",
        ";",
        "\t",
        "|",
        "\n",
        "\r",
        "\r\n",
        " ",
        "'",
        "\\",
        "=1+1",
        "NA",
        "None",
        "null",
        "a",
        "1",
    ),
    *("é", "👩\u200d🚀", "\u202eabc\u202c", "שלום", "\u2028", "\ufeff", "{x}", ""),
]
NASTY = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
TEXTS = st.one_of(
    NASTY, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
)


def written(folder: Path, content: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def values(path: Path, **how: str) -> list[tuple[str | None, ...]]:
    return [row.values for row in open_table(path, **how)]


def refusal(path: Path, **how: str) -> str:
    with pytest.raises(RecordsError) as caught:
        open_table(path, **how)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))


@pytest.mark.parametrize("kind", FORMATS)
@given(rows=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_what_is_written_reads_back_identical(tmp_path: Path, kind: str, rows: list[tuple[str, str]]) -> None:
    path = tmp_path / f"out.{kind}"
    write_table(path, ["the text", 'a "label", quoted'], rows, format=kind)
    table = open_table(path)
    assert table.columns == ("the text", 'a "label", quoted')
    assert [row.values for row in table] == rows
    assert len(table) == len(rows)
    assert table.warnings == ()


@pytest.mark.parametrize("kind", ["csv", "tsv"])
@given(rows=st.lists(TEXTS, max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_single_column_reads_back_identical(tmp_path: Path, kind: str, rows: list[str]) -> None:
    path = tmp_path / f"one.{kind}"
    write_table(path, ["text"], [[text] for text in rows], format=kind)
    assert [row.values for row in open_table(path)] == [(text,) for text in rows]


@pytest.mark.parametrize("kind", FORMATS)
def test_numbers_and_nothing(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"n.{kind}"
    write_table(path, ["id", "share", "text"], [(1, 0.5, "a"), (2, 1e-9, None)], format=kind)
    nothing = "" if kind in ("csv", "tsv") else None
    assert values(path) == [("1", "0.5", "a"), ("2", "1e-09", nothing)]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_refused_write_leaves_the_old_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"out.{kind}"
    write_table(path, ["text"], [["old"]], format=kind)
    with pytest.raises(RecordsError, match=r"row 2, column 'text': half of a surrogate pair"):
        write_table(path, ["text"], [["new"], ["\ud800"]], format=kind)
    assert values(path) == [("old",)]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_nul_cannot_be_written_to_csv(tmp_path: Path, kind: str) -> None:
    with pytest.raises(RecordsError, match="NUL"):
        write_table(tmp_path / f"out.{kind}", ["text"], [["a\0b"]], format=kind)


@pytest.mark.parametrize(("columns", "row"), [(["a", "a"], ["1", "2"]), ([""], ["1"]), (["a", "b"], ["1"])])
def test_what_would_not_read_back_is_not_written(tmp_path: Path, columns: list[str], row: list[str]) -> None:
    with pytest.raises(RecordsError):
        write_table(tmp_path / "out.csv", columns, [row], format="csv")
    assert not list(tmp_path.iterdir())


def test_an_unwritable_place_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="cannot be written"):
        write_table(tmp_path / "absent" / "out.csv", ["text"], [["a"]], format="csv")


def test_lines_and_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, 'text,label\n"one\ntwo",A\n\nthree,B\n')
    assert [(row.number, row.line) for row in open_table(path)] == [(1, 2), (2, 5)]
    assert "one" not in repr(next(iter(open_table(path))))


def test_iterating_twice_reads_twice(tmp_path: Path) -> None:
    table = open_table(written(tmp_path, "text\na\nb\n"))
    assert list(table) == list(table)
    first, second = iter(table), iter(table)
    assert next(first) == next(second)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path: Path, delimiter: str) -> None:
    lines = [["text", "label"], ["hello - a; b, c | d".replace(delimiter, " "), "A"], ["x", "B"]]
    path = written(tmp_path, "\n".join(delimiter.join(line) for line in lines))
    table = open_table(path)
    assert table.delimiter == delimiter
    assert [list(row.values) for row in table] == lines[1:]


def test_a_named_delimiter_wins(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b;c\n1,2;3\n")
    assert "may be comma or semicolon" in refusal(path)
    assert values(path, delimiter=";") == [("1,2", "3")]
    assert "not one character" in refusal(path, delimiter="::")


def test_bare_quotes_beside_tabs(tmp_path: Path) -> None:
    """As in the raw SemEval-2016 files: no quoting, and tweets that begin with a quote."""
    path = written(tmp_path, 'ID\tTweet\tStance\n1\t"Hush," he said\tNONE\n2\ta "b" c\tFAVOR\n', "raw.txt")
    table = open_table(path)
    assert [row.values[1] for row in table] == ['"Hush," he said', 'a "b" c']
    assert "quotes" in table.warnings[0]


def test_quotes_that_may_swallow_a_row_are_refused(tmp_path: Path) -> None:
    both = '1\t"foo\tX\n2\tbar"\tY\n'
    assert "1 rows if quotes enclose fields, 2 if" in refusal(written(tmp_path, "a\tb\tc\n" + both, "t.tsv"))
    quoted = written(tmp_path, '"a"\t"b"\t"c"\n' + both, "q.tsv")
    assert values(quoted) == [("1", "foo\tX\n2\tbar", "Y")]


BROKEN = [
    ('text,label\n1,"never closed\n2,B\n', "line 2: a quoted field that starts in this row is never closed"),
    ('text,label\n"a "b" c",A\n', "line 2: a quote inside a quoted field"),
    ('text,label\na "b" c,A\n', "line 2: a quote after a space"),
    ("text,label\na,b,c\nd\n", "lines 2, 3: more or fewer fields where the header has 2"),
    ("Survey\na,b\nc,d\n", "lines 2, 3: 2 fields in every row where the first line has 1; remove a title"),
    ("Survey\na;b\nc;d\n", "line 1: a title rather than a header"),
    ("Survey,,\na,b,c\n", "line 1: 1 of 3 columns have a name"),
    ("text,text\na,b\n", "line 1: two columns are called 'text'"),
    ("text,label\na\0,b\n", "line 2: a NUL byte"),
    ("1,2\n3,4\n", "line 1: reads like a record"),
    ("x" * 201 + ",A\ny,B\n", "line 1: reads like a record"),
    ("t one,F,neg\nt two,F,neg\nt three,F,neg\n", "line 1: reads like a record"),
    ("\n\n", "no header"),
    ("", "the file is empty"),
]


@pytest.mark.parametrize(("content", "message"), BROKEN)
def test_broken_csv_is_refused_in_one_line(tmp_path: Path, content: str, message: str) -> None:
    assert message in refusal(written(tmp_path, content))


def test_many_ragged_lines_are_counted_and_ten_shown(tmp_path: Path) -> None:
    said = refusal(written(tmp_path, "text,label\nfine,A\n" + "a,b,c\n" * 25))
    assert "lines 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, ... (25 in all): 3 fields" in said


@pytest.mark.parametrize("name", ["absent.csv", "folder.csv", "data.xlsx", "data"])
def test_what_is_no_table_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    if name.startswith("data"):
        written(tmp_path, "x", name)
    refusal(tmp_path / name)


FRENCH = "texte;avis\nLe médecin était très gentil, « ça va »;bon\n"
RUSSIAN = "text,label\nПривет как дела это отзыв о враче,да\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_needs_no_word(tmp_path: Path, encoding: str) -> None:
    path = written(tmp_path, FRENCH.encode(encoding))
    table = open_table(path)
    assert table.columns == ("texte", "avis")
    assert [row.values[0] for row in table] == ["Le médecin était très gentil, « ça va »"]
    assert table.warnings == ()


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16-le", "utf-16-be"])
def test_a_guess_is_named_in_a_warning(tmp_path: Path, encoding: str) -> None:
    table = open_table(written(tmp_path, FRENCH.encode(encoding)))
    assert next(iter(table)).values[0] == "Le médecin était très gentil, « ça va »"
    assert (table.encoding or "?") in table.warnings[0]
    assert "guess" in table.warnings[0]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        ("text,label\n醫生很好 非常感謝,好\n", "big5"),
        ("text,label\n先生はとても親切でした,良\n", "shift_jis"),
        ("text,label\n안녕하세요 의사 선생님은,좋\n", "euc-kr"),
        ("text,label\nZażółć gęślą jaźń dziękuję był,tak\n", "iso8859-2"),
        ("text,label\nşimdi değil ışık ağrı nasılsınız,evet\n", "cp1254"),
        (FRENCH, "mac-roman"),
        (FRENCH.replace("«", "").replace("»", ""), "cp850"),
    ],
)
def test_other_encodings_are_asked_for_not_guessed(tmp_path: Path, text: str, encoding: str) -> None:
    path = written(tmp_path, text.encode(encoding))
    assert "say `encoding:`" in refusal(path)
    named = open_table(path, encoding=encoding)
    assert ",".join(next(iter(named)).values) in text.replace(";", ",")  # type: ignore[arg-type]


def test_a_declared_encoding_must_fit(tmp_path: Path) -> None:
    path = written(tmp_path, FRENCH.encode("cp1252"))
    assert "line 2: not valid utf-8" in refusal(path, encoding="utf-8")
    assert "no encoding is called" in refusal(path, encoding="latin-99")
    assert "no encoding is called" in refusal(path, encoding="base64")


def test_one_bad_byte_in_utf8_is_not_taken_for_windows(tmp_path: Path) -> None:
    path = written(tmp_path, ("text\n" + "été où ça naïve\n" * 3).encode() + b"caf\xe9\n")
    assert "line 5: not valid UTF-8, though other parts of the file are" in refusal(path)


def test_json_lines(tmp_path: Path) -> None:
    lines = ['{"text": "a\\nb", "n": 1}', "", '{"text": null, "ok": true, "tags": ["x"]}', '{"n": 0.5}']
    table = open_table(written(tmp_path, "\ufeff" + "\r\n".join(lines), "d.jsonl"))
    assert table.columns == ("text", "n", "ok", "tags")
    assert [row.values for row in table] == [
        ("a\nb", "1", None, None),
        (None, None, "true", '["x"]'),
        (None, "0.5", None, None),
    ]
    assert [row.line for row in table] == [1, 3, 4]
    assert table.opaque == {"tags"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"', "line 2: not valid JSON"),
        ('["a"]', "line 2: not a JSON object"),
        ('{"text": NaN}', "line 2: NaN is not JSON"),
        ('{"text": 1e999}', "line 2: a number too large"),
        ('{"text": "a", "text": "b"}', "line 2: the key 'text' stands twice"),
        ('{"text": "\\ud83d"}', "line 2: half of a surrogate pair"),
        ('{"text": ' + "[" * 100_000, "line 2:"),
        ('{"text": ' + "9" * 10_000 + "}", "line 2:"),
    ],
)
def test_broken_json_lines_are_refused(tmp_path: Path, line: str, message: str) -> None:
    assert message in refusal(written(tmp_path, '{"text": "fine"}\n' + line, "d.jsonl"))


def test_whole_surrogate_pairs_are_fine(tmp_path: Path) -> None:
    assert values(written(tmp_path, '{"text": "\\ud83d\\ude00"}', "d.jsonl")) == [("😀",)]


def test_parquet_kinds(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    columns = {
        "text": pa.array(["a", None, "NA"]),
        "label": pa.array(["x", "y", "x"]).dictionary_encode(),
        "n": pa.array([1, 2, None]),
        "ok": pa.array([True, False, None]),
        "blob": pa.array([b"\xff", b"", None]),
        "list": pa.array([[1], [], None]),
    }
    pq.write_table(pa.table(columns), path, row_group_size=2)
    table = open_table(path)
    assert [row.values[:4] for row in table] == [
        ("a", "x", "1", "true"),
        (None, "y", "2", "false"),
        ("NA", "x", None, None),
    ]
    assert table.opaque == {"blob", "list"}


@pytest.fixture
def without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "quantext_graph.data.tables.parquet", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.mark.usefixtures("without_pyarrow")
def test_without_pyarrow_parquet_is_refused_and_names_the_extra(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    path.write_bytes(b"PAR1" * 10)
    extra = r"pip install 'quantext-graph\[parquet\]'"
    for refused in (
        lambda: open_table(path),
        lambda: inspect(path),
        lambda: write_table(path, ["text"], [["a"]], format="parquet"),
    ):
        with pytest.raises(RecordsError, match=rf"d\.parquet: Parquet needs pyarrow; {extra}") as raised:
            refused()
        assert "\n" not in str(raised.value)
    assert [p.name for p in tmp_path.iterdir()] == ["d.parquet"]
    raw = {"data": {"path": "d.csv"}, "attributes": [{"name": "a", "categories": ["b", "c"]}]}
    with pytest.raises(SpecError, match=rf"output\.format: .*{extra}"):
        parse_spec(raw | {"output": {"format": "parquet"}})


@pytest.mark.usefixtures("without_pyarrow")
@pytest.mark.parametrize("format_", ["csv", "tsv", "jsonl"])
def test_without_pyarrow_every_other_format_is_read_and_written(tmp_path: Path, format_: str) -> None:
    path = tmp_path / f"d.{format_}"
    write_table(path, ["text", "n"], [["a, b", 1], ["NA", 2]], format=format_)
    assert [row.values for row in open_table(path)] == [("a, b", "1"), ("NA", "2")]
    assert inspect(path).rows == 2


def test_broken_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    write_table(path, ["text"], [[str(n) * 50] for n in range(3000)], format="parquet")
    whole = path.read_bytes()
    for broken in (b"PAR1", whole[: len(whole) // 2], whole[:200] + b"\0" * 400 + whole[600:]):
        path.write_bytes(broken)
        refusal(path)


STANCE = Attribute.model_validate({"name": "Stance", "categories": ["FAVOR", "NONE"], "column": "s"})
TOPIC = Attribute.model_validate({"name": "Topic", "categories": ["null", "NA"]})


def stances(path: Path, **how: str):  # type: ignore[no-untyped-def]
    return read_source(Source(path=path), [TOPIC, STANCE], columns={"Stance": "s"}, **how)


def test_records_carry_row_text_and_codes(tmp_path: Path) -> None:
    records = stances(written(tmp_path, "text,s\nNA,NONE\n None , FAVOR \n"))
    assert [(r.row, r.text, r.labels) for r in records] == [(1, "NA", {1: 1}), (2, " None ", {1: 0})]
    assert len(records) == 2
    assert "NA" not in repr(next(iter(records)))


def test_words_that_mean_nothing_elsewhere_are_categories(tmp_path: Path) -> None:
    path = written(tmp_path, '{"text": "a", "t": "null"}\n{"text": "b", "t": "NA"}\n', "d.jsonl")
    records = read_source(Source(path=path), [TOPIC], columns={"Topic": "t"})
    assert [record.labels[0] for record in records] == [0, 1]


def test_every_problem_is_named_at_once_with_its_rows(tmp_path: Path) -> None:
    path = written(tmp_path, 'text,s\na,FAVR\n"",NONE\nb,secretword\nc,\n  ,FAVOR\n')
    with pytest.raises(RecordsError) as caught:
        stances(path)
    said = str(caught.value)
    assert "rows 1, 3: a label outside the categories of 'Stance' (the first is close to 'FAVOR')" in said
    assert "row 4: no label for 'Stance'" in said
    assert "rows 2, 5: no text" in said
    assert "secretword" not in said
    assert "FAVR" not in said


def test_dropping_leaves_out_and_counts(tmp_path: Path) -> None:
    path = written(tmp_path, "text,s\na,FAVOR\n,NONE\nc,\nd,NONE\n")
    records = stances(path, on_missing="drop")
    assert [record.row for record in records] == [1, 4]
    assert len(records) == 2
    assert records.dropped == {"text": 1, "Stance": 1}
    with pytest.raises(RecordsError, match="outside the categories"):
        stances(written(tmp_path, "text,s\na,OTHER\n"), on_missing="drop")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Text,s\na,FAVOR\n", "no column is called 'text'; did you mean 'Text'"),
        ("text,q\na,FAVOR\n", "no column is called 's'; there are: 'text', 'q'"),
        ("text,s\n", "no records"),
    ],
)
def test_sources_that_do_not_fit_the_spec(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(RecordsError, match=message):
        stances(written(tmp_path, content))


def test_objects_are_no_texts(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps({"text": {"a": 1}}), "d.jsonl")
    with pytest.raises(RecordsError, match="objects or lists"):
        read_source(Source(path=path), [], columns={})
