"""Who reads the texts: chat models, or the readers of a simulation. A text is read once by each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from quantext_graph.audit.labelling import label_texts
from quantext_graph.core.arrays import Codes
from quantext_graph.experiments.baselines import Corpus
from quantext_graph.experiments.baselines.kept import Kept
from quantext_graph.models.chat_model import ChatModel
from quantext_graph.spec.models import ModelSpec, Spec
from quantext_graph.steps.classifier import TextClassifier
from quantext_graph.steps.questions import label_instruction

GROUP = 16
"""Texts that a model reads before what it said is kept."""


class Reader(Protocol):
    """Reads category codes (n, m) off texts."""

    @property
    def name(self) -> str: ...

    def read(self, texts: Sequence[str]) -> Codes: ...


@dataclass(frozen=True)
class Recalled:
    """A reader that has read every text there is: a simulation releases no others."""

    name: str
    said: dict[str, tuple[int, ...]] = field(repr=False)

    def read(self, texts: Sequence[str]) -> Codes:
        return np.array([self.said[text] for text in texts], dtype=np.int64)


def simulated_reader(name: str, corpora: Sequence[Corpus], sizes: Sequence[int]) -> Recalled:
    """`true labels`, or a classifier on `words` or `characters` with the labels it gives each text while
    that text is held out: an attacker with a real reader's mistakes, the same at every reading."""
    texts = [text for corpus in corpora for text in corpus.texts]
    codes = np.concatenate([corpus.codes for corpus in corpora])
    if name == "words":
        codes = TextClassifier.fit(texts, codes, sizes, features="words").predicted
    elif name == "characters":
        codes = TextClassifier.fit(texts, codes, sizes, features="characters").predicted
    return Recalled(name, dict(zip(texts, map(tuple, codes.tolist()), strict=True)))


@dataclass
class ModelReader:
    """A chat model; what it said of a text is kept, so that it is asked once."""

    model: ChatModel
    reference: ModelSpec
    spec: Spec
    kept: Kept
    progress: Callable[[str, int, int], None]

    @property
    def name(self) -> str:
        return self.model.name

    def read(self, texts: Sequence[str]) -> Codes:
        keys = [self._key(text) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self.kept}
        asked = list(new.items())
        for start in range(0, len(asked), GROUP):
            self.progress(f"read by {self.name}", start, len(asked))
            some = asked[start : start + GROUP]
            codes = label_texts(self.model, [text for _, text in some], self.spec)
            for (key, _), row in zip(some, codes.tolist(), strict=True):
                self.kept.put(key, row)
        return np.array([self.kept.get(key) for key in keys], dtype=np.int64)

    def _key(self, text: str) -> str:
        asked = label_instruction(self.spec, range(len(self.spec.attributes)))
        whole = f"{self.reference.model_dump_json()}\0{asked}\0{text}"
        return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()
