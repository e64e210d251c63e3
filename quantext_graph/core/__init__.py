"""The QuanText mechanism on category codes: NumPy, SciPy and networkx, no LLM and no files."""
