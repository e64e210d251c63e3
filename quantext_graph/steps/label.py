"""Alg. 1 line 1: the category of each attribute, by the LLM, by a classifier, or by both summed.

Their log-probabilities are summed, the LLM's with less weight: on real posts that is better than either.
Labels that neither is sure of are in doubt, and so are those on which the two differ.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from quantext_graph.models.chat_model import Outcome, Usage
from quantext_graph.steps.context import Kit
from quantext_graph.steps.questions import SURE, Scores, alone

Learned = Mapping[int, Scores]
"""The classifier's log-probabilities (nats) for one text, by attribute."""

_AT_ONCE = 64
"""Texts that the classifier reads together: one by one each costs it six times as much."""


class Text(Protocol):
    """What has a text, such as a record of the store."""

    @property
    def text(self) -> str: ...


Record = TypeVar("Record", bound=Text)


@dataclass(frozen=True)
class Labels:
    """One category code for each attribute and the probability given to it; where classifier and model name
    different categories, by the one of them that believes in it less. Where a model failed (`outcome`,
    `reason`), the codes come from what is left: the classifier, else chance."""

    codes: tuple[int, ...]
    confidence: tuple[float, ...]
    outcome: Outcome = Outcome.OK
    reason: str = ""
    usage: Usage = field(default_factory=Usage)


def label(
    kit: Kit, text: str, known: Mapping[int, int] | None = None, learned: Learned | None = None
) -> Labels:
    """Label one record; `known` holds the codes that a column gives, `learned` what `read_ahead` found."""
    codes = dict(known or {})
    confidence = dict.fromkeys(codes, 1.0)
    found = learned if learned is not None else learn(kit, [text])[0]
    learned = {i: scores for i, scores in found.items() if i not in codes}
    for i, scores in learned.items():
        if kit.modes[i] == "classifier" or scores.max() > np.log(SURE):
            codes[i], confidence[i] = int(scores.argmax()), float(np.exp(scores.max()))
    asked = [i for i in kit.order if i not in codes]
    answer = kit.questions.weigh(text, asked, codes, learned)
    for i in asked:
        if i in answer.scores:
            codes[i], confidence[i] = _decide(answer.scores[i], learned.get(i))
        elif i in learned:
            codes[i], confidence[i] = _decide(learned[i], None)
        else:
            size = kit.spec.sizes[i]
            codes[i], confidence[i] = secrets.randbelow(size), 1.0 / size
    order = range(len(kit.spec.attributes))
    return Labels(
        tuple(codes[i] for i in order),
        tuple(confidence[i] for i in order),
        answer.outcome,
        answer.reason,
        answer.usage,
    )


def learn(kit: Kit, texts: Sequence[str]) -> list[Learned]:
    """What the classifier makes of each text: the attributes that it labels, alone or beside the LLM."""
    wanted = _learnable(kit)
    if kit.labeller is None or not wanted:
        return [{} for _ in texts]
    found = kit.labeller.log_probabilities(texts)
    return [{i: found[i][row] for i in wanted} for row in range(len(texts))]


def read_ahead(kit: Kit, records: Iterable[Record]) -> Iterator[tuple[Record, Learned]]:
    """Records with what the classifier makes of them, a few dozen read at a time."""
    source = iter(records)
    while chunk := list(islice(source, _AT_ONCE)):
        yield from zip(chunk, learn(kit, [record.text for record in chunk]), strict=True)


def in_doubt(kit: Kit, confidence: NDArray[np.float64], share: float) -> NDArray[np.bool_]:
    """Which of n records have labels in doubt, (n,).

    A record is in doubt where the product of its confidences, over the attributes that the secrets name and
    that the program reads itself, is below that of all but `share` of the public texts while those were held
    out. Columns are never in doubt, nor what a model labels alone: no public text says how often it errs.

    Args:
        confidence: (n, m), of the labels of the private records.
        share: of the public texts, those whose labels count as doubtful.
    """
    named = {i for secret in kit.spec.secrets for i in kit.spec.secret_codes(secret)}
    read = [i for i in _learnable(kit) if i in named or not named]
    if kit.labeller is None or not read or share <= 0:
        return np.zeros(len(confidence), dtype=bool)
    least = np.quantile(kit.labeller.confidence[:, read].prod(axis=1), share)
    doubtful: NDArray[np.bool_] = confidence[:, read].prod(axis=1) < least
    return doubtful


def _learnable(kit: Kit) -> list[int]:
    return [i for i, mode in enumerate(kit.modes) if mode in ("classifier", "both")]


def _decide(scores: Scores, prior: Scores | None) -> tuple[int, float]:
    code = int(scores.argmax())
    believed = [scores]
    if prior is not None and alone(scores, prior).argmax() != prior.argmax():
        believed = [alone(scores, prior), prior]
    return code, min(float(np.exp(each[code] - np.logaddexp.reduce(each))) for each in believed)
