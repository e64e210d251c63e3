"""How well the program's classifier labels public texts that it has not learned from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from quantext_graph.core.arrays import Codes
from quantext_graph.mechanism.label_errors import HeldOut
from quantext_graph.spec.models import Attribute, Spec
from quantext_graph.steps.public_rows import ENOUGH

if TYPE_CHECKING:
    from quantext_graph.steps.classifier import TextClassifier

MOST = 2_000
"""Public texts that a rehearsal learns from: a second of CPU."""


def rehearse(spec: Spec, texts: Sequence[str], codes: Codes) -> HeldOut | None:
    """What a run's classifier would take public texts for, as far as some of them and their words tell; None
    where it labels nothing. `texts` and their `codes` (N, m) are the auxiliary set."""
    if len(texts) < ENOUGH or not any(by_classifier(attribute) for attribute in spec.attributes):
        return None
    from quantext_graph.steps.classifier import TextClassifier  # most specs can be checked without

    rows = np.random.default_rng(0).permutation(len(texts))[:MOST]
    learned = TextClassifier.fit([texts[i] for i in rows], codes[rows], spec.sizes, features="words")
    return held_out(spec, codes[rows], learned)


def held_out(spec: Spec, codes: Codes, labeller: TextClassifier) -> HeldOut:
    """What `labeller` took the texts that it learned from, with codes (N, m), for while each was held out.
    The attributes that it does not label are right."""
    read = [by_classifier(attribute) for attribute in spec.attributes]
    return HeldOut(codes, np.where(read, labeller.predicted, codes))


def by_classifier(attribute: Attribute) -> bool:
    """Whether a classifier labels this attribute where there are public texts enough, alone or beside a
    model."""
    return not attribute.by_column and attribute.labels != "llm"
