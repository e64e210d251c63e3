"""The MCP server by real clients, over stdio and HTTP and in both eras of the protocol."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import ElicitResult
from releases import obedient, small_release, write_data, write_spec

from quantext_graph.apps.agent_tools.tools import release_tools
from quantext_graph.apps.mcp.server import ReleaseServer, serve_http
from quantext_graph.apps.mcp.tools import SERVED
from quantext_graph.data.records import open_table
from quantext_graph.release import background
from quantext_graph.release.run import Run
from quantext_graph.spec.errors import QuantextError

COMMAND = [sys.executable, "-m", "quantext_graph", "mcp"]
README = Path(__file__).parents[2] / "README.md"
WORK = {"workspace": "release.work"}


async def call(client: Client, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
    result = await client.call_tool(name, arguments or {}, **options)
    assert not result.is_error, result.content
    return result.structured_content


class Person:
    """Whom a client asks: answers what a test tells them to."""

    def __init__(self, answer: dict[str, Any] | None) -> None:
        self.answer, self.asked = answer, []

    async def __call__(self, _: Any, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        if self.answer is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=self.answer)


class Steps:
    """Progress notifications, as a client receives them."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float | None, str]] = []

    async def __call__(self, done: float, total: float | None, message: str | None) -> None:
        self.seen.append((done, total, message or ""))

    def check(self, n: int) -> None:
        values = [done for done, _, _ in self.seen]
        assert len(values) > 2
        assert values == sorted(set(values))
        assert values[-1] >= 2 * n
        assert any(message.startswith("rewrite: ") for _, _, message in self.seen)


