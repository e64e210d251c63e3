"""The residual attack: does a released text still tell its record's *original* label, given the target?

What it finds is what style carries: above chance, l > 1, and a bound that assumes log l = 0 is too low.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_matrix, hstack
from scipy.stats import chi2
from scipy.stats import t as student
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

from quantext_graph.audit.attack_kinds import AttackKind, Found, Need
from quantext_graph.audit.attacks import UNKNOWN, Attack, Skipped
from quantext_graph.audit.evidence import Evidence, Pairs
from quantext_graph.core.arrays import Codes, Floats

FOLDS = 5
FEWEST = 20
"""Pairs below which nothing can be told."""
MOST = 5_000
"""Pairs that are looked at; a random part of them where there are more."""
FEATURES = 50
"""Words and letter groups that the classifier with the text may use at most."""
RARE = 4
COMBINATIONS = 100
"""Target combinations that the classifiers tell apart; the rarest of more are one."""


class Residual(AttackKind):
    """By a classifier that knows the target and reads the text."""

    name: ClassVar[str] = "residual"
    title: ClassVar[str] = "Residual: do the texts still tell the original label?"
    explanation: ClassVar[str] = (
        "Accuracy of a classifier that knows the target and reads the released text. The mark is what it "
        "reaches without the text. Beyond the mark, the text carries style of the original."
    )
    needs: ClassVar[tuple[Need, ...]] = ("pairs",)
    about: ClassVar = "attribute"
    simulates: ClassVar[bool] = False  # there a text is drawn without regard to the record it stands for
    shown: ClassVar[bool] = False

    def attack(self, evidence: Evidence) -> Found:
        assert evidence.pairs is not None
        return residual_attack(evidence.pairs, evidence.attributes, rng=evidence.rng)


def residual_attack(
    pairs: Pairs, names: Sequence[str], *, rng: np.random.Generator | None = None
) -> tuple[list[Attack], list[Skipped]]:
    """Cross-validated accuracy at the original label of each attribute, with the text and without it.

    Both classifiers see the whole target combination; only one sees the text. Without it the commonest
    label is taken where that is right more often. The interval is of the gain in accuracy, from the
    paired differences (95 %, Student).

    Args:
        pairs: n' texts, what each was written for, and the labels of the record it was made of.
        names: of the m attributes.
        rng: picks the folds, and the pairs where there are more than `MOST`.
    """
    rng = rng or np.random.default_rng()
    picked = rng.permutation(len(pairs.texts))[:MOST]
    text, known = _features([pairs.texts[row] for row in picked]), _known(pairs.targets[picked])
    attacks, skipped = [], []
    for r, name in enumerate(names):
        labels = pairs.original[picked, r]
        rows = np.flatnonzero(labels != UNKNOWN)
        if len(rows) < FEWEST:
            reason = f"{name}: {len(rows)} labelled pairs; {FEWEST} are needed"
            skipped.append(Skipped(Residual.name, reason))
            continue
        # Matrices this small lose by threads, and most on a busy machine.
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class")  # it is in some fold
            gain = _gain(text[rows], known[rows], labels[rows], int(rng.integers(2**31)))
        accuracy, base, (low, high) = gain
        detail = {"base_rate": base, "interval": [low, high], "leaks": low > 0, "pairs": len(rows)}
        found = accuracy, 1 - accuracy, 1 - base
        attacks.append(Attack(Residual.name, "classifier", name, *found, detail, Residual.about))
    return attacks, skipped


def _gain(
    text: csr_matrix, known: Floats, labels: Codes, seed: int
) -> tuple[float, float, tuple[float, float]]:
    """Accuracy with the text, without it, and the interval of their difference."""
    right, by_target, by_majority = np.zeros((3, len(labels)))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    for train, test in folds.split(labels, _strata(labels)):
        values, counts = np.unique(labels[train], return_counts=True)
        by_majority[test] = labels[test] == values[counts.argmax()]
        if len(values) == 1:
            right[test] = by_target[test] = by_majority[test]
            continue
        without = _fit(known[train], labels[train])
        telling = _telling(text[train], labels[train], without.predict_proba(known[train]))
        both = np.hstack([known, text[:, telling].toarray()])
        by_target[test] = without.predict(known[test]) == labels[test]
        right[test] = _fit(both[train], labels[train]).predict(both[test]) == labels[test]
    base = max(by_target, by_majority, key=np.mean)
    gain = right - base
    reach = student.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / math.sqrt(len(gain))
    interval = float(gain.mean() - reach), float(gain.mean() + reach)
    return float(right.mean()), float(base.mean()), interval


def _known(targets: Codes) -> Floats:
    """(n, ·) indicators of each attribute's target and of the combination of all."""
    _, combination = np.unique(targets, axis=0, return_inverse=True)
    encoder = OneHotEncoder(min_frequency=5, max_categories=COMBINATIONS, sparse_output=False)
    return np.asarray(encoder.fit_transform(np.column_stack([combination.reshape(-1), targets])), float)


def _features(texts: Sequence[str]) -> csr_matrix:
    """Which words (anything between blanks, so that emoji count) and groups of letters occur, (n, f).
    What occurs in fewer than `RARE` texts can tell of no label."""
    padded = [*texts, *["∅∅∅"] * RARE]  # so that a corpus of empty texts has a vocabulary too
    words = CountVectorizer(binary=True, tokenizer=str.split, token_pattern=None, min_df=RARE)
    letters = CountVectorizer(binary=True, analyzer="char_wb", ngram_range=(2, 3), min_df=RARE)
    blocks = [words.fit_transform(padded), letters.fit_transform(padded)]
    return csr_matrix(hstack(blocks), dtype=np.float64)[: len(texts)]


def _telling(text: csr_matrix, labels: Codes, expected: Floats) -> Codes:
    """The features that say something beyond the target, most telling first.

    By the score test of adding each to the model without text: the square of what that model leaves
    unexplained, over its variance, is χ² with one degree of freedom where the feature says nothing. By
    chance about one feature passes.
    """
    surprise = (labels[:, None] == np.unique(labels)) - expected
    variance = text.T @ (expected * (1 - expected))
    scores = ((text.T @ surprise) ** 2 / np.maximum(variance, 0.5)).max(axis=1)
    order = np.argsort(-scores, kind="stable")[:FEATURES]
    return np.asarray(order[scores[order] > chi2.isf(1 / scores.size, 1)])


def _strata(labels: Codes) -> Codes:
    """Codes to stratify the folds by: those too rare for every fold share one stratum."""
    values, positions, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return np.where(counts[positions] < FOLDS, values.min() - 1, labels)


def _fit(rows: Floats, labels: Codes) -> LogisticRegression:
    return LogisticRegression(C=1, solver="newton-cholesky", max_iter=100).fit(rows, labels)
