"""What is said of a finished run: the figures for everybody, and those for the data holder alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from quantext_graph.mechanism.public_draw import SecretLeakage
from quantext_graph.workspace.records import Kept, Origin, UsageRow


class Estimate(Kept):
    """A share and the 90 % interval it lies in."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.share:.0%} (90 % interval {self.low:.0%} to {self.high:.0%})"


class Judgement(Kept):
    """How well texts say what they should, by an `evaluator` that took no part in writing.

    `accuracy` is the evaluator's own on texts whose labels are known, None where it is not known, and
    `chance` the share of the commonest category among the same texts; `judge_better_than_chance` says of each
    attribute whether the one is clearly more than the other. `read_on_target` is the share of texts that it
    read as hitting every attribute, `read_by_attribute` each one. `corrected` and `corrected_by_attribute`
    are the same shares corrected for its mistakes, there only where the judge is better than chance.
    """

    evaluator: str
    accuracy: dict[str, float | None]
    chance: dict[str, float] = Field({})
    judge_better_than_chance: dict[str, bool] = Field({})
    read_on_target: float
    read_by_attribute: dict[str, float]
    corrected: Estimate | None = None
    corrected_by_attribute: dict[str, Estimate] = Field({})

    @model_validator(mode="before")
    @classmethod
    def _of_before(cls, found: Any) -> Any:
        """A run of before shares were corrected calls them by shorter names."""
        if not isinstance(found, Mapping):
            return found
        names = {"on_target": "read_on_target", "by_attribute": "read_by_attribute"}
        return {names.get(key, key): value for key, value in found.items()}

    @property
    def headline(self) -> str:
        """The share of texts on target, or why none can be told, in a sentence."""
        if self.corrected is not None:
            return (
                f"On target in all attributes at once: {self.corrected} of the texts, as read by "
                f"{self.evaluator} and corrected for its mistakes."
            )
        doubtful = [name for name in self.accuracy if not self.judge_better_than_chance.get(name)]
        if not doubtful:
            return (
                f"What hits and what misses looks alike to {self.evaluator}: no share on target can be told."
            )
        known = [self._chance_words(name) for name in doubtful if self.accuracy[name] is not None]
        if not known:
            return f"How often {self.evaluator} is right is not known: no share on target can be told."
        return f"The judge reads {'; '.join(known)}: no share on target can be told."

    def _chance_words(self, name: str) -> str:
        said = f"{name} right {self.accuracy[name]:.0%} of the time"
        return f"{said}, by chance {self.chance[name]:.0%}" if name in self.chance else said


class ModelNames(Kept):
    """Which models wrote and judged a release."""

    rewriter: str
    verifier: str


class Report(Kept):
    """The public figures: what the gate shows and the card says. A function of the released texts, their
    number and the draw. `models` is None in a run of before they were kept."""

    n: int
    leakage: tuple[SecretLeakage, ...] = ()
    models: ModelNames | None = None
    evaluation: Judgement


class SecretShares(Kept):
    """The share of a secret among the private and the released records."""

    secret: str
    private: float
    released: float


class Seconds(Kept):
    """What this process spent on a pass, an embedded model's CPU included."""

    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(wall=self.wall + other.wall, cpu=self.cpu + other.cpu)


class PrivateReport(Kept):
    """The private figures of a run: they never leave the workspace.

    `labels` counts records by attribute and category; `tv_to_release` is the total variation between the
    private and the released distribution; `fallbacks` counts texts that were written from less of the record,
    `spec_words` those that are made of the spec's words alone; `on_target_after_attempts` is the share read
    as on target after 1, 2 ... attempts. `origins` counts texts by where they come from; by `recipe: none`,
    `short_combinations` had fewer records than may go out as they are.
    """

    labels: dict[str, dict[str, int]]
    secrets: tuple[SecretShares, ...]
    tv_to_release: float
    mean_changes: float
    verified: int
    unverified: int
    fallbacks: int
    spec_words: int = 0
    origins: dict[Origin, int] = Field(default_factory=dict)
    short_combinations: int = 0
    on_target_after_attempts: tuple[float, ...]
    failures: dict[str, int]
    dropped: dict[str, int]
    label_failures: dict[str, int]
    usage: tuple[UsageRow, ...]
    seconds: dict[str, Seconds]
