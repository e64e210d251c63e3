"""LangGraph's own server over a real socket: it starts offline, runs a release, and waits at the gate."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph.runtime import Runtime
from langgraph_sdk import get_sync_client
from releases import obedient, small_release

from quantext_graph import Approval
from quantext_graph.apps import studio
from quantext_graph.data.records import open_table
from quantext_graph.graph.nodes import NotEnoughVerified

TOP = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """`langgraph dev` in `folder`, with nowhere to go but this machine: proxies that are not there."""
    shutil.copy(TOP / "langgraph.json", folder)
    url = f"http://127.0.0.1:{free_port()}"
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    environment = {**os.environ, **nowhere, "NO_PROXY": "127.0.0.1,localhost"}
    environment |= {"LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--port", url.rpartition(":")[2]], cwd=folder, env=environment, stdout=log, stderr=log
        )
    try:
        until = time.monotonic() + 120
        while True:
            try:
                if httpx.get(f"{url}/ok", trust_env=False).is_success:
                    break
            except httpx.TransportError:
                pass
            assert process.poll() is None, (folder / "server.log").read_text()
            assert time.monotonic() < until, (folder / "server.log").read_text()
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()


def test_a_release_by_the_servers_api(tmp_path: Path) -> None:
    with obedient() as models, served(tmp_path) as url:
        small_release(tmp_path, models.url, n=12)
        client = get_sync_client(url=url)
        (assistant,) = client.assistants.search(graph_id="release")
        schemas = client.assistants.get_schemas(assistant["assistant_id"])
        assert set(schemas["context_schema"]["properties"]) == {"spec", "workspace", "output"}
        for name in ("input_schema", "output_schema", "state_schema"):
            assert list(schemas[name]["properties"]) == ["quantext"]
            assert set(schemas[name]["$defs"]["Progress"]["properties"]) >= {"n", "report", "decision"}
        (record,) = client.assistants.get_subgraphs(assistant["assistant_id"]).values()
        assert {"text", "target", "result"} <= set(record["output_schema"]["properties"])
        drawn = client.assistants.get_graph(assistant["assistant_id"], xray=True)
        assert {"rewrite_records:verify", "match_assign"} <= {each["id"] for each in drawn["nodes"]}

        allowed = {
            page: _may_read(url, page) for page in ("https://smith.langchain.com", "https://evil.example")
        }
        assert allowed == {"https://smith.langchain.com": True, "https://evil.example": False}

        context: Any = {"spec": "spec.yaml"}
        thread = client.threads.create()["thread_id"]
        events = [
            part.data
            for part in client.runs.stream(thread, "release", input={}, context=context, stream_mode="custom")
            if part.event == "custom"
        ]
        assert {"label", "match", "rewrite"} <= {event["stage"] for event in events}
        assert events[-1]["total"] == 12

        state: Any = client.threads.get_state(thread)
        (asked,) = [each for task in state["tasks"] for each in task["interrupts"]]
        assert asked["value"]["report"]["n"] == 12
        assert asked["response_schema"] == Approval.model_json_schema()
        assert not (tmp_path / "release").exists()

        wrong: Any = client.runs.wait(thread, "release", command={"resume": "yes"}, context=context)
        assert "not an answer" in wrong["__interrupt__"][0]["value"]["error"]
        done: Any = client.runs.wait(
            thread, "release", command={"resume": {"approve": True}}, context=context
        )
        assert done["quantext"]["decision"] == "approved"
        exec(_readme().replace("http://127.0.0.1:2024", url))
    assert len(list(open_table(tmp_path / "third" / "data.csv"))) == 12
    assert len(list(open_table(tmp_path / "release" / "data.csv"))) == 12
    log = (tmp_path / "server.log").read_text()
    troubles = [
        line for line in log.splitlines() if re.search(r"schema|TypedDict|\[error", line, re.IGNORECASE)
    ]
    assert troubles == []
    assert "Case 1 is" not in log
    assert "patient who lives" not in log
    for kept in (tmp_path / ".langgraph_api").rglob("*"):
        assert not kept.is_file() or b"patient who lives" not in kept.read_bytes()


def _may_read(url: str, page: str) -> bool:
    """Whether a browser would let a page of that origin read the server's answers."""
    answer = httpx.get(f"{url}/ok", headers={"Origin": page}, trust_env=False)
    return answer.headers.get("access-control-allow-origin") in (page, "*")


def _readme() -> str:
    """What the README shows for the SDK."""
    text = (TOP / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (shown,) = [block for block in blocks if "langgraph_sdk" in block]
    return str(shown)


def test_a_spec_that_is_not_there_is_said_by_the_api(tmp_path: Path) -> None:
    with served(tmp_path) as url:
        client = get_sync_client(url=url)
        thread = client.threads.create()["thread_id"]
        with pytest.raises(Exception, match=r"none\.yaml: no such file"):
            client.runs.wait(thread, "release", input={}, context={"spec": "none.yaml"})


def test_an_error_that_counts_records_does_not_reach_the_page(tmp_path: Path) -> None:
    small_release(tmp_path, "http://127.0.0.1:9/v1")
    context = studio.StudioContext(
        str(tmp_path / "studio.work"), str(tmp_path / "out"), str(tmp_path / "spec.yaml")
    )
    with pytest.raises(studio.StudioError) as caught, studio._job(Runtime(context=context)):
        raise NotEnoughVerified("7 of 24 records reached their target")
    assert "7" not in str(caught.value)
    assert "too few records" in str(caught.value)
