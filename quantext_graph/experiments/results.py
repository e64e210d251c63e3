"""The tidy table of an experiment: one row for each release, secret and attack."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Result:
    """One attack on one release.

    `texts` is "simulation" or "models". `error` and `prior_error` are |estimate − truth| with the release
    and of a guess without it. `mechanism_nats` is what the method limits the leakage to, empty where it
    does not, `bound_nats` the same capped at log|G|. The utility metrics are of the whole release.
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
    knn_precision: float
    knn_recall: float
    fid: float
    attribute_match: float
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


def write_results(results: Iterable[Result], path: Path) -> None:
    """Write `results.csv`; what is not known is an empty cell."""
    names = [field.name for field in fields(Result)]
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.DictWriter(file, names)
        rows.writeheader()
        for result in results:
            values = result.to_json().items()
            rows.writerow({key: f"{v:.6g}" if isinstance(v, float) else v for key, v in values})


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
