"""What an attack is given: the release, what was read off it, and what is public of how it came about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from langchain_core.embeddings import Embeddings

from quantext_graph.audit.attacks import AttackedSecret
from quantext_graph.audit.inputs import Draw
from quantext_graph.audit.utility import unit_norm
from quantext_graph.core.arrays import Codes, Floats


@dataclass(frozen=True)
class Reading:
    """The labels that somebody read off texts, `UNKNOWN` where none could be had.

    `codes` (n', m) are of the released texts. `raw` are the same reader's labels of some private texts
    beside their true ones: the difference of the shares is the reader's own bias, without which its
    error cannot be read.
    """

    by: str
    codes: Codes = field(repr=False)
    raw: tuple[Codes, Codes] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Pairs:
    """n' released texts, (n', m) what each was written for, and (n', m) labels of the record each was made
    of, `UNKNOWN` where there is none."""

    texts: Sequence[str] = field(repr=False)
    targets: Codes = field(repr=False)
    original: Codes = field(repr=False)


def _no_points(texts: Sequence[str]) -> Floats:
    raise ValueError(f"there is no embedding to place {len(texts)} texts by")


@dataclass(frozen=True)
class Evidence:
    """A release as attackers see it, and the truth to measure them by; what is None is not known.

    What is of the private records (the truth of a secret, `Reading.raw`, `Pairs.original`) says how near
    an attack came; an honest attack does not use it. `known_labels` (n', m) are those of the released
    texts where the method that made them tells them itself. `embed` gives (n, d) unit vectors.
    """

    secrets: Sequence[AttackedSecret]
    attributes: Sequence[str]
    n: int
    released: Sequence[str] = field(default=(), repr=False)
    readings: Sequence[Reading] = ()
    auxiliary_texts: Sequence[str] = field(default=(), repr=False)
    auxiliary: Codes | None = field(default=None, repr=False)
    draw: Draw | None = field(default=None, repr=False)
    known_labels: Codes | None = field(default=None, repr=False)
    pairs: Pairs | None = field(default=None, repr=False)
    embed: Callable[[Sequence[str]], Floats] = field(default=_no_points, repr=False)
    rng: np.random.Generator = field(default_factory=np.random.default_rng, repr=False)


class Points:
    """(n, d) unit embeddings, each text embedded once."""

    def __init__(self, embedding: Embeddings) -> None:
        self._embedding = embedding
        self._rows: dict[str, int] = {}
        self._points: Floats = np.empty((0, 0))

    def __call__(self, texts: Sequence[str]) -> Floats:
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if new:
            found = unit_norm(self._embedding.embed_documents(new))
            self._rows |= {text: len(self._rows) + i for i, text in enumerate(new)}
            self._points = np.concatenate([self._points, found]) if len(self._points) else found
        rows: Floats = self._points[[self._rows[text] for text in texts]]
        return rows
