"""Figures of a real run: `python tests/benchmarks/real_release.py WORKSPACE --truth FILE`.

WORKSPACE is the private folder of a run; FILE holds the true labels of its records, row by row, in
columns called as the attributes are. Prints label accuracy, share on target after each attempt by the
evaluator, copies, fallbacks, CPU seconds a record, and every pair.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from quantext_graph.data.records import open_table
from quantext_graph.steps.texts import is_copy
from quantext_graph.workspace.folder import Workspace


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--truth", type=Path)
    arguments = parser.parse_args()
    opened = Workspace.open(arguments.workspace)
    spec, store = opened.spec, opened.store
    report, private = store.report(), store.private_report()
    assert report is not None
    names = [attribute.name for attribute in spec.attributes]
    n = store.n
    if arguments.truth:
        table = open_table(arguments.truth)
        places = [table.column(name) for name in names]
        truth = np.array(
            [
                [a.code(row.values[p] or "") for a, p in zip(spec.attributes, places, strict=True)]
                for row in table
            ]
        )
        right = (store.labels() == truth).mean(axis=0)
        print(
            "label accuracy:",
            {name: round(float(share), 3) for name, share in zip(names, right, strict=True)},
        )
    print("on target by the evaluator:", report.evaluation)
    print("after 1, 2 ... attempts:", private.on_target_after_attempts)
    pairs = list(store.pairs())
    print("on target by the verifier:", private.verified / n)
    print("copies of the source released:", sum(is_copy(pair.released, pair.text) for pair in pairs))
    print("fallbacks:", private.fallbacks, "failures:", private.failures)
    for stage, spent in private.seconds.items():
        print(f"{stage}: {spent.cpu / n:.1f} CPU s and {spent.wall / n:.1f} s a record")
    for row in private.usage:
        print(f"{row.step}: {row.calls / n:.1f} calls, {row.seconds / n:.1f} s waited a record")
    category = [attribute.category_names for attribute in spec.attributes]
    for pair, said in zip(pairs, store.meta("realised"), strict=True):
        labels, target, judged = (
            " / ".join(category[i][code] if code >= 0 else "?" for i, code in enumerate(codes))
            for codes in (pair.labels, pair.target, said)
        )
        print(f"\n#{pair.id} [{labels}] -> [{target}] verified={pair.verified} judged=[{judged}]")
        print("  before:", " ".join(pair.text.split()))
        print(
            "  kept:",
            pair.detail.snippets,
            "attempts:",
            len(pair.detail.attempts),
            "fallback:",
            pair.detail.fallback,
        )
        print("  after: ", " ".join(pair.released.split()))


if __name__ == "__main__":
    main()
