"""The public auxiliary set: the tree and the candidates are learned from it, never from private data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from quantext_graph.core.arrays import Codes
from quantext_graph.data.records import Record, read_source
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Spec


class Auxiliary(NamedTuple):
    """The auxiliary set of a spec: N `texts`, their category `codes` (N, m); empty where it has none."""

    texts: list[str]
    codes: Codes


def read_auxiliary(spec: Spec) -> Auxiliary:
    """Read the auxiliary set of a spec.

    Rows that lack a text or a label are left out: the set is public, nothing is owed to n.

    Raises:
        QuantextError: where no row has a text and every label.
        RecordsError: where the file cannot be read, or holds unknown categories.
    """
    source, m = spec.auxiliary, len(spec.sizes)
    if source is None:
        return Auxiliary([], np.empty((0, m), dtype=np.int64))
    texts: list[str] = []
    codes: list[list[int]] = []
    for record in read_source(source, spec.attributes, columns=spec.auxiliary_columns, on_missing="drop"):
        texts.append(record.text)
        codes.append([record.labels[i] for i in range(m)])
    if not texts:
        raise QuantextError(f"{source.path}: no row has a text and every label; check auxiliary.columns")
    return Auxiliary(texts, np.array(codes, dtype=np.int64))


def refuse_private_auxiliary(spec: Spec, private: Iterable[Record], auxiliary: Iterable[str]) -> None:
    """The tree and the candidates never see private data, so the auxiliary set must not be it.

    Raises:
        QuantextError: where more than half of the private texts stand in the auxiliary set.
    """
    public = {" ".join(text.split()) for text in auxiliary}
    if spec.auxiliary is None or not public:
        return
    n = shared = 0
    for record in private:
        n += 1
        shared += " ".join(record.text.split()) in public
    if 2 * shared > n:
        raise QuantextError(
            f"{spec.auxiliary.path}: {shared} of the {n} private texts stand in the auxiliary set; "
            "it must be public and apart from the private set, so name another"
        )
