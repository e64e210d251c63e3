"""A run of 5,000 records that is killed 30 times at random moments, beside one that is left alone.

    python tests/benchmarks/kills.py [--records 5000] [--kills 30]

Both have the same test seed, so they must end with the same draw, the same labels and the same target for
every record. The server counts what was asked of it: the texts that were asked for more than once are what
the kills cost, at most a commit group and what was in work each.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from orchestration import latency_server
from processes import start, wait_for_some_work
from releases import write_data, write_spec

from quantext_graph.data.records import open_table
from quantext_graph.workspace.folder import Workspace
from quantext_graph.workspace.store import GROUP

CONCURRENCY = 8


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=5000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--longest", type=float, default=9.0, help="seconds before a kill, at most")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["QUANTEXT_LEDGER"] = str(folder / "ledger.sqlite")
        write_data(folder, asked.records)
        with latency_server(0.0, write_spec(folder, "http://127.0.0.1:1/v1")) as url:
            spec = write_spec(
                folder, url, mechanism={"pool_size": 2000, "seed": 7}, limits={"concurrency": CONCURRENCY}
            )
            alone, _ = finished(folder, spec, "alone", [])
            first = texts(url)
            moments = [random.uniform(0.0, asked.longest) for _ in range(asked.kills)]
            killed, kills = finished(folder, spec, "killed", moments)
            redone = texts(url) - first - asked.records
    same = {name: alone[name] == killed[name] for name in alone}
    print(f"{kills} kills; released rows: {killed['rows']} of {asked.records}; the same as alone: {same}")
    print(
        f"texts asked for again: {redone}, {redone / max(1, kills):.1f} a kill, at most {GROUP + CONCURRENCY}"
    )
    assert all(same.values())
    assert killed["rows"] == asked.records
    assert redone <= kills * (GROUP + CONCURRENCY)


def finished(folder: Path, spec: Path, name: str, moments: list[float]) -> tuple[dict[str, Any], int]:
    """What stands in the workspace at the end, after kills at these moments of as many processes."""
    workspace, out = folder / f"{name}.work", folder / name
    begin = ["release", str(spec), "--workspace", str(workspace), "--out", str(out), "--yes"]
    go_on = ["resume", str(workspace), "--out", str(out), "--yes"]
    kills = 0
    for number, seconds in enumerate(moments):
        process = start(spec, *(go_on if (workspace / "store.sqlite").exists() else begin))
        if number % 2:  # else a slow machine would be killed while it starts, for ever
            wait_for_some_work(workspace, process, seconds / 8)
        else:
            time.sleep(seconds)
        if process.poll() is not None:
            break
        process.kill()
        process.communicate()
        kills += 1
    if not out.exists():
        process = start(spec, *(go_on if (workspace / "store.sqlite").exists() else begin))
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    store = Workspace.open(workspace).store
    return {
        "draw": json.dumps(store.meta("draw"), sort_keys=True),
        "labels": store.labels().tolist(),
        "targets": store.assigned().tolist(),
        "verified": store.counts().verified,
        "rows": len(open_table(out / "data.csv")),
    }, kills


def texts(url: str) -> int:
    """Texts that the server was asked for so far."""
    bodies = httpx.get(url.replace("/v1", "/asked"), timeout=60).json()
    return sum("response_format" not in body and body.get("max_tokens", 0) > 1 for body in bodies)


if __name__ == "__main__":
    main()
