"""Distance and protection of every selection rule and pool on real data sets, as a table.

    python tests/benchmarks/mechanism_figures.py --data DIR [--pools 10] [--only tweets druglib cfpb]

DIR holds stance/tweet.csv, reviews/druglib_4143_clean.csv and complaints/cfpb_1532_narratives.csv.
Each row is a mean over pools, each with its own split into a private set and an auxiliary one, and over
what the rule may draw: `TV` from the private joint to the released one, and for each secret the
`error` |released share - private share|.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from quantext_graph.core.arrays import Codes, Event, combinations, event_mask
from quantext_graph.core.distribution import total_variation_from
from quantext_graph.core.quantize import public_dependency_tree
from quantext_graph.core.rules import MechanismParameters, build_rule
from quantext_graph.core.selection import JointRule, Rule, draw_choice, joint_selection_size

DRAWS = 60
"""Draws of the per-component rule over which a pool's mean is taken; the joint rule's is exact."""


@dataclass(frozen=True)
class Sample:
    """A labelled data set, how many of its rows play the private set, and what is secret in it."""

    name: str
    codes: Codes
    sizes: tuple[int, ...]
    private: int
    secrets: dict[str, Event]


def read(path: Path, columns: list[str]) -> tuple[Codes, list[list[str]]]:
    """Codes (n, m) of the columns of a CSV file, and their categories in alphabetical order."""
    csv.field_size_limit(10**9)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    categories = [sorted({row[column] for row in rows}) for column in columns]
    codes = [[names.index(row[c]) for c, names in zip(columns, categories, strict=True)] for row in rows]
    return np.array(codes), categories


def samples(data: Path) -> Iterator[Sample]:
    codes, names = read(data / "stance/tweet.csv", ["Target", "Stance", "Sentiment"])
    secrets: dict[str, Event] = {
        "abortion": {0: [names[0].index("Legalization of Abortion")]},
        "FAVOR": {1: [names[1].index("FAVOR")]},
    }
    sizes = tuple(map(len, names))
    for title, chosen in (*((f"tweets, {key}", [key]) for key in secrets), ("tweets, both", list(secrets))):
        yield Sample(title, codes, sizes, 3000, {key: secrets[key] for key in chosen})
    columns = ["stars", "effectiveness", "sideEffects", "condition_group"]
    codes, names = read(data / "reviews/druglib_4143_clean.csv", columns)
    yield Sample("druglib", codes, tuple(map(len, names)), 2500, {"mental": {3: [names[3].index("mental")]}})
    columns = ["Product", "Response", "Servicemember", "OlderAmerican"]
    codes, names = read(data / "complaints/cfpb_1532_narratives.csv", columns)
    yield Sample("cfpb", codes, tuple(map(len, names)), 1000, {"servicemember": {2: [names[2].index("yes")]}})


RATIOS = (1, 2, 4, 12)
"""γ/k of the paper's rule with equal selection sizes, and of a budget split at the same bound."""

BUDGETS = (0.0, 0.5, 1.0, 3.0)
POOL = 10_000
"""M; the mean over the K nearest hangs on K/M and hardly on M."""

JOINT: dict[str, tuple[dict[str, Any], tuple[float, ...]]] = {
    "joint, dirichlet": ({"pool": "dirichlet"}, (0.0, 3.0, 9.0)),
    "joint, public": ({}, BUDGETS),
    "joint, public, spread 0.3": ({"spread": 0.3}, BUDGETS),
    "joint, public, spread 0.13, blind": ({"spread": 0.13, "blind": True}, BUDGETS),
    "joint, public, spread 0.2, blind": ({"spread": 0.2, "blind": True}, BUDGETS),
}


@dataclass(frozen=True)
class Split:
    """One division of a sample, with the pool's seed."""

    sample: Sample
    seed: int

    @cached_property
    def order(self) -> np.ndarray:
        return np.random.default_rng(self.seed).permutation(len(self.sample.codes))

    @property
    def private(self) -> Codes:
        return self.sample.codes[self.order[: self.sample.private]]

    @property
    def shares(self) -> list[float]:
        return [float(event_mask(self.private, event).mean()) for event in self.sample.secrets.values()]

    def rule(self, **parameters: Any) -> Rule:
        auxiliary = self.sample.codes[self.order[self.sample.private :]]
        return build_rule(
            MechanismParameters(**parameters),
            tree=public_dependency_tree(auxiliary, self.sample.sizes),
            sizes=self.sample.sizes,
            n=self.sample.private,
            auxiliary=auxiliary,
            secrets=list(self.sample.secrets.values()),
            pool_seed=self.seed,
        )


