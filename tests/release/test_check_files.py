"""`check` from end to end over whatever files there are: a right count, or one line that says why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strange_files import COUNTS, CSV_BYTES, JSON_BYTES, REFUSED

from quantext_graph.data.records import Table, open_table
from quantext_graph.release.check import check
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.loading import parse_spec
from quantext_graph.spec.models import Spec

SUFFIXES = ("*.csv", "*.tsv", "*.txt", "*.jsonl")


def spec_of(path: Path, text: str) -> Spec:
    """One attribute that a model labels; blank texts are dropped and counted."""
    raw: dict[str, Any] = {
        "data": {"path": str(path), "text": text},
        "attributes": [{"name": "any attribute", "categories": ["yes", "no"]}],
        "mechanism": {"selection": "joint", "pool": "dirichlet"},
        "models": {"chat": "ollama:none"},
        "limits": {"on_missing": "drop"},
    }
    return parse_spec(raw)


def longest(table: Table) -> str:
    """The column that holds most characters."""
    sums = [0] * len(table.columns)
    for row in table:
        for at, cell in enumerate(row.values):
            sums[at] += len(cell or "")
    return table.columns[sums.index(max(sums))]


def refused(spec: Spec) -> str:
    with pytest.raises(QuantextError) as caught:
        check(spec)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_data_set_is_counted_or_refused(shared_data: Path) -> None:
    files = sorted(path for suffix in SUFFIXES for path in shared_data.rglob(suffix))
    assert len(files) > 90
    for path in files:
        try:
            table = open_table(path)
        except QuantextError:
            assert refused(spec_of(path, "text")), path.name
            continue
        assert path.name not in REFUSED
        column = longest(table)
        texts = [row.values[table.column(column)] for row in table]
        filled = sum(bool(text and text.strip()) for text in texts)
        if not filled:
            assert "no records" in refused(spec_of(path, column)), path.name
            continue
        found = check(spec_of(path, column))
        assert found.records == filled, path.name
        assert found.records + sum(found.dropped.values()) == len(table), path.name
        assert len(table) == COUNTS.get(str(path.relative_to(shared_data)), len(table))
        assert found.estimate.calls >= 2 * filled
        assert all("\n" not in line for line in found.lines()), path.name


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
@given(content=st.one_of(st.binary(max_size=120), CSV_BYTES, JSON_BYTES, CSV_BYTES.map(b"text\n".__add__)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
def test_any_bytes(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"any.{suffix}"
    path.write_bytes(content)
    said = ""
    try:
        found = check(spec_of(path, "text"))
    except QuantextError as error:
        said = str(error)
    assert "\n" not in said
    if said:
        return
    assert 1 <= found.records <= len(open_table(path))
