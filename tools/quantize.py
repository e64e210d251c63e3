"""The deterministic heart of a release as a tool: labels in, targets out (Alg. 1 lines 1-14).

Every call is a draw of its own: what is released from several calls on the same private data adds up.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from quantext_graph.core.quantize import quantize


class QuantizeArguments(BaseModel):
    """Arguments of the quantize tool. `labels` are private; all others are public."""

    labels: list[list[int]] = Field(min_length=1, description="private category codes, a row for each record")
    category_counts: list[int] = Field(min_length=1, description="number of categories of each attribute")
    auxiliary: list[list[int]] | None = Field(None, description="public category codes, same columns")
    secrets: list[dict[int, list[int]]] = Field(
        [], description="each secret as {attribute index: category codes}, its share is hidden"
    )
    weights: list[float] | None = Field(None, description="what a changed attribute costs in the matching")
    mechanism: dict[str, Any] = Field(
        {}, description="selection, pool, spread, budget_nats, targets, gamma, k, alpha, pool_size, log_l"
    )


@tool("quantize", args_schema=QuantizeArguments, response_format="content_and_artifact")
def quantize_tool(**arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a target distribution near that of private labels and give every record a target. Each call
    is a draw of its own, and what is released of several adds up. The content is public: released
    distribution, leakage of each secret. The artifact is private: the target of each record, the cost."""
    given = QuantizeArguments(**arguments)
    try:
        drawn = quantize(
            np.array(given.labels),
            given.category_counts,
            auxiliary=None if given.auxiliary is None else np.array(given.auxiliary),
            secrets=given.secrets,
            weights=given.weights,
            **given.mechanism,
        )
    except (ValueError, TypeError) as error:
        return {"error": str(error)}, {}
    public = {
        "released": drawn.released.to_json(),
        "leakage": [asdict(each) for each in drawn.leakages],
        "shares": [drawn.released.share(event) for event in given.secrets],
    }
    return public, {"assigned": drawn.assigned.tolist(), "cost": drawn.cost}
