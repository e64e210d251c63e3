"""What the classifier costs in the labelling pass when it reads texts by the dozen, as a ratio in one run.

    python tests/benchmarks/test_labelling_cost.py --data DIR

prints the same for 3,000 real tweets (DIR holds stance/tweet.csv), the whole pass with its store beside it.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from instant import instant_model

from quantext_graph.graph.workers import ahead, run_pass, work
from quantext_graph.spec.loading import parse_spec
from quantext_graph.steps.context import Kit, prepare
from quantext_graph.steps.label import label
from quantext_graph.workspace.records import StoredRecord
from quantext_graph.workspace.store import Store


def kit_of(names: dict[str, list[str]], rows: Sequence[tuple[str, tuple[int, ...]]]) -> Kit:
    """A kit whose classifier alone labels, over a model of no latency that it never asks."""
    attributes = [{"name": k, "categories": v, "labels": "classifier"} for k, v in names.items()]
    spec = parse_spec({"data": {"path": "none.csv"}, "attributes": attributes})
    model = instant_model(spec)
    return prepare(spec, list(rows), model, model)


def one_by_one(kit: Kit, records: Sequence[StoredRecord]) -> list[Any]:
    """As it was: every worker asks the classifier for its own record."""
    return [label(kit, record.text, record.known) for record in records]


def by_the_dozen(kit: Kit, records: Sequence[StoredRecord]) -> list[Any]:
    return [label(kit, r.text, r.known, learned) for r, learned in ahead("label", kit, records)]


def cpu(step: Callable[..., Any], *given: Any) -> float:
    before = time.process_time()
    step(*given)
    return time.process_time() - before


@pytest.mark.benchmark
def test_by_the_dozen_labelling_takes_less_than_half_of_the_cpu() -> None:
    rng = np.random.default_rng(0)
    words = [f"{a}{b}{c}a" for a in "bdfgklmnprst" for b in "aeiou" for c in "dlmnrst"]

    def text(code: int) -> str:
        own = words[code * 100 : code * 100 + 100]
        return " ".join([*rng.choice(own, 6), *rng.choice(words, 14)])

    rows = [(text(i % 3), (i % 3, i % 2)) for i in range(400)]
    kit = kit_of({"topic": ["a", "b", "c"], "mood": ["d", "e"]}, rows)
    records = [StoredRecord(i, i, text(i % 3), {}) for i in range(600)]
    alone, together = (min(cpu(way, kit, records) for _ in range(3)) for way in (one_by_one, by_the_dozen))
    assert together < 0.5 * alone, (together, alone)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    with (data / "stance/tweet.csv").open(encoding="utf-8-sig", newline="") as file:
        tweets = list(csv.DictReader(file))
    names = {column: sorted({row[column] for row in tweets}) for column in ("Target", "Stance", "Sentiment")}
    kit = kit_of(
        names, [(row["Tweet"], tuple(v.index(row[k]) for k, v in names.items())) for row in tweets[3000:]]
    )
    records = [StoredRecord(i, i, row["Tweet"], {}) for i, row in enumerate(tweets[:3000], 1)]
    alone, together = (cpu(way, kit, records) for way in (one_by_one, by_the_dozen))
    print(f"labels of 3,000 tweets: {alone:.2f} CPU s one by one, {together:.2f} by the dozen")
    print(f"a ratio of {alone / together:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store.sqlite")
        store.create()
        store.ingest((record.row, record.text, {}) for record in records)

        def keep(result: Any) -> None:
            record, labels = result
            store.put_labels(record.id, labels.codes, labels.confidence)

        def whole() -> None:
            run_pass(
                ahead("label", kit, store.unlabelled()),
                work("label", kit),
                keep,
                workers=8,
                stop=lambda: False,
            )

        print(f"the whole pass: {cpu(whole):.2f} CPU s with threads and store")
        store.close()


if __name__ == "__main__":
    main()
