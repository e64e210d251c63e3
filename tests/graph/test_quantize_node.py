"""The deterministic tool node: a call of the `quantize` tool whose private side nobody outside is shown."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.prebuilt import ToolNode
from quantext_graph.tools.quantize import quantize_tool

from quantext_graph.core.quantize import Quantization
from quantext_graph.graph import quantize_node
from quantext_graph.graph.quantize_node import draw_by_tool
from quantext_graph.mechanism.draw import DrawArguments, quantize_records
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.loading import parse_spec
from quantext_graph.spec.models import Spec

AUXILIARY = np.random.default_rng(0).integers([3, 2], size=(80, 2))
LABELS = np.random.default_rng(1).integers([3, 2], size=(40, 2))


def spec_of(**mechanism: Any) -> Spec:
    return parse_spec(
        {
            "data": {"path": "posts.csv"},
            "attributes": [
                {"name": "Topic", "categories": ["a", "b", "c"], "weight": 2},
                {"name": "Stance", "categories": ["for", "against"]},
            ],
            "secrets": [{"name": "b for", "where": {"Topic": "b", "Stance": "for"}}],
            "mechanism": mechanism,
        }
    )


class Seen(BaseCallbackHandler):
    """An app's own handler: the names of the tools that it hears of."""

    def __init__(self) -> None:
        self.tools: list[str] = []

    def on_tool_start(self, serialized: dict[str, Any], input_str: str, **_: Any) -> None:
        self.tools.append(serialized["name"])


def test_the_tool_makes_the_draw_that_the_mechanism_makes() -> None:
    spec = spec_of(seed=3)
    alone, by_tool = (quantize_records(spec, LABELS, AUXILIARY, **by) for by in ({}, {"by": draw_by_tool}))
    assert by_tool.public == alone.public
    assert (by_tool.assigned == alone.assigned).all()


def test_call_and_content_are_public_and_the_targets_are_in_the_artifact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    went: list[Any] = []
    came: list[ToolMessage] = []

    class Watched(ToolNode):
        def invoke(self, input: Any, *given: Any, **options: Any) -> Any:  # noqa: A002
            went.extend(input)
            found = super().invoke(input, *given, **options)
            came.extend(found["messages"])
            return found

    monkeypatch.setattr(quantize_node, "ToolNode", Watched)
    drawn = quantize_records(spec_of(), LABELS, AUXILIARY, by=draw_by_tool)
    (call,), (message,) = went, came
    assert (call["name"], call["type"]) == ("quantize", "tool_call")
    assert set(call["args"]) == set(DrawArguments.model_fields)
    assert not {"labels", "auxiliary", "seed", "rng"} & set(call["args"])
    json.dumps(call)
    public = json.loads(str(message.content))
    assert set(public) == {"released", "leakage", "shares"}
    assert public["shares"] == list(drawn.shares.values())
    assert isinstance(message.artifact, Quantization)
    assert message.artifact is drawn.quantization
    assert len(repr(message.artifact)) < 80  # no label of a record where somebody prints it


def test_the_agents_tool_has_the_same_arguments_and_the_codes() -> None:
    asked = set(quantize_tool.tool_call_schema.model_json_schema()["properties"])  # type: ignore[union-attr]
    assert asked == {*DrawArguments.model_fields, "labels", "auxiliary"}


def test_callbacks_of_the_graph_around_are_not_shown_the_draw() -> None:
    seen = Seen()

    def draw(_: Any) -> None:
        quantize_records(spec_of(), LABELS, AUXILIARY, by=draw_by_tool)

    RunnableLambda(draw).invoke(None, config={"callbacks": [seen]})
    assert seen.tools == []
    call = {"labels": LABELS.tolist(), "category_counts": [3, 2], "auxiliary": AUXILIARY.tolist()}
    RunnableLambda(lambda _: quantize_tool.invoke(call) and None).invoke(None, config={"callbacks": [seen]})
    assert seen.tools == ["quantize"]  # any other tool is


def test_a_mistake_in_the_spec_is_raised_in_one_line() -> None:
    with pytest.raises(QuantextError, match="a pool of 2 candidates cannot spend") as caught:
        quantize_records(spec_of(pool_size=2, budget_nats=3), LABELS, AUXILIARY, by=draw_by_tool)
    assert "\n" not in str(caught.value)
