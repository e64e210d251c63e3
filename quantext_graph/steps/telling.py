"""Words that tell an attribute: what notes of a record must not hold, whatever its label says.

Of public texts alone, and for every category alike, so the same is taken out of a record whose label
changes and of one that keeps it, and a wrong label makes no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import xlogy

from quantext_graph.core.arrays import Codes
from quantext_graph.spec.models import Spec

GAP = "___"
"""What stands in a note where words were taken out."""

_RATIO, _Z = 1.1, 3.5
"""A word tells where it is e^1.1 = 3 times as frequent in a category as in the others and this is 3.5
standard errors from chance. On real posts, complaints and dialogues that takes 2 to 15 words in a hundred
(figures in docs/recipes.md)."""

_STRICT_RATIO, _STRICT_Z = 0.7, 2.5

_RARE = 3

_WORD = re.compile(r"#?\w+(?:['’]\w+)*")
_BETWEEN = re.compile(r"[\s,'’\-/&]*(?:(?:of|the|a|an|and|to|my)\s+)?", re.IGNORECASE)


@dataclass(frozen=True)
class TellingWords:
    """`words` tell; `strict` holds more of them, for a last try; `phrases` are the spec's own names."""

    words: frozenset[str] = frozenset()
    strict: frozenset[str] = frozenset()
    phrases: re.Pattern[str] | None = None
    known: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, spec: Spec, texts: Sequence[str], codes: Codes) -> TellingWords:
        """From public `texts` and their (N, m) category codes; with none, the spec's names alone."""
        phrases = _phrases(spec)
        if not len(texts):
            return cls(phrases=phrases)
        from sklearn.feature_extraction.text import CountVectorizer

        counter = CountVectorizer(
            binary=True, lowercase=False, token_pattern=None, tokenizer=_words, min_df=_RARE, dtype=np.int64
        )
        try:
            X = counter.fit_transform(texts)
        except ValueError:  # no word is in three texts
            return cls(phrases=phrases)
        names = counter.get_feature_names_out()
        z, ratio = np.zeros(len(names)), np.zeros(len(names))
        for column, size in zip(codes.T, spec.sizes, strict=True):
            for category in range(size):
                more, certain = _log_odds(X, column == category)
                better = certain > z
                z, ratio = np.where(better, certain, z), np.where(better, more, ratio)
        return cls(
            frozenset(names[(ratio > _RATIO) & (z > _Z)].tolist()),
            frozenset(names[(ratio > _STRICT_RATIO) & (z > _STRICT_Z)].tolist()),
            phrases,
            frozenset(names.tolist()),
        )

    def neutral(self, text: str, *, strict: bool = False) -> str:
        """`text` with a `GAP` for each run of words that tell. A hashtag that public texts do not know is
        taken for one that tells."""
        telling = self.strict if strict else self.words
        places = [
            match.span()
            for match in _WORD.finditer(text)
            if (word := match.group().casefold()) in telling or (word[0] == "#" and word not in self.known)
        ]
        if self.phrases is not None:
            places += [match.span() for match in self.phrases.finditer(text)]
        return _cut_out(text, sorted(places))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _log_odds(X: Any, inside: Any) -> tuple[Any, Any]:
    """Log-odds (nats) of each word inside against outside, by its share of all words there so that long texts
    count no more, and how far it is from chance in standard errors: the signed root of the log-likelihood
    ratio, which holds for rare words too (Dunning 1993)."""
    there, elsewhere = (np.asarray(X[rows].sum(axis=0), dtype=float).ravel() for rows in (inside, ~inside))
    if not there.any() or not elsewhere.any():
        return np.zeros(len(there)), np.zeros(len(there))
    more = np.log((there + 0.5) / there.sum()) - np.log((elsewhere + 0.5) / elsewhere.sum())
    share = there.sum() / (there.sum() + elsewhere.sum())
    ratio = xlogy(there, there / (there + elsewhere) / share)
    ratio += xlogy(elsewhere, elsewhere / (there + elsewhere) / (1 - share))
    return more, np.sign(more) * np.sqrt(np.maximum(2 * ratio, 0))


def _phrases(spec: Spec) -> re.Pattern[str] | None:
    """The categories' names and nouns, but for names that are no words of a text ("None", "1")."""
    said: Iterable[str] = (
        phrase
        for attribute in spec.attributes
        for category in attribute.categories
        for phrase in (category.name, category.word)
        if len(phrase) > 2 and phrase.casefold() not in ("none", "other", "others", "yes", "not")
    )
    found = "|".join(re.escape(phrase) for phrase in sorted(set(said), key=len, reverse=True))
    return re.compile(rf"\b(?:{found})\b", re.IGNORECASE) if found else None


def _cut_out(text: str, places: list[tuple[int, int]]) -> str:
    """One gap for neighbours, with the small words between them."""
    kept: list[str] = []
    end = 0
    for start, stop in places:
        if start < end:
            end = max(end, stop)
            continue
        between = text[end:start]
        if not kept or not _BETWEEN.fullmatch(between):
            kept += [between, GAP]
        end = stop
    return "".join([*kept, text[end:]])
