"""The second half of the guided chat: start, follow, look at the audit, publish."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import END
from langgraph.types import Command

from quantext_graph.apps.agent_tools.tools import ReleaseTools
from quantext_graph.apps.chat.guided_questions import agreed, asked
from quantext_graph.release import background
from quantext_graph.spec.errors import QuantextError
from quantext_graph.workspace.folder import default_workspace

Go = Command[Any]


class GuidedState(TypedDict, total=False):
    """What has been settled: paths, names and categories that the person confirmed, never a text."""

    data: str
    auxiliary: str | None
    text: str
    texts: str
    attributes: list[dict[str, Any]]
    secret: dict[str, list[str]]
    budget_nats: float
    spec: str
    workspace: str


class GuidedRun:
    """The nodes of the run."""

    tools: ReleaseTools

    def ask_start(self, _: GuidedState) -> Go:
        return Command(
            goto="start" if agreed("Start the release? Its draw is spent, whatever comes of it.") else END
        )

    def start(self, state: GuidedState) -> Go:
        return self._begin(state, retry_failed=False)

    def follow(self, state: GuidedState) -> Go:
        folder = self.tools.path(state["workspace"])
        writer = get_stream_writer()
        told = None
        while (found := background.standing(folder)).state == "running":
            if found.step is not None and found.step != told:
                writer(dict(found.step))
                told = found.step
            time.sleep(0.5)
        if found.state in ("gate", "published"):
            return Command(goto="audit" if found.state == "gate" else END)
        show([f"{folder}: {found.state}", *([found.reason] if found.reason else [])])
        return Command(goto="ask_again")

    def ask_again(self, state: GuidedState) -> Go:
        if agreed("Go on with it? What is done is kept."):
            found = background.standing(self.tools.path(state["workspace"]))
            return self._begin(state, retry_failed=found.state == "failed" and found.counts.unverified > 0)
        return Command(goto=END)

    def audit(self, state: GuidedState) -> Go:
        say("It is done and waits at the gate. This is for you alone:")
        show(self.tools.explain_audit(state["workspace"]).shown)
        return Command(goto="ask_publish")

    def ask_publish(self, state: GuidedState) -> Go:
        said = asked(
            "Publish it? y, n, or r to write the texts that missed their target again.",
            lambda said: None if said.lower() in ("y", "yes", "n", "no", "r") else "answer y, n or r",
        ).lower()
        if said == "r":
            return self._begin(state, retry_failed=True)
        if said in ("n", "no"):
            say(f"Not published. All is kept in {state['workspace']}: `quantext publish` can do it later.")
            return Command(goto=END)
        return Command(goto="publish")

    def publish(self, state: GuidedState) -> Go:
        try:
            say(f"Published: {self.tools.publish_release(state['workspace'], None).public['published']}")
        except QuantextError as error:
            show([str(error)])
        return Command(goto=END)

    def _begin(self, state: GuidedState, *, retry_failed: bool) -> Go:
        named = state.get("workspace")
        folder = self.tools.path(named) if named else default_workspace(self.tools.spec(state["spec"]))
        try:
            self.tools.start_release(state["spec"], str(folder), retry_failed)
        except QuantextError as error:
            if not (folder / "store.sqlite").is_file() or background.standing(folder).state != "running":
                show([str(error)])
                return Command(goto=END)
        return Command(goto="follow", update={"workspace": str(folder)})


def say(text: str) -> None:
    get_stream_writer()({"say": text})


def show(lines: Sequence[str]) -> None:
    get_stream_writer()({"shown": list(lines)})
