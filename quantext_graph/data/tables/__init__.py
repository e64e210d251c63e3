"""Files of rows: CSV, TSV, JSON lines and Parquet, read strictly and written so that they read back."""

from quantext_graph.data.tables.reading import open_table
from quantext_graph.data.tables.table import RecordsError, Row, Table
from quantext_graph.data.tables.writing import write_table

__all__ = ["RecordsError", "Row", "Table", "open_table", "write_table"]
