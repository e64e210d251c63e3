"""The chat for small models: the program asks the questions, a model only fills in proposals.

A graph whose nodes ask or do one thing each (`guided_questions` has what is asked), so that it goes on
where it stopped after a restart. The model proposes descriptions, and categories where no file names
them, by JSON schema; it is told names of attributes and categories that the person has confirmed, and
what the person says the texts are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import count
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from quantext_graph.apps.agent_tools.disclosure import Answer
from quantext_graph.apps.agent_tools.tools import ReleaseTools
from quantext_graph.apps.chat.conversation import promises
from quantext_graph.apps.chat.descriptions import propose
from quantext_graph.apps.chat.guided_answers import Fields, Files, GuidedState, changed
from quantext_graph.apps.chat.guided_questions import put, questions
from quantext_graph.apps.chat.guided_run import GuidedRun, Step, complaints_shown, say, show
from quantext_graph.models.chat_model import ChatModel
from quantext_graph.release.draft import Proposal, draft


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


class Guide(GuidedRun):
    """What is done between the questions. Each step names what may follow, and the drawing shows it."""

    def __init__(
        self, tools: ReleaseTools, files: Files, chat: Callable[[], ChatModel], settings: Fields
    ) -> None:
        self.tools, self.files, self.chat, self.settings = tools, files, chat, settings

    def steps(self) -> list[Step]:
        before: list[Step] = [self.look, self.propose, self.confirm, self.tradeoff, self.write, self.replace]
        return [*before, self.check, self.preview, *self.run_steps()]

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
        attributes = [
            {key: value for key, value in each.items() if key != "proposed"} for each in state["attributes"]
        ]
        return {
            "data": state["data"],
            "text": state["text"],
            "auxiliary": state["auxiliary"] or None,
            "attributes": attributes,
            "secrets": [{"where": state["secret"]}],
            "budget_nats": state.get("budget_nats", 1.0),
            "output": self._free_output(),
            **self.settings,
        }

    def _free_output(self) -> str:
        names = ("release" if number == 1 else f"release-{number}" for number in count(1))
        taken = self.tools.folder.joinpath
        return next(name for name in names if not taken(name).exists() and not taken(f"{name}.work").exists())


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
