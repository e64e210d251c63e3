"""`quantext chat` and `quantext mcp`: a release by conversation, here or in somebody's assistant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quantext_graph.apps.cli import terminal
from quantext_graph.apps.cli.models import fetch_model
from quantext_graph.spec.models import DEFAULT_CHAT, ModelSpec


def mcp(
    http: Annotated[
        int | None,
        typer.Option(
            "--http", min=0, max=65535, help="serve over HTTP at this port (0: any), not over stdio"
        ),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="a loopback address")] = "127.0.0.1",
    folder: Annotated[
        Path | None, typer.Option("--folder", help="where relative paths start", exists=True, file_okay=False)
    ] = None,
) -> None:
    """Serve releases to an assistant or editor over the Model Context Protocol."""
    from quantext_graph.apps.mcp.server import serve, serve_http

    if http is None:
        serve(folder)
    else:
        serve_http(http, host, folder)


def chat(
    model: Annotated[str, typer.Option(help="the chat model, as provider:name")] = DEFAULT_CHAT,
    base_url: Annotated[str | None, typer.Option(help="address of an openai: or ollama: model")] = None,
    key_env: Annotated[str | None, typer.Option(help="the variable that holds its key")] = None,
    thread: Annotated[str, typer.Option(help="which conversation of this folder")] = "main",
    new: Annotated[bool, typer.Option("--new", help="begin the conversation anew")] = False,
    guided: Annotated[
        bool | None, typer.Option("--guided/--agent", help="who leads: the program, or a model with tools")
    ] = None,
) -> None:
    """Make a release in a conversation. Texts and true shares are shown to you, never to a remote model."""
    from quantext_graph.apps.chat.session import Talk, hold

    talk = Talk(
        ModelSpec(model=model, base_url=base_url, api_key_env=key_env), Path.cwd(), guided, thread, new
    )
    fetch_model(talk.model)
    hold(talk, terminal.TerminalPerson())
