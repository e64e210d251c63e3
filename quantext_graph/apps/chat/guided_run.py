"""The second half of the guided chat: start, follow, look at the audit, publish."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol

from langgraph.config import get_stream_writer
from langgraph.types import Command

from quantext_graph.apps.agent_tools.tools import ReleaseTools
from quantext_graph.apps.chat.guided_answers import GuidedState
from quantext_graph.release import background
from quantext_graph.spec.errors import QuantextError
from quantext_graph.workspace.folder import default_workspace

Begun = Command[Literal["follow", "__end__"]]
End = Command[Literal["__end__"]]


class Step(Protocol):
    """A node that does something; the type of what it gives says what may follow."""

    __name__: str

    def __call__(self, state: GuidedState) -> Command[Any]: ...


class GuidedRun:
    """The steps of the run."""

    tools: ReleaseTools

    def run_steps(self) -> list[Step]:
        return [self.start, self.go_on, self.write_again, self.follow, self.audit, self.publish, self.keep]

    def start(self, state: GuidedState) -> Begun:
        return self._begin(state, retry_failed=False)

    def go_on(self, state: GuidedState) -> Begun:
        found = background.standing(self.tools.path(state["workspace"]))
        return self._begin(state, retry_failed=found.state == "failed" and found.counts.unverified > 0)

    def write_again(self, state: GuidedState) -> Begun:
        return self._begin(state, retry_failed=True)

    def follow(self, state: GuidedState) -> Command[Literal["audit", "ask_again", "__end__"]]:
        folder = self.tools.path(state["workspace"])
        writer = get_stream_writer()
        told = None
        while (found := background.standing(folder)).state == "running":
            if found.step is not None and found.step != told:
                writer(dict(found.step))
                told = found.step
            time.sleep(0.5)
        if found.state == "gate":
            return Command(goto="audit")
        if found.state == "published":
            return Command(goto="__end__")
        show([f"{folder}: {found.state}", *([found.reason] if found.reason else [])])
        return Command(goto="ask_again")

    def audit(self, state: GuidedState) -> Command[Literal["ask_publish"]]:
        say("It is done and waits at the gate. This is for you alone:")
        show(self.tools.explain_audit(state["workspace"]).shown)
        return Command(goto="ask_publish")

    def publish(self, state: GuidedState) -> End:
        with complaints_shown():
            say(f"Published: {self.tools.publish_release(state['workspace'], None).public['published']}")
        return Command(goto="__end__")

    def keep(self, state: GuidedState) -> End:
        say(f"Not published. All is kept in {state['workspace']}: `quantext publish` can do it later.")
        return Command(goto="__end__")

    def _begin(self, state: GuidedState, *, retry_failed: bool) -> Begun:
        named = state["workspace"]
        folder = self.tools.path(named) if named else default_workspace(self.tools.spec(state["spec"]))
        try:
            self.tools.start_release(state["spec"], str(folder), retry_failed)
        except QuantextError as error:
            if not (folder / "store.sqlite").is_file() or background.standing(folder).state != "running":
                show([str(error)])
                return Command(goto="__end__")
        return Command(goto="follow", update={"workspace": str(folder)})


def say(text: str) -> None:
    get_stream_writer()({"say": text})


def show(lines: Sequence[str]) -> None:
    get_stream_writer()({"shown": list(lines)})


@contextmanager
def complaints_shown() -> Iterator[None]:
    """What is wrong is shown, and the conversation goes on behind the block."""
    try:
        yield
    except QuantextError as error:
        show([str(error)])
