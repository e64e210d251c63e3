"""Means over repeats, and how far attackers agree on which method hides best (Table I)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quantext_graph.audit.attack_kinds import attack_kind
from quantext_graph.audit.counting import Labelling
from quantext_graph.experiments.baselines.method import PRIVATE_RECORDS

if TYPE_CHECKING:
    from pandas import DataFrame

BOOTSTRAPS = 1_000

QUESTION = ["secret", "scenario"]
RELEASE = ["method", "budget"]
ATTACKER = ["attack", "attacker"]


def questions(results: DataFrame) -> Iterator[tuple[str, DataFrame]]:
    """The results about each secret in each scenario, and its title; without the attacks about an
    attribute, which ask something else."""
    kinds = {name: attack_kind(name) for name in results["attack"].unique()}
    about = {name for name, kind in kinds.items() if kind and kind.about == "attribute"}
    # Who makes an estimate that needs the draw follows from the method.
    drawn = {name for name, kind in kinds.items() if kind and "draw" in kind.needs}
    shares = results[~results["attack"].isin(about)]
    shares = shares.assign(attacker=shares["attacker"].mask(shares["attack"].isin(drawn), ""))
    for (secret, scenario), rows in shares.groupby(QUESTION, sort=False):
        yield ", ".join(filter(None, (secret, scenario))), rows


def points(rows: DataFrame) -> DataFrame:
    """A row for each release under each attack, in the order of the results: means over repeats, with
    standard deviation (`_sd`) and standard error (`_se`), which of one repeat are NaN. `unprotected`:
    private texts are released as they are."""
    found = rows.groupby([*RELEASE, *ATTACKER], sort=False).agg(
        repeats=("error", "size"),
        error=("error", "mean"),
        error_sd=("error", "std"),
        error_se=("error", "sem"),
        prior_error=("prior_error", "mean"),
        utility=("aggregate", "mean"),
        utility_sd=("aggregate", "std"),
        utility_se=("aggregate", "sem"),
        bound_nats=("bound_nats", "first"),
        mechanism_nats=("mechanism_nats", "mean"),
        label_source=("label_source", "first"),
    )
    return found.assign(unprotected=found["label_source"] == PRIVATE_RECORDS).reset_index()


def shown(found: DataFrame) -> DataFrame:
    """The points of the attacks that figures and the overview show."""
    names = {name for name in found["attack"].unique() if (kind := attack_kind(name)) and kind.shown}
    return found[found["attack"].isin(names)]


def relative(rows: DataFrame) -> DataFrame:
    """Of each release under each attack: mean error over mean prior error (`middle`), and its 90 %
    interval (`low`, `high`) by resampling the repeats. Where the prior guess is right nothing can be a
    multiple of its error; such releases are left out."""

    def ratio(point: DataFrame) -> Any:
        errors, priors = point["error"].to_numpy(), point["prior_error"].to_numpy()
        picked = np.random.default_rng(0).integers(len(errors), size=(BOOTSTRAPS, len(errors)))
        below = priors[picked].mean(axis=1)
        ratios = errors[picked].mean(axis=1)[below > 0] / below[below > 0]
        low, high = np.quantile(ratios, [0.05, 0.95])
        return point.iloc[0][[*RELEASE, *ATTACKER]].to_dict() | {
            "middle": errors.mean() / priors.mean(),
            "low": low,
            "high": high,
        }

    grouped = rows.groupby([*RELEASE, *ATTACKER], sort=False)
    ratios = [ratio(point) for _, point in grouped if point["prior_error"].mean() > 0]
    columns = [*RELEASE, *ATTACKER, "middle", "low", "high"]
    return type(rows)(ratios, columns=columns)


def agreements(results: DataFrame) -> DataFrame:
    """Spearman's ρ between the rankings that two labelling attackers give the releases by their error, for
    each secret and pair; pairs with fewer than three releases in common, or an attacker to whom all are
    alike, are left out."""
    found = []
    for _, rows in questions(results[results["attack"] == Labelling.name]):
        errors = rows.pivot_table("error", RELEASE, "attacker", sort=False)
        for first, second in itertools.combinations(errors.columns, 2):
            common = errors[[first, second]].dropna()
            if len(common) >= 3 and common.nunique().min() > 1:
                rho = common[first].corr(common[second], method="spearman")
                found.append((*rows.iloc[0][QUESTION], first, second, rho, len(common)))
    columns = [*QUESTION, "attacker", "other attacker", "spearman_rho", "methods"]
    return type(results)(found, columns=columns)


def summary(results: DataFrame) -> DataFrame:
    """Means and deviations over repeats."""
    found: list[dict[Any, Any]] = []
    for _, rows in questions(results):
        asked = rows.iloc[0][QUESTION].to_dict()
        found += (asked | point for point in points(rows).to_dict("records"))
    columns = [
        *(*QUESTION, *RELEASE, *ATTACKER, "repeats", "error", "error_sd", "prior_error"),
        *("utility", "utility_sd", "bound_nats", "mechanism_nats"),
    ]
    return type(results)(found, columns=columns)


def write_tables(results: DataFrame, folder: Path) -> None:
    """Write `summary.csv` and `rank_correlation.csv`; what is not known is an empty cell."""
    for name, table in (("summary", summary(results)), ("rank_correlation", agreements(results))):
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.4g")


def overview(results: DataFrame) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """For each secret a table of means for people: title, columns, and a row for each method at a budget."""
    for asked, rows in questions(results):
        found = points(rows)
        errors = shown(found).pivot_table("error", RELEASE, ATTACKER, sort=False)
        columns = ("method", "budget", "limit,\nnats", "utility", *(_heading(*key) for key in errors))
        lines = []
        for release, (limit, utility) in (
            found.groupby(RELEASE, sort=False)[["mechanism_nats", "utility"]].first().iterrows()
        ):
            told = errors.loc[release] if release in errors.index else []
            lines.append(
                (
                    *release,
                    "none" if np.isnan(limit) else f"{limit:.3g}",
                    f"{utility:.3f}",
                    *("" if np.isnan(error) else f"{error:.3f}" for error in told),
                )
            )
        repeats, guess = found.iloc[0][["repeats", "prior_error"]]
        title = f"{asked}: utility, and errors of attacks; means of {repeats} (deviations: summary.csv)"
        yield f"{title}. A guess without the release errs by {guess:.3f}", columns, lines


def _heading(attack: str, attacker: str) -> str:
    """Of an attack by readers, who reads; broken into short lines."""
    kind = attack_kind(attack)
    by_readers = kind is not None and "readings" in kind.needs
    name = attacker if by_readers else attack.replace("-", "-\n")
    return name.replace(" ", "\n").replace(":", ":\n")
