"""The draw of a release in the words of its spec: labels in, targets out (Alg. 1 lines 1-14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, Field

from quantext_graph.core.arrays import Codes, Indices
from quantext_graph.core.chow_liu import Tree
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
from quantext_graph.mechanism.label_errors import HeldOut
from quantext_graph.mechanism.public_draw import DrawnTree, PublicDraw, SecretLeakage
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
        """The target of each record that is used, (n′, m); private, since it stands in their order."""
        return self.quantization.assigned

    @property
    def used(self) -> Indices:
        """The records that are used, (n′,), in their order; private."""
        return self.quantization.used

    @property
    def public(self) -> PublicDraw:
        """What anybody may know of the draw."""
        drawn = self.quantization
        return PublicDraw(
            mechanism=self.guarantees.mechanism,
            leakage=tuple(
                SecretLeakage(secret=title, **asdict(each)) for title, each in self.guarantees.secrets.items()
            ),
            released=drawn.released.to_json(),
            shares=self.shares,
            tree=DrawnTree(root=drawn.tree.root, parents=drawn.tree.parents),
            pool_seed=drawn.pool_seed,
            choice=drawn.choice,
            seeded=drawn.seeded,
            notes=self.guarantees.notes,
            label_errors=self.guarantees.label_errors,
        )


class DrawArguments(BaseModel):
    """What a draw is given beside codes and randomness, in numbers; all of it public."""

    category_counts: list[int] = Field(min_length=1, description="number of categories of each attribute")
    secrets: list[dict[int, list[int]]] = Field(
        [], description="each secret as {attribute index: category codes}, its share is hidden"
    )
    levels: list[int] | None = Field(
        None, description="how many values each secret's share can take; default one more than records"
    )
    parents: list[int] | None = Field(
        None, description="parent of each attribute in the tree, -1 for its root; default learned"
    )
    weights: list[float] | None = Field(None, description="what a changed attribute costs in the matching")
    mechanism: dict[str, Any] = Field(
        {},
        description="selection, pool, spread, budget_nats, targets, keep, gamma, k, alpha, pool_size, log_l, "
        "filled",
    )

    @classmethod
    def of(cls, spec: Spec, n: int, auxiliary: Codes | None) -> DrawArguments:
        """Those of a release of n records by `spec`.

        Raises:
            ValueError: no way to a tree.
        """
        return cls(
            category_counts=list(spec.sizes),
            secrets=[
                {attribute: list(codes) for attribute, codes in spec.secret_codes(secret).items()}
                for secret in spec.secrets
            ],
            levels=levels(spec, n),
            parents=list(release_tree(spec, auxiliary).parents),
            weights=list(spec.weights),
            mechanism=mechanism_parameters(spec),
        )

    def draw(
        self,
        labels: ArrayLike,
        auxiliary: ArrayLike | None,
        rng: np.random.Generator | None = None,
        last: ArrayLike | None = None,
    ) -> Quantization:
        """Alg. 1 lines 1-14 for private labels (n, m) and public ones (N, m); `rng` and `last` (n,) as in
        `quantize`.

        Raises:
            ValueError, TypeError: arguments that contradict the labels or each other.
        """
        return quantize(
            labels,
            self.category_counts,
            auxiliary=auxiliary,
            tree=None if self.parents is None else Tree.from_row(self.parents),
            weights=self.weights,
            secrets=self.secrets,
            levels=self.levels,
            last=last,
            rng=rng,
            **self.mechanism,
        )


Drawer = Callable[
    [DrawArguments, ArrayLike, ArrayLike | None, np.random.Generator | None, ArrayLike | None], Quantization
]


def quantize_records(
    spec: Spec,
    labels: ArrayLike,
    auxiliary: ArrayLike | None,
    *,
    last: ArrayLike | None = None,
    held_out: HeldOut | None = None,
    by: Drawer = DrawArguments.draw,
) -> RecordDraw:
    """Draw the released distribution for private labels, and give every record a target.

    Args:
        labels: private category codes (n, m), in the order of the spec's attributes and categories.
        auxiliary: public category codes (N, m); none or no rows where the spec has no auxiliary set.
        last: private, (n,): true for records whose labels are in doubt, used when no others are left.
        held_out: how well the spec's classifier labels public texts, where one does; public.
        by: who carries the draw out; the release graph calls the `quantize` tool.

    Raises:
        QuantextError: no records, no way to a tree, or mechanism parameters that contradict each other.
    """
    codes, seed = public_codes(spec, auxiliary), spec.mechanism.seed
    rng = None if seed is None else np.random.default_rng(seed)
    try:
        drawn = by(DrawArguments.of(spec, len(np.asarray(labels)), codes), labels, codes, rng, last)
    except ValueError as error:
        raise QuantextError(f"mechanism: {error}") from None
    found = rule_guarantees(spec, len(drawn.rows), codes, drawn.tree, drawn.rule, held_out)
    events = [spec.secret_codes(secret) for secret in spec.secrets]
    shares = {title: drawn.released.share(event) for title, event in zip(found.secrets, events, strict=False)}
    return RecordDraw(drawn, found, shares)
