"""The trade-off as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from quantext_graph.mechanism.tradeoff import TradeoffPoint

Cells = tuple[str, ...]


def tables(points: Sequence[TradeoffPoint]) -> list[tuple[str, Cells, list[Cells]]]:
    """Title, columns and rows for a terminal, a table for each rule and pool.

    A mean stands with its standard error over the splits.
    """
    titles = list(points[0].expected_error) if points else []
    columns = ("nats", "bound", "chance at most", "TV", *(f"error: {title}" for title in titles))
    rules: dict[str, list[TradeoffPoint]] = {}
    for point in points:
        rules.setdefault(point.rule, []).append(point)
    drawn: list[tuple[str, Cells, list[Cells]]] = []
    for rule, curve in rules.items():
        rows = [_row(point) for point in curve]
        if curve[0].gamma_over_k is None:
            drawn.append((rule, columns, rows))
        else:
            ratios = [f"{point.gamma_over_k:.3g}" for point in curve]
            rows = [(ratio, *row) for ratio, row in zip(ratios, rows, strict=True)]
            drawn.append((rule, ("γ/k", *columns), rows))
    return drawn


def _row(point: TradeoffPoint) -> Cells:
    factor = "vacuous" if point.leakage.vacuous else f"× {point.leakage.success_factor:,.1f}"
    errors = zip(point.expected_error.values(), point.error_standard_error.values(), strict=True)
    return (
        f"{point.budget_nats:.2f}",
        f"{point.bound_nats:.2f}",
        factor,
        f"{point.expected_tv:.3f} ± {point.tv_standard_error:.3f}",
        *(f"{mean:.3f} ± {error:.3f}" for mean, error in errors),
    )
