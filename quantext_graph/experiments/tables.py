"""Means over repeats, and how far attackers agree on which method hides best (Table I)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from quantext_graph.experiments.baselines.method import PRIVATE_RECORDS
from quantext_graph.experiments.results import Result, write_table

BOOTSTRAPS = 1_000


@dataclass(frozen=True)
class Mean:
    """Mean, standard deviation over repeats, and standard error; those of one repeat are not known (NaN)."""

    mean: float
    sd: float
    se: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        sd = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
        return cls(float(np.mean(values)), sd, sd / len(values) ** 0.5)


@dataclass(frozen=True)
class Point:
    """One method at a budget under one attack, over its repeats."""

    method: str
    budget: str
    attack: str
    attacker: str
    rows: Sequence[Result] = field(repr=False)

    @property
    def error(self) -> Mean:
        return Mean.of([row.error for row in self.rows])

    @property
    def prior_error(self) -> Mean:
        return Mean.of([row.prior_error for row in self.rows])

    @property
    def utility(self) -> Mean:
        return Mean.of([row.aggregate for row in self.rows])

    @property
    def unprotected(self) -> bool:
        """Whether private texts are released as they are."""
        return self.rows[0].label_source == PRIVATE_RECORDS

    @property
    def mechanism_nats(self) -> float | None:
        found = [row.mechanism_nats for row in self.rows if row.mechanism_nats is not None]
        return float(np.mean(found)) if found else None

    def relative(self) -> tuple[float, float, float] | None:
        """Mean error over mean prior error, and its 90 % interval by resampling the repeats; None where
        the prior guess is right, so that nothing can be a multiple of its error."""
        errors, priors = (np.array([getattr(row, n) for row in self.rows]) for n in ("error", "prior_error"))
        if priors.mean() <= 0:
            return None
        picked = np.random.default_rng(0).integers(len(errors), size=(BOOTSTRAPS, len(errors)))
        below = priors[picked].mean(axis=1)
        ratios = errors[picked].mean(axis=1)[below > 0] / below[below > 0]
        low, high = np.quantile(ratios, [0.05, 0.95])
        return float(errors.mean() / priors.mean()), float(low), float(high)


def questions(results: Iterable[Result]) -> dict[tuple[str, str], list[Result]]:
    """Results by (secret, scenario), without those of the residual attack, which asks something else."""
    found: dict[tuple[str, str], list[Result]] = {}
    for row in results:
        if row.attack != "residual":
            found.setdefault((row.secret, row.scenario), []).append(row)
    return found


def points(results: Iterable[Result]) -> list[Point]:
    """One for each method, budget, attack and attacker, in the order of the results."""
    found: dict[tuple[str, str, str, str], list[Result]] = {}
    for row in results:
        # Who makes the mechanism-aware estimate follows from the method.
        attacker = "" if row.attack == "mechanism-aware" else row.attacker
        found.setdefault((row.method, row.budget, row.attack, attacker), []).append(row)
    return [Point(*key, rows) for key, rows in found.items()]


@dataclass(frozen=True)
class Agreement:
    """Spearman's ρ between the rankings that two attackers give the methods by their error."""

    secret: str
    scenario: str
    first: str
    second: str
    rho: float
    methods: int


def agreements(results: Iterable[Result]) -> list[Agreement]:
    """For each secret and pair of labelling attackers; pairs with fewer than three methods in common, or
    an attacker to whom all are alike, are left out."""
    found = []
    for (secret, scenario), rows in questions(results).items():
        by_attacker: dict[str, dict[tuple[str, str], float]] = {}
        for point in points(row for row in rows if row.attack == "labelling"):
            errors = by_attacker.setdefault(point.attacker, {})
            errors[point.method, point.budget] = point.error.mean
        for first, second in itertools.combinations(by_attacker, 2):
            common = [key for key in by_attacker[first] if key in by_attacker[second]]
            sides = [[by_attacker[name][key] for key in common] for name in (first, second)]
            if len(common) < 3 or any(len(set(side)) == 1 for side in sides):
                continue
            rho = float(spearmanr(sides[0], sides[1]).statistic)
            found.append(Agreement(secret, scenario, first, second, rho, len(common)))
    return found


SUMMARY = (
    *("secret", "scenario", "method", "budget", "attack", "attacker", "repeats"),
    *("error", "error_sd", "prior_error", "utility", "utility_sd", "bound_nats", "mechanism_nats"),
)


def summary(results: Sequence[Result]) -> Iterator[tuple[object, ...]]:
    """Rows of `summary.csv`: means and deviations over repeats, in the columns of `SUMMARY`."""
    for (secret, scenario), rows in questions(results).items():
        for point in points(rows):
            error, utility = point.error, point.utility
            nats = point.mechanism_nats
            yield (
                *(
                    secret,
                    scenario,
                    point.method,
                    point.budget,
                    point.attack,
                    point.attacker,
                    len(point.rows),
                ),
                *(_shown(error.mean), _shown(error.sd), _shown(point.prior_error.mean)),
                *(_shown(utility.mean), _shown(utility.sd), _shown(point.rows[0].bound_nats)),
                "" if nats is None else _shown(nats),
            )


def write_tables(results: Sequence[Result], folder: Path) -> None:
    """Write `summary.csv` and `rank_correlation.csv`."""
    write_table(folder / "summary.csv", SUMMARY, summary(results))
    header = ("secret", "scenario", "attacker", "other attacker", "spearman_rho", "methods")
    rows = ((a.secret, a.scenario, a.first, a.second, _shown(a.rho), a.methods) for a in agreements(results))
    write_table(folder / "rank_correlation.csv", header, rows)


def _shown(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4g}"


def overview(results: Sequence[Result]) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """For each secret a table of means for people: title, columns, and a row for each method at a budget."""
    for (secret, scenario), rows in questions(results).items():
        found = points(rows)
        attacks = list(dict.fromkeys((p.attack, p.attacker) for p in found if p.attack in SHOWN))
        columns = ("method", "budget", "limit,\nnats", "utility", *(_heading(*key) for key in attacks))
        measured = {(p.method, p.budget, p.attack, p.attacker): p for p in found}
        lines = []
        for method, budget in dict.fromkeys((p.method, p.budget) for p in found):
            point = next(p for p in found if (p.method, p.budget) == (method, budget))
            limit = "none" if point.mechanism_nats is None else f"{point.mechanism_nats:.3g}"
            errors = [measured.get((method, budget, *key)) for key in attacks]
            told = ["" if p is None else f"{p.error.mean:.3f}" for p in errors]
            lines.append((method, budget, limit, f"{point.utility.mean:.3f}", *told))
        asked = f"{secret}, {scenario}" if scenario else secret
        repeats, guess = len(found[0].rows), found[0].prior_error.mean
        title = f"{asked}: utility, and errors of attacks; means of {repeats} (deviations: summary.csv)"
        yield f"{title}. A guess without the release errs by {guess:.3f}", columns, lines


SHOWN = ("labelling", "mechanism-aware")


def _heading(attack: str, attacker: str) -> str:
    """Of the paper's attack, who makes it; broken into short lines."""
    name = attacker if attack == "labelling" else attack
    return name.replace(" ", "\n").replace(":", ":\n").replace("mechanism-", "mechanism-\n")
