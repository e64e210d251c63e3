"""What a run costs beside its model calls, against bare clients that make the same calls.

    python tests/benchmarks/orchestration.py [--records 2000] [--concurrency 64] [--latency 0.05]

A whole run to the gate (a model labels, writes and judges), then every request that it sent is sent
again: by the `openai` client, whose wall time is the measure, and by `httpx` alone, whose CPU time is
what any HTTP client must spend. All in one process and one go, so a busy machine slows all alike.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai

sys.path.insert(0, str(Path(__file__).parents[1]))

from releases import write_data, write_spec

from quantext_graph.run import Run
from quantext_graph.spec_file import load_spec

VLLM = ("min_p", "continue_final_message", "add_generation_prompt")
"""What the `openai` client does not know."""


@contextmanager
def latency_server(seconds: float, spec: Path) -> Iterator[str]:
    program = Path(__file__).with_name("latency_server.py")
    command = [sys.executable, str(program), str(seconds), str(spec)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        finally:
            process.terminate()


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["QUANTEXT_LEDGER"] = str(folder / "ledger.sqlite")
        write_data(folder, asked.records)
        with latency_server(asked.latency, write_spec(folder, "http://127.0.0.1:1/v1")) as url:
            figures(folder, url, asked)


def figures(folder: Path, url: str, asked: argparse.Namespace) -> None:
    n, limits = asked.records, {"concurrency": asked.concurrency}
    with Run.start(load_spec(write_spec(folder, url, limits=limits))) as run:
        wall, cpu = measured(run.go)
    bodies = httpx.get(url.replace("/v1", "/asked"), timeout=60).json()
    bare = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    http = httpx.Client(limits=httpx.Limits(max_connections=None, max_keepalive_connections=None))

    def by_openai(body: dict[str, Any]) -> None:
        known = {name: value for name, value in body.items() if name not in VLLM}
        extra = {name: body[name] for name in VLLM if name in body}
        _ = bare.chat.completions.create(**known, extra_body=extra).choices[0].message.content

    def by_httpx(body: dict[str, Any]) -> None:
        http.post(f"{url}/chat/completions", json=body).json()

    def again(call: Callable[[dict[str, Any]], None]) -> tuple[float, float]:
        with ThreadPoolExecutor(asked.concurrency) as pool:
            return measured(lambda: list(pool.map(call, bodies)))

    openai_wall, openai_cpu = again(by_openai)
    http_wall, http_cpu = again(by_httpx)
    print(f"{n} records, {len(bodies)} calls of {asked.latency * 1000:.0f} ms, {asked.concurrency} at a time")
    print(f"run:    {wall:6.1f} s wall, {cpu:6.1f} s CPU")
    print(f"openai: {openai_wall:6.1f} s wall, {openai_cpu:6.1f} s CPU")
    print(f"httpx:  {http_wall:6.1f} s wall, {http_cpu:6.1f} s CPU")
    print(f"wall of the run over the bare client's: {wall / openai_wall:.2f}")
    print(f"CPU beside the HTTP client: {(cpu - http_cpu) / n * 1000:.1f} ms a record")


if __name__ == "__main__":
    main()
