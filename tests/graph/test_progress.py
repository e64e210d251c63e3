"""Progress is told now and then, and its first and last word always."""

from __future__ import annotations

import pytest

from quantext_graph.graph import progress
from quantext_graph.graph.progress import ProgressEvent, sparing


def test_first_last_and_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    told: list[ProgressEvent] = []
    tell = sparing(told.append, 1.0)
    for done in range(11):
        tell({"stage": "label", "done": done, "total": 10})
        now += 0.3
    tell({"stage": "rewrite", "done": 0, "total": 10, "verified": 0})
    tell({"stage": "rewrite", "done": 1, "total": 10, "verified": 1})
    assert [(event["stage"], event["done"]) for event in told] == [
        ("label", 0),
        ("label", 4),
        ("label", 8),
        ("label", 10),
        ("rewrite", 0),
    ]
