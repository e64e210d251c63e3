"""The look at a data set, and what of it is public."""

import json
from pathlib import Path

import pytest
from quantext_graph.tools.inspect_dataset import inspect_dataset

from quantext_graph.data.inspection import inspect
from quantext_graph.data.records import write_table
from quantext_graph.data.tables import RecordsError

COLUMNS = ["id", "text", "topic", "stars", "note", "nothing"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    rows = [
        [
            n * 7919,
            f"a text of some length about matter {n}",
            "unicorn" if n % 4 else "NA",
            n % 5,
            "x" * n,
            "",
        ]
        for n in range(1, 61)
    ]
    rows[3][2] = ""
    write_table(path, COLUMNS, rows, format="csv")
    return path


def test_kinds_of_columns(data: Path) -> None:
    summary = inspect(data)
    assert summary.rows == summary.looked_at == 60
    assert summary.text == "text"
    kinds = {column.name: column.kind for column in summary.columns}
    assert kinds == {
        "id": "number",
        "text": "text",
        "topic": "categorical",
        "stars": "categorical",
        "note": "other",
        "nothing": "empty",
    }
    topic, stars = summary.categorical
    assert topic.categories == ("NA", "unicorn")
    assert topic.counts == {"NA": 14, "unicorn": 45}
    assert (topic.distinct, topic.empty) == (2, 1)
    assert stars.categories == ("0", "1", "2", "3", "4")


def test_a_sample_looks_at_the_first_rows_and_counts_all(data: Path) -> None:
    summary = inspect(data, 10)
    assert (summary.rows, summary.looked_at) == (60, 10)


def test_a_constant_column_is_no_attribute(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    write_table(path, ["text", "kind"], [[f"some text number {n}", "k"] for n in range(9)], format="jsonl")
    assert inspect(path).categorical == ()


def test_only_names_kinds_and_n_are_public(data: Path) -> None:
    summary = inspect(data)
    public = json.dumps(summary.public())
    assert "unicorn" not in public
    assert "unicorn" not in repr(summary)
    assert summary.public()["columns"][2] == {"name": "topic", "kind": "categorical"}
    private = summary.private()
    assert private["columns"][2]["shares"] == {"NA": 14 / 60, "unicorn": 45 / 60}
    assert private["columns"][2]["empty"] == 1


def test_the_tool_gives_a_model_the_public_part(data: Path) -> None:
    call = {"name": "inspect_dataset", "args": {"path": str(data)}, "id": "1", "type": "tool_call"}
    message = inspect_dataset.invoke(call)
    assert "unicorn" not in message.content
    assert json.loads(message.content)["text"] == "text"
    assert message.artifact["columns"][2]["categories"] == ["NA", "unicorn"]


def test_the_tool_answers_a_bad_path_with_a_line(tmp_path: Path) -> None:
    with pytest.raises(RecordsError):
        inspect(tmp_path / "absent.csv")
    assert "no such file" in inspect_dataset.invoke({"path": str(tmp_path / "absent.csv")})["error"]
