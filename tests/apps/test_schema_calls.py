"""Tool calls by JSON schema: what the model is asked for, and what its steps become."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from servers import Act, OpenAIServer

from quantext_graph.apps.agent_tools.tools import Reader, release_tools
from quantext_graph.apps.chat.schema_calls import SchemaCalls, step_of
from quantext_graph.models.chat_model import Outcome, chat_model
from quantext_graph.models.errors import ModelUnavailable
from quantext_graph.models.llamacpp_server import ModelFileError, pull
from quantext_graph.spec.models import Models, ModelSpec


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def caller(tmp_path: Path, server: OpenAIServer) -> Iterator[Any]:
    chat = chat_model(ModelSpec(model="openai:tiny", base_url=server.url), Models())
    yield SchemaCalls(chat=chat).bind_tools(release_tools(tmp_path, Reader("tiny", False)))
    chat.close()


def step(**fields: Any) -> Act:
    return Act(json.dumps({"step": fields}))


def test_words_and_calls_become_messages(caller: Any, server: OpenAIServer) -> None:
    server.acts.extend([step(say="Which file?"), step(tool="look_at_file", arguments={"path": "posts.csv"})])
    conversation = [SystemMessage("You help."), HumanMessage("Hello")]
    said = caller.invoke(conversation)
    assert (said.text, said.tool_calls) == ("Which file?", [])
    called = caller.invoke(conversation)
    assert called.tool_calls[0]["name"] == "look_at_file"
    assert called.tool_calls[0]["args"] == {"path": "posts.csv"}
    schema = server.asked[0]["response_format"]["json_schema"]["schema"]
    names = {
        field["properties"]["tool"]["const"] for name, field in schema["$defs"].items() if "Call_" in name
    }
    assert len(names) == 12
    assert "publish_release" in names


def test_a_model_is_told_what_it_did_and_what_came_of_it(caller: Any, server: OpenAIServer) -> None:
    server.acts.append(step(say="It has 9 rows."))
    call = {"name": "look_at_file", "args": {"path": "posts.csv"}, "id": "1", "type": "tool_call"}
    caller.invoke(
        [
            SystemMessage("You help."),
            HumanMessage("Look."),
            AIMessage("", tool_calls=[call]),
            ToolMessage('{"rows": 9}', tool_call_id="1", name="look_at_file"),
        ]
    )
    system, person, did, result = server.asked[0]["messages"]
    assert "- tradeoff: What a budget buys" in system["content"]
    assert person["content"] == "Look."
    assert json.loads(did["content"]) == {
        "step": {"tool": "look_at_file", "arguments": {"path": "posts.csv"}}
    }
    assert result == {"role": "user", "content": 'Result of look_at_file: {"rows": 9}'}


@pytest.mark.parametrize(
    "nonsense",
    [Act("I would look at the file."), step(tool="remove_all", arguments={}), step(tool="tradeoff")],
)
def test_a_step_that_is_none_is_asked_for_once_more(caller: Any, server: OpenAIServer, nonsense: Act) -> None:
    server.acts.extend([nonsense, step(say="Sorry.")])
    assert caller.invoke([HumanMessage("Hello")]).text == "Sorry."
    server.then = nonsense
    with pytest.raises(ModelUnavailable, match="no step that can be used"):
        caller.invoke([HumanMessage("Hello")])


def test_a_model_that_runs_in_circles_is_led_out(caller: Any, server: OpenAIServer) -> None:
    server.then = step(say="Well.")
    call = {"name": "look_at_file", "args": {"path": "posts.csv"}, "type": "tool_call"}
    looked = [
        [
            AIMessage("", tool_calls=[{**call, "id": number}]),
            ToolMessage('{"rows": 9}', tool_call_id=number, name="look_at_file"),
        ]
        for number in ("1", "2")
    ]
    for messages, may in (
        ([HumanMessage("Look."), *looked[0]], True),
        ([HumanMessage("Look."), *looked[0], *looked[1]], False),
        ([HumanMessage("Look."), *looked[0], *looked[1], HumanMessage("Again.")], True),
    ):
        caller.invoke(messages)
        schema = json.dumps(server.asked[-1]["response_format"]["json_schema"]["schema"])
        assert ("Call_look_at_file" in schema) is may
        assert "Call_check_release" in schema


@pytest.mark.model
def test_llama_cpp_takes_the_schema_of_all_tools(tmp_path: Path) -> None:
    """As a grammar it lets nothing else pass: what is written is a step, whole or cut at the limit."""
    try:
        pull("smollm2-135m")
    except ModelFileError as error:
        pytest.skip(str(error))
    step = step_of(release_tools(tmp_path, Reader("tiny", False)))
    with closing(chat_model(ModelSpec(model="embedded:smollm2-135m"), Models())) as chat:
        reply = chat.structured([HumanMessage("Look at posts.csv.")], step, max_tokens=40, repairs=0)
    assert reply.outcome in (Outcome.OK, Outcome.TRUNCATED)
