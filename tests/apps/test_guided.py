"""The chat for small models: the program asks, the model proposes, a person settles it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import END, START
from people import Said, ScriptedPerson
from releases import obedient, write_data
from servers import Act, OpenAIServer

from quantext_graph.apps.agent_tools.tools import Reader, ReleaseTools
from quantext_graph.apps.chat.conversation import Conversation
from quantext_graph.apps.chat.descriptions import words_for
from quantext_graph.apps.chat.guided import Guide, build_guide, conversation
from quantext_graph.apps.chat.guided_questions import WORDS, Question
from quantext_graph.apps.chat.session import Talk, conversations, hold
from quantext_graph.models.chat_model import ChatModel, Outcome, chat_model
from quantext_graph.models.llamacpp_server import ModelFileError, pull
from quantext_graph.release import background
from quantext_graph.spec.loading import load_spec
from quantext_graph.spec.models import Models, ModelSpec


def proposals(body: dict[str, Any]) -> Act:
    """Describes what it is asked about: as many categories as the schema wants."""
    schema = body["response_format"]["json_schema"]["schema"]
    count = schema["properties"]["categories"]["minItems"]
    words = [
        {"name": f"kind {i}", "description": f"it says number {i}", "word": "writer"} for i in range(count)
    ]
    return Act(json.dumps({"description": "what it is about", "categories": words}))


class Guided:
    """A guided chat over a small data set; `go` is one process, with a connection of its own."""

    def __init__(self, folder: Path, proposer: OpenAIServer, rewriter: str, *, remote: bool = False) -> None:
        self.folder, self.store = folder, folder / "chats.sqlite"
        self.settings = {"model": "openai:tiny", "base_url": rewriter, "attempts": 2}
        self.tools = ReleaseTools(folder, Reader("openai:tiny", remote))
        self._reference = ModelSpec(model="openai:tiny", base_url=proposer.url)

    def chat(self) -> ChatModel:
        return chat_model(self._reference, Models())

    def go(self, *answers: tuple[str, Said]) -> tuple[ScriptedPerson, bool]:
        person = ScriptedPerson(*answers)
        with conversations(self.store) as saver:
            graph = build_guide(self.tools, self.chat, saver, settings=self.settings)
            ended = Conversation(graph, "1", person, self.tools).follow()
        assert person.answers == []
        return person, ended


@pytest.fixture
def guided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guided]:
    monkeypatch.setattr("quantext_graph.mechanism.tradeoff.POOL", 2000)
    write_data(tmp_path, 24)
    with OpenAIServer(then=proposals) as proposer, obedient(seconds=0.1) as rewriter:
        yield Guided(tmp_path, proposer, rewriter.url)


UP_TO_SPEC = (
    ("Which file do you want", "privat.csv"),
    ("Which file do you want", "private.csv"),
    ("public file", "public.csv"),
    ("column holds the texts", ""),
    ("What are the texts", "messages of patients"),
    ("Which attributes matter", ""),
    ("gender: what it is about", "female: the patient is a woman"),
    ("gender: what it is about", ""),
    ("diagnosis: what it is about", ""),
    ("Which share must nobody", "diagnosis = diabets"),
    ("Which share must nobody", "diagnosis = diabetes"),
)


def test_from_file_to_release_folder_over_three_processes(guided: Guided) -> None:
    person, ended = guided.go(*UP_TO_SPEC, ("How many nats", None))
    assert not ended
    assert "privat.csv: no such file" in person.saw
    assert "'diagnosis = diabets' is no share" in person.saw
    assert not (guided.folder / "spec.yaml").exists()

    person, ended = guided.go(
        ("How many nats", "?"),
        ("How many nats", "much"),
        ("How many nats", "0.5"),
        ("Where shall the spec go?", ""),
        ("two records", "y"),
        ("Start the release?", "y"),
        ("Publish it?", None),
    )
    assert not ended
    assert "0.5 nats" in person.saw
    assert "'much' is no number" in person.saw
    assert "before  (" in person.saw
    assert "at most 1.65 times as likely" in person.saw
    assert "The attack that gained most" in person.saw
    assert {"label", "rewrite"} & {event["stage"] for event in person.events}
    spec = load_spec(guided.folder / "spec.yaml")
    assert spec.attribute("gender").categories[0].description == "the patient is a woman"
    assert spec.attribute("diagnosis").category_names == ("asthma", "diabetes", "migraine")
    assert spec.mechanism.budget_nats == 0.5
    assert not (guided.folder / "release").exists()

    person, ended = guided.go(("Publish it?", "maybe"), ("Publish it?", "y"))
    assert ended
    assert "answer y, n or r" in person.saw
    assert person.said[-1] == f"Published: {guided.folder / 'release'}"
    with (guided.folder / "release" / "data.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 24


def test_a_spec_that_stands_is_asked_about(guided: Guided) -> None:
    (guided.folder / "spec.yaml").write_text("mine: yes\n", encoding="utf-8")
    guided.go(
        *UP_TO_SPEC,
        ("How many nats", ""),
        ("Where shall", "spec.txt"),
        ("Where shall", ""),
        ("Replace it?", "n"),
        ("Where shall", "other.yaml"),
        ("two records", "n"),
        ("Start the release?", "n"),
    )
    assert (guided.folder / "spec.yaml").read_text(encoding="utf-8") == "mine: yes\n"
    assert load_spec(guided.folder / "other.yaml").mechanism.budget_nats == 1
    assert not list(guided.folder.glob("*.work"))


def test_categories_are_proposed_where_no_file_names_them(guided: Guided) -> None:
    guided.go(
        ("Which file do you want", "private.csv"),
        ("public file", ""),
        ("column holds the texts", "mesage"),
        ("column holds the texts", "message"),
        ("What are the texts", ""),
        ("Which attributes matter", ""),
        ("Which attributes matter", "mood"),
        ("kind 1: it says number 1", "-kind 1"),
        ("kind 0: it says number 0", ""),
        ("kind 0: it says number 0", "glad: the writer is glad"),
        ("glad: the writer is glad", ""),
        ("Which share", "mood = glad"),
        ("How many nats", "?"),
        ("How many nats", "1"),
        ("Where shall", ""),
        ("two records", "n"),
        ("Start the release?", "n"),
    )
    mood = load_spec(guided.folder / "spec.yaml").attribute("mood")
    assert mood.category_names == ("kind 0", "glad")


def test_a_remote_model_is_not_told_categories_of_the_private_file(tmp_path: Path) -> None:
    rows = ["text,ward"] + [
        f"a message of some length and number {i},{('north', 'zebra')[i % 2]}" for i in range(20)
    ]
    (tmp_path / "private.csv").write_text("\n".join(rows), encoding="utf-8")
    with OpenAIServer(then=proposals) as proposer:
        person, _ = Guided(tmp_path, proposer, proposer.url, remote=True).go(
            ("Which file do you want", "private.csv"),
            ("public file", ""),
            ("column holds the texts", ""),
            ("What are the texts", ""),
            ("Which attributes matter", "ward, mood"),
            ("ward: (no description)", ""),
            ("mood: what it is about", None),
        )
        assert "north" in person.saw
        assert len(proposer.asked) == 1
        assert "zebra" not in json.dumps(proposer.asked)


def test_a_model_that_is_not_there_is_one_line_and_the_chat_goes_on_later(guided: Guided) -> None:
    gone = OpenAIServer()
    gone.stop()
    there, guided._reference = guided._reference, ModelSpec(model="openai:tiny", base_url=gone.url)
    person, _ = guided.go(*UP_TO_SPEC[:6])
    assert "no server answers" in person.shown[-1]
    guided._reference = there
    guided.go(("gender: what it is about", None))


def test_a_file_that_does_not_fit_is_mended_and_checked_again(guided: Guided) -> None:
    path = guided.folder / "private.csv"
    sound = path.read_text(encoding="utf-8")
    path.write_text(sound + "24,\n", encoding="utf-8")

    def mend() -> str:
        path.write_text(sound, encoding="utf-8")
        return ""

    person, _ = guided.go(
        *UP_TO_SPEC,
        ("How many nats", ""),
        ("Where shall", ""),
        ("then press Enter", ""),
        ("then press Enter", mend),
        ("two records", "n"),
        ("Start the release?", "n"),
    )
    assert person.saw.count("row 25: no text") == 2


def test_a_run_that_stopped_is_gone_on_with_when_the_person_likes(
    guided: Guided, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a process that dies at once."""
    begun: list[str] = []
    monkeypatch.setattr(background, "_spawn", lambda folder, *_: begun.append(folder.name))
    person, ended = guided.go(
        *UP_TO_SPEC,
        ("How many nats", ""),
        ("Where shall", ""),
        ("two records", "n"),
        ("Start the release?", "y"),
        ("Go on with it?", "y"),
        ("Go on with it?", None),
    )
    assert not ended
    assert begun == ["release.work"] * 2
    assert "release.work: stopped" in person.saw
    assert guided.go(("Go on with it?", "n"))[1]
    guided.go(  # another release
        *UP_TO_SPEC,
        ("How many nats", ""),
        ("Where shall", ""),
        ("Replace it?", "y"),
        ("two records", "n"),
        ("Start the release?", "y"),
        ("Go on with it?", None),
    )
    assert begun[2:] == ["release-2.work"]


