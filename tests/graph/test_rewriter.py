"""The verify loop alone: a text and a target in names, a verified rewrite out; and as an agent's tool."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph
from langsmith import Client as LangSmith
from langsmith import tracing_context
from releases import obedient, small_release
from servers import Act
from typing_extensions import TypedDict

from quantext_graph import QuantextError, Rewriter, Spec, build_rewriter, rewrite_tool

TEXT = "Case 7 is a male patient who lives with asthma"
WANTED = {"diagnosis": "migraine"}


@pytest.fixture
def spec(tmp_path: Path) -> Iterator[Spec]:
    with obedient() as server:
        yield small_release(tmp_path, server.url, n=2)


@pytest.fixture
def rewriter(spec: Spec) -> Iterator[Rewriter]:
    with build_rewriter(spec) as made:
        yield made


def test_a_text_is_rewritten_to_its_target_and_the_rest_stays(rewriter: Rewriter) -> None:
    found = rewriter.invoke({"text": TEXT, "target": WANTED})["rewrite"]
    assert "migraine" in found["text"]
    assert found["text"] != TEXT
    assert found == {
        "text": found["text"],
        "target": {"gender": "male", "diagnosis": "migraine"},
        "verified": True,
        "attempts": 1,
        "missed": [],
    }


def test_what_is_known_of_the_text_is_not_asked(tmp_path: Path) -> None:
    with obedient() as server, build_rewriter(small_release(tmp_path, server.url, n=2)) as rewriter:
        known = {"gender": "female", "diagnosis": "asthma"}
        found = rewriter.invoke({"text": TEXT, "target": {}, "labels": known})["rewrite"]
        assert found["target"] == known
        assert server.asked_for("labels") == 1  # the verifier's


def test_the_private_file_is_not_opened(spec: Spec, rewriter: Rewriter) -> None:
    spec.data.path.unlink()
    assert rewriter.invoke({"text": TEXT, "target": WANTED})["rewrite"]["verified"]


def test_a_target_that_is_missed_is_said(tmp_path: Path) -> None:
    def stubborn(number: int, body: dict[str, Any], act: Act) -> Act:
        return (
            Act(f" entry {number} on a female reader with diabetes.") if "written anew" in act.text else act
        )

    with (
        obedient(faulty=stubborn) as server,
        build_rewriter(small_release(tmp_path, server.url, n=2)) as rewriter,
    ):
        found = rewriter.invoke({"text": TEXT, "target": WANTED})["rewrite"]
    assert not found["verified"]
    assert found["attempts"] == 3  # two attempts, then the one from the target alone
    assert found["missed"]
    assert found["text"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"text": " ", "target": WANTED}, "text: empty"),
        ({"target": WANTED}, "text: empty"),
        ({"text": TEXT, "target": {"diagnoses": "asthma"}}, "did you mean 'diagnosis'"),
        ({"text": TEXT, "target": {"diagnosis": "gout"}}, "no category of diagnosis is called 'gout'"),
        ({"text": TEXT, "target": WANTED, "labels": {"gender": "x"}}, "labels: no category of gender"),
    ],
)
def test_a_mistake_is_one_line(rewriter: Rewriter, given: Any, said: str) -> None:
    with pytest.raises(QuantextError, match=said) as caught:
        rewriter.invoke(given)
    assert "\n" not in str(caught.value)
    assert TEXT not in str(caught.value)


def test_many_at_once_and_async(rewriter: Rewriter) -> None:
    asked: Any = [
        {"text": TEXT, "target": {"diagnosis": name}} for name in ("diabetes", "migraine", "asthma")
    ]
    texts = [reply["rewrite"]["text"] for reply in rewriter.batch(asked)]
    later = [reply["rewrite"]["text"] for reply in asyncio.run(rewriter.abatch(asked))]
    for request, first, second in zip(asked, texts, later, strict=True):
        assert request["target"]["diagnosis"] in first
        assert request["target"]["diagnosis"] in second


def test_a_rewriter_is_a_node_of_a_graph(rewriter: Rewriter) -> None:
    class Letter(TypedDict, total=False):
        text: str
        target: dict[str, str]
        rewrite: dict[str, Any]
        sent: bool

    graph: Any = StateGraph(Letter)
    graph.add_node("rewrite", rewriter)
    graph.add_node("send", lambda state: {"sent": state["rewrite"]["verified"]})
    graph.add_edge(START, "rewrite")
    graph.add_edge("rewrite", "send")
    graph.add_edge("send", END)
    assert graph.compile().invoke({"text": TEXT, "target": WANTED})["sent"]


def test_nothing_is_traced(rewriter: Rewriter, monkeypatch: pytest.MonkeyPatch) -> None:
    from langchain_core.tracers.langchain import LangChainTracer

    seen: list[Any] = []
    monkeypatch.setattr(LangChainTracer, "_on_chain_start", lambda _, run: seen.append(run))
    monkeypatch.setattr(LangChainTracer, "_on_chain_end", lambda *_: None)
    nowhere = LangSmith(api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False)
    with tracing_context(enabled=True, client=nowhere):
        rewriter.invoke({"text": TEXT, "target": WANTED})
        assert seen == []
        RunnableLambda(len).invoke(TEXT)
    assert len(seen) == 1  # any other Runnable is


class AgentModel(GenericFakeChatModel):
    """A chat model that calls the tools that it is told to."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def test_an_agent_uses_the_loop_as_a_tool(spec: Spec) -> None:
    call = {"name": "rewrite_to_target", "args": {"text": TEXT, "target": WANTED}, "id": "1"}
    wrong = {**call, "args": {"text": TEXT, "target": {"diagnosis": "migraine"}, "labels": {}}, "id": "2"}
    model = AgentModel(
        messages=iter(
            [AIMessage("", tool_calls=[call]), AIMessage("", tool_calls=[wrong]), AIMessage("done")]
        )
    )
    agent = create_agent(model, [rewrite_tool(spec)])
    messages = agent.invoke({"messages": [("user", "make it about migraine")]})["messages"]
    answers = [json.loads(m.content) for m in messages if isinstance(m, ToolMessage)]
    assert all("migraine" in answer["text"] and answer["verified"] for answer in answers)
    assert messages[-1].content == "done"


def test_the_tools_schema_lists_what_the_spec_knows(spec: Spec) -> None:
    tool = rewrite_tool(spec)
    target = tool.tool_call_schema.model_json_schema()["$defs"]["Target"]  # type: ignore[union-attr]
    assert target["properties"]["diagnosis"]["enum"] == ["diabetes", "asthma", "migraine"]
    assert target["additionalProperties"] is False
    with pytest.raises(ValueError, match="gout"):
        tool.invoke({"text": TEXT, "target": {"diagnosis": "gout"}})
    assert "empty" in tool.invoke({"text": " ", "target": {}})["error"]
    assert "migraine" in asyncio.run(tool.ainvoke({"text": TEXT, "target": WANTED}))["text"]
