"""The deterministic tool node of the release graph: one call of the `quantize` tool.

The call and the content of its answer are public; labels and targets stay in this process, in the tool
and in the answer's artifact. The node runs apart from the graph around it, so that no callback, tracer
or stream of an app is shown the artifact.
"""

from __future__ import annotations

import contextvars

import numpy as np
from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import tool_call
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from langsmith import tracing_context
from numpy.typing import ArrayLike

from quantext_graph.core.quantize import Quantization
from quantext_graph.mechanism.draw import DrawArguments
from quantext_graph.tools.quantize import NAME, quantize_tool_over


def draw_by_tool(
    arguments: DrawArguments,
    labels: ArrayLike,
    auxiliary: ArrayLike | None,
    rng: np.random.Generator | None = None,
    last: ArrayLike | None = None,
) -> Quantization:
    """`DrawArguments.draw` as a tool call.

    Raises:
        ValueError: as `DrawArguments.draw`.
    """
    node = ToolNode([quantize_tool_over(labels, auxiliary, rng, last)], name=NAME, handle_tool_errors=False)
    drawn: Quantization = contextvars.Context().run(_answer, node, arguments).artifact
    return drawn


def _answer(node: ToolNode, arguments: DrawArguments) -> ToolMessage:
    call = tool_call(name=NAME, args=arguments.model_dump(), id="match_assign")
    with tracing_context(enabled=False):
        answered = node.invoke([call], runtime=Runtime())
    message: ToolMessage = answered["messages"][0]
    return message
