"""The share on target that a real judge finds, read and corrected, beside the true one.

    python tests/benchmarks/judged_shares.py FILE --columns Target,Stance,Sentiment [--text Tweet] [--n 300]

FILE is a CSV of labelled texts. In each repeat 1,870 rows are public and 40 % of them teach the evaluator of
a run (TF-IDF characters); the others tell how it errs. The targets of a release are the labels of n other
rows; its texts are these rows, but for a share of them another one whose labels differ in one attribute.
Prints for each true share the mean of what is read, of what is corrected, and how often the 90 % interval
holds the truth; and how often no headline is told, since the judge is not clearly better than chance.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from quantext_graph.audit.on_target import judgement
from quantext_graph.steps.classifier import TextClassifier

PUBLIC, LEARNED = 1_870, 748
SHARES = (0.5, 0.7, 0.9, 1.0)


def repeat(
    texts: list[str], codes: Any, sizes: list[int], n: int, rng: np.random.Generator
) -> list[tuple[float, Any]]:
    """(true share, judgement) of a release of each share."""
    order = rng.permutation(len(texts))
    learned, held, free = np.split(order, [LEARNED, PUBLIC])
    judge = TextClassifier.fit([texts[i] for i in learned], codes[learned], sizes, features="characters")
    known = judge.held_out([texts[i] for i in held], codes[held])
    found = []
    for share in SHARES:
        rows = rng.permutation(free)[:n]
        targets = codes[rows]
        for place in np.flatnonzero(rng.random(n) >= share):
            near = free[(codes[free] != targets[place]).sum(axis=1) == 1]
            rows[place] = rng.choice(near)
        read = judge.held_out([texts[i] for i in rows], codes[rows]).read
        names = [str(r) for r in range(len(sizes))]
        judged = judgement(read, targets, known, names, evaluator="it", rng=rng)
        found.append((float((targets == codes[rows]).all(axis=1).mean()), judged))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--columns", required=True)
    parser.add_argument("--text", default="Tweet")
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=20)
    asked = parser.parse_args()
    with asked.file.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = asked.columns.split(",")
    categories = [sorted({row[name] for row in rows}) for name in names]
    codes = np.array(
        [[c.index(row[name]) for name, c in zip(names, categories, strict=True)] for row in rows]
    )
    rng = np.random.default_rng(0)
    sizes = [len(each) for each in categories]
    made = [repeat([r[asked.text] for r in rows], codes, sizes, asked.n, rng) for _ in range(asked.repeats)]
    accuracy = np.mean([list(found[0][1].accuracy.values()) for found in made], axis=0)
    print("the judge is right on", ", ".join(f"{n} {a:.0%}" for n, a in zip(names, accuracy, strict=True)))
    for i in range(len(SHARES)):
        told = [(truth, judged) for truth, judged in (found[i] for found in made) if judged.corrected]
        if not told:
            print(f"share {SHARES[i]:.0%}: no headline in {len(made)} of {len(made)}")
            continue
        truth, read, corrected, width = (
            np.mean([each(true, judged) for true, judged in told])
            for each in (
                lambda true, _: true,
                lambda _, judged: judged.read_on_target,
                lambda _, judged: judged.corrected.share,
                lambda _, judged: judged.corrected.high - judged.corrected.low,
            )
        )
        held = np.mean([judged.corrected.low <= true <= judged.corrected.high for true, judged in told])
        silent = f"no headline in {len(made) - len(told)} of {len(made)}"
        print(
            f"true {truth:.0%}: read {read:.0%}, corrected {corrected:.0%} "
            f"(interval {100 * width:.0f} points wide, holds the truth in {held:.0%}); {silent}"
        )


if __name__ == "__main__":
    main()
