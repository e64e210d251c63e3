"""The chat for small models: the program asks the questions, a model only fills in proposals.

A graph whose nodes ask one thing each, so that it goes on where it stopped after a restart. The model
proposes descriptions, and categories where no file names them, by JSON schema; it is told names of
attributes and categories that the person has confirmed, and what the person says the texts are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import count
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from quantext_graph.apps.agent_tools.tools import ReleaseTools
from quantext_graph.apps.chat.conversation import promises
from quantext_graph.apps.chat.descriptions import propose
from quantext_graph.apps.chat.guided_questions import (
    BUDGET,
    agreed,
    asked,
    confirmed,
    look_lines,
    not_a_budget,
    not_in,
    secret_of,
    tradeoff_lines,
)
from quantext_graph.apps.chat.guided_run import Go, GuidedRun, GuidedState, say, show
from quantext_graph.data.inspection import DatasetSummary, glance
from quantext_graph.models.chat_model import ChatModel
from quantext_graph.release.draft import SUFFIXES, Proposal, draft
from quantext_graph.spec.errors import QuantextError

Fields = dict[str, Any]


def build_guide(
    tools: ReleaseTools,
    chat: Callable[[], ChatModel],
    checkpointer: BaseCheckpointSaver[Any],
    *,
    settings: Fields | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The guided conversation.

    Args:
        chat: opens the model that fills in proposals; it is closed before anything else is done.
        settings: of the release, as fields of a `Proposal`: its model, address, attempts, min_verified.
    """
    guide = Guide(tools, chat, settings or {})
    graph: Any = StateGraph(GuidedState)
    for node in guide.nodes():
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "ask_data")
    return graph.compile(checkpointer=checkpointer, name="quantext-guide")  # type: ignore[no-any-return]


