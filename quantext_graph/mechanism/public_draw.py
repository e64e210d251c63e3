"""What is public of a draw, as it is kept in the workspace and told on the card."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, JsonValue

from quantext_graph.core.leakage import Leakage

Parameter = str | bool | int | float | list[int] | None
"""A value of the mechanism in use."""


class SecretLeakage(BaseModel):
    """The `Leakage` about one secret of the spec, with the secret's title."""

    model_config = ConfigDict(frozen=True)

    secret: str
    mechanism_nats: float
    cap_nats: float
    bound_nats: float
    vacuous: bool
    components: int
    log_l: float
    secret_levels: int

    @property
    def leakage(self) -> Leakage:
        return Leakage(**self.model_dump(exclude={"secret"}))


class DrawnTree(BaseModel):
    """The dependency tree as JSON: `core.chow_liu.Tree`."""

    model_config = ConfigDict(frozen=True)

    root: int
    parents: tuple[int, ...]


class PublicDraw(BaseModel):
    """What is public of a draw: mechanism in use, leakage of each secret, released distribution, `shares`
    by secret, what wrong labels would tell, and what makes the very pool again. It is kept in the workspace
    and told on the card.

    `own_at_most` is the largest share of the texts that may be records in their own words, by the counts of
    the targets alone; None where every text is written.
    """

    model_config = ConfigDict(frozen=True)

    mechanism: dict[str, Parameter]
    leakage: tuple[SecretLeakage, ...]
    released: dict[str, JsonValue]
    shares: dict[str, float]
    tree: DrawnTree
    pool_seed: int
    choice: tuple[int, ...]
    seeded: bool
    notes: tuple[str, ...] = ()
    label_errors: str = ""
    own_at_most: float | None = None
