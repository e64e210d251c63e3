"""How many labelled public rows the steps ask for."""

SMALLEST = 24
"""Rows below which nothing is learned."""

ENOUGH = 300
"""Rows from which on a classifier labels and picks beside the LLM."""
