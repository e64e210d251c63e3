"""A look at a data set's columns: which one holds the texts, which could be attributes.

Column names and kinds are public; whatever counts or quotes cells is private.
"""

from __future__ import annotations

from typing import Any

from langchain_core.tools import tool

from quantext_graph.data.inspection import inspect
from quantext_graph.data.tables import RecordsError


@tool("inspect_dataset", response_format="content_and_artifact")
def inspect_dataset(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Look at the columns of a data set (CSV, TSV, JSONL or Parquet): which holds the texts, which
    could be attributes. The content is public: names and kinds of columns, number of rows. The
    artifact is private: category names, their shares, blank cells."""
    try:
        summary = inspect(path)
    except RecordsError as error:
        return {"error": str(error)}, {}
    return summary.public(), summary.private()
