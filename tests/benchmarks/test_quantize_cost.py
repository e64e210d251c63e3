"""A million records from labels to matched targets by the joint rule, beside the per-component rule."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from quantext_graph.graph.quantize_node import draw_by_tool
from quantext_graph.mechanism.draw import quantize_records
from quantext_graph.spec.loading import parse_spec

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


@pytest.mark.benchmark
def test_the_draw_as_a_tool_call_costs_what_the_draw_costs():
    rng = np.random.default_rng(0)
    attributes = [{"name": name, "categories": list("abcde")[:size]} for name, size in (("A", 5), ("B", 3))]
    where = [{"where": {"A": "a"}}]
    spec = parse_spec({"data": {"path": "posts.csv"}, "attributes": attributes, "secrets": where})
    labels, auxiliary = (rng.integers([5, 3], size=(n, 2)) for n in (20_000, 2_000))

    def cpu(**by):
        before = time.process_time()
        quantize_records(spec, labels, auxiliary, **by)
        return time.process_time() - before

    tries = [(cpu(by=draw_by_tool), cpu()) for _ in range(4)]
    tool, alone = (min(times) for times in zip(*tries, strict=True))
    assert tool < 1.3 * alone, tries
