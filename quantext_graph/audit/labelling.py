"""The labelling attack: a chat model reads every text, one structured call for all attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from quantext_graph.audit.attacks import UNKNOWN, Attack, AttackedSecret, counting_attack
from quantext_graph.core.arrays import Codes
from quantext_graph.models.chat_model import ChatModel
from quantext_graph.spec.models import Spec
from quantext_graph.steps.examples import Examples
from quantext_graph.steps.questions import Questions

RAW_TEXTS = 200
"""Private texts that are labelled to measure the labeller's own bias."""


def label_texts(
    model: ChatModel,
    texts: Sequence[str],
    spec: Spec,
    progress: Callable[[str], None] = lambda _: None,
    *,
    which: str = "released",
) -> Codes:
    """(n, m) codes that the model reads off the texts; `UNKNOWN` where a call does not succeed."""
    order = range(len(spec.attributes))
    # No examples and no scores: what anybody can do with the released texts alone.
    questions = Questions(spec, model, Examples((), (), ()), (-1,) * len(order), scoring=False)

    def read(text: str) -> list[int]:
        scores = questions.ask(text, order).scores
        return [int(scores[i].argmax()) if i in scores else UNKNOWN for i in order]

    rows: list[list[int]] = []
    with ThreadPoolExecutor(spec.limits.concurrency) as pool:
        for row in pool.map(read, texts):
            rows.append(row)
            if len(rows) % 10 == 0:
                progress(f"{model.name} labelled {len(rows)} of {len(texts)} {which} texts")
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(order))


def labelling_attack(
    model: ChatModel,
    released: Sequence[str],
    private: Sequence[str],
    private_codes: Codes,
    spec: Spec,
    secrets: Sequence[AttackedSecret],
    *,
    rng: np.random.Generator | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[list[Attack], Codes]:
    """The attack by one model, with its bias on up to `RAW_TEXTS` private texts; also the labels it read.

    The model has passed the privacy guard: a remote one sees private texts only where the spec allows it.
    """
    rng = rng or np.random.default_rng()
    rows = np.sort(rng.choice(len(private), size=min(RAW_TEXTS, len(private)), replace=False))
    codes = label_texts(model, released, spec, progress)
    raw = label_texts(model, [private[row] for row in rows], spec, progress, which="private")
    return counting_attack(codes, secrets, by=model.name, raw=(raw, private_codes[rows])), codes
