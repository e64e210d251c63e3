"""A million records from labels to matched targets by the joint rule, beside the per-component rule."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}

PROGRAM = """
import json, time
import numpy as np
from memory import peak_mb
from quantext_graph.core.quantize import quantize

rng = np.random.default_rng(0)
sizes = (6, 3, 3)
combos = np.indices(sizes).reshape(3, -1).T
shares = rng.dirichlet(np.ones(len(combos)))
labels = combos[rng.choice(len(combos), size=1_000_000, p=shares)]
auxiliary = combos[rng.choice(len(combos), size=20_000, p=shares)]
figures = {}
for name, mechanism in {
    "warm": {"pool_size": 1000},
    "per_component": {"selection": "per_component", "pool": "dirichlet", "targets": "iid"},
    "joint": {"pool_size": 200_000, "spread": 0.3, "budget_nats": 1.0},
}.items():
    before = time.process_time()
    quantize(labels, sizes, auxiliary=auxiliary, secrets=[{0: [1]}], **mechanism)
    figures[name] = time.process_time() - before
figures["peak_mb"] = peak_mb()
print(json.dumps(figures))
"""


@pytest.mark.benchmark
def test_a_pool_of_two_hundred_thousand_costs_a_few_times_the_papers_rule():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    figures = json.loads(done.stdout)
    assert figures["joint"] < 6 * figures["per_component"], figures
    assert figures["peak_mb"] < 1500, figures
