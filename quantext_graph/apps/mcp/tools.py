"""The tools that the MCP server serves: those of `agent`, one that waits, and publishing with approval."""

import json
from collections.abc import Callable, Coroutine
from inspect import Parameter, Signature
from typing import Annotated, Any

import anyio
from anyio.to_thread import run_sync
from langchain_core.tools import BaseTool
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp_types import ToolAnnotations
from pydantic import Field

from quantext_graph.apps.agent_tools.tools import ReleaseTools
from quantext_graph.graph.state import Approval
from quantext_graph.release import background
from quantext_graph.release.figures import public_figures
from quantext_graph.spec.errors import QuantextError
from quantext_graph.tools.leakage import leakage
from quantext_graph.workspace.folder import Workspace

Fields = dict[str, Any]

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
SPENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)
"""For what cannot be undone: a draw counts in the ledger, a spec may be replaced, a release is out."""

SERVED: dict[str, tuple[str, ToolAnnotations]] = {
    "look_at_file": ("Look at a data set", READS),
    "write_spec": ("Write a spec", SPENDS),
    "check_release": ("Check a spec", READS),
    "tradeoff": ("What each budget buys", READS),
    "leakage": ("The bound, from numbers", READS),
    "start_release": ("Start a release, or go on with one", SPENDS),
    "release_status": ("How far a release is", READS),
    "cancel_release": ("Stop a release", ADDS),
    "explain_audit": ("What a finished release promises", ADDS),
    "list_releases": ("Releases in the folder", READS),
    "private_share": ("The true share", READS),
}
"""Tools that are served as they are. `preview_release` is not: nobody would see its texts."""

DESCRIPTIONS = {
    "look_at_file": "Look at a data set: number of rows, names and kinds of its columns, which one holds the "
    "texts. A large file is known by its first rows. Categories and shares are private and not shown.",
    "explain_audit": "What a finished run promises and how well its texts say what they should, from the "
    "public figures. What attacks found is private: it stands in a report that the person opens.",
}
"""For tools that would else speak of what the person is shown: here nothing is."""


class NotAtGate(QuantextError):
    """A run that cannot be published now."""

    public = True


def add_tools(server: MCPServer, release_tools: ReleaseTools) -> None:
    """Register every tool with the server."""
    offered = {tool.name: tool for tool in [*release_tools.tools(), leakage]}
    for name, (title, annotations) in SERVED.items():
        described = DESCRIPTIONS.get(name, offered[name].description)
        server.add_tool(_function(offered[name]), name, title, described, annotations)
    _add_waiting(server, release_tools)
    _add_publishing(server, release_tools, offered["publish_release"])


def _function(tool: BaseTool) -> Callable[..., Coroutine[Any, Any, Fields]]:
    """A tool as a function with the tool's parameters, which answers with the public part."""

    async def call(**arguments: Any) -> Fields:
        return await _public_part(tool, arguments)

    schema: Any = tool.get_input_schema()
    parameters = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            annotation=Annotated[field.annotation, Field(description=field.description), *field.metadata],
            default=_default(field),
        )
        for name, field in schema.model_fields.items()
    ]
    call.__name__ = tool.name
    call.__signature__ = Signature(parameters, return_annotation=Fields)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _default(field: Any) -> Any:
    return Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)


async def _public_part(tool: BaseTool, arguments: Fields) -> Fields:
    """The content of a tool's message; its artifact stays here."""
    message = await tool.ainvoke({"type": "tool_call", "id": "mcp", "name": tool.name, "args": arguments})
    content: Fields = json.loads(message.content)
    return content


def _add_waiting(server: MCPServer, release_tools: ReleaseTools) -> None:
    async def wait_for_release(
        context: Context,
        workspace: Annotated[str, Field(description="private folder of the run")],
        seconds: Annotated[float, Field(ge=1, le=3600, description="how long to wait at most")] = 300,
    ) -> Fields:
        """Wait until a run is at the gate, stopped or failed, and report progress meanwhile. To stop waiting
        does not stop the run: wait again, or ask for its status."""
        folder, shown = release_tools.path(workspace), -1.0
        end = anyio.current_time() + seconds
        try:
            while True:
                found = await run_sync(background.standing, folder)
                shown = await _report(context, found, shown)
                if found.state != "running" or anyio.current_time() > end:
                    return found.public()
                await anyio.sleep(0.5)
        except QuantextError as error:
            return {"error": error.public_line}

    server.add_tool(wait_for_release, title="Wait for a release", annotations=READS)


async def _report(context: Context, found: background.Standing, shown: float) -> float:
    """Records labelled and rewritten, of all that are to be. The protocol wants each report to be more
    than the one before, so while no record comes through it grows by next to nothing."""
    counts = found.counts
    now = max(float(counts.labeled + counts.rewritten), shown + 1e-6)
    step = found.step
    doing = f"{step['stage']}: {step['done']} of {step['total']}" if step else found.state
    await context.report_progress(now, counts.n + counts.released or None, doing)
    return now


def _add_publishing(server: MCPServer, release_tools: ReleaseTools, publish: BaseTool) -> None:
    async def consent(context: Context, workspace: str, output: str | None) -> Elicit[Approval] | Approval:
        try:
            question = await run_sync(_question, release_tools, workspace, output)
        except QuantextError as error:
            return Approval(approve=False, reason=error.public_line)
        if not _can_ask(context):
            reason = f"this client cannot ask the person; they publish with `quantext publish {workspace}`"
            return Approval(approve=False, reason=reason)
        return Elicit(question, Approval)

    async def publish_release(
        workspace: Annotated[str, Field(description="private folder of the run")],
        approval: Annotated[ElicitationResult[Approval], Resolve(consent)],
        output: Annotated[str | None, Field(description="release folder, instead of the spec's")] = None,
    ) -> Fields:
        """Publish a run that waits at the gate. The person is asked, with its figures before them; where
        the client cannot ask them, it is refused."""
        if isinstance(approval, AcceptedElicitation) and approval.data.approve:
            return await _public_part(publish, {"workspace": workspace, "output": output})
        reason = approval.data.reason if isinstance(approval, AcceptedElicitation) else ""
        return {"refused": reason or "the person was asked and did not agree"}

    server.add_tool(publish_release, title="Publish a release", annotations=SPENDS)


def _can_ask(context: Context) -> bool:
    capabilities = context.client_capabilities
    asks = None if capabilities is None else capabilities.elicitation
    return asks is not None and (asks.form is not None or asks.url is None)


def _question(tools: ReleaseTools, workspace: str, output: str | None) -> str:
    """What the person is asked, from public figures.

    Raises:
        QuantextError: where there is no run, or it does not wait at the gate.
    """
    folder = tools.path(workspace)
    state = background.standing(folder).state
    if state != "gate":
        raise NotAtGate(f"{workspace}: {state}, so there is nothing to publish; ask for its status")
    with Workspace.open(folder) as opened:
        place = tools.path(output) if output else opened.spec.output.path
    figures = public_figures(folder)
    promised = [f"{secret}: {' '.join(lines)}" for secret, lines in figures["guarantee"].items()]
    asked = f"Publish {figures['records']} records to {place}?"
    return "\n".join([asked, *promised, figures["on_target"]])
