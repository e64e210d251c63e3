"""What is left of each record in the text that was made of it: its content, its length, its form.

A release can be on target and near the private texts as a corpus, and yet tell of no record's events. So
each released text is held against its own record, and against records that were given the same target: what
it shares with both is the target's. How much of the texts is copied, from public ones or from the records,
and how often they repeat each other, is said beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from quantext_graph.audit.inputs import AuditInputs, Pair
from quantext_graph.audit.utility import token_length
from quantext_graph.audit.word_runs import Repetition, SharedRuns, WordRuns
from quantext_graph.core.arrays import Floats, Indices, combinations
from quantext_graph.steps.texts import words

RIVALS = 49
"""Records of the same target that a text's own record is compared with, at most."""

RESAMPLES = 400
"""Bootstrap samples of an interval."""

_TURN = re.compile(r"^\s*[^\W\d_][\w .'-]{0,29}:\s", re.MULTILINE)
Similarity = Callable[[Indices], Floats]  # of each text to the record at its place in these (n,) indices
Nearness = Literal["meaning", "words"]


@dataclass(frozen=True)
class OwnRecord:
    """How near texts are to their own records, by embedding ("meaning") or by TF-IDF ("words").

    Of `texts` that have rivals, records of the same target: the share whose own record is `first`, its 90 %
    interval and what `first_by_chance` would be; the mean `rank`, the share of rivals that are less near
    (½ by chance), with its interval; and the mean similarity to the `own` record and to the `others`.
    """

    by: Nearness
    texts: int
    first: float
    first_interval: tuple[float, float]
    first_by_chance: float
    rank: float
    rank_interval: tuple[float, float]
    own: float
    others: float


@dataclass(frozen=True)
class LengthRatios:
    """Tokens of a released text by those of its record: the median, and the quartiles around it."""

    median: float
    quartiles: tuple[float, float]


@dataclass(frozen=True)
class Parts:
    """Of `records` with two parts or more, the share whose text has as many (`same`), and the median `ratio`
    of the numbers."""

    records: int
    same: float
    ratio: float


@dataclass(frozen=True)
class Fidelity:
    """What is left of the records. What needs to know which text was made of which record, a record of
    several lines or turns of speech, or public texts, is None or empty where there are none. All of it is
    private."""

    own_record: tuple[OwnRecord, ...]
    lengths: LengthRatios | None
    lines: Parts | None
    turns: Parts | None
    of_public: SharedRuns | None
    of_private: SharedRuns
    repetition: Repetition
    private_repetition: Repetition

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def fidelity(
    inputs: AuditInputs, embed: Callable[[Sequence[str]], Floats], rng: np.random.Generator
) -> Fidelity:
    """Measure it; `embed` gives (n, d) unit vectors, `rng` chooses rivals and samples."""
    pairs = inputs.pairs
    released, private = WordRuns(inputs.released_texts), WordRuns(inputs.private_texts)
    return Fidelity(
        own_record=tuple(_own_record(pairs, embed, rng)) if pairs else (),
        lengths=_lengths(pairs) if pairs else None,
        lines=_parts(pairs, _lines),
        turns=_parts(pairs, lambda text: len(_TURN.findall(text))),
        of_public=released.shared(WordRuns(inputs.auxiliary_texts)) if len(inputs.auxiliary_texts) else None,
        of_private=released.shared(private),
        repetition=released.repetition(),
        private_repetition=private.repetition(),
    )


def _own_record(
    pairs: Sequence[Pair], embed: Callable[[Sequence[str]], Floats], rng: np.random.Generator
) -> Iterator[OwnRecord]:
    before, after = [pair.before for pair in pairs], [pair.after for pair in pairs]
    rivals = _rivals(pairs, rng)
    if not (rivals >= 0).any():
        return
    yield _among("meaning", _by_meaning(embed(after), embed(before)), rivals, rng)
    by_words = _by_words(after, before)
    if by_words is not None:
        yield _among("words", by_words, rivals, rng)


def _rivals(pairs: Sequence[Pair], rng: np.random.Generator) -> Indices:
    """(K, n) places of up to `RIVALS` other records of each one's target, -1 where there are no more: those
    that follow it in a ring of random order."""
    n = len(pairs)
    _, _, group = combinations(np.array([pair.target for pair in pairs], dtype=np.int64))
    order = rng.permutation(n)
    order = order[np.argsort(group[order], kind="stable")]
    sizes = np.bincount(group)
    start = np.concatenate([[0], sizes.cumsum()[:-1]])[group[order]]
    size, place = sizes[group[order]], np.arange(n)
    rivals = np.full((min(RIVALS, int(sizes.max()) - 1), n), -1, dtype=np.int64)
    for k in range(len(rivals)):
        following = order[start + (place - start + k + 1) % size]
        rivals[k, order] = np.where(k + 1 < size, following, -1)
    return rivals


def _by_meaning(after: Floats, before: Floats) -> Similarity:
    return lambda at: np.einsum("nd,nd->n", after, before[at])


def _by_words(after: Sequence[str], before: Sequence[str]) -> Similarity | None:
    """Cosines of TF-IDF; a word that many records have counts little. None where no record has a word."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    rare = TfidfVectorizer(sublinear_tf=True, lowercase=False, tokenizer=words, token_pattern=None)
    try:
        records = rare.fit_transform(before)
    except ValueError:
        return None
    texts = rare.transform(after)
    return lambda at: np.asarray(texts.multiply(records[at]).sum(axis=1)).ravel()


def _among(by: Nearness, similarity: Similarity, rivals: Indices, rng: np.random.Generator) -> OwnRecord:
    """Ties count as what a random order would make of them."""
    own = similarity(np.arange(rivals.shape[1]))
    less, tied, others, count = (np.zeros(len(own)) for _ in range(4))
    for row in rivals:
        there = row >= 0
        near = np.where(there, similarity(np.maximum(row, 0)), 0.0)
        equal = there & np.isclose(near, own, atol=1e-9)
        less += there & (near < own) & ~equal
        tied += equal
        others += near
        count += there
    told = count > 0
    less, tied, count = less[told], tied[told], count[told]
    first = np.where(less + tied == count, 1 / (1 + tied), 0.0)
    rank = (less + tied / 2) / count
    return OwnRecord(
        by=by,
        texts=int(told.sum()),
        first=float(first.mean()),
        first_interval=_interval(first, rng),
        first_by_chance=float((1 / (1 + count)).mean()),
        rank=float(rank.mean()),
        rank_interval=_interval(rank, rng),
        own=float(own[told].mean()),
        others=float((others[told] / count).mean()),
    )


def _interval(values: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """90 %, of a mean, by the bootstrap."""
    means = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, [0.05, 0.95])
    return float(low), float(high)


def _lengths(pairs: Sequence[Pair]) -> LengthRatios:
    ratios = [token_length(pair.after) / max(1, token_length(pair.before)) for pair in pairs]
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    return LengthRatios(float(middle), (float(low), float(high)))


def _lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip())


def _parts(pairs: Sequence[Pair], count: Callable[[str], int]) -> Parts | None:
    counted = [(count(pair.before), pair) for pair in pairs]
    several = [(had, count(pair.after)) for had, pair in counted if had > 1]
    if not several:
        return None
    ratios = [has / had for had, has in several]
    same = sum(ratio == 1 for ratio in ratios) / len(several)
    return Parts(len(several), same, float(np.median(ratios)))
