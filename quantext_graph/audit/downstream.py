"""Downstream use: what a classifier that learned from the release can do with real texts.

For each attribute one plain model, logistic regression on TF-IDF words, learns from the release and its
targets, from the private records and their labels, and from the public set, and is tried on private records
that it has not seen ("train on synthetic, test on real": Esteban, Hyland & Rätsch 2017, arXiv:1706.02633).
The private records are dealt into folds: one is tried, the others are learned from; of the release the texts
that were made of a record in that fold are left out, since they would flatter. Release and private set give
as many texts, so that it is texts that are compared and not their number; the public set gives as many where
it has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from quantext_graph.audit.attacks import UNKNOWN, Skipped
from quantext_graph.audit.inputs import AuditInputs
from quantext_graph.core.arrays import Floats, Indices
from quantext_graph.spec.models import Attribute, Spec
from quantext_graph.steps.texts import words

Origin = Literal["release", "private", "public"]

NAME = "downstream use"
FOLDS = 5
FEWEST = 20
"""Texts below which nothing is learned."""
MOST = 3_000
"""Texts that are learned from, and private records that are tried, at most: chosen at random."""
RESAMPLES = 400
"""Bootstrap samples of an interval."""

_Labels = NDArray[np.int64]  # one attribute's codes, (n,)


@dataclass(frozen=True)
class Score:
    """What a model that learned from `texts` texts (the mean of the folds) makes of real ones: the share it
    labels right, and the mean F1 of the categories they have. `lacking` names categories that it could not
    learn, since there is no text of them."""

    texts: int
    accuracy: float
    macro_f1: float
    lacking: tuple[str, ...]


@dataclass(frozen=True)
class DownstreamUse:
    """One attribute: how models do on `tried` private records, by what they learned from. `chance` is the
    share of the commonest category. `ratio` is the accuracy by the release over that by the private set, with
    its 90 % interval, None where the latter is nought. `own_left_out`: it is known which text was made of
    which record, so that no model was tried on the record of a text that it learned from."""

    attribute: str
    tried: int
    chance: float
    scores: Mapping[Origin, Score]
    ratio: float | None
    ratio_interval: tuple[float, float] | None
    own_left_out: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class _Corpus:
    """Texts, one attribute's label of each, and which record each is or was made of (-1: of none)."""

    texts: Sequence[str]
    labels: _Labels
    record: Indices

    def rows(self, held_out: Indices | None = None) -> Indices:
        """What may be learned from while these records are tried."""
        free = self.labels != UNKNOWN
        if held_out is not None:
            free &= ~np.isin(self.record, held_out)
        return np.flatnonzero(free)

    def why_unfit(self) -> str | None:
        labels = self.labels[self.rows()]
        if len(labels) < FEWEST:
            return f"{len(labels)} labelled texts, and a model learns from at least {FEWEST}"
        return "all texts of one category" if len(np.unique(labels)) < 2 else None


def downstream_use(
    inputs: AuditInputs, spec: Spec, rng: np.random.Generator
) -> tuple[list[DownstreamUse], list[Skipped]]:
    """Of each attribute how well it can be learned, and why where it cannot."""
    found: list[DownstreamUse] = []
    if inputs.targets is None:
        return found, [Skipped(NAME, "it is not known what the released texts were written for")]
    skipped: list[Skipped] = []
    for r, attribute in enumerate(spec.attributes):
        corpora = dict(_corpora(inputs, r))
        unfit = {origin: why for origin, corpus in corpora.items() if (why := corpus.why_unfit())}
        skipped += [Skipped(NAME, f"{attribute.name}, {origin}: {why}") for origin, why in unfit.items()]
        fit = {origin: corpus for origin, corpus in corpora.items() if origin not in unfit}
        if "release" in fit and "private" in fit:
            found.append(_tried(attribute, fit, bool(inputs.pairs), rng))
    return found, skipped


