"""What a release leaks at most about each secret: for a spec, and as a tool for single numbers.

All of it is public: it depends on the spec, the auxiliary set and the number of records alone.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, Literal

from langchain_core.tools import tool
from pydantic import BaseModel, Field

from quantext_graph.core.leakage import joint_leakage, per_component_leakage, secret_levels
from quantext_graph.core.rules import joint_pool_size
from quantext_graph.core.selection import joint_selection_size


class LeakageQuery(BaseModel):
    """Arguments of the leakage tool."""

    n: int = Field(ge=1, description="number of private records")
    selection: Literal["joint", "per_component"] = "joint"
    budget_nats: float | None = Field(None, ge=0, description="joint: nats to spend")
    category_counts: list[int] = Field(
        [], description="joint: categories of each attribute, for the pool size"
    )
    gamma: int = Field(120, ge=1, description="per_component: candidates of each component")
    k: int = Field(30, ge=1, description="per_component: candidates kept of each component")
    parent_sizes: list[int] = Field([], description="per_component: categories of each attribute's parent")
    precision: float | None = Field(
        None, gt=0, le=1, description="step in which the secret counts; default 1/n"
    )
    log_l: float = Field(0.0, ge=0, description="style term, an assumption")


@tool("leakage", args_schema=LeakageQuery)
def leakage(**query: Any) -> dict[str, Any]:
    """State what a release leaks at most about a secret proportion, in nats, and e^bound, the most by
    which it multiplies an attacker's chance of being right. Public: no private data is read."""
    asked = LeakageQuery(**query)
    size = secret_levels(asked.n, asked.precision)
    try:
        if asked.selection == "joint":
            budget = 1.0 if asked.budget_nats is None else asked.budget_nats
            sizes = asked.category_counts or [2]
            pool = joint_pool_size(budget, width=math.prod(sizes), n=asked.n, sizes=sizes)
            kept = joint_selection_size(pool, budget)
            found = joint_leakage(pool, kept, secret_levels=size, log_l=asked.log_l)
        else:
            found = per_component_leakage(
                asked.gamma,
                asked.k,
                parent_sizes=asked.parent_sizes,
                secret_levels=size,
                log_l=asked.log_l,
            )
    except ValueError as error:
        return {"error": str(error)}
    return {**asdict(found), "success_factor": found.success_factor}
