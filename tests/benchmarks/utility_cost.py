"""What KNN precision and recall and FID cost in CPU time and memory, beside the dense way at a small n.

    python tests/benchmarks/utility_cost.py [--n 100000]

Both corpora are n points of norm 1 in 256 dimensions (as wordllama gives), around 200 common centres.
The dense way holds the three n×n matrices of distances at once.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

sys.path.insert(0, str(Path(__file__).parents[1]))

from memory import peak_mb

from quantext_graph.audit.utility import frechet_distance, knn_precision_recall, unit_norm

DENSE_AT = 4_000


def corpora(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    centres = rng.standard_normal((200, 256))
    return tuple(
        unit_norm(centres[rng.integers(200, size=n)] + rng.standard_normal((n, 256))) for _ in range(2)
    )  # type: ignore[return-value]


def dense(private: Any, released: Any, k: int = 3) -> tuple[float, float]:
    """Precision and recall by their definition."""
    within = [np.sort(cdist(points, points), axis=1)[:, k] for points in (private, released)]
    between = cdist(released, private)
    precise = (between <= within[0][None]).any(axis=1).mean()
    return float(precise), float((between <= within[1][:, None]).any(axis=0).mean())


def cpu(work: Callable[[], Any]) -> tuple[Any, float]:
    before = time.process_time()
    return work(), time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=100_000)
    rng = np.random.default_rng(0)
    small = corpora(DENSE_AT, rng)
    expected, by_definition = cpu(lambda: dense(*small))
    found, by_blocks = cpu(lambda: knn_precision_recall(*small))
    assert np.allclose(found, expected)
    print(f"n = {DENSE_AT:,}: dense {by_definition:.1f} CPU s, by blocks {by_blocks:.1f} CPU s, same answer")
    n = parser.parse_args().n
    large = corpora(n, rng)
    found, neighbours = cpu(lambda: knn_precision_recall(*large))
    fid, distance = cpu(lambda: frechet_distance(*large))
    print(f"n = {n:,}: precision {found.precision:.3f}, recall {found.recall:.3f}, FID {fid:.4f}")
    memory = f"{peak_mb() / 1024:.2f} GiB at most"
    print(f"  neighbours {neighbours:.0f} CPU s, FID {distance:.1f} CPU s, {memory}")


if __name__ == "__main__":
    main()