def test_every_node_and_the_end_are_reached_in_the_drawing(guided: Guided) -> None:
    """A node that named no successor would stand alone, and so would one that nobody names."""
    graph = build_guide(guided.tools, guided.chat)
    drawn = graph.get_graph()
    after: dict[str, set[str]] = {}
    for edge in drawn.edges:
        after.setdefault(edge.source, set()).add(edge.target)
    reached, open_ = {START}, [START]
    while open_:
        new = after.get(open_.pop(), set()) - reached
        reached |= new
        open_ += new
    assert reached == set(drawn.nodes)
    assert END in reached
    assert len(drawn.nodes) > 25
    assert {"ask_publish"} == {source for source in after if "publish" in after[source]}


def test_what_leads_on_in_the_drawing_is_a_node(guided: Guided) -> None:
    """A misspelt successor is drawn as a node of its own: it would do nothing."""
    graph = build_guide(guided.tools, guided.chat)
    assert set(graph.get_graph().nodes) == {START, END, *graph.builder.nodes}


def test_every_question_of_the_table_has_words_and_no_words_are_left(guided: Guided) -> None:
    nodes = conversation(Guide(guided.tools, guided.chat, {}))
    assert {node.name for node in nodes if isinstance(node, Question)} == set(WORDS)


def test_the_embedded_model_is_not_loaded_before_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUANTEXT_CHATS", str(tmp_path / "chats.sqlite"))
    write_data(tmp_path, 8)
    talk = Talk(ModelSpec(model="embedded:no-such-model"), tmp_path)
    assert talk.is_guided
    person = ScriptedPerson(("Which file do you want", "private.csv"), ("public file", None))
    hold(talk, person)
    hold(talk, ScriptedPerson(("public file", None)))
    hold(replace(talk, new=True), ScriptedPerson(("Which file do you want", None)))


@pytest.mark.model
@pytest.mark.parametrize("count", [0, 2])
def test_llama_cpp_takes_the_schema_of_a_proposal(count: int) -> None:
    """As a grammar it lets nothing else pass: what is written follows it, whole or cut at the limit."""
    try:
        pull("smollm2-135m")
    except ModelFileError as error:
        pytest.skip(str(error))
    with closing(chat_model(ModelSpec(model="embedded:smollm2-135m"), Models())) as chat:
        asked = [HumanMessage("Describe the attribute mood.")]
        reply = chat.structured(asked, words_for(count), max_tokens=30, repairs=0)
    assert reply.outcome in (Outcome.OK, Outcome.TRUNCATED)
