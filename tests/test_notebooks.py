"""Every notebook runs from top to bottom, with the smallest model where one is needed."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from quantext_graph.models.llamacpp_server import pull

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.model
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pull("smollm2-135m")
    monkeypatch.setenv("QUANTEXT_NOTEBOOK_MODEL", "embedded:smollm2-135m")
    monkeypatch.setenv("QUANTEXT_NOTEBOOK_RECORDS", "2")
    monkeypatch.setenv("QUANTEXT_NOTEBOOK_MIN_VERIFIED", "0")
    book = nbformat.read(path, as_version=4)
    NotebookClient(
        book, timeout=500, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    ran = [cell for cell in book.cells if cell.cell_type == "code"]
    assert ran
    assert all(cell.execution_count for cell in ran)


def test_there_are_four() -> None:
    assert [path.stem[0] for path in NOTEBOOKS] == list("1234")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_outputs_that_are_small_and_of_no_machine(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    assert path.stat().st_size < 200_000
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    for output in (output for cell in code for output in cell.outputs):
        assert output.output_type != "error"
        for kind in [kind for kind in output.get("data", {}) if kind.startswith("image/")]:
            del output["data"][kind]  # letters of no meaning
        assert not re.search(r"(?<![\w.:/<])/[A-Za-z][\w.-]*/", str(output))  # an absolute path
