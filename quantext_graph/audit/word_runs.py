"""Runs of words that a corpus shares with another, by hashes: time and memory are linear in the words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quantext_graph.core.arrays import Indices
from quantext_graph.steps.texts import words

LONGEST = 8
"""Words in a row that a text may share with another and not count as its copy."""

_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no power of it loses a bit
_Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class SharedRuns:
    """Of a corpus, the share of `texts` that hold a run of more than `LONGEST` words of another corpus, and
    the share of all `words` that stand in one."""

    texts: float
    words: float


@dataclass(frozen=True)
class Repetition:
    """Of a corpus, the share of texts that are the same words as `another` one, the share that have their
    first `LONGEST` words in common with another (`begun_alike`), and the most that begin alike (`most`)."""

    another: float
    begun_alike: float
    most: int


class WordRuns:
    """The words of n texts, in lower case and without punctuation, as hashes one after the other."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = [words(text) for text in texts]
        lengths = [len(text) for text in self.texts]
        hashes = (hash(word) for text in self.texts for word in text)
        self._words = np.fromiter(hashes, dtype=np.int64, count=sum(lengths)).view(np.uint64)
        self._owner: Indices = np.repeat(np.arange(len(lengths)), lengths)

    def shared(self, other: WordRuns) -> SharedRuns:
        """What is shared with another corpus. Two runs of 64-bit hashes are equal by chance about never."""
        starts, hashes = self._runs()
        starts = starts[np.isin(hashes, np.unique(other._runs()[1]))]
        n = len(self._words)
        ends = np.bincount(starts, minlength=n + 1) - np.bincount(
            np.minimum(starts + LONGEST + 1, n), minlength=n + 1
        )
        inside = ends.cumsum()[:n] > 0
        holding = len(np.unique(self._owner[starts]))
        return SharedRuns(holding / max(1, len(self.texts)), float(inside.mean()) if n else 0.0)

    def repetition(self) -> Repetition:
        whole = Counter(map(tuple, self.texts))
        begun = Counter(tuple(text[:LONGEST]) for text in self.texts if len(text) >= LONGEST)
        n = max(1, len(self.texts))
        return Repetition(_repeated(whole) / n, _repeated(begun) / n, max(begun.values(), default=0))

    def _runs(self) -> tuple[Indices, _Hashes]:
        """Where runs of `LONGEST` + 1 words start, and their hashes; none goes beyond its text."""
        length = LONGEST + 1
        if len(self._words) < length:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
        last = len(self._words) - length + 1
        sums = np.zeros(last, dtype=np.uint64)
        for k in range(length):
            sums = sums * _BASE + self._words[k : k + last]
        starts = np.flatnonzero(self._owner[:last] == self._owner[length - 1 :])
        return starts, sums[starts]


def _repeated(counts: Counter[tuple[str, ...]]) -> int:
    return sum(count for count in counts.values() if count > 1)
