"""How far a stage is, as events, and a listener that is told now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NotRequired

from typing_extensions import TypedDict


class ProgressEvent(TypedDict):
    """`done` of `total` at a `stage`: learn, openings, label, match, rewrite (with `verified`), report."""

    stage: str
    done: int
    total: int
    verified: NotRequired[int]


Listener = Callable[[ProgressEvent], None]


def sparing(listener: Listener, seconds: float) -> Listener:
    """`listener` for the first and the last event of a stage, and else once in so many seconds: a run does
    hundreds of records a second, and what listens wakes threads or writes files."""
    stage, said = "", 0.0

    def tell(event: ProgressEvent) -> None:
        nonlocal stage, said
        now = time.monotonic()
        if event["stage"] != stage or event["done"] >= event["total"] or now - said >= seconds:
            stage, said = event["stage"], now
            listener(event)

    return tell
