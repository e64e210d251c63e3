"""A chat model reads every text, one structured call for all attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from quantext_graph.audit.attacks import UNKNOWN
from quantext_graph.audit.evidence import Reading
from quantext_graph.audit.inputs import AuditInputs
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
        scores = questions.weigh(text, order).scores
        return [int(scores[i].argmax()) if i in scores else UNKNOWN for i in order]

    rows: list[list[int]] = []
    with ThreadPoolExecutor(spec.limits.concurrency) as pool:
        for row in pool.map(read, texts):
            rows.append(row)
            if len(rows) % 10 == 0:
                progress(f"{model.name} labelled {len(rows)} of {len(texts)} {which} texts")
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(order))


def read_release(
    model: ChatModel,
    inputs: AuditInputs,
    spec: Spec,
    *,
    rng: np.random.Generator,
    progress: Callable[[str], None] = lambda _: None,
) -> Reading:
    """What the model reads off a release, and off up to `RAW_TEXTS` private texts.

    The model has passed the privacy guard: a remote one sees private texts only where the spec allows it.
    """
    n = len(inputs.private_texts)
    rows = np.sort(rng.choice(n, size=min(RAW_TEXTS, n), replace=False))
    codes = label_texts(model, inputs.released_texts, spec, progress)
    private = [inputs.private_texts[row] for row in rows]
    raw = label_texts(model, private, spec, progress, which="private")
    return Reading(model.name, codes, (raw, inputs.private_codes[rows]))
