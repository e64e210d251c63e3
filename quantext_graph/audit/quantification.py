"""Quantification attacks: prevalence estimators that correct their classifier's bias (QuaPy)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from quantext_graph.audit.attacks import Attack, AttackedSecret, Skipped, labelled_rows
from quantext_graph.core.arrays import Codes, event_mask

FOLDS = 10
MISSING = "needs the package QuaPy: pip install 'quantext-graph[audit]'"


def quantification_attack(
    released: npt.NDArray[np.float64],
    auxiliary: npt.NDArray[np.float64],
    auxiliary_codes: Codes,
    secrets: Sequence[AttackedSecret],
) -> tuple[list[Attack], list[Skipped]]:
    """Probabilistic adjusted count (Bella et al. 2010) and expectation maximisation (Saerens et al. 2002).

    A classifier for "counts for the secret" learns from the labelled public set. The first divides the
    mean answer on the release by the classifier's own, cross-validated; the second adapts the prior. On
    tweets sentence vectors came nearer than TF-IDF, whose classifiers change more from fold to whole.

    Args:
        released: (n', d) embeddings of the released texts.
        auxiliary: (N, d) embeddings of the public ones.
        auxiliary_codes: (N, m) their labels.
        secrets: what is asked for.
    """
    try:
        import matplotlib

        with matplotlib.rc_context():  # quapy sets the fonts of everybody's figures when it is imported
            from quapy.method.aggregative import EMQ, PACC
    except ImportError:
        return [], [Skipped("quantification", MISSING)]
    attacks, skipped = [], []
    for secret in secrets:
        rows = np.flatnonzero(labelled_rows(auxiliary_codes, secret.event))
        counts = event_mask(auxiliary_codes[rows], secret.event).astype(int)
        if min(counts.sum(), len(counts) - counts.sum()) < FOLDS:
            reason = f"{secret.title}: fewer than {FOLDS} auxiliary texts on one side"
            skipped.append(Skipped("quantification", reason))
            continue
        for name, quantifier in (
            ("adjusted count", PACC(_classifier(), val_split=FOLDS)),
            ("expectation maximisation", EMQ(_classifier())),
        ):
            with warnings.catch_warnings(), threadpool_limits(1):  # small matrices lose by threads
                warnings.simplefilter("ignore")
                prevalence = quantifier.fit(auxiliary[rows], counts).predict(released)
            attacks.append(secret.attacked("quantification", name, float(prevalence[1])))
    return attacks, skipped


def _classifier() -> LogisticRegression:
    return LogisticRegression(C=3, max_iter=1000)
