"""What a run costs beside its model calls, against bare clients that make the same calls.

    python tests/benchmarks/orchestration.py [--rounds 3] [--records 2000] [--concurrency 64] [--latency 0.05]

A round is a whole run to the gate (a model labels, writes and judges), then every request that it sent
is sent again: by the `openai` client as anybody makes it, whose wall time is the measure, by the client that
the run has, and by the HTTP client under that. What the run's CPU time is beyond theirs is the
orchestration's. Rounds follow each other in one process, so that a machine that other work slows down for a
minute does not slow one of them alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
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

from quantext_graph.models.http_clients import openai_http_client, openai_library
from quantext_graph.release.run import Run
from quantext_graph.spec.loading import load_spec

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
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["QUANTEXT_LEDGER"] = str(folder / "ledger.sqlite")
        with latency_server(asked.latency, write_spec(folder, "http://127.0.0.1:1/v1")) as url:
            n, calls = asked.records, f"calls of {asked.latency * 1000:.0f} ms"
            print(f"{n} records, {calls}, {asked.concurrency} at a time")
            rounds = []
            for number in range(asked.rounds):
                (place := folder / str(number)).mkdir()
                rounds.append(one_round(place, url, asked))
    walls, beside_client, beside_http = map(statistics.median, zip(*rounds, strict=True))
    print(f"wall of the run over the bare client's: {walls:.2f}")
    print(f"CPU of the run beside its client: {beside_client:.1f} ms a record")
    print(f"CPU of the run beside HTTP alone: {beside_http:.1f} ms a record")


def one_round(folder: Path, url: str, asked: argparse.Namespace) -> tuple[float, float, float]:
    """Wall of the run over the bare client's; CPU of the run beyond that of its client, and beyond HTTP,
    milliseconds a record."""
    write_data(folder, asked.records)
    spec = load_spec(write_spec(folder, url, limits={"concurrency": asked.concurrency}))
    with Run.start(spec) as run:
        wall, cpu = measured(run.go)
    asked_for = url.replace("/v1", "/asked")
    bodies = httpx.get(asked_for, timeout=60).json()
    http = openai_http_client(loopback=True, timeout=600.0)
    bare = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    own = openai.OpenAI(base_url=url, api_key="none", max_retries=0, http_client=http)
    place = f"{url}/chat/completions"

    def by_bare(body: dict[str, Any]) -> None:
        known = {name: value for name, value in body.items() if name not in VLLM}
        extra = {name: body[name] for name in VLLM if name in body}
        _ = bare.chat.completions.create(**known, extra_body=extra).choices[0].message.content

    def by_own(body: dict[str, Any]) -> None:
        own.post(place, body=body, cast_to=openai_library().Response).json()

    def by_http(body: dict[str, Any]) -> None:
        http.post(place, json=body).json()

    def again(call: Callable[[dict[str, Any]], None]) -> tuple[float, float]:
        with ThreadPoolExecutor(asked.concurrency) as pool:
            return measured(lambda: list(pool.map(call, bodies)))

    with bare, http:
        spent = {"openai": again(by_bare), "the run's client": again(by_own), "HTTP": again(by_http)}
    httpx.delete(asked_for, timeout=60)
    said = ", ".join(f"{name} {w:.1f} {c:.1f}" for name, (w, c) in {"run": (wall, cpu), **spent}.items())
    print(f"{len(bodies)} calls, wall and CPU seconds: {said}", flush=True)
    beside = [(cpu - spent[name][1]) / asked.records * 1000 for name in ("the run's client", "HTTP")]
    return wall / spent["openai"][0], beside[0], beside[1]


if __name__ == "__main__":
    main()
