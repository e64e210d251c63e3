"""The deterministic heart of a release as a tool: labels in, targets out (Alg. 1 lines 1-14).

`quantize_tool` is for agents, whose call names the labels. The release graph calls `quantize_tool_over`,
the same tool over codes that the program holds, so that no label stands in a call, a trace or a state.
Every call is a draw of its own: what is released from several calls on the same private data adds up.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from langchain_core.tools import BaseTool, StructuredTool, tool
from numpy.typing import ArrayLike
from pydantic import Field

from quantext_graph.core.quantize import Quantization
from quantext_graph.mechanism.draw import DrawArguments

NAME = "quantize"


class QuantizeArguments(DrawArguments):
    """Arguments of the quantize tool. `labels` are private; all others are public."""

    labels: list[list[int]] = Field(min_length=1, description="private category codes, a row for each record")
    auxiliary: list[list[int]] | None = Field(None, description="public category codes, same columns")


@tool(NAME, args_schema=QuantizeArguments, response_format="content_and_artifact")
def quantize_tool(**arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a target distribution near that of private labels and give every record a target. Each call
    is a draw of its own, and what is released of several adds up. The content is public: released
    distribution, leakage of each secret. The artifact is private: the target of each record (null for one
    that stays unused, where `keep` is below 1), the cost."""
    given = QuantizeArguments(**arguments)
    try:
        drawn = given.draw(given.labels, given.auxiliary)
    except (ValueError, TypeError) as error:
        return {"error": str(error)}, {}
    targets = dict(zip(drawn.used.tolist(), drawn.assigned.tolist(), strict=True))
    assigned = [targets.get(record) for record in range(len(drawn.rows))]
    return _public(given, drawn), {"assigned": assigned, "cost": drawn.cost}


def quantize_tool_over(
    labels: ArrayLike,
    auxiliary: ArrayLike | None,
    rng: np.random.Generator | None = None,
    last: ArrayLike | None = None,
) -> BaseTool:
    """The quantize tool over codes that the program holds; a call names public arguments alone.

    The artifact is the `Quantization`. Mistakes are raised, not answered: there is no model to mend them.

    Args:
        labels: private category codes (n, m).
        auxiliary: public category codes (N, m).
        rng: for tests and experiments, as in `core.quantize`.
        last: private, (n,): records that are used last, as in `core.quantize`.
    """

    def quantize(**arguments: Any) -> tuple[dict[str, Any], Quantization]:
        given = DrawArguments(**arguments)
        drawn = given.draw(labels, auxiliary, rng, last)
        return _public(given, drawn), drawn

    return StructuredTool.from_function(
        quantize,
        name=NAME,
        description=quantize_tool.description,
        args_schema=DrawArguments,
        response_format="content_and_artifact",
    )


def _public(given: DrawArguments, drawn: Quantization) -> dict[str, Any]:
    return {
        "released": drawn.released.to_json(),
        "leakage": [asdict(each) for each in drawn.leakages],
        "shares": [drawn.released.share(event) for event in given.secrets],
    }
