"""The chat for small models: the program asks the questions, a model only fills in proposals.

A graph whose nodes ask or do one thing each, so that it goes on where it stopped after a restart. The
model proposes descriptions, and categories where no file names them; it is told names of attributes and
categories that the person has confirmed, and what the person says the texts are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from quantext_graph.apps.agent_tools.disclosure import Fields
from quantext_graph.apps.agent_tools.tools import ReleaseTools
from quantext_graph.apps.chat.conversation import promises
from quantext_graph.apps.chat.descriptions import propose
from quantext_graph.apps.chat.guided_questions import (
    Files,
    GuidedState,
    Question,
    budget,
    changed,
    put,
    secret_of,
    spec_path,
)
from quantext_graph.models.chat_model import ChatModel
from quantext_graph.release import background
from quantext_graph.release.draft import Proposal, draft
from quantext_graph.spec.errors import QuantextError
from quantext_graph.workspace.folder import default_workspace

Begun = Command[Literal["follow", "__end__"]]


@dataclass(frozen=True)
class Deed:
    """A node that does something. Where `otherwise` is named, what it raises is shown and that follows."""

    name: str
    do: Callable[[GuidedState], None]
    next: str
    otherwise: str = ""

    @property
    def leads_to(self) -> tuple[str, ...]:
        return (self.next, self.otherwise) if self.otherwise else (self.next,)

    def __call__(self, state: GuidedState) -> Command[str]:
        try:
            self.do(state)
        except QuantextError as error:
            if not self.otherwise:
                raise
            tell(shown=[str(error)])
            return Command(goto=self.otherwise)
        return Command(goto=self.next)


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
    guide = Guide(tools, chat, settings or {})
    graph = StateGraph(GuidedState)
    for node in conversation(guide):
        graph.add_node(node.name, node, destinations=node.leads_to)
    graph.add_node(guide.propose).add_node(guide.confirm).add_node(guide.place)
    graph.add_node(guide.start).add_node(guide.go_on).add_node(guide.write_again).add_node(guide.follow)
    graph.add_edge(START, "ask_data")
    return graph.compile(checkpointer=checkpointer, name="quantext-guide")


def conversation(guide: Guide) -> tuple[Question | Deed, ...]:
    """What is asked and done, in order, but for the steps of `Guide` whose type says what follows."""
    files = guide.files
    return (
        Question("ask_data", "ask_auxiliary", files.readable),
        Question("ask_auxiliary", "look", lambda said, state: said and files.readable(said, state)),
        Deed("look", guide.look, "ask_text"),
        Question("ask_text", "ask_texts", files.column, lambda state: files.look(state["data"]).text or ""),
        Question("ask_texts", "ask_attributes", lambda said, _: said, "short texts"),
        Question("ask_attributes", "propose", files.attributes, lambda state: ", ".join(files.known(state))),
        Question("ask_secret", "ask_budget_nats", secret_of),
        Question("ask_budget_nats", "ask_spec", budget, "1", {"?": "tradeoff"}),
        Deed("tradeoff", guide.tradeoff, "ask_budget_nats", otherwise="ask_budget_nats"),
        Question("ask_spec", "place", spec_path, "spec.yaml"),
        Deed("write", partial(guide.write, overwrite=False), "check", otherwise="ask_mended_draft"),
        Question("ask_replace", turns={"y": "replace", "n": "ask_spec"}),
        Deed("replace", partial(guide.write, overwrite=True), "check", otherwise="ask_mended_draft"),
        Question("ask_mended_draft", "ask_spec"),
        Deed("check", guide.check, "ask_preview", otherwise="ask_mended"),
        Question("ask_mended", "check"),
        Question("ask_preview", turns={"y": "preview", "n": "ask_start"}),
        Deed("preview", guide.preview, "ask_start", otherwise="ask_start"),
        Question("ask_start", turns={"y": "start", "n": END}),
        Question("ask_again", turns={"y": "go_on", "n": END}),
        Deed("audit", guide.audit, "ask_publish"),
        Question("ask_publish", turns={"y": "publish", "n": "keep", "r": "write_again"}),
        Deed("publish", guide.publish, END, otherwise=END),
        Deed("keep", guide.keep, END),
    )


class Guide:
    """What is done between the questions."""

    def __init__(self, tools: ReleaseTools, chat: Callable[[], ChatModel], settings: Fields) -> None:
        self.tools, self.chat, self.settings = tools, chat, settings
        self.files = Files(tools.folder)

    def look(self, state: GuidedState) -> None:
        for role, path in (("private", state["data"]), ("public", state["auxiliary"])):
            if path:
                looked = self.tools.look_at_file(path)
                columns = ", ".join(f"{each['name']} ({each['kind']})" for each in looked.public["columns"])
                about = "about " if looked.public.get("rows_are_estimated") else ""
                rows = f"{role} file: {about}{looked.public['rows']} rows; {columns}"
                tell(shown=[rows, *looked.shown])

    def propose(self, state: GuidedState) -> Command[Literal["confirm"]]:
        tell(say=f"{self.tools.reader.name} proposes descriptions.")
        with closing(self.chat()) as chat:
            attributes = [self._described(chat, each, state) for each in state["attributes"]]
        return Command(goto="confirm", update={"attributes": attributes})

    def _described(self, chat: ChatModel, attribute: Fields, state: GuidedState) -> Fields:
        """The attribute with the model's proposal; as it is where the model gives none, or may not know."""
        names = {category["name"] for category in attribute["categories"]}
        public = self.files.categories(state["auxiliary"]).get(attribute["name"], ())
        if self.tools.reader.remote and not names <= set(public):
            tell(say=f"{attribute['name']}: a remote model is not told categories of the private file alone.")
            return attribute
        proposed = propose(chat, attribute, state["texts"])
        if proposed is None:
            tell(say=f"{attribute['name']}: the model proposed nothing that can be used.")
        return proposed or attribute

    def confirm(self, state: GuidedState) -> Command[Literal["ask_secret"]]:
        settled = []
        for attribute in state["attributes"]:
            while (wanted := put(_is_right(attribute), partial(changed, attribute))) is not attribute:
                attribute = wanted
            settled.append(attribute)
        return Command(goto="ask_secret", update={"attributes": settled})

    def tradeoff(self, state: GuidedState) -> None:
        if not state["auxiliary"]:
            raise QuantextError("that is estimated on a public file, and none was named")
        spec = draft(Proposal.model_validate(self._proposal(state)), self.tools.folder).spec
        lines = []
        for row in self.tools.tradeoff_of(spec, 1.0).public["points"]:
            times = (
                "without bound that helps"
                if row["vacuous"]
                else f"{row['chance_grows_at_most_by']:.1f} times"
            )
            error = max(row["error_of_share"].values(), default=0)
            grows = f"{row['nats']:g} nats ({row['rule']}): an attacker's chance grows at most {times}"
            lines.append(f"{grows}; shares are off by about {error:.2f}")
        tell(shown=lines)

    def place(self, state: GuidedState) -> Command[Literal["ask_replace", "write"]]:
        return Command(goto="ask_replace" if self.tools.path(state["spec"]).exists() else "write")

    def write(self, state: GuidedState, *, overwrite: bool) -> None:
        tell(shown=self.tools.write_spec(state["spec"], overwrite, **self._proposal(state)).shown)

    def _proposal(self, state: GuidedState) -> Fields:
        names = ("release" if number == 1 else f"release-{number}" for number in count(1))
        taken = self.tools.folder.joinpath
        free = next(name for name in names if not taken(name).exists() and not taken(f"{name}.work").exists())
        said: Fields = {
            key: state[key] for key in ("data", "text", "auxiliary", "budget_nats") if key in state
        }
        attributes = [{key: each[key] for key in each if key != "proposed"} for each in state["attributes"]]
        secret = {"where": state["secret"]}
        return {**said, "attributes": attributes, "secrets": [secret], "output": free, **self.settings}

    def check(self, state: GuidedState) -> None:
        tell(shown=promises(self.tools.check_release(state["spec"])))

    def preview(self, state: GuidedState) -> None:
        tell(shown=self.tools.preview_release(state["spec"], 2).shown)

    def start(self, state: GuidedState) -> Begun:
        return self._begin(state, default_workspace(self.tools.spec(state["spec"])), retry_failed=False)

    def go_on(self, state: GuidedState) -> Begun:
        found = background.standing(Path(state["workspace"]))
        missed = found.state == "failed" and found.counts.unverified > 0
        return self._begin(state, found.workspace, retry_failed=missed)

    def write_again(self, state: GuidedState) -> Begun:
        return self._begin(state, Path(state["workspace"]), retry_failed=True)

    def _begin(self, state: GuidedState, folder: Path, *, retry_failed: bool) -> Begun:
        try:
            self.tools.start_release(state["spec"], str(folder), retry_failed)
        except QuantextError as error:
            if not (folder / "store.sqlite").is_file() or background.standing(folder).state != "running":
                tell(shown=[str(error)])
                return Command(goto="__end__")
        return Command(goto="follow", update={"workspace": str(folder)})

    def follow(self, state: GuidedState) -> Command[Literal["audit", "ask_again", "__end__"]]:
        folder = Path(state["workspace"])
        told = None
        while (found := background.standing(folder)).state == "running":
            if found.step is not None and found.step != told:
                tell(**found.step)
                told = found.step
            time.sleep(0.5)
        if found.state == "gate":
            return Command(goto="audit")
        if found.state == "published":
            return Command(goto="__end__")
        tell(shown=[f"{folder}: {found.state}", *([found.reason] if found.reason else [])])
        return Command(goto="ask_again")

    def audit(self, state: GuidedState) -> None:
        tell(say="It is done and waits at the gate. This is for you alone:")
        tell(shown=self.tools.explain_audit(state["workspace"]).shown)

    def publish(self, state: GuidedState) -> None:
        tell(say=f"Published: {self.tools.publish_release(state['workspace'], None).public['published']}")

    def keep(self, state: GuidedState) -> None:
        tell(say=f"Not published. All is kept in {state['workspace']}: `quantext publish` can do it later.")


def tell(**event: Any) -> None:
    """To the person: a line to `say`, lines `shown` to them alone, or the progress of a stage."""
    get_stream_writer()(event)


def _is_right(attribute: Fields) -> str:
    head = f"{attribute['name']}: {attribute.get('description') or '(no description)'}"
    lines = [f"  {each['name']}: {each.get('description', '')}" for each in attribute["categories"]]
    drop = ", `-name` to drop one." if attribute.get("proposed") else "."
    asked = f"Is that right? Enter for yes, `name: description` to change one{drop}"
    return "\n".join([head, *lines, asked])
