"""What fidelity, downstream use and the share on target cost in CPU time and memory.

    python tests/benchmarks/fidelity_cost.py [--n 20000]

Records are 25 invented words, the released text of each three quarters of them; three attributes of 3, 4
and 5 categories can be read off.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from memory import peak_mb

from quantext_graph.audit.downstream import downstream_use
from quantext_graph.audit.evidence import Points
from quantext_graph.audit.fidelity import fidelity
from quantext_graph.audit.inputs import AuditInputs, Pair
from quantext_graph.audit.on_target import judgement
from quantext_graph.models.embeddings import WordLlamaEmbeddings
from quantext_graph.spec.loading import parse_spec

SIZES = (3, 4, 5)
WORDS = 25


def corpus(n: int, rng: np.random.Generator) -> tuple[np.ndarray, list[str]]:
    """(n, 3) codes and texts that hold a word of each category."""
    codes = np.column_stack([rng.integers(size, size=n) for size in SIZES])
    words = np.array([f"w{i}" for i in range(20_000)])
    drawn = words[np.minimum(rng.zipf(1.3, (n, WORDS - len(SIZES))), len(words)) - 1]
    told = [[f"a{r}c{code}" for r, code in enumerate(row)] for row in codes.tolist()]
    return codes, [" ".join([*row, *names]) for row, names in zip(drawn.tolist(), told, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=20_000)
    n = parser.parse_args().n
    rng = np.random.default_rng(0)
    codes, before = corpus(n, rng)
    public, public_texts = corpus(2_000, rng)
    after = [" ".join(word for word in text.split() if rng.random() < 0.75) for text in before]
    pairs = [
        Pair(b, a, tuple(row), tuple(row)) for b, a, row in zip(before, after, codes.tolist(), strict=True)
    ]
    names = [f"a{r}" for r in range(len(SIZES))]
    spec = parse_spec(
        {
            "data": {"path": "none.csv"},
            "attributes": [
                {"name": name, "categories": [f"c{c}" for c in range(size)]}
                for name, size in zip(names, SIZES, strict=True)
            ],
        }
    )
    inputs = AuditInputs(
        before, codes, after, codes, pairs=pairs, auxiliary_texts=public_texts, auxiliary_codes=public
    )
    points = Points(WordLlamaEmbeddings())
    for name, work in {
        "embeddings": lambda: points([*before, *after]),
        "fidelity": lambda: fidelity(inputs, points, rng),
        "downstream use": lambda: downstream_use(inputs, spec, rng),
        "share on target": lambda: judgement(codes, codes, (public, public), names, evaluator="it", rng=rng),
    }.items():
        started = time.process_time()
        work()
        print(f"n = {n:,}: {name} {time.process_time() - started:.1f} CPU s, {peak_mb():.0f} MB at most")


if __name__ == "__main__":
    main()
