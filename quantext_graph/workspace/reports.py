"""What is said of a finished run: the figures for everybody, and those for the data holder alone."""

from __future__ import annotations

from quantext_graph.mechanism.public_draw import SecretLeakage
from quantext_graph.workspace.records import Kept, UsageRow


class Judgement(Kept):
    """How well the released texts say what they should, by an `evaluator` that took no part in writing.

    `accuracy` is the evaluator's own on held-out public texts, None where it is not known; `on_target`
    the share of texts that hit every attribute, `by_attribute` each one.
    """

    evaluator: str
    accuracy: dict[str, float | None]
    on_target: float
    by_attribute: dict[str, float]


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
    private and the released distribution; `on_target_after_attempts` the share after 1, 2 ... attempts.
    """

    labels: dict[str, dict[str, int]]
    secrets: tuple[SecretShares, ...]
    tv_to_release: float
    mean_changes: float
    verified: int
    unverified: int
    fallbacks: int
    on_target_after_attempts: tuple[float, ...]
    failures: dict[str, int]
    dropped: dict[str, int]
    label_failures: dict[str, int]
    usage: tuple[UsageRow, ...]
    seconds: dict[str, Seconds]
