"""What an outage of a minute in the middle of a run costs.

    python tests/benchmarks/outage.py [--seconds 60] [--records 400]

The same release twice; in the second the server is gone for a while: nothing answers at its address.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from releases import obedient, small_release

from quantext_graph.release.run import Run
from quantext_graph.release.standing import status


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--records", type=int, default=400)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["QUANTEXT_LEDGER"] = f"{name}/ledger.sqlite"
        (Path(name) / "calm").mkdir()
        (Path(name) / "cut").mkdir()
        calm = run(Path(name) / "calm", asked.records, 0.0)
        cut = run(Path(name) / "cut", asked.records, asked.seconds)
    print(
        f"{calm:.1f} s without, {cut:.1f} s with an outage of {asked.seconds:.0f} s: cost {cut - calm:.1f} s"
    )


def run(folder: Path, n: int, outage: float) -> float:
    """Wall seconds to the gate."""
    servers = [obedient(seconds=0.05)]
    spec = small_release(folder, servers[0].url, n=n, limits={"concurrency": 8})

    def back() -> None:
        servers.append(obedient(seconds=0.05, port=servers[0].port))

    cut = threading.Event()

    def watch(event: dict[str, Any]) -> None:
        if outage and not cut.is_set() and event["stage"] == "rewrite" and event["done"] >= n // 2:
            cut.set()
            servers[0].stop()
            threading.Timer(outage, back).start()

    began = time.monotonic()
    with Run.start(spec) as release:
        release.go(watch)
    wall = time.monotonic() - began
    assert status(release.workspace).rewritten == n
    servers[-1].stop()
    return wall


if __name__ == "__main__":
    main()
