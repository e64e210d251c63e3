"""LangChain's standard tests for tools, on every tool that needs no run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from quantext_graph.tools.attack import attack
from quantext_graph.tools.inspect_dataset import inspect_dataset
from quantext_graph.tools.leakage import leakage
from quantext_graph.tools.quantize import quantize_tool
from quantext_graph.tools.utility import utility
from releases import obedient, small_release

from quantext_graph import rewrite_tool

LABELS = [[0, 0], [1, 1], [2, 0], [0, 1], [1, 0], [2, 1]]
TEXTS = ["one reads of rain", "two reads of snow", "three reads of hail", "four reads of fog"]

EXAMPLES: list[tuple[BaseTool, dict[str, Any]]] = [
    (
        attack,
        {
            "released_labels": LABELS,
            "private_labels": LABELS,
            "category_counts": [3, 2],
            "secrets": [{"1": [0]}],
        },
    ),
    (inspect_dataset, {"path": __file__}),  # no data set, which is answered too
    (leakage, {"n": 3000, "budget_nats": 1.0, "category_counts": [6, 3, 3]}),
    (
        quantize_tool,
        {
            "labels": LABELS,
            "category_counts": [3, 2],
            "auxiliary": LABELS * 5,
            "secrets": [{"1": [0]}],
            "mechanism": {"pool_size": 50, "spread": 0.3, "budget_nats": 1.0},
        },
    ),
    (utility, {"private_texts": TEXTS, "released_texts": TEXTS}),
]


def _standard(base: type, tool: BaseTool, example: dict[str, Any]) -> type:
    members = {
        "tool_constructor": property(lambda _: tool),
        "tool_invoke_params_example": property(lambda _: example),
    }
    return type(f"Test{tool.name.title()}{base.__name__}", (base,), members)


for _tool, _example in EXAMPLES:
    for _base in (ToolsUnitTests, ToolsIntegrationTests):
        _made = _standard(_base, _tool, _example)
        globals()[_made.__name__] = _made


class RewriteToTarget:
    """The tool of a spec, on a server that does as it is told."""

    @pytest.fixture(autouse=True)
    def _made(self, tmp_path: Path) -> Iterator[None]:
        with obedient() as server:
            self._tool = rewrite_tool(small_release(tmp_path, server.url, n=2))
            yield

    @property
    def tool_constructor(self) -> BaseTool:
        return self._tool

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"text": "Case 7 is a male patient with asthma", "target": {"diagnosis": "migraine"}}


class TestRewriteUnit(RewriteToTarget, ToolsUnitTests):
    pass


class TestRewriteIntegration(RewriteToTarget, ToolsIntegrationTests):
    pass
