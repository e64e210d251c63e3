"""A graph in front of a person: its words, its questions, its approvals, and what only they may see.

A graph asks by interrupts: an approval of tool calls ({"action_requests": ...}) or a plain question
({"question": ...}). It may write custom events: {"say"}, {"shown": lines}, or the progress of a stage.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from langsmith import tracing_context
from pydantic import ValidationError

from quantext_graph.apps.agent_tools.tools import Answer, ReleaseTools
from quantext_graph.models.errors import fault_of
from quantext_graph.release.draft import Proposal, draft
from quantext_graph.spec.errors import QuantextError


class Person(Protocol):
    """Who the conversation is with. `ask` gives None when they have left."""

    def say(self, text: str) -> None: ...

    def show(self, lines: Sequence[str]) -> None: ...

    def ask(self, question: str) -> str | None: ...

    def progress(self, event: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True)
class Conversation:
    """One thread of a graph. Where the last process stopped in the midst of something, it goes on there."""

    graph: CompiledStateGraph[Any, Any, Any, Any]
    thread: str
    person: Person
    tools: ReleaseTools

    @property
    def config(self) -> RunnableConfig:
        return {"configurable": {"thread_id": self.thread}}

    def talk(self) -> None:
        """Answer what the person says until they leave."""
        state = self.graph.get_state(self.config)
        if state.next and not self._go_on(None, pending=bool(state.interrupts)):
            return
        while (said := self.person.ask("")) is not None:
            if said.strip():
                given: Any = {"messages": [{"role": "user", "content": said}]}
            elif self.graph.get_state(self.config).next:
                given = None  # the model gave no answer: once more
            else:
                continue
            if not self._go_on(given):
                return

    def follow(self) -> bool:
        """Let the graph lead to its end; False where the person left before."""
        state = self.graph.get_state(self.config)
        return self._go_on(None if state.next else {}, pending=bool(state.interrupts))

    def _go_on(self, given: Any, *, pending: bool = False) -> bool:
        """Run until nothing is asked; False where the person has left. Nothing of it is traced."""
        with tracing_context(enabled=False):
            while True:
                if not pending and not self._stream(given):
                    return True
                pending = False
                asked = self.graph.get_state(self.config).interrupts
                if not asked:
                    return True
                answer = self._answer(asked[0].value)
                if answer is None:
                    return False
                given = Command(resume=answer)

    def _stream(self, given: Any) -> bool:
        """False where it was stopped or the model failed; that is said."""
        try:
            for mode, chunk in self.graph.stream(given, self.config, stream_mode=["updates", "custom"]):
                self._tell(mode, chunk)
        except KeyboardInterrupt:
            self._abandon()
            self.person.show(["stopped; a run in the background goes on"])
            return False
        except QuantextError as error:
            self.person.show([str(error)])
            return False
        except Exception as error:
            if os.environ.get("QUANTEXT_DEBUG"):
                raise
            words = fault_of(error, self.tools.reader.name).words
            self.person.show([f"{self.tools.reader.name}: {words}; press Enter to try again"])
            return False
        return True

    def _tell(self, mode: str, chunk: Any) -> None:
        if mode == "updates":
            for name, update in chunk.items():
                if name == "model" or name.startswith("ToolCallLimit"):
                    self._say_all((update or {}).get("messages", ()))
        elif "say" in chunk:
            self.person.say(chunk["say"])
        elif "shown" in chunk:
            self.person.show(chunk["shown"])
        else:
            self.person.progress(chunk)

    def _say_all(self, messages: Sequence[BaseMessage]) -> None:
        for message in messages:
            if isinstance(message, AIMessage) and message.text.strip():
                self.person.say(message.text)

    def _answer(self, asked: Mapping[str, Any]) -> Any:
        if "action_requests" not in asked:
            if asked.get("error"):
                self.person.show([asked["error"]])
            return self.person.ask(asked["question"])
        decisions = []
        for action in asked["action_requests"]:
            self.person.show(review(self.tools, action["name"], action["args"]))
            decision = self._decide(action["name"])
            if decision is None:
                return None
            decisions.append(decision)
        return {"decisions": decisions}

    def _decide(self, name: str) -> dict[str, str] | None:
        while True:
            said = self.person.ask(f"{_QUESTIONS.get(name, name)} [y/n]")
            if said is None:
                return None
            word = said.strip().lower()
            if word in {"y", "yes"}:
                return {"type": "approve"}
            if word in {"n", "no"}:
                reason = self.person.ask("Why not? (it is told to the model; Enter for nothing)")
                return {"type": "reject"} | ({"message": reason} if reason else {})

    def _abandon(self) -> None:
        """Answer the tool calls that were not, so that the model is not left waiting for them."""
        messages = self.graph.get_state(self.config).values.get("messages", [])
        answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
        open_ = [
            ToolMessage("stopped by the person", tool_call_id=call["id"])
            for message in messages
            if isinstance(message, AIMessage)
            for call in message.tool_calls
            if call["id"] not in answered
        ]
        if open_:
            self.graph.update_state(self.config, {"messages": open_}, as_node="tools")


_QUESTIONS = {
    "publish_release": "Publish it?",
    "start_release": "Start it? Its draw is spent, whatever becomes of the run.",
    "write_spec": "Replace the spec that stands there?",
}


def review(tools: ReleaseTools, name: str, arguments: Mapping[str, Any]) -> list[str]:
    """What the person should see before they approve a tool call: private figures among it."""
    said = {} if name == "write_spec" else arguments
    heading = f"{name}: {', '.join(f'{key} {value}' for key, value in said.items())}"
    try:
        return [heading, *_review_of(tools, name, arguments)]
    except QuantextError as error:
        return [heading, str(error)]
    except (ValidationError, KeyError, TypeError):
        return [heading, "its arguments are not what the tool takes, so it will refuse"]


def _review_of(tools: ReleaseTools, name: str, arguments: Mapping[str, Any]) -> list[str]:
    if name == "publish_release":
        return list(tools.explain_audit(arguments["workspace"]).shown)
    if name == "start_release":
        return promises(tools.check_release(arguments.get("spec", "spec.yaml")))
    proposed = {key: value for key, value in arguments.items() if key not in ("path", "overwrite")}
    return draft(Proposal.model_validate(proposed), tools.folder).text.splitlines()


def promises(checked: Answer) -> list[str]:
    """What `check_release` says, in lines."""
    public = checked.public
    said = [f"{title}: {' '.join(words)}" for title, words in public["guarantee"].items()]
    said += [public[name] for name in ("why_vacuous", "over_cap") if name in public]
    return [*said, f"{public['records']} records", *checked.shown]
