"""Quantification attacks: prevalence estimators that correct their classifier's bias (QuaPy)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from quantext_graph.audit.attack_kinds import AttackKind, Found, Need
from quantext_graph.audit.attacks import Attack, AttackedSecret, Skipped, labelled_rows
from quantext_graph.audit.evidence import Evidence
from quantext_graph.core.arrays import Codes, Floats, event_mask

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

FOLDS = 10
MISSING = "needs the package QuaPy: pip install 'quantext-graph[audit]'"


class Quantification(AttackKind):
    """By estimators of a share that learned from the labelled public set."""

    name: ClassVar[str] = "quantification"
    title: ClassVar[str] = "Quantification"
    explanation: ClassVar[str] = (
        "A classifier learns the secret from the labelled public set; its count on the release is corrected "
        "for its own mistakes."
    )
    needs: ClassVar[tuple[Need, ...]] = ("auxiliary",)
    simulates: ClassVar[bool] = False  # it would learn from the very texts that are released
    shown: ClassVar[bool] = False

    def attack(self, evidence: Evidence) -> Found:
        assert evidence.auxiliary is not None
        released, auxiliary = evidence.embed(evidence.released), evidence.embed(evidence.auxiliary_texts)
        return quantification_attack(released, auxiliary, evidence.auxiliary, evidence.secrets)


def quantification_attack(
    released: Floats,
    auxiliary: Floats,
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
        return [], [Skipped(Quantification.name, MISSING)]
    attacks, skipped = [], []
    for secret in secrets:
        rows = np.flatnonzero(labelled_rows(auxiliary_codes, secret.event))
        counts = event_mask(auxiliary_codes[rows], secret.event).astype(int)
        if min(counts.sum(), len(counts) - counts.sum()) < FOLDS:
            reason = f"{secret.title}: fewer than {FOLDS} auxiliary texts on one side"
            skipped.append(Skipped(Quantification.name, reason))
            continue
        for name, quantifier in (
            ("adjusted count", PACC(_classifier(), val_split=FOLDS)),
            ("expectation maximisation", EMQ(_classifier())),
        ):
            with warnings.catch_warnings(), threadpool_limits(1):  # small matrices lose by threads
                warnings.simplefilter("ignore")
                prevalence = quantifier.fit(auxiliary[rows], counts).predict(released)
            attacks.append(secret.attacked(Quantification.name, name, float(prevalence[1])))
    return attacks, skipped


def _classifier() -> LogisticRegression:
    from sklearn.linear_model import LogisticRegression  # takes a second, and lists of attacks learn nothing

    return LogisticRegression(C=3, max_iter=1000)
