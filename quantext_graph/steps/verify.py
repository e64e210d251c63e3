"""Whether a new text says what its target says, and is nobody's copy.

The classifier judges first, at no cost; the LLM is asked only where the classifier neither rules a text
out nor is sure of it, and the sum of both decides. The evaluator judges the finished release: it took
no part in picking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from quantext_graph.models.chat_model import Outcome, Usage
from quantext_graph.steps.context import Kit
from quantext_graph.steps.questions import SURE, Scores
from quantext_graph.steps.texts import folded, is_copy, is_essay, is_refusal, shares_run, words
from quantext_graph.steps.wording import spec_words

_HOPELESS = float(np.log(0.05))
"""Log-probability below which the picker's word on an attribute is final."""

_TOLD = 3.0
"""What a candidate that tells all of its note has ahead (nats) of one that tells nothing of it."""


@dataclass(frozen=True)
class Verdict:
    """`failures` names attributes that are off target, or "empty", "refusal", "essay", "copy",
    "example", "spec" (its words alone), or the outcome of a call that failed. `score` orders texts of one
    record. A text that is not `publishable` must not leave, whatever else happens."""

    on_target: bool
    publishable: bool
    labels: tuple[int, ...]
    failures: tuple[str, ...]
    score: float
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Evaluation:
    """What texts say according to the evaluator: `codes` (n, m), -1 where it could not tell."""

    codes: np.ndarray
    evaluator: str
    usage: Usage = field(default_factory=Usage)


def verify(kit: Kit, text: str, target: Sequence[int], *, source: str = "") -> Verdict:
    """Judge one new text of the record whose text is `source`."""
    faults = _faults(kit, text, tuple(target), source)
    if faults:
        return Verdict(False, False, (), faults, float("-inf"))
    return judge(kit, text, target)


def judge(kit: Kit, text: str, target: Sequence[int]) -> Verdict:
    """What a text says against what it should say; no look at where it came from."""
    prior = picked(kit, [text])[0]
    if any(prior[i][target[i]] < _HOPELESS for i in prior):
        return _verdict(kit, prior, target, Usage())
    doubtful = [i for i in kit.order if i not in prior or prior[i][target[i]] < np.log(SURE)]
    answer = kit.questions.weigh(text, doubtful, dict(enumerate(target)), prior)
    if answer.outcome is not Outcome.OK and not prior:
        return Verdict(False, True, (), (str(answer.outcome),), float("-inf"), answer.usage)
    return _verdict(kit, {**prior, **answer.scores}, target, answer.usage)


def rank(kit: Kit, texts: Sequence[str], target: Sequence[int], note: str = "") -> tuple[str, Usage]:
    """The best of several candidates: by the picker and by how much of `note` it tells, else by the LLM,
    asked until one is on target."""
    fit = [text for text in texts if not _faults(kit, text, tuple(target), "")] or list(texts)
    if len(fit) == 1:
        return fit[0], Usage()
    told = [_TOLD * _kept(note, text) for text in fit]
    if kit.picker is not None:
        scores = [_joint(scores, target) for scores in picked(kit, fit)]
        return fit[int(np.argmax(np.add(scores, told)))], Usage()
    best, best_score, usage = fit[0], float("-inf"), Usage()
    for text, more in zip(fit, told, strict=True):
        verdict = judge(kit, text, target)
        usage += verdict.usage
        if verdict.score + more > best_score:
            best, best_score = text, verdict.score + more
        if verdict.on_target:
            break
    return best, usage


def _kept(note: str, text: str) -> float:
    """Share of a note's words that a text tells, of those longer than three letters."""
    wanted = {word for word in words(note) if len(word) > 3}
    return len(wanted & set(words(text))) / len(wanted) if wanted else 1.0


def picked(kit: Kit, texts: Sequence[str]) -> list[dict[int, Scores]]:
    """The picker's log-probabilities for each text, every category taken as equally common: a target
    is no less likely for being rare in the auxiliary set."""
    if kit.picker is None:
        return [{} for _ in texts]
    found = kit.picker.log_probabilities(texts, even=True)
    return [{i: values[row] for i, values in enumerate(found)} for row in range(len(texts))]


def evaluate(kit: Kit, texts: Sequence[str]) -> Evaluation:
    """Label finished texts by the evaluator; without an auxiliary set the verifying model does it."""
    if kit.evaluator is not None:
        found = kit.evaluator.log_probabilities(texts)
        codes = np.stack([values.argmax(axis=1) for values in found], axis=1)
        return Evaluation(codes, "a classifier trained on auxiliary rows that took no part in picking")
    codes, usage = np.full((len(texts), len(kit.spec.attributes)), -1, dtype=np.int64), Usage()
    for row, text in enumerate(texts):
        answer = kit.questions.weigh(text, kit.order)
        usage += answer.usage
        for i, scores in answer.scores.items():
            codes[row, i] = int(scores.argmax())
    return Evaluation(codes, f"{kit.verify.name}, which took part in picking", usage)


def _faults(kit: Kit, text: str, target: tuple[int, ...], source: str) -> tuple[str, ...]:
    """What makes a text unfit whatever it says."""
    if not words(text):
        return ("empty",)
    faults = [name for name, found in (("refusal", is_refusal(text)), ("essay", is_essay(text))) if found]
    if folded(text) == folded(spec_words(kit.spec, target)):
        faults.append("spec")
    if source and is_copy(text, source):
        faults.append("copy")
    shown = (text for _, text in kit.examples.gapped(target, kit.telling.neutral, kit.passage_words))
    if any(shares_run(text, other) for other in (*shown, *kit.openings.bank(target))):
        faults.append("example")
    return tuple(faults)


def _joint(scores: Mapping[int, Scores], target: Sequence[int]) -> float:
    return float(sum(values[target[i]] for i, values in scores.items()))


def _verdict(kit: Kit, scores: Mapping[int, Scores], target: Sequence[int], usage: Usage) -> Verdict:
    normal = {i: values - np.logaddexp.reduce(values) for i, values in scores.items()}
    names = [attribute.name for attribute in kit.spec.attributes]
    labels = {i: int(values.argmax()) for i, values in normal.items()}
    failures = tuple(names[i] for i, code in enumerate(target) if labels.get(i, -1) != code)
    found = tuple(labels.get(i, -1) for i in range(len(target)))
    return Verdict(not failures, True, found, failures, _joint(normal, target), usage)
