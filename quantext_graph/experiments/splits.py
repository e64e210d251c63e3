"""The records of an experiment, and how each repeat parts them into private and public ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from quantext_graph.core.arrays import Codes, Event, event_mask
from quantext_graph.data.records import read_source
from quantext_graph.experiments.baselines import Corpus
from quantext_graph.experiments.plan import Experiment
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Attribute, Source


@dataclass(frozen=True)
class Data:
    """All records: `pool` is parted in each repeat; `public` is the auxiliary file, where there is one."""

    pool: Corpus
    public: Corpus | None
    digest: str = field(repr=False)

    @classmethod
    def read(cls, experiment: Experiment) -> Data:
        """Read and check the files.

        Raises:
            QuantextError: a file or label that cannot be used, or too few records for the split.
        """
        columns = {attribute.name: str(attribute.column) for attribute in experiment.attributes}
        pool = _corpus(experiment.data, experiment.attributes, columns)
        public = None
        if experiment.auxiliary is not None:
            public = _corpus(experiment.auxiliary, experiment.attributes, experiment.spec.auxiliary_columns)
        split = experiment.split
        needed = split.private + (0 if public is not None else split.auxiliary)
        if needed > len(pool):
            raise QuantextError(
                f"{experiment.data.path}: {len(pool)} records, the split asks for {needed}; "
                "lower split.private or split.auxiliary, or give --rows"
            )
        return cls(pool, public, _digest([pool, *([public] if public else [])]))

    def part(self, experiment: Experiment, scenario: int, repeat: int) -> tuple[Corpus, Corpus]:
        """The private and the public records of one repeat. The public ones do not depend on the
        scenario's share; the private ones of a share are drawn from the rest.

        Raises:
            QuantextError: where a share cannot be had of the records there are.
        """
        split = experiment.split
        rng = np.random.default_rng([experiment.seed, repeat])
        order = rng.permutation(len(self.pool))
        taken = 0 if self.public is not None else split.auxiliary
        public = self.public or _rows(self.pool, order[:taken])
        rest = order[taken:]
        if split.shares:
            share = split.shares[scenario]
            wanted = share if isinstance(share, float | int) else rng.uniform(share[0], share[1])
            event = experiment.spec.secret_codes(experiment.secrets[0])
            rest = _with_share(self.pool.codes, rest, event, float(wanted), split.private, rng)
        return _rows(self.pool, rest[: split.private]), public


def _with_share(
    codes: Codes,
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    event: Event,
    share: float,
    n: int,
    rng: np.random.Generator,
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    inside = event_mask(codes[rows], event)
    counts = round(share * n), n - round(share * n)
    if counts[0] > inside.sum() or counts[1] > (~inside).sum():
        raise QuantextError(
            f"split.shares: {n} private records with a share of {share:.3g} cannot be drawn from "
            f"{inside.sum()} that count for the secret and {(~inside).sum()} that do not; lower split.private"
        )
    chosen = np.concatenate([rows[inside][: counts[0]], rows[~inside][: counts[1]]])
    return rng.permutation(chosen)


def _rows(corpus: Corpus, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Corpus:
    return Corpus([corpus.texts[row] for row in rows.tolist()], corpus.codes[rows])


def _corpus(source: Source, attributes: Sequence[Attribute], columns: dict[str, str]) -> Corpus:
    texts, codes = [], []
    for record in read_source(source, attributes, columns=columns, on_missing="drop"):
        texts.append(record.text)
        codes.append([record.labels[r] for r in range(len(attributes))])
    return Corpus(texts, np.array(codes, dtype=np.int64))


def _digest(corpora: Sequence[Corpus]) -> str:
    found = hashlib.sha256()
    for corpus in corpora:
        for text in corpus.texts:
            found.update(text.encode("utf-8", "surrogatepass") + b"\0")
        found.update(corpus.codes.tobytes())
    return found.hexdigest()
