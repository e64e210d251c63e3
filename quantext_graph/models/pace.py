"""How many requests a server is given at a time, learned from how long it takes to answer.

A saturated server of the vLLM kind refuses nothing: it queues, and every answer takes longer. So the
time of an answer is held against the best that was seen (the gradient of TCP Vegas and of Netflix's
concurrency-limits). Each kind of call has a best of its own, and a time is taken per unit of work, about
a token, so that long answers do not pass for slow ones.
"""

from __future__ import annotations

from collections.abc import Hashable
from statistics import median

_START = 4
_BATCHING = 3.0
"""An answer may take this many times its best: a server that batches is slower for each, faster for all."""

_CALL_WORK = 10.0
_INPUT_WORK = 0.1
"""What a call and a token of its prompt weigh, in tokens written: prompts are read in parallel."""

_WINDOW = 12  # answers, at least, between two changes
_BEST_OF = 5  # answers of a kind whose median may be its best


class Pace:
    """`allowed` requests at a time, from 1 to `most`: doubled at first, raised by one while the server keeps
    up, lowered by the gradient when answers grow slow, by 30 % when the server asks for it. Not safe for
    threads."""

    def __init__(self, most: int) -> None:
        self._most = float(most)
        self.allowed = min(self._most, float(_START))
        self._starting = True
        self._best: dict[Hashable, float] = {}
        self._latest: dict[Hashable, list[float]] = {}
        self._ratios: list[float] = []

    def answered(self, kind: Hashable, seconds: float, given: int, written: int) -> None:
        """An answer to a call of `kind` took `seconds`, for `given` tokens read and `written` tokens."""
        if self._starting:
            self._raise(1.0)
        each = seconds / (_CALL_WORK + _INPUT_WORK * given + written)
        best = self._seen(kind, each)
        if best is not None:
            self._ratios.append(each / best)
        if len(self._ratios) >= max(_WINDOW, self.allowed):
            self._turn(median(self._ratios))

    def slow_down(self) -> None:
        """The server asked for it, or did not answer in time."""
        self._starting = False
        self.allowed = max(1.0, 0.7 * self.allowed)

    def _seen(self, kind: Hashable, each: float) -> float | None:
        """The best median so far for this kind; None until a few answers are there."""
        latest = self._latest.setdefault(kind, [])
        latest.append(each)
        if len(latest) >= _BEST_OF:
            self._best[kind] = min(median(latest), self._best.get(kind, float("inf")))
            latest.clear()
        return self._best.get(kind)

    def _turn(self, ratio: float) -> None:
        """End a window whose answers took `ratio` times their best."""
        gradient = min(1.0, max(0.5, _BATCHING / ratio))
        if gradient < 1.0:
            self._starting = False
            # The root is a queue that may stand: it keeps a server busy and a wrong best from starving it.
            wanted = gradient * self.allowed + self.allowed**0.5
            self.allowed = max(1.0, min(self.allowed, wanted))
        else:
            self._raise(1.0)
        self._ratios.clear()

    def _raise(self, by: float) -> None:
        self.allowed = min(self._most, self.allowed + by)
        self._starting = self._starting and self.allowed < self._most
