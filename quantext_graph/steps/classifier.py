"""Text classifiers trained on the labelled auxiliary set: labels beside the LLM at no cost a record.

Two layers. Linear support vector machines on TF-IDF features give a margin for every category of
every attribute; a logistic regression over the margins of *all* attributes, made on rows that the
first layer had not seen, turns them into calibrated log-probabilities. So what one attribute says of
another (a stance is easier to tell once the topic is known) is used, and the accuracy is held out.

scikit-learn is imported where it is used: it takes seconds, and most commands learn nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sparse
from langchain_core.embeddings import Embeddings
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from sklearn.model_selection import StratifiedKFold

from quantext_graph.core.arrays import Codes
from quantext_graph.steps.public_rows import SMALLEST

Array = np.ndarray[Any, np.dtype[np.float64]]
Features = Literal["all", "words", "characters"]

_TOKEN = re.compile(r"\b\w+\b|[!?#@]")
_SCALE = 2.0

_FLOOR = 1e-3
"""Probability of a category that the auxiliary set never shows: unlikely, yet not impossible."""


class HeldOut(NamedTuple):
    """What a judge `read` off texts whose labels are known, and the `true` ones, both (N, m)."""

    read: Codes
    true: Codes


@dataclass(frozen=True)
class TextClassifier:
    """One classifier of all attributes.

    `accuracy` is the held-out accuracy of each attribute, `predicted` (N, m) what rows of the
    training set were taken for while held out, `confidence` (N, m) the probability given to that, `priors`
    the log share of each category.
    """

    sizes: tuple[int, ...]
    accuracy: tuple[float, ...]
    predicted: Codes = field(repr=False)
    confidence: Array = field(repr=False)
    priors: tuple[Array, ...] = field(repr=False)
    _features: _Features = field(repr=False)
    _margins: tuple[Any, ...] = field(repr=False)
    _calibrated: tuple[Any, ...] = field(repr=False)

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        codes: Codes,
        sizes: Sequence[int],
        *,
        features: Features = "all",
        embedding: Embeddings | None = None,
    ) -> TextClassifier:
        """Train on `texts` (at least `SMALLEST`) and their (N, m) category codes. An `embedding` adds
        what the words alone do not say: on 4,810 real posts, 4 points of stance by MiniLM.

        Raises:
            ValueError: with fewer rows.
        """
        if len(texts) < SMALLEST:
            raise ValueError(f"{len(texts)} rows are too few to learn from; give at least {SMALLEST}")
        maps = _Features(features, rare=2 if len(texts) >= 300 else 1, embedding=embedding)
        X, E = maps.fit(texts), maps.dense(texts)
        with threadpool_limits(1):  # small systems: threads would wait for each other
            layers = [_margin_layer(X, column) for column in codes.T]
            dense = np.hstack([*(held_out for _, held_out in layers), E])
            calibrated = [_calibration_layer(dense, c, size) for c, size in zip(codes.T, sizes, strict=True)]
        predicted = np.stack([values.argmax(axis=1) for _, values in calibrated], axis=1)
        return cls(
            tuple(sizes),
            tuple((predicted == codes).mean(axis=0).tolist()),
            predicted,
            np.stack([np.exp(values.max(axis=1)) for _, values in calibrated], axis=1),
            tuple(_prior(column, size) for column, size in zip(codes.T, sizes, strict=True)),
            maps,
            tuple(model for model, _ in layers),
            tuple(model for model, _ in calibrated),
        )

    def log_probabilities(self, texts: Sequence[str], *, even: bool = False) -> tuple[Array, ...]:
        """Log-probabilities (nats) of the categories: one (n, ψ_i) array for each attribute.

        `even` takes all categories as equally common, instead of as common as in training.
        """
        X = self._features.transform(texts)
        margins = [_decide(model, X) for model in self._margins]
        dense = np.hstack([*margins, self._features.dense(texts)])
        found = [_log_p(model, dense, size) for model, size in zip(self._calibrated, self.sizes, strict=True)]
        if even:
            found = [_normal(values - prior) for values, prior in zip(found, self.priors, strict=True)]
        return tuple(found)

    def held_out(self, texts: Sequence[str], codes: Codes) -> HeldOut:
        """What it reads off rows apart from the training set, whose labels (N, m) are known."""
        read = np.stack([values.argmax(axis=1) for values in self.log_probabilities(texts)], axis=1)
        return HeldOut(read, codes)


class _Features:
    """Words, word pairs and characters as TF-IDF, and sentence vectors where an embedding is given."""

    def __init__(self, features: Features, rare: int, embedding: Embeddings | None) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        words = TfidfVectorizer(
            ngram_range=(1, 2), sublinear_tf=True, min_df=rare, tokenizer=_TOKEN.findall, token_pattern=None
        )
        characters = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=rare, max_features=40_000
        )
        chosen = {"all": (words, characters), "words": (words,), "characters": (characters,)}
        self._vectorizers = chosen[features]
        self._embedding = embedding

    def fit(self, texts: Sequence[str]) -> Any:
        return sparse.hstack([v.fit_transform(texts) for v in self._vectorizers]).tocsr()

    def transform(self, texts: Sequence[str]) -> Any:
        return sparse.hstack([v.transform(texts) for v in self._vectorizers]).tocsr()

    def dense(self, texts: Sequence[str]) -> Array:
        """(n, d) sentence vectors, d = 0 without an embedding; the scale balances them and the margins."""
        if self._embedding is None:
            return np.empty((len(texts), 0))
        return _SCALE * np.array(self._embedding.embed_documents(list(texts)), dtype=np.float64)


def _prior(column: Any, size: int) -> Array:
    """Log share of each category in training, none below one row in a hundred."""
    return np.log(np.maximum(np.bincount(column, minlength=size) / len(column), 0.01))


def _normal(log_p: Array) -> Array:
    return log_p - np.logaddexp.reduce(log_p, axis=1, keepdims=True)


def _folds(column: Any) -> StratifiedKFold | None:
    """None where there is one category only, and so nothing to learn."""
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(4, shuffle=True, random_state=0) if len(np.unique(column)) > 1 else None


def _margin_layer(X: Any, column: Any) -> tuple[Any, Array]:
    """A support vector machine, and the margins it gives rows that it has not seen."""
    from sklearn.svm import LinearSVC

    folds = _folds(column)
    if folds is None:
        return None, np.zeros((len(column), 1))
    model = LinearSVC(C=0.3)
    held_out = np.zeros((len(column), len(np.unique(column))))
    classes = np.unique(column)
    for train, test in folds.split(np.zeros(len(column)), column):
        part = LinearSVC(C=0.3).fit(X[train], column[train])
        values = part.decision_function(X[test])
        values = np.stack([-values, values], axis=1) if values.ndim == 1 else values
        held_out[np.ix_(test, np.searchsorted(classes, part.classes_))] = values
    return model.fit(X, column), held_out


def _decide(model: Any, X: Any) -> Array:
    """`decision_function`, without its checks: they take ten times as long on a single text."""
    if model is None:
        return np.zeros((X.shape[0], 1))
    values = np.asarray(X @ model.coef_.T) + model.intercept_
    return np.hstack([-values, values]) if values.shape[1] == 1 else values


def _calibration_layer(dense: Array, column: Any, size: int) -> tuple[Any, Array]:
    """A logistic regression over the margins, and its held-out log-probabilities (N, ψ)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    folds = _folds(column)
    if folds is None:
        model: Any = int(column[0])
        return model, _log_p(model, dense, size)
    model = LogisticRegression(C=1.0, max_iter=300)
    values = np.full((len(column), size), _FLOOR)
    held_out = cross_val_predict(model, dense, column, cv=folds, method="predict_proba")
    values[:, np.unique(column)] = np.maximum(held_out, _FLOOR)
    return model.fit(dense, column), _normal(np.log(values))


def _log_p(model: Any, dense: Array, size: int) -> Array:
    values = np.full((len(dense), size), _FLOOR)
    if isinstance(model, int):
        values[:, model] = 1.0
    else:
        odds = dense @ model.coef_.T + model.intercept_
        if odds.shape[1] == 1:
            odds = np.hstack([np.zeros_like(odds), odds])
        values[:, model.classes_] = np.maximum(np.exp(_normal(odds)), _FLOOR)
    return _normal(np.log(values))
