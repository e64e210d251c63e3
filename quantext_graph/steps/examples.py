"""Public texts that show a model what a category or a combination of categories looks like.

Demonstrations must be clean, since a model copies a wrong one and a classifier trained on it
approves: where the auxiliary set trains a labeller, only rows that it labels as the data set does,
while they are held out, are shown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from quantext_graph.steps.classifier import TextClassifier
from quantext_graph.steps.passages import passages
from quantext_graph.steps.telling import GAP
from quantext_graph.steps.texts import shortest, words

Combination = tuple[int, ...]

_LONG = 60
"""Words of a demonstration: longer ones cost more to read than they teach, where shorter ones exist."""

_GAPS = 4
"""Gaps of a passage that shows how they are filled: one with more tells too little."""

_MARKS = re.compile(r"https?://\S+|^(?:RT\s+)?(?:[@.]\S+\s+)+|^RT\b\s*|#SemST\b", re.IGNORECASE)


@dataclass(frozen=True)
class Examples:
    """The auxiliary rows with their complete labels; `clean` tells which of them may be shown."""

    texts: tuple[str, ...]
    codes: tuple[Combination, ...]
    clean: tuple[bool, ...]

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        codes: Sequence[Combination],
        labeller: TextClassifier | None,
    ) -> Examples:
        """Rows in a fixed order that does not follow the file's."""
        order = np.random.default_rng(0).permutation(len(texts))
        agreed = np.ones(len(texts), dtype=bool)
        if labeller is not None:
            agreed = (labeller.predicted == np.array(codes)).all(axis=1)
        return cls(
            tuple(plain(texts[i]) for i in order),
            tuple(tuple(codes[i]) for i in order),
            tuple(bool(agreed[i]) for i in order),
        )

    @cached_property
    def _rows(self) -> Mapping[Combination, tuple[int, ...]]:
        rows: dict[Combination, list[int]] = defaultdict(list)
        for i, combination in enumerate(self.codes):
            rows[combination].append(i)
        return {combination: tuple(found) for combination, found in rows.items()}

    def rows(self, target: Combination, *, clean: bool = True) -> list[int]:
        """Rows with exactly this combination."""
        return [i for i in self._rows.get(target, ()) if self.clean[i] or not clean]

    def near(self, target: Combination) -> list[int]:
        """Clean rows with this combination, then those that miss one attribute."""
        near = [i for i, c in enumerate(self.codes) if self.clean[i] and _distance(c, target) == 1]
        return self.rows(target) + near

    def demonstrations(self, target: Combination, count: int = 3) -> list[str]:
        """Up to `count` short clean texts of the combination."""
        shown = self._shown.get((target, count))
        if shown is None:
            texts = [self.texts[i] for i in self.rows(target) if len(self.texts[i].split()) >= 4]
            shown = [texts[i] for i in _first(shortest(texts, _LONG), count, len(texts))]
            self._shown[target, count] = shown
        return shown

    def gapped(
        self, target: Combination, neutral: Callable[[str], str], size: int, count: int = 5
    ) -> list[tuple[str, str]]:
        """Up to `count` passages of public texts of the combination, each with gaps and whole: what shows a
        model how gaps are filled for this target. One of a text at most."""
        shown = self._gapped.get((target, size))
        if shown is None:
            pairs = (_gapped(self.texts[i], neutral, size) for i in self.rows(target))
            shown = self._gapped[target, size] = list(islice((pair for pair in pairs if pair), count))
        return shown

    @cached_property
    def _gapped(self) -> dict[tuple[Combination, int], list[tuple[str, str]]]:
        return {}

    @cached_property
    def _shown(self) -> dict[tuple[Combination, int], list[str]]:
        """Kept, since every record asks: the search grows with the auxiliary set."""
        return {}

    def of_category(self, attribute: int, code: int, given: Mapping[int, int], count: int) -> list[str]:
        """Up to `count` short clean texts of one category, with the `given` other categories."""
        wanted = {**given, attribute: code}
        texts = [
            text
            for text, codes, clean in zip(self.texts, self.codes, self.clean, strict=True)
            if clean and all(codes[i] == value for i, value in wanted.items())
        ]
        short = [text for text in texts if len(text.split()) <= _LONG]
        return short[:count]

    @cached_property
    def usual_words(self) -> int:
        """Median length of the texts in words, 0 without any."""
        return int(np.median([len(text.split()) for text in self.texts])) if self.texts else 0


def plain(text: str) -> str:
    """A public text without what is only an address: links, leading mentions."""
    return _MARKS.sub("", text.strip()).strip()


def _gapped(text: str, neutral: Callable[[str], str], size: int) -> tuple[str, str] | None:
    """The first passage of `text` in which some words tell its categories and most do not."""
    for passage in passages(text, min(size, _LONG)):
        said = _MARKS.sub("", passage.text).strip()
        note = neutral(said)
        gaps, left = note.count(GAP), len(words(note.replace(GAP, "")))
        if 1 <= gaps <= _GAPS and left >= 3 and len(words(said)) >= 6:
            return note, said
    return None


def _distance(first: Combination, second: Combination) -> int:
    return sum(a != b for a, b in zip(first, second, strict=True))


def _first(short: list[int], count: int, total: int) -> list[int]:
    """`count` of the short ones, in the fixed order: the very shortest say too little."""
    return sorted(short)[:count] if total else []
