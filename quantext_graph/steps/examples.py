"""Public texts that show a model what a category or a combination of categories looks like.

Demonstrations must be clean, since a model copies a wrong one and a classifier trained on it
approves: where the auxiliary set trains a labeller, only rows that it labels as the data set does,
while they are held out, are shown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quantext_graph.steps.classifier import TextClassifier
from quantext_graph.steps.texts import folded, shortest

Combination = tuple[int, ...]

_LONG = 60
"""Words of a demonstration: longer ones cost more to read than they teach, where shorter ones exist."""

_CLAUSE = re.compile(r"[^,.;:!?\n()\"“”]+")
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
    def words(self) -> int:
        """Median length of the texts in words, 0 without any."""
        return int(np.median([len(text.split()) for text in self.texts])) if self.texts else 0

    @cached_property
    def single_line(self) -> bool:
        """Whether a text of this collection is one line."""
        return bool(self.texts) and sum("\n" in text for text in self.texts) < 0.05 * len(self.texts)


def plain(text: str) -> str:
    """A public text without what is only an address: links, leading mentions."""
    return _MARKS.sub("", text.strip()).strip()


def notes(text: str, count: int = 2) -> list[str]:
    """Phrases of a public text, as snippets of a record would be: what a demonstration is made from."""
    clauses = [clause for clause in (folded(c) for c in _CLAUSE.findall(text)) if len(clause.split()) >= 3]
    return [" ".join(clause.split()[-5:]) for clause in clauses[-count:]]


def _distance(first: Combination, second: Combination) -> int:
    return sum(a != b for a, b in zip(first, second, strict=True))


def _first(short: list[int], count: int, total: int) -> list[int]:
    """`count` of the short ones, in the fixed order: the very shortest say too little."""
    return sorted(short)[:count] if total else []
