"""The chat for small models: the program asks the questions, a model only fills in proposals.

A graph whose nodes ask or do one thing each (`guided_questions` has what is asked), so that it goes on
where it stopped after a restart. The model proposes descriptions, and categories where no file names
them, by JSON schema; it is told names of attributes and categories that the person has confirmed, and
what the person says the texts are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from typing import Any, Literal, Protocol

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from quantext_graph.apps.agent_tools.disclosure import Answer
from quantext_graph.apps.agent_tools.tools import ReleaseTools
from quantext_graph.apps.chat.conversation import promises
from quantext_graph.apps.chat.descriptions import propose
from quantext_graph.apps.chat.guided_answers import Fields, Files, GuidedState, changed
from quantext_graph.apps.chat.guided_questions import put, questions
from quantext_graph.models.chat_model import ChatModel
from quantext_graph.release import background
from quantext_graph.release.draft import Proposal, draft
from quantext_graph.spec.errors import QuantextError
from quantext_graph.workspace.folder import default_workspace

Begun = Command[Literal["follow", "__end__"]]
End = Command[Literal["__end__"]]


class Step(Protocol):
    """A node that does something; the type of what it gives says what may follow."""

    __name__: str

    def __call__(self, state: GuidedState) -> Command[Any]: ...


def build_guide(
    tools: ReleaseTools,
    chat: Callable[[], ChatModel],
    checkpointer: BaseCheckpointSaver[str] | None = None,
    *,
    settings: Fields | None = None,
) -> CompiledStateGraph[GuidedState, None, GuidedState, GuidedState]:
    """The guided conversation.

    Args:
        chat: opens the model that fills in proposals; it is closed before anything else is done.
        settings: of the release, as fields of a `Proposal`: its model, address, attempts, min_verified.
    """
    files = Files(tools.folder)
    guide = Guide(tools, files, chat, settings or {})
    graph = StateGraph(GuidedState)
    for question in questions(files):
        graph.add_node(question.name, question, destinations=question.leads_to)
    for step in guide.steps():
        graph.add_node(step.__name__, step)
    graph.add_edge(START, "ask_data")
    return graph.compile(checkpointer=checkpointer, name="quantext-guide")


class Guide:
    """What is done between the questions. Each step names what may follow, and the drawing shows it."""

    def __init__(
        self, tools: ReleaseTools, files: Files, chat: Callable[[], ChatModel], settings: Fields
    ) -> None:
        self.tools, self.files, self.chat, self.settings = tools, files, chat, settings

    def steps(self) -> list[Step]:
        spec: list[Step] = [self.look, self.propose, self.confirm, self.tradeoff, self.write, self.replace]
        run: list[Step] = [self.start, self.go_on, self.write_again, self.follow, self.audit]
        return [*spec, self.check, self.preview, *run, self.publish, self.keep]

    def look(self, state: GuidedState) -> Command[Literal["ask_text"]]:
        for role, path in (("private", state["data"]), ("public", state["auxiliary"])):
            if path:
                show(_look_lines(role, self.tools.look_at_file(path)))
        return Command(goto="ask_text", update={"workspace": ""})

    def propose(self, state: GuidedState) -> Command[Literal["confirm"]]:
        say(f"{self.tools.reader.name} proposes descriptions.")
        with closing(self.chat()) as chat:
            attributes = [self._described(chat, each, state) for each in state["attributes"]]
        return Command(goto="confirm", update={"attributes": attributes})

    def confirm(self, state: GuidedState) -> Command[Literal["ask_secret"]]:
        settled = []
        for attribute in state["attributes"]:
            while (wanted := put(_is_right(attribute), partial(changed, attribute))) is not attribute:
                attribute = wanted
            settled.append(attribute)
        return Command(goto="ask_secret", update={"attributes": settled})

    def tradeoff(self, state: GuidedState) -> Command[Literal["ask_budget_nats"]]:
        if not state["auxiliary"]:
            show(["that is estimated on a public file, and none was named"])
            return Command(goto="ask_budget_nats")
        with complaints_shown():
            spec = draft(Proposal.model_validate(self._proposal(state)), self.tools.folder).spec
            show(_tradeoff_lines(self.tools.tradeoff_of(spec, 1.0)))
        return Command(goto="ask_budget_nats")

    def write(self, state: GuidedState) -> Command[Literal["ask_replace", "check", "ask_mended_draft"]]:
        if self.tools.path(state["spec"]).exists():
            return Command(goto="ask_replace")
        return self._written(state, overwrite=False)

    def replace(self, state: GuidedState) -> Command[Literal["check", "ask_mended_draft"]]:
        return self._written(state, overwrite=True)

    def check(self, state: GuidedState) -> Command[Literal["ask_preview", "ask_mended"]]:
        with complaints_shown():
            show(promises(self.tools.check_release(state["spec"])))
            return Command(goto="ask_preview")
        return Command(goto="ask_mended")

    def preview(self, state: GuidedState) -> Command[Literal["ask_start"]]:
        with complaints_shown():
            show(self.tools.preview_release(state["spec"], 2).shown)
        return Command(goto="ask_start")

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

    def _written(self, state: GuidedState, *, overwrite: bool) -> Command[Any]:
        with complaints_shown():
            show(self.tools.write_spec(state["spec"], overwrite, **self._proposal(state)).shown)
            return Command(goto="check")
        return Command(goto="ask_mended_draft")

    def _described(self, chat: ChatModel, attribute: Fields, state: GuidedState) -> Fields:
        """The attribute with the model's proposal; as it is where the model gives none, or may not know."""
        names = {category["name"] for category in attribute["categories"]}
        public = self.files.categories(state["auxiliary"]).get(attribute["name"], ())
        if self.tools.reader.remote and not names <= set(public):
            say(f"{attribute['name']}: a remote model is not told categories of the private file alone.")
            return attribute
        proposed = propose(chat, attribute, state["texts"])
        if proposed is None:
            say(f"{attribute['name']}: the model proposed nothing that can be used.")
        return proposed or attribute

    def _proposal(self, state: GuidedState) -> Fields:
        kept = ("data", "text", "auxiliary", "budget_nats")
        attributes = [
            {key: value for key, value in each.items() if key != "proposed"} for each in state["attributes"]
        ]
        return {
            **{key: value for key, value in state.items() if key in kept},
            "attributes": attributes,
            "secrets": [{"where": state["secret"]}],
            "output": self._free_output(),
            **self.settings,
        }

    def _free_output(self) -> str:
        names = ("release" if number == 1 else f"release-{number}" for number in count(1))
        taken = self.tools.folder.joinpath
        return next(name for name in names if not taken(name).exists() and not taken(f"{name}.work").exists())


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


def _is_right(attribute: Fields) -> str:
    head = f"{attribute['name']}: {attribute.get('description') or '(no description)'}"
    lines = [f"  {each['name']}: {each.get('description', '')}" for each in attribute["categories"]]
    drop = ", `-name` to drop one." if attribute.get("proposed") else "."
    asked = f"Is that right? Enter for yes, `name: description` to change one{drop}"
    return "\n".join([head, *lines, asked])


def _look_lines(role: str, looked: Answer) -> list[str]:
    public = looked.public
    columns = ", ".join(f"{column['name']} ({column['kind']})" for column in public["columns"])
    about = "about " if public.get("rows_are_estimated") else ""
    return [f"{role} file: {about}{public['rows']} rows; {columns}", *looked.shown]


def _tradeoff_lines(tradeoff: Answer) -> list[str]:
    return [
        f"{row['nats']:g} nats ({row['rule']}): an attacker's chance grows at most "
        + ("without bound that helps" if row["vacuous"] else f"{row['chance_grows_at_most_by']:.1f} times")
        + f"; shares are off by about {max(row['error_of_share'].values(), default=0):.2f}"
        for row in tradeoff.public["points"]
    ]
