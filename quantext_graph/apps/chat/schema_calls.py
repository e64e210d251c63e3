"""Tool calls by JSON schema, for models behind servers that know no function calling: the embedded ones.

Each turn the model writes one object, {"step": ...}: words for the person, or the name of a tool and its
arguments. The schema of the object is made of the tools' own, so a call is well-formed or there is none.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal, Union

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field, create_model

from quantext_graph.models.chat_model import ChatModel
from quantext_graph.models.errors import ModelUnavailable

MAX_TOKENS = 700

AT_MOST = 2
"""Calls of one tool before the person speaks again. A model of 1.5B, left alone, looked at the same file
29 times; what it may not call it cannot write."""


class Say(BaseModel):
    """Words for the person."""

    say: str = Field(min_length=1, max_length=1200)


class SchemaCalls(BaseChatModel):
    """A LangChain chat model that calls tools through `ChatModel.structured`."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    chat: ChatModel
    tools: tuple[BaseTool, ...] = ()

    @property
    def _llm_type(self) -> str:
        return "quantext-schema-calls"

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **_: Any
    ) -> Runnable[Any, AIMessage]:
        bound = tuple(tool for tool in tools if isinstance(tool, BaseTool))
        return self.model_copy(update={"tools": bound})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **_: Any,
    ) -> ChatResult:
        reply = self.chat.structured(
            _told(messages, self.tools),
            step_of(_not_yet_worn(messages, self.tools)),
            temperature=0.2,
            max_tokens=MAX_TOKENS,
        )
        if not reply.values:
            raise ModelUnavailable(f"{self.chat.name}: gave no step that can be used ({reply.reason})")
        step = reply.value.step  # type: ignore[attr-defined]
        if isinstance(step, Say):
            message = AIMessage(step.say)
        else:
            arguments = step.arguments.model_dump(mode="json", exclude_unset=True, exclude_none=True)
            call = {"name": step.tool, "args": arguments, "id": f"call_{uuid.uuid4().hex[:12]}"}
            message = AIMessage("", tool_calls=[{**call, "type": "tool_call"}])
        return ChatResult(generations=[ChatGeneration(message=message)])


def step_of(tools: Sequence[BaseTool]) -> type[BaseModel]:
    """One step: words, or a call of one of these tools."""
    kinds: list[Any] = [Say]
    for tool in tools:
        fields: dict[str, Any] = {"tool": (Literal[tool.name], ...), "arguments": (tool.args_schema, ...)}
        kinds.append(create_model(f"Call_{tool.name}", **fields))
    any_of: Any = Union[tuple(kinds)]  # noqa: UP007
    return create_model("Step", step=(any_of, ...))


def _not_yet_worn(messages: Sequence[BaseMessage], tools: Sequence[BaseTool]) -> list[BaseTool]:
    """The tools that may be called once more in this turn."""
    called: Counter[str] = Counter()
    for message in messages:
        if isinstance(message, HumanMessage):
            called.clear()
        elif isinstance(message, ToolMessage):
            called[str(message.name)] += 1
    return [tool for tool in tools if called[tool.name] < AT_MOST]


def _told(messages: Sequence[BaseMessage], tools: Sequence[BaseTool]) -> list[BaseMessage]:
    """The conversation in words, with what each tool does."""
    told: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, SystemMessage):
            told.append(SystemMessage(f"{message.text}\n\n{_menu(tools)}"))
        elif isinstance(message, ToolMessage):
            told.append(HumanMessage(f"Result of {message.name}: {message.text}"))
        elif isinstance(message, AIMessage):
            steps = [{"tool": call["name"], "arguments": call["args"]} for call in message.tool_calls]
            said: list[dict[str, Any]] = [{"say": message.text}] if message.text else []
            told += [AIMessage(json.dumps({"step": step})) for step in [*said, *steps]]
        else:
            told.append(message)
    return told


def _menu(tools: Sequence[BaseTool]) -> str:
    lines = [f"- {tool.name}: {tool.description}" for tool in tools]
    return (
        'Each reply is one step: {"step": {"say": words for the person}}, or a call {"step": {"tool": name, '
        '"arguments": {...}}} whose result you are told next. The tools:\n' + "\n".join(lines)
    )
