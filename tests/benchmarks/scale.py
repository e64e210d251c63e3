"""A run of 100,000 records against a run of 10,000: memory, time a record, size of the workspace.

    python tests/benchmarks/scale.py [--sizes 10000 100000] [--concurrency 8]

The model answers at once and lives in the process, so what is measured is all the rest: reading,
labelling by column, the draw, every record's graph, the store, the report, the release folder. Each size
runs in a process of its own, is stopped half-way, and resumed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from instant import instant_model
from memory import peak_mb
from releases import ATTRIBUTES, write_data, write_spec

from quantext_graph.graph.resources import Resources
from quantext_graph.release.run import Interrupted, Run
from quantext_graph.spec.loading import load_spec
from quantext_graph.spec.models import Spec

AUXILIARY = 400  # enough for classifiers to pick and judge


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.one, asked.concurrency)))
        return
    found = []
    for size in asked.sizes:
        command = [sys.executable, __file__, "--one", str(size), "--concurrency", str(asked.concurrency)]
        found.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
        print(found[-1], flush=True)
    first, last = found[0], found[-1]
    print(f"peak memory: {last['peak_mb'] / first['peak_mb']:.2f} times")
    print(f"time a record: {last['ms_a_record'] / first['ms_a_record']:.2f} times")
    print(f"CPU a record: {last['cpu_ms_a_record'] / first['cpu_ms_a_record']:.2f} times, whatever else runs")


def measure(n: int, concurrency: int) -> dict[str, Any]:
    """Peak memory (MB), milliseconds a record from start to release folder, kB of workspace a record."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["QUANTEXT_LEDGER"] = str(folder / "ledger.sqlite")
        write_data(folder, n, auxiliary=AUXILIARY)
        labelled(folder / "private.csv")
        columns = [{**attribute, "column": attribute["name"]} for attribute in ATTRIBUTES]
        limits = {"concurrency": concurrency}
        spec = load_spec(write_spec(folder, "http://127.0.0.1:1/v1", attributes=columns, limits=limits))
        before, began, cpu = peak_mb(), time.perf_counter(), time.process_time()
        workspace = stopped_half_way(spec, n)
        with Run.resume(workspace, resources=resources(spec)) as run:
            run.go()
            at_gate = peak_mb()
            run.answer(True)
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu
        return {
            "records": n,
            "start_mb": round(before),
            "gate_mb": round(at_gate),
            "peak_mb": round(peak_mb()),
            "ms_a_record": round(1000 * wall / n, 3),
            "cpu_ms_a_record": round(1000 * cpu / n, 3),
            "workspace_kb_a_record": round(size(workspace) / n / 1024, 2),
            "checkpoints_kb": round((workspace / "checkpoints.sqlite").stat().st_size / 1024),
        }


def stopped_half_way(spec: Spec, n: int) -> Path:
    with Run.start(spec, resources=resources(spec)) as run:

        def stop(event: dict[str, Any]) -> None:
            if event["stage"] == "rewrite" and event["done"] >= n // 2:
                run.control.request_drain("half")

        try:
            run.go(stop)
        except Interrupted:
            return run.workspace
    raise AssertionError("the run was not stopped")


def resources(spec: Spec) -> Resources:
    return Resources(spec, chat=instant_model(spec, spec.limits))


def labelled(path: Path) -> None:
    """Give the private file columns with the categories that its texts name."""
    lines = path.read_text(encoding="utf-8").splitlines()
    names = [attribute["categories"] for attribute in ATTRIBUTES]
    rows = [",".join([line, *(next(c for c in cs if f" {c}" in line) for cs in names)]) for line in lines[1:]]
    header = ",".join([lines[0], *(attribute["name"] for attribute in ATTRIBUTES)])
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
