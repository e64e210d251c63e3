"""`quantext chat`: a conversation that ends in a release.

A model that calls tools leads it (`build_agent`); a small one fills in proposals while the program asks
(`guided`). Both are LangGraph graphs over one checkpointer, so a conversation goes on after a restart, and
`conversation` puts either in front of a person. Whatever the model, it is given the public part of what tools
return: the private part is shown to the person and dropped, and stands in no message and no checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ToolCallLimitMiddleware,
)
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from platformdirs import user_data_path

from quantext_graph.apps.agent_tools.tools import Reader, ReleaseTools
from quantext_graph.apps.chat.conversation import Conversation, Person
from quantext_graph.apps.chat.guided import build_guide
from quantext_graph.models.chat_model import ChatModel, chat_model
from quantext_graph.models.resolve import OLLAMA_CONTEXT, connect
from quantext_graph.prompts import load
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Models, ModelSpec
from quantext_graph.workspace.disk import one_line
from quantext_graph.workspace.folder import private_file

APPROVED = ("publish_release", "start_release", "write_spec")
"""Tools that wait for the person: what leaves the private folder, what spends nats, what replaces a spec."""


@dataclass(frozen=True)
class ChatClient:
    """A chat model that calls tools, and who it is."""

    model: BaseChatModel
    reader: Reader
    close: Callable[[], None]


def chat_client(reference: ModelSpec) -> ChatClient:
    """The client of a chat model. It may be remote: it is never given anything private.

    Raises:
        ModelError, ModelUnavailable: where the model cannot be had.
    """
    if reference.context is None and reference.provider == "ollama":
        reference = reference.model_copy(update={"context": 2 * OLLAMA_CONTEXT})
    connection = connect(reference, Models(allow_remote=True))
    model = connection.endpoints[0].conversational()
    reader = Reader(reference.model, connection.remote)
    return ChatClient(model, reader, connection.close or (lambda: None))


CALLS_IN_A_TURN = 16
"""Tool calls before the model must speak: one that runs in circles is stopped."""

WELCOME = "Which file do you want to release, and which share in it must nobody learn? (Ctrl-D leaves)"
AGAIN = "Going on after {count} messages; --new begins another conversation. (Ctrl-D leaves)"


class ForThePerson(AgentMiddleware[Any, Any, Any]):
    """Shows the private part of a tool's answer to the person and drops it from the message."""

    def __init__(self, show: Callable[[Sequence[str]], None]) -> None:
        super().__init__()
        self._show = show

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        answer = handler(request)
        if not isinstance(answer, ToolMessage):
            return answer
        if answer.artifact and answer.artifact.get("shown"):
            self._show(answer.artifact["shown"])
        return answer.model_copy(update={"artifact": None})


def build_agent(
    model: BaseChatModel,
    tools: ReleaseTools,
    checkpointer: BaseCheckpointSaver[Any],
    show: Callable[[Sequence[str]], None],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The agent of the chat: tools, approvals, and `show` for what is for the person alone."""

    def stands(request: ToolCallRequest) -> bool:
        return tools.path(str(request.tool_call["args"].get("path", "spec.yaml"))).exists()

    asked: dict[str, Any] = {name: {"allowed_decisions": ["approve", "reject"]} for name in APPROVED}
    asked["write_spec"]["when"] = stands
    middleware: list[AgentMiddleware[Any, Any, Any]] = [
        HumanInTheLoopMiddleware(interrupt_on=asked),
        ToolCallLimitMiddleware(run_limit=CALLS_IN_A_TURN, exit_behavior="end"),
        ForThePerson(show),
    ]
    return create_agent(
        model,
        tools.tools(),
        system_prompt=load("chat").say("system"),
        middleware=middleware,
        checkpointer=checkpointer,
        name="quantext-chat",
    )


@contextmanager
def conversations(path: Path | None = None) -> Iterator[SqliteSaver]:
    """The checkpointer of all conversations: `path`, $QUANTEXT_CHATS, or `chats.sqlite` in the user's
    data folder. Mode 0600, since people type what they like; nothing private is put there by a tool."""
    path = path or Path(os.environ.get("QUANTEXT_CHATS") or user_data_path("quantext-graph") / "chats.sqlite")
    with one_line(path):
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            private_file(path)
        with SqliteSaver.from_conn_string(str(path)) as saver:
            saver.setup()
    with SqliteSaver.from_conn_string(str(path)) as saver:
        yield saver


@dataclass(frozen=True)
class Talk:
    """How a chat is held: with which model, guided or not, in which conversation of the folder.

    `guided` by default where the model is embedded: it calls no tools.

    Raises:
        QuantextError: where an embedded model is to lead.
    """

    model: ModelSpec
    folder: Path
    guided: bool | None = None
    name: str = "main"
    new: bool = False

    def __post_init__(self) -> None:
        if self.model.embedded and self.guided is False:
            raise QuantextError(
                f"--agent: {self.model.model} cannot lead, which takes a larger model that calls tools; "
                "name one (`--model ollama:llama3.1:8b`), or leave --agent out and the program asks"
            )

    @property
    def is_guided(self) -> bool:
        return self.model.embedded if self.guided is None else self.guided

    @property
    def thread(self) -> str:
        return f"{'guided' if self.is_guided else 'agent'} {self.name} {self.folder.absolute()}"


def hold(talk: Talk, person: Person) -> None:
    """Hold a chat until the person leaves or, guided, until it has come to its end.

    Raises:
        QuantextError: where the model cannot be had or the conversations cannot be kept.
    """
    with conversations() as saver:
        if talk.new:
            saver.delete_thread(talk.thread)
        if talk.is_guided:
            _guide(talk, person, saver)
        else:
            _agent(talk, person, saver)


def _agent(talk: Talk, person: Person, saver: SqliteSaver) -> None:
    client = chat_client(talk.model)
    try:
        tools = ReleaseTools(talk.folder, client.reader)
        graph = build_agent(client.model, tools, saver, person.show)
        conversation = Conversation(graph, talk.thread, person, tools)
        if client.reader.remote:
            person.show([f"what you type goes to {client.reader.name}; texts and shares do not"])
        begun = graph.get_state(conversation.config).values.get("messages")
        person.say(AGAIN.format(count=len(begun)) if begun else WELCOME)
        conversation.talk()
    finally:
        client.close()


def _guide(talk: Talk, person: Person, saver: SqliteSaver) -> None:
    def chat() -> ChatModel:
        return chat_model(talk.model, Models(allow_remote=True))

    remote = False
    if not talk.model.embedded:
        with closing(chat()) as looked_at:
            remote = looked_at.remote
    tools = ReleaseTools(talk.folder, Reader(talk.model.model, remote))
    graph = build_guide(tools, chat, saver, settings={} if remote else _rewriter(talk.model))
    Conversation(graph, talk.thread, person, tools).follow()


def _rewriter(model: ModelSpec) -> dict[str, Any]:
    """A model of this machine that chats rewrites too. The embedded ones miss many targets: less is asked."""
    if model.embedded:
        return {"model": model.model, "attempts": 1, "min_verified": 0.25}
    return {"model": model.model} | ({"base_url": model.base_url} if isinstance(model.base_url, str) else {})
