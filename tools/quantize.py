"""The deterministic heart of a release as a tool: labels in, targets out (Alg. 1 lines 1-14).

Every call is a draw of its own: what is released from several calls on the same private data adds up.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from langchain_core.tools import tool
from numpy.typing import ArrayLike
from pydantic import BaseModel, Field
from quantext_graph.tools.leakage import (
    Guarantees,
    levels,
    mechanism_parameters,
    public_codes,
    release_tree,
    rule_guarantees,
)

from quantext_graph.core.arrays import Codes
from quantext_graph.core.leakage import Leakage
from quantext_graph.core.quantize import Quantization, quantize
from quantext_graph.spec.models import QuantextError, Spec


@dataclass(frozen=True)
class RecordDraw:
    """The draw of a release in the words of its spec.

    `quantization` holds what is private too: which record gets which target, and the cost.
    """

    quantization: Quantization
    guarantees: Guarantees
    shares: dict[str, float]

    @property
    def leakage(self) -> Leakage:
        """Of the secret with the largest bound; public."""
        return self.guarantees.worst

    @property
    def assigned(self) -> Codes:
        """The target of each record, (n, m); private, since it stands in the order of the records."""
        return self.quantization.assigned

    def to_json(self) -> dict[str, Any]:
        """The public part: mechanism, leakage of each secret, released distribution and shares, the pool."""
        drawn = self.quantization
        return {
            "mechanism": self.guarantees.mechanism,
            "leakage": [{"secret": title, **asdict(each)} for title, each in self.guarantees.secrets.items()],
            "released": drawn.released.to_json(),
            "shares": self.shares,
            "tree": {"root": drawn.tree.root, "parents": list(drawn.tree.parents)},
            "pool_seed": drawn.pool_seed,
            "choice": list(drawn.choice),
            "seeded": drawn.seeded,
            "notes": list(self.guarantees.notes),
        }


def quantize_records(spec: Spec, labels: ArrayLike, auxiliary: ArrayLike | None) -> RecordDraw:
    """Draw the released distribution for private labels, and give every record a target.

    Args:
        labels: private category codes (n, m), in the order of the spec's attributes and categories.
        auxiliary: public category codes (N, m); none or no rows where the spec has no auxiliary set.

    Raises:
        QuantextError: no records, no way to a tree, or mechanism parameters that contradict each other.
    """
    codes = public_codes(spec, auxiliary)
    seed = spec.mechanism.seed
    try:
        drawn = quantize(
            labels,
            spec.sizes,
            auxiliary=codes,
            tree=release_tree(spec, codes),
            weights=spec.weights,
            secrets=[spec.secret_codes(secret) for secret in spec.secrets],
            levels=levels(spec, len(np.asarray(labels))),
            rng=None if seed is None else np.random.default_rng(seed),
            **mechanism_parameters(spec),
        )
    except ValueError as error:
        raise QuantextError(f"mechanism: {error}") from None
    found = rule_guarantees(spec, len(drawn.rows), codes, drawn.rule)
    events = [spec.secret_codes(secret) for secret in spec.secrets]
    shares = {title: drawn.released.share(event) for title, event in zip(found.secrets, events, strict=False)}
    return RecordDraw(drawn, found, shares)


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