def joint_figures(split: Split, parameters: dict[str, Any], budgets: Sequence[float]) -> list[list[float]]:
    """For each budget nats, mean TV and mean errors over the kept candidates of one pool."""
    rule = split.rule(**parameters, pool_size=POOL, budget_nats=0.0)
    assert isinstance(rule, JointRule)
    order = rule.kept(split.private)[0]  # all of them, nearest first
    combos, counts, _ = combinations(split.private)
    distances = rule.pool.distances(combos, counts / len(split.private))
    errors = [
        np.abs(rule.pool.shares(event) - share)
        for event, share in zip(split.sample.secrets.values(), split.shares, strict=True)
    ]
    rows = []
    for budget in budgets:
        kept = order[: joint_selection_size(POOL, budget)]
        rows.append([np.log(POOL / len(kept)), *(float(each[kept].mean()) for each in (distances, *errors))])
    return rows


def per_component_figures(split: Split, **parameters: Any) -> list[float]:
    """Nats, mean TV and mean errors over `DRAWS` draws of the per-component rule."""
    rule = split.rule(selection="per_component", **parameters)
    kept = rule.kept(split.private)
    combos, counts, _ = combinations(split.private)
    rng = np.random.default_rng(split.seed)
    secrets = list(zip(split.sample.secrets.values(), split.shares, strict=True))
    rows = []
    for _ in range(DRAWS):
        released = rule.release(draw_choice(kept, rng))
        distance = total_variation_from(combos, counts / len(split.private), released)
        rows.append([distance, *(abs(released.share(event) - share) for event, share in secrets)])
    nats = rule.leakage(secret_levels=len(split.private) + 1).mechanism_nats
    return [nats, *map(float, np.mean(rows, axis=0))]


def figures(split: Split) -> Iterator[tuple[str, list[float]]]:
    """Every setting's name with its nats, mean TV and mean errors on one split."""
    for ratio in RATIOS:
        paper = per_component_figures(split, pool="dirichlet", k=120 // ratio)
        yield f"per component, dirichlet, γ/k = {ratio}", paper
        if ratio > 1:
            budgeted = per_component_figures(split, pool="dirichlet", budget_nats=paper[0])
            yield f"per component, dirichlet, split at γ/k = {ratio}", budgeted
    for nats in (1.0, 3.0):
        equal = per_component_figures(split, pool="dirichlet", k=equal_size(split, nats))
        yield f"per component, dirichlet, equal at {nats:g}", equal
        budgeted = per_component_figures(split, pool="dirichlet", budget_nats=equal[0])
        yield f"per component, dirichlet, split at {nats:g}", budgeted
        spread = per_component_figures(split, pool="public", spread=0.3, budget_nats=nats)
        yield f"per component, public, spread 0.3, split at {nats:g}", spread
    for name, (parameters, budgets) in JOINT.items():
        for nats, row in zip(budgets, joint_figures(split, parameters, budgets), strict=True):
            yield f"{name}, {nats:g}", row


def equal_size(split: Split, nats: float) -> int:
    """The k that spends at most `nats` in equal parts on the components."""
    parent_sizes = split.rule(selection="per_component", pool="dirichlet").tree.parent_sizes(
        split.sample.sizes
    )
    return int(np.ceil(120 * np.exp(-nats / (1 + sum(parent_sizes)))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pools", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=["tweets", "druglib", "cfpb"])
    arguments = parser.parse_args()
    for sample in samples(arguments.data):
        if sample.name.split(",")[0] not in arguments.only:
            continue
        table: dict[str, list[list[float]]] = {}
        for pool in range(arguments.pools):
            for name, row in figures(Split(sample, pool)):
                table.setdefault(name, []).append(row)
        print(f"\n{sample.name}: n = {sample.private}, cap {np.log(sample.private + 1):.2f} nats")
        print(
            f"{'rule':<50}{'nats':>8}{'TV':>8}" + "".join(f"{f'error {key}':>21}" for key in sample.secrets)
        )
        for name, rows in table.items():
            nats, distance, *errors = np.mean(rows, axis=0)
            print(f"{name:<50}{nats:8.2f}{distance:8.3f}" + "".join(f"{e:21.3f}" for e in errors), flush=True)


if __name__ == "__main__":
    main()