class Guide(GuidedRun):
    """The nodes. Each asks or does one thing and says what comes next; what is asked is asked before
    anything is done, since a node that asks is run again with the answer."""

    def __init__(self, tools: ReleaseTools, chat: Callable[[], ChatModel], settings: Fields) -> None:
        self.tools, self.chat, self.settings = tools, chat, settings

    def nodes(self) -> list[Callable[[GuidedState], Go]]:
        return [
            self.ask_data,
            self.ask_auxiliary,
            self.look,
            self.ask_text,
            self.ask_texts,
            self.ask_attributes,
            self.propose,
            self.confirm,
            self.ask_secret,
            self.ask_budget,
            self.tradeoff,
            self.ask_spec,
            self.check,
            self.ask_mended,
            self.ask_preview,
            self.preview,
            self.ask_start,
            self.start,
            self.follow,
            self.ask_again,
            self.audit,
            self.ask_publish,
            self.publish,
        ]

    # -- the files ------------------------------------------------------------------------------

    def ask_data(self, _: GuidedState) -> Go:
        path = asked("Which file do you want to release? (.csv, .tsv, .jsonl or .parquet)", self._look_error)
        return Command(goto="ask_auxiliary", update={"data": path, "workspace": ""})

    def ask_auxiliary(self, _: GuidedState) -> Go:
        path = asked(
            "Is there a public file of the same kind whose texts are labelled? It is needed for several "
            "attributes. (path, or Enter for none)",
            lambda said: said and self._look_error(said),
        )
        return Command(goto="look", update={"auxiliary": path or None})

    def look(self, state: GuidedState) -> Go:
        for role, path in (("private", state["data"]), ("public", state["auxiliary"])):
            if path:
                show(look_lines(role, self.tools.look_at_file(path)))
        return Command(goto="ask_text")

    def ask_text(self, state: GuidedState) -> Go:
        look = self._inspect(state["data"])
        names = [column.name for column in look.columns]
        known = f" [{look.text}]" if look.text else ""
        text = asked(
            f"Which column holds the texts?{known}",
            lambda said: not_in(said or look.text or "", names),
        )
        return Command(goto="ask_texts", update={"text": text or look.text})

    def ask_texts(self, _: GuidedState) -> Go:
        said = asked("What are the texts, in a few words? For example: messages of patients. [short texts]")
        return Command(goto="ask_attributes", update={"texts": said or "short texts"})

    # -- what is told about them ----------------------------------------------------------------

    def ask_attributes(self, state: GuidedState) -> Go:
        columns = self._columns(state)
        default = f" [{', '.join(columns)}]" if columns else ""
        said = asked(
            "Which attributes matter, secret or useful? Names separated by commas; what is no column is "
            f"labelled by the model.{default}",
            lambda said: None if said or columns else "name at least one attribute",
        )
        names = [name.strip() for name in said.split(",") if name.strip()] or list(columns)
        private = {column.name for column in self._inspect(state["data"]).categorical}
        attributes = [
            {
                "name": name,
                "column": name if name in private else None,
                "categories": [{"name": category} for category in columns.get(name, ())],
            }
            for name in names
        ]
        return Command(goto="propose", update={"attributes": attributes})

    def propose(self, state: GuidedState) -> Go:
        say(f"{self.tools.reader.name} proposes descriptions.")
        with closing(self.chat()) as chat:
            attributes = [self._described(chat, each, state) for each in state["attributes"]]
        return Command(goto="confirm", update={"attributes": attributes})

    def confirm(self, state: GuidedState) -> Go:
        settled = [confirmed(attribute) for attribute in state["attributes"]]
        return Command(goto="ask_secret", update={"attributes": settled})

    def ask_secret(self, state: GuidedState) -> Go:
        first = state["attributes"][0]
        example = f"{first['name']} = {first['categories'][0]['name']}"
        said = asked(
            f"Which share must nobody learn? For example: {example}",
            lambda said: secret_of(said, state["attributes"])[1],
        )
        return Command(goto="ask_budget", update={"secret": secret_of(said, state["attributes"])[0]})

    def ask_budget(self, _: GuidedState) -> Go:
        said = asked(BUDGET, lambda said: None if said in ("", "?") else not_a_budget(said))
        if said == "?":
            return Command(goto="tradeoff")
        return Command(goto="ask_spec", update={"budget_nats": float(said or 1)})

    def tradeoff(self, state: GuidedState) -> Go:
        if not state.get("auxiliary"):
            show(["that is estimated on a public file, and none was named"])
            return Command(goto="ask_budget")
        try:
            spec = draft(Proposal.model_validate(self._proposal(state)), self.tools.folder).spec
            show(tradeoff_lines(self.tools.tradeoff_of(spec, 1.0)))
        except QuantextError as error:
            show([str(error)])
        return Command(goto="ask_budget")

    # -- the spec -------------------------------------------------------------------------------

    def ask_spec(self, state: GuidedState) -> Go:
        said = asked(
            "Where shall the spec go? [spec.yaml]",
            lambda said: (
                None
                if (said or "spec.yaml").endswith(SUFFIXES)
                else f"{said}: a spec is called .yaml or .yml"
            ),
        )
        path = said or "spec.yaml"
        stands = self.tools.path(path).exists()
        if stands and not agreed(f"{path} stands already. Replace it?"):
            return Command(goto="ask_spec")
        try:
            show(self.tools.write_spec(path, stands, **self._proposal(state)).shown)
        except QuantextError as error:
            show([str(error)])
            return Command(goto="ask_mended", update={"spec": ""})
        return Command(goto="check", update={"spec": path})

    def check(self, state: GuidedState) -> Go:
        try:
            show(promises(self.tools.check_release(state["spec"])))
        except QuantextError as error:
            show([str(error)])
            return Command(goto="ask_mended")
        return Command(goto="ask_preview")

    def ask_mended(self, state: GuidedState) -> Go:
        asked("Mend the file or the spec, then press Enter.")
        return Command(goto="check" if state["spec"] else "ask_spec")

    def ask_preview(self, _: GuidedState) -> Go:
        again = agreed("Shall two records be rewritten to look at? Nothing is kept.")
        return Command(goto="preview" if again else "ask_start")

    def preview(self, state: GuidedState) -> Go:
        try:
            show(self.tools.preview_release(state["spec"], 2).shown)
        except QuantextError as error:
            show([str(error)])
        return Command(goto="ask_start")

    # -- what the nodes share -------------------------------------------------------------------

    def _look_error(self, path: str) -> str | None:
        try:
            self.tools.look_at_file(path)
        except QuantextError as error:
            return str(error)
        return None

    def _inspect(self, path: str) -> DatasetSummary:
        return glance(self.tools.path(path))[0]

    def _columns(self, state: GuidedState) -> dict[str, list[str]]:
        """The categories of each column that could be an attribute, of both files."""
        found: dict[str, set[str]] = {}
        for path in (state["data"], state["auxiliary"]):
            for column in self._inspect(path).categorical if path else ():
                if column.name != state["text"]:
                    found.setdefault(column.name, set()).update(column.categories)
        return {name: sorted(categories) for name, categories in found.items()}

    def _described(self, chat: ChatModel, attribute: Fields, state: GuidedState) -> Fields:
        """The attribute with the model's proposal; as it is where the model gives none, or may not know."""
        names = {category["name"] for category in attribute["categories"]}
        if self.tools.reader.remote and not names <= self._public_categories(attribute["name"], state):
            say(f"{attribute['name']}: a remote model is not told categories of the private file alone.")
            return attribute
        proposed = propose(chat, attribute, state["texts"])
        if proposed is None:
            say(f"{attribute['name']}: the model proposed nothing that can be used.")
        return proposed or attribute

    def _public_categories(self, name: str, state: GuidedState) -> set[str]:
        columns = self._inspect(state["auxiliary"]).categorical if state["auxiliary"] else ()
        return {category for column in columns if column.name == name for category in column.categories}

    def _proposal(self, state: GuidedState) -> Fields:
        attributes = [
            {key: value for key, value in each.items() if key != "proposed"} for each in state["attributes"]
        ]
        return {
            "data": state["data"],
            "text": state["text"],
            "auxiliary": state["auxiliary"],
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
