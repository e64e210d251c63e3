"""The draw of a release in the words of its spec: labels in, targets out (Alg. 1 lines 1-14)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quantext_graph.core.arrays import Codes
from quantext_graph.core.leakage import Leakage
from quantext_graph.core.quantize import Quantization, quantize
from quantext_graph.mechanism.guarantees import (
    Guarantees,
    levels,
    mechanism_parameters,
    public_codes,
    release_tree,
    rule_guarantees,
)
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Spec


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
