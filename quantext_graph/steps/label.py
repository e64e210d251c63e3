"""Alg. 1 line 1: the category of each attribute, by the LLM, by a classifier, or by both summed.

Their log-probabilities are summed, the LLM's with less weight: on real posts that is better than either.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from quantext_graph.models.chat_model import Outcome, Usage
from quantext_graph.steps.context import Kit
from quantext_graph.steps.questions import SURE, Scores


@dataclass(frozen=True)
class Labels:
    """One category code for each attribute and the probability given to it. Where a model failed
    (`outcome`, `reason`), the codes come from what is left: the classifier, else chance."""

    codes: tuple[int, ...]
    confidence: tuple[float, ...]
    outcome: Outcome = Outcome.OK
    reason: str = ""
    usage: Usage = field(default_factory=Usage)


def label(kit: Kit, text: str, known: Mapping[int, int] | None = None) -> Labels:
    """Label one record; `known` holds the codes that a column gives."""
    codes = dict(known or {})
    confidence = dict.fromkeys(codes, 1.0)
    learned = _learned(kit, text, codes)
    for i, scores in learned.items():
        if kit.modes[i] == "classifier" or scores.max() > np.log(SURE):
            codes[i], confidence[i] = int(scores.argmax()), float(np.exp(scores.max()))
    asked = [i for i in kit.order if i not in codes]
    answer = kit.questions.weigh(text, asked, codes, learned)
    for i in asked:
        found = answer.scores[i] if i in answer.scores else learned.get(i)
        codes[i], confidence[i] = _decide(found, kit.spec.sizes[i])
    order = range(len(kit.spec.attributes))
    return Labels(
        tuple(codes[i] for i in order),
        tuple(confidence[i] for i in order),
        answer.outcome,
        answer.reason,
        answer.usage,
    )


def _learned(kit: Kit, text: str, known: Mapping[int, int]) -> dict[int, Scores]:
    wanted = [i for i, mode in enumerate(kit.modes) if mode in ("classifier", "both") and i not in known]
    if kit.labeller is None or not wanted:
        return {}
    found = kit.labeller.log_probabilities([text])
    return {i: found[i][0] for i in wanted}


def _decide(scores: Scores | None, size: int) -> tuple[int, float]:
    if scores is None:
        return secrets.randbelow(size), 1.0 / size
    p = np.exp(scores - scores.max())
    return int(scores.argmax()), float(p.max() / p.sum())