def _corpora(inputs: AuditInputs, r: int) -> Iterator[tuple[Origin, _Corpus]]:
    """What attribute r can be learned from. Records of equal text are one."""
    place: dict[str, int] = {}
    records = np.array([place.setdefault(text, len(place)) for text in inputs.private_texts])
    if inputs.targets is not None:
        before = {pair.after: pair.before for pair in inputs.pairs}
        made_of = [place.get(before.get(text, ""), -1) for text in inputs.released_texts]
        yield "release", _Corpus(inputs.released_texts, inputs.targets[:, r], np.array(made_of))
    yield "private", _Corpus(inputs.private_texts, inputs.private_codes[:, r], records)
    if inputs.auxiliary_codes is not None:
        nobody = np.full(len(inputs.auxiliary_texts), -1)
        yield "public", _Corpus(inputs.auxiliary_texts, inputs.auxiliary_codes[:, r], nobody)


def _tried(
    attribute: Attribute, corpora: Mapping[Origin, _Corpus], own_left_out: bool, rng: np.random.Generator
) -> DownstreamUse:
    private = corpora["private"]
    rows = rng.permutation(private.rows())[:MOST]
    truth = private.labels[rows]
    fold = rng.integers(FOLDS, size=int(private.record.max()) + 1)[private.record[rows]]
    said = {origin: np.full(len(rows), UNKNOWN) for origin in corpora}
    learned: dict[Origin, list[int]] = {origin: [] for origin in corpora}
    for number in np.unique(fold):
        tried = rows[fold == number]
        free = {origin: each.rows(private.record[tried]) for origin, each in corpora.items()}
        size = min(MOST, len(free["release"]), len(free["private"]))
        for origin, corpus in corpora.items():
            chosen = rng.permutation(free[origin])[:size]
            learned[origin].append(len(chosen))
            texts = [private.texts[row] for row in tried]
            said[origin][fold == number] = _learned(corpus, chosen, texts)
    hits = {origin: (codes == truth).astype(float) for origin, codes in said.items()}
    ratio, interval = _ratio(hits["release"], hits["private"], rng)
    return DownstreamUse(
        attribute=attribute.name,
        tried=len(rows),
        chance=float(np.bincount(truth).max() / len(truth)),
        scores={
            origin: Score(
                texts=round(sum(learned[origin]) / len(learned[origin])),
                accuracy=float(hits[origin].mean()),
                macro_f1=_macro_f1(truth, codes),
                lacking=_lacking(attribute, corpora[origin]),
            )
            for origin, codes in said.items()
        },
        ratio=ratio,
        ratio_interval=interval,
        own_left_out=own_left_out,
    )


def _learned(corpus: _Corpus, rows: Indices, texts: Sequence[str]) -> _Labels:
    """What a model that learned from these rows says of the texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    labels = corpus.labels[rows]
    if len(np.unique(labels)) < 2:
        return np.full(len(texts), labels[0] if len(labels) else UNKNOWN)
    counted = TfidfVectorizer(sublinear_tf=True, lowercase=False, tokenizer=words, token_pattern=None)
    try:
        known = counted.fit_transform([corpus.texts[row] for row in rows])
    except ValueError:  # texts without a word
        return np.full(len(texts), np.bincount(labels).argmax())
    with threadpool_limits(1):
        model = OneVsRestClassifier(LogisticRegression(C=10.0, solver="liblinear")).fit(known, labels)
    found: _Labels = model.predict(counted.transform(texts))
    return found


def _ratio(
    release: Floats, private: Floats, rng: np.random.Generator
) -> tuple[float | None, tuple[float, float] | None]:
    """Of the accuracies, given hits on the same records; 90 % by the bootstrap over these."""
    if not private.any():
        return None, None
    ratios = []
    for _ in range(RESAMPLES):
        rows = rng.integers(len(private), size=len(private))
        if of := private[rows].sum():
            ratios.append(release[rows].sum() / of)
    low, high = np.quantile(ratios, [0.05, 0.95])
    return float(release.mean() / private.mean()), (float(low), float(high))


def _macro_f1(truth: _Labels, said: _Labels) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(truth, said, labels=np.unique(truth), average="macro", zero_division=0))


def _lacking(attribute: Attribute, corpus: _Corpus) -> tuple[str, ...]:
    there = set(corpus.labels[corpus.rows()].tolist())
    return tuple(name for code, name in enumerate(attribute.category_names) if code not in there)
