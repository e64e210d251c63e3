"""What an experiment found: one row for each release, secret and attack, and the tidy table of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from quantext_graph.spec.errors import QuantextError

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Result:
    """One attack on one release.

    `texts` is "simulation" or "models". `error` and `prior_error` are |estimate − truth| with the release
    and of a guess without it. `mechanism_nats` is what the method limits the leakage to, None where it
    does not, `bound_nats` the same capped at log|G|. `metrics` are the raw values, by name, for the whole
    release, `aggregate` the paper's four in one.
    """

    texts: str
    scenario: str
    method: str
    budget: str
    secret: str
    repeat: int
    attack: str
    attacker: str
    truth: float
    estimate: float
    error: float
    prior_error: float
    bound_nats: float
    mechanism_nats: float | None
    metrics: Mapping[str, float]
    aggregate: float
    length_w2: float
    joint_tv: float | None
    n: int
    released: int
    label_source: str
    guarantee: str
    seconds: float

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Result:
        return cls(**row)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def point(self) -> tuple[str, str]:
        """What is compared: a method at a budget."""
        return self.method, self.budget


def need_pandas() -> None:
    """Refuse an experiment whose tables could not be made.

    Raises:
        QuantextError: where pandas is missing.
    """
    if find_spec("pandas") is None:
        raise QuantextError("experiments need pandas; pip install 'quantext-graph[experiment]'")


def tidy(results: Iterable[Result]) -> DataFrame:
    """One row a result, the metrics as columns of their own; what is not known is NaN.

    Raises:
        QuantextError: where pandas is missing.
    """
    need_pandas()
    from pandas import DataFrame

    rows = []
    for result in results:
        row: dict[str, Any] = {}
        for name, value in result.to_json().items():
            row |= value if name == "metrics" else {name: value}
        rows.append(row)
    unknown = dict.fromkeys(("mechanism_nats", "joint_tv"), float)  # a column of None alone would be none
    return DataFrame(rows).astype(unknown if rows else {})
