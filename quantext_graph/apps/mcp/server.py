"""Releases over the Model Context Protocol: tools, resources, prompts, over stdio or loopback HTTP.

A client's model is unknown, so it is taken for a remote one: what goes out is the public part of every
answer and nothing else. A release runs in a process of its own, which outlives client and server.
Publishing asks the person by elicitation; where a client cannot ask, it is refused.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import anyio
import uvicorn
import yaml
from anyio.to_thread import run_sync
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import Resource

from quantext_graph.apps.agent_tools.tools import Reader, ReleaseTools
from quantext_graph.apps.mcp.tools import add_tools
from quantext_graph.models.privacy import is_loopback
from quantext_graph.release import background
from quantext_graph.release.figures import public_figures, published_card
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.loading import load_spec
from quantext_graph.workspace.disk import WorkspaceError

PATH = "/mcp"

INSTRUCTIONS = (
    "Releases a corpus of texts such that a proportion in it stays hidden. Look at the file, write a spec, "
    "check it, explain the guarantee and its price, start the release, wait for it, explain what it "
    "promises, and publish only when the person wants it. You are shown public figures alone: no text of "
    "a record and no private proportion. The person sees those in their terminal, by `quantext preview "
    "SPEC` and `quantext audit WORKSPACE`."
)

GUIDED = """\
Help me to release {data} and to hide a proportion in it{auxiliary}.
1. Look at it, and ask me which proportion is secret and what must stay useful.
2. Propose attributes, categories with a short description each, and a budget in nats; say what the budget
   means (`tradeoff`). Write the spec when I agree.
3. Check the spec and tell me the guarantee in plain words. Ask me to look at a few records with
   `quantext preview SPEC` in my terminal.
4. Start the release when I agree, since its draw is spent for good. Wait for it and say how far it is.
5. Explain what it promises and how well the texts say what they should. What attacks found stands in the
   private report, which only I may read.
6. Publish when I say so."""

BUDGET = """\
Explain to me what the bound of {spec} means, in nats and in words, and what another budget would buy: use
`check_release` and `tradeoff`. If a bound is vacuous, say why and what would mend it."""


class ReleaseServer(MCPServer):
    """The server over the files of one folder, the working folder by default."""

    def __init__(self, folder: Path | None = None) -> None:
        # The words of an exception that nobody foresaw may hold a text: below CRITICAL they are logged.
        super().__init__(
            "quantext", instructions=INSTRUCTIONS, version=version("quantext-graph"), log_level="CRITICAL"
        )
        self.release_tools = ReleaseTools(folder, Reader("the model of this client", remote=True))
        add_tools(self, self.release_tools)
        _add_resources(self, self.release_tools)
        _add_prompts(self)

    async def list_resources(self) -> list[Resource]:
        """What is in the folder now: specs, figures of runs at the gate, published cards."""
        found = await run_sync(_found, self.release_tools.folder)
        return [Resource(uri=f"quantext://{kind}/{name}", name=f"{kind} {name}") for kind, name in found]


def _found(folder: Path) -> list[tuple[str, str]]:
    found = []
    for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        try:
            load_spec(path)
        except QuantextError:
            continue
        found.append(("spec", path.name))
    for workspace in background.workspaces(folder):
        try:
            state = background.standing(workspace).state
        except QuantextError:
            continue
        found += [(kind, workspace.relative_to(folder).as_posix()) for kind in _KINDS.get(state, ())]
    return found


_KINDS = {"gate": ("report",), "published": ("report", "card")}


def _add_resources(server: MCPServer, tools: ReleaseTools) -> None:
    @server.resource("quantext://spec/{+path}", mime_type="application/yaml")
    def spec(path: str) -> str:
        """A spec of this folder as it is understood, without its comments."""
        with _one_line():
            known = tools.spec(path).model_dump(mode="json", exclude_defaults=True)
        return yaml.safe_dump(known, sort_keys=False, allow_unicode=True)

    @server.resource("quantext://report/{+workspace}", mime_type="application/json")
    def report(workspace: str) -> str:
        """The public figures of a finished run: its guarantee, and how well its texts are on target."""
        with _one_line():
            folder = tools.path(workspace)
            state = background.standing(folder).state
            if state not in _KINDS:
                raise WorkspaceError(f"{workspace}: {state}, so there are no figures yet")
            return json.dumps(public_figures(folder), indent=2)

    @server.resource("quantext://card/{+workspace}", mime_type="text/markdown")
    def card(workspace: str) -> str:
        """The card of a published release."""
        with _one_line():
            return published_card(tools.path(workspace), workspace)


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except QuantextError as error:
        raise ResourceError(error.public_line) from None


def _add_prompts(server: MCPServer) -> None:
    @server.prompt(title="Release a data set")
    def guided_release(data: str, auxiliary: str = "") -> str:
        """From a file to a published release, step by step. `auxiliary` is a public file of the same kind."""
        return GUIDED.format(data=data, auxiliary=f"; {auxiliary} is public" if auxiliary else "")

    @server.prompt(title="Explain the budget")
    def explain_budget(spec: str = "spec.yaml") -> str:
        """What a bound in nats means, and what another budget would buy."""
        return BUDGET.format(spec=spec)


def serve(folder: Path | None = None) -> None:
    """Serve over stdin and stdout until the client hangs up."""
    ReleaseServer(folder).run("stdio")


def serve_http(port: int, host: str = "127.0.0.1", folder: Path | None = None) -> None:
    """Serve over streamable HTTP on a loopback address until the process is stopped.

    Requests of web pages are refused: a name that was made to point here (DNS rebinding) has another
    `Host`, a page of a stranger another `Origin`. Port 0 takes any free one.

    Raises:
        QuantextError: an address that others could reach, or one in use.
    """
    shown = f"[{host}]" if ":" in host else host
    if not is_loopback(f"//{shown}"):
        raise QuantextError(
            f"--host {host}: others could reach it; the server listens on a loopback address alone, 127.0.0.1"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            raise QuantextError(
                f"--http {port}: cannot listen there ({error.strerror}); name another port, 0 for a free one"
            ) from None
        own = f"{shown}:{listening.getsockname()[1]}"
        known = [own, *(f"{name}:{own.rpartition(':')[2]}" for name in ("localhost", "127.0.0.1"))]
        security = TransportSecuritySettings(
            allowed_hosts=known, allowed_origins=[f"http://{each}" for each in known]
        )
        web = ReleaseServer(folder).streamable_http_app(
            streamable_http_path=PATH, transport_security=security, host=host
        )
        print(f"http://{own}{PATH}", flush=True)
        server = uvicorn.Server(uvicorn.Config(web, log_level="critical"))
        anyio.run(lambda: server.serve([listening]))