async def test_over_stdio_from_a_file_to_a_published_release(tmp_path: Path) -> None:
    person, steps = Person({"approve": True}), Steps()
    (shown,) = re.findall(
        r"^```json\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    server = json.loads(shown)["mcpServers"]["quantext"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    parameters = StdioServerParameters(**server, cwd=tmp_path, env={**os.environ, "PATH": path})
    with obedient(seconds=0.05) as models:
        small_release(tmp_path, models.url, n=40)
        async with Client(parameters, elicitation_callback=person) as client:
            assert (await call(client, "look_at_file", {"path": "private.csv"}))["rows"] == 40
            assert (await call(client, "check_release"))["records"] == 40
            assert (await call(client, "start_release"))["started"]
            done = await call(client, "wait_for_release", WORK, progress_callback=steps)
            assert (done["state"], done["rewritten"]) == ("gate", 40)
            assert not (tmp_path / "release").exists()
            published = await call(client, "publish_release", WORK)
            assert published["published"] == str(tmp_path / "release")
    steps.check(40)
    assert len(person.asked) == 1
    assert len(list(open_table(tmp_path / "release" / "data.csv"))) == 40


@contextmanager
def http_server(folder: Path) -> Iterator[str]:
    process = subprocess.Popen([*COMMAND, "--http", "0"], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        until = time.monotonic() + 60
        while True:
            try:
                httpx.get(url, trust_env=False)
                break
            except httpx.TransportError:
                assert time.monotonic() < until
                time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


KILLED = """
import asyncio, sys
from mcp import Client

async def main():
    async with Client(sys.argv[1]) as client:
        await client.call_tool("start_release", {})
        print("started", flush=True)
        await client.call_tool("wait_for_release", {"workspace": "release.work"})
        print("never", flush=True)

asyncio.run(main())
"""


async def test_over_http_a_run_goes_on_when_its_client_is_killed(tmp_path: Path) -> None:
    person, steps = Person({"approve": True}), Steps()
    with obedient(seconds=0.1) as models, http_server(tmp_path) as url:
        small_release(tmp_path, models.url, n=60)
        client_process = subprocess.Popen(
            [sys.executable, "-c", KILLED, url], stdout=subprocess.PIPE, text=True
        )
        assert client_process.stdout is not None
        assert client_process.stdout.readline() == "started\n"
        client_process.kill()
        assert client_process.communicate()[0] == ""
        # the handshake that most clients of today still make
        async with Client(url, mode="legacy", elicitation_callback=person) as client:
            before = await call(client, "release_status", WORK)
            assert before["state"] == "running"
            done = await call(client, "wait_for_release", WORK, progress_callback=steps)
            assert (done["state"], done["rewritten"]) == ("gate", 60)
            assert (await call(client, "publish_release", WORK))["published"] == str(tmp_path / "release")
        strangers = [{"Host": "evil.example"}, {"Origin": "http://evil.example"}]
        assert [httpx.post(url, json={}, headers=h, trust_env=False).status_code for h in strangers] == [
            421,
            403,
        ]
    steps.check(60)
    assert len(person.asked) == 1
    assert len(list(open_table(tmp_path / "release" / "data.csv"))) == 60


def _said(process: subprocess.Popen[str], number: int) -> dict[str, Any]:
    """The answer to a request. Every line on stdout is a message of the protocol, else this raises."""
    assert process.stdout is not None
    while True:
        message = json.loads(process.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        if message.get("id") == number:
            return message["result"]


def test_nothing_else_is_written_to_stdout_and_a_killed_server_loses_nothing(tmp_path: Path) -> None:
    with obedient(seconds=0.1) as models:
        small_release(tmp_path, models.url, n=60)
        process = subprocess.Popen(
            COMMAND, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None

        def send(method: str, params: dict[str, Any], number: int | None = None) -> None:
            message = {"jsonrpc": "2.0", "method": method, "params": params}
            line = json.dumps(message if number is None else {**message, "id": number})
            process.stdin.write(line + "\n")
            process.stdin.flush()

        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "0"},
        }
        send("initialize", hello, 0)
        assert _said(process, 0)["serverInfo"]["name"] == "quantext"
        send("notifications/initialized", {})
        asked = [
            ("look_at_file", {"path": "private.csv"}),
            ("tradeoff", {"nats": 2.0}),
            ("release_status", {"workspace": "none"}),
            ("start_release", {}),
        ]
        for number, (name, arguments) in enumerate(asked, start=1):
            send("tools/call", {"name": name, "arguments": arguments}, number)
            found = _said(process, number)
            assert not found["isError"], found
        send(
            "tools/call", {"name": "wait_for_release", "arguments": WORK, "_meta": {"progressToken": "p"}}, 9
        )
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["method"] == "notifications/progress"
        process.kill()
        process.wait()
        assert background.standing(tmp_path / "release.work").state == "running"
        assert background.wait(tmp_path / "release.work", 120).state == "gate"


@pytest.fixture(scope="module")
def at_gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a spec and a run that waits at the gate; its records carry a mark."""
    folder = tmp_path_factory.mktemp("gate")
    before = os.environ.get("QUANTEXT_LEDGER")
    os.environ["QUANTEXT_LEDGER"] = str(folder / "ledger.sqlite")
    try:
        with obedient() as models:
            write_data(folder, 30, mark="QZX")
            path = write_spec(folder, models.url)
            path.write_text("# 57 % of them are about diabetes\n" + path.read_text())
            from quantext_graph import load_spec

            with Run.start(load_spec(path)) as run:
                run.go()
    finally:
        if before is not None:
            os.environ["QUANTEXT_LEDGER"] = before
    return folder


async def test_what_is_offered(at_gate: Path) -> None:
    async with Client(ReleaseServer(at_gate)) as client:
        offered: dict[str, Any] = {tool.name: tool for tool in (await client.list_tools()).tools}
        prompts = {each.name for each in (await client.list_prompts()).prompts}
        asked: Any = await client.get_prompt("guided_release", {"data": "a.csv", "auxiliary": "b.csv"})
    assert set(offered) == {*SERVED, "wait_for_release", "publish_release"}
    assert set(offered) == {tool.name for tool in release_tools()} - {"preview_release"} | {
        "leakage",
        "wait_for_release",
    }
    for tool in offered.values():
        assert tool.title
        assert "shown to the person" not in tool.description
        assert tool.output_schema["type"] == "object"
        assert tool.annotations.open_world_hint is False
    reading = {name for name, tool in offered.items() if tool.annotations.read_only_hint}
    destroying = {name for name, tool in offered.items() if tool.annotations.destructive_hint}
    assert destroying == {"write_spec", "start_release", "publish_release"}
    assert reading == set(offered) - destroying - {"cancel_release", "explain_audit"}
    assert offered["look_at_file"].input_schema["required"] == ["path"]
    assert set(offered["publish_release"].input_schema["properties"]) == {"workspace", "output"}
    assert prompts == {"guided_release", "explain_budget"}
    assert "a.csv" in asked.messages[0].content.text
    assert "b.csv is public" in asked.messages[0].content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_publishing_without_approval_is_refused(at_gate: Path, mode: str) -> None:
    async with Client(ReleaseServer(at_gate), mode=mode) as client:
        cannot = await call(client, "publish_release", WORK)
    assert "quantext publish release.work" in cannot["refused"]
    for answer, said in (
        (None, "did not agree"),
        ({"approve": False, "reason": "ask the board"}, "the board"),
    ):
        person = Person(answer)
        async with Client(ReleaseServer(at_gate), mode=mode, elicitation_callback=person) as client:
            refused = await call(client, "publish_release", {**WORK, "output": "elsewhere"})
            assert said in refused["refused"]
        (question,) = person.asked
        assert f"Publish 30 records to {at_gate / 'elsewhere'}?" in question
        assert "share of diabetes" in question
    assert not (at_gate / "release").exists()
    assert not (at_gate / "elsewhere").exists()


async def test_only_a_run_at_the_gate_is_asked_about(tmp_path: Path) -> None:
    person = Person({"approve": True})
    async with Client(ReleaseServer(tmp_path), elicitation_callback=person) as client:
        refused = await call(client, "publish_release", {"workspace": "none.work"})
    assert "no workspace here" in refused["refused"]
    assert person.asked == []


async def test_resources_are_the_public_ones(at_gate: Path) -> None:
    async with Client(ReleaseServer(at_gate)) as client:
        listed = {str(each.uri) for each in (await client.list_resources()).resources}
        spec: Any = (await client.read_resource("quantext://spec/spec.yaml")).contents[0]
        report: Any = (await client.read_resource("quantext://report/release.work")).contents[0]
        for uri, said in {
            "quantext://card/release.work": "not published",
            "quantext://report/none": "no workspace here",
            "quantext://spec/none.yaml": "no such file",
            "quantext://spec/private.csv": "no spec",
            "quantext://spec/../spec.yaml": "",
            "quantext://spec//etc/hosts": "",
            "quantext://private/private.csv": "",
        }.items():
            with pytest.raises(MCPError, match=said or "."):
                await client.read_resource(uri)
    assert listed == {"quantext://spec/spec.yaml", "quantext://report/release.work"}
    assert "57" not in spec.text  # a comment may tell what is private
    assert "diabetes" in spec.text
    assert json.loads(report.text)["records"] == 30


PROPOSED: dict[str, Any] = {
    "path": "other.yaml",
    "data": "private.csv",
    "auxiliary": "public.csv",
    "attributes": [{"name": "gender"}, {"name": "diagnosis"}],
    "secrets": [{"where": {"diagnosis": ["diabetes"]}}],
}


async def test_no_text_and_no_private_share_goes_out(at_gate: Path) -> None:
    arguments: dict[str, dict[str, Any]] = {
        "look_at_file": {"path": "private.csv"},
        "write_spec": PROPOSED,
        "leakage": {"n": 30},
        "start_release": {"workspace": "release.work"},
    }
    said = []
    async with Client(ReleaseServer(at_gate)) as client:
        for name in [*SERVED, "wait_for_release", "publish_release"]:
            given = arguments.get(name, WORK if "workspace" in str(await _schema(client, name)) else {})
            result = await client.call_tool(name, given)
            assert not result.is_error, result.content
            said.append(result.model_dump_json())
        refused = await call(client, "private_share", {"source": "spec.yaml"})
        said += [
            str((await client.read_resource(r.uri)).contents)
            for r in (await client.list_resources()).resources
        ]
    assert "refused: the model of this client is not on this machine" in refused["refused"]
    assert "QZX" in (at_gate / "private.csv").read_text()
    texts = [row.values[1] or "" for row in open_table(at_gate / "private.csv")]
    share = sum("diabetes" in text for text in texts) / 30
    out = "\n".join(said)
    assert (at_gate / "other.yaml").exists()
    assert "QZX" not in out
    assert not any(text in out for text in texts)
    assert not any(form in out for form in (f"{share:.4f}", f"{share:.1%}", f"{share:.0%}", repr(share)))


async def _schema(client: Client, name: str) -> Any:
    return next(tool.input_schema for tool in (await client.list_tools()).tools if tool.name == name)


async def test_mistakes_are_answered(tmp_path: Path) -> None:
    async with Client(ReleaseServer(tmp_path)) as client:
        assert "no such file" in (await call(client, "look_at_file", {"path": "none.csv"}))["error"]
        assert "no such file" in (await call(client, "check_release"))["error"]
        assert "no workspace" in (await call(client, "wait_for_release", {"workspace": "none"}))["error"]
        for wrong in ({}, {"workspace": 7}, {"workspace": "a", "seconds": -1}):
            assert (await client.call_tool("wait_for_release", wrong)).is_error


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "no.such.host.invalid"])
def test_no_address_that_others_could_reach(host: str) -> None:
    with pytest.raises(QuantextError, match="loopback"):
        serve_http(0, host)


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with obedient() as taken, pytest.raises(QuantextError, match=rf"--http {taken.port}: cannot listen"):
        serve_http(taken.port)
