"""What Ray costs on one machine: the same release in threads and on Ray workers.

    python tests/benchmarks/ray_overhead.py [--records 600] [--workers 2] [--latency 0.05] [--concurrency 16]

Start is from the beginning to the first rewritten records, workers' preparation included; the rate is of the
records after them. The driver's CPU is what bounds how many workers it can feed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from orchestration import latency_server
from releases import ATTRIBUTES, write_data, write_spec
from scale import labelled

from quantext_graph.release.run import Run
from quantext_graph.spec.loading import load_spec


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=600)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--concurrency", type=int, default=16)
    asked = parser.parse_args()
    for executor in ("threads", "ray"):
        with tempfile.TemporaryDirectory() as name:
            os.environ["QUANTEXT_LEDGER"] = f"{name}/ledger.sqlite"
            print(executor, measure(Path(name), executor, asked), flush=True)


def measure(folder: Path, executor: str, asked: argparse.Namespace) -> dict[str, float]:
    write_data(folder, asked.records)
    labelled(folder / "private.csv")
    columns = [{**attribute, "column": attribute["name"]} for attribute in ATTRIBUTES]
    limits = {"concurrency": asked.concurrency, "workers": asked.workers}
    seen: list[tuple[int, float, float]] = []

    def watch(event: dict[str, Any]) -> None:
        if event["stage"] == "rewrite" and event["done"]:
            seen.append((event["done"], time.monotonic(), time.process_time()))

    with latency_server(
        asked.latency, write_spec(folder, "http://127.0.0.1:1/v1", attributes=columns)
    ) as url:
        spec = load_spec(write_spec(folder, url, attributes=columns, limits=limits, executor=executor))
        began = time.monotonic()
        with Run.start(spec) as run:
            run.go(watch)
    (early, first, cpu), (late, last, cpu_last) = seen[0], seen[-1]
    return {
        "start_s": round(first - began, 1),
        "records_a_second": round((late - early) / (last - first), 1),
        "driver_cpu_ms_a_record": round(1000 * (cpu_last - cpu) / (late - early), 2),
    }


if __name__ == "__main__":
    main()
