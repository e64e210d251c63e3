"""What a budget buys: bound, distance and error on the secrets, estimated on the auxiliary data alone.

The auxiliary set is halved at random, several times. One half is the public set: tree, pool and budget
split come from it. The other half plays the private set. So a budget can be chosen before anybody
looks at private data, of which only the number of records is known here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from quantext_graph.core.arrays import Codes, Event, Floats, as_codes, cells, combinations, event_mask
from quantext_graph.core.joint_pool import BLOCK_FLOATS, Block, JointPool, TreeBlock
from quantext_graph.core.leakage import Leakage
from quantext_graph.core.public_pool import DENSE_CELLS
from quantext_graph.core.selection import JointRule, PerComponentRule, joint_selection_size
from quantext_graph.mechanism.guarantees import Guarantees, guarantees, levels, release_rule
from quantext_graph.spec.errors import SpecError
from quantext_graph.spec.models import Mechanism, Rewriting, Spec

Progress = Callable[[Mapping[str, Any]], None]
"""Takes events `{"stage", "done", "total"}`, as the terminal's progress bars do."""

BUDGETS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0)
"""Budgets in nats that are tried, as far as they lie well below the cap; the cap itself is the last."""

RATIOS = (1.0, 1.1, 4 / 3, 2.0, 4.0, 12.0)
"""γ/k of the paper's rule; 2, 4 and 12 are settings it was published with."""

SPREAD = 0.3
"""Spread of the public pool where the spec names none."""

LEAST_ROWS = 20
HALF_AT_MOST = 10_000
POOL = 50_000
"""M of the joint rule here: the mean over the nearest K of M hangs on K/M and hardly on M."""

_FEW_SPLITS, _FEW_CANDIDATES = 3, 5_000  # for a figure that `check` shows in passing
POOL_AT_LEAST = 1_000
POOL_WORK = 10**8
"""Numbers that one pool may take to make and compare: what makes M smaller for many attributes."""

KEEPS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""Values of κ for which the share of texts whose labels must change is stated."""

DRAWS = 200
"""Draws over which the per-component rule's figures are averaged."""


@dataclass(frozen=True)
class TradeoffPoint:
    """One setting of the mechanism, and what it would give.

    `budget_nats` is what the setting may spend (C·log(γ/k) where `gamma_over_k` is given), `leakage` what
    a release of the n records with this setting states, about the secret it leaks most of.
    `expected_tv` is the mean joint TV between the released distribution and that of the half in the
    private role, `expected_error` the mean |released share − true share| of each secret, by its title;
    the standard errors are those over the splits. `changed` is {κ: expected share of the released texts whose
    labels must change where κ of the records are released}.
    """

    selection: Literal["per_component", "joint"]
    pool: Literal["dirichlet", "public"]
    spread: float | None
    budget_nats: float
    gamma_over_k: float | None
    leakage: Leakage
    expected_tv: float
    expected_error: dict[str, float]
    tv_standard_error: float
    error_standard_error: dict[str, float]
    changed: dict[float, float]

    @property
    def bound_nats(self) -> float:
        return self.leakage.bound_nats

    @property
    def uncapped_nats(self) -> float:
        """The bound before its cap: how far beyond vacuous a setting lies."""
        return self.leakage.mechanism_nats + self.leakage.log_l

    @property
    def rule(self) -> str:
        """The rule and pool in words; points of one curve share it."""
        pool = self.pool if self.spread is None else f"{self.pool}, spread {self.spread:g}"
        split = "" if self.selection == "joint" else ", equal γ/k" if self.gamma_over_k else ", budget split"
        return f"{self.selection}, {pool}{split}"

    def to_json(self) -> dict[str, Any]:
        return {
            "selection": self.selection,
            "pool": self.pool,
            "spread": self.spread,
            "budget_nats": self.budget_nats,
            "bound_nats": self.bound_nats,
            "expected_tv": self.expected_tv,
            "expected_error": self.expected_error,
            "gamma_over_k": self.gamma_over_k,
            "success_factor": self.leakage.success_factor,
            "cap_nats": self.leakage.cap_nats,
            "vacuous": self.leakage.vacuous,
            "tv_standard_error": self.tv_standard_error,
            "error_standard_error": self.error_standard_error,
            "changed_at_keep": {f"{keep:g}": share for keep, share in self.changed.items()},
        }


def tradeoff(
    spec: Spec,
    auxiliary_codes: ArrayLike,
    *,
    n: int,
    budgets: Sequence[float] | None = None,
    splits: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[TradeoffPoint]:
    """Every rule and pool at every budget, on random halves of the auxiliary labels.

    The joint rule's expectation over its draw is exact, the mean over the kept candidates of a pool of
    at most `POOL`; that of the per-component rule is the mean over `DRAWS` draws. The bounds are those
    of the rule that a release would build, from the whole auxiliary set and `n`.

    Args:
        auxiliary_codes: public category codes (N, m).
        n: number of private records; it sets the cap.
        budgets: nats; by default `BUDGETS` up to the cap, and the cap.
        splits: random halvings, 2 or more.
        seed: of the halvings and pools. All of it is public.

    Raises:
        SpecError: fewer than 20 auxiliary rows, no records, a negative budget, or as `guarantees`.
        ValueError: codes that do not fit the spec, or fewer than 2 splits.
    """
    codes = as_codes(auxiliary_codes, spec.sizes)
    if len(codes) < LEAST_ROWS:
        raise SpecError(
            f"auxiliary: {len(codes)} rows; the trade-off needs {LEAST_ROWS} or more, half of them in the "
            "role of the private set; add public rows"
        )
    if n < 1:
        raise SpecError(f"{n} records; the trade-off is stated for 1 or more")
    if splits < 2:
        raise ValueError(f"splits = {splits}; the spread over splits needs 2 or more")
    grid = _grid(math.log(max(levels(spec, n)))) if budgets is None else tuple(budgets)
    if any(not 0 <= nats < math.inf for nats in grid):
        raise SpecError("a budget is negative or not finite; give nats from 0 up")

    curves = _curves(spec, grid)
    settings = [setting for curve in curves for setting in curve]
    stated = [guarantees(setting, n, codes) for setting in settings]
    figures = np.empty((splits, len(settings), 1 + len(spec.secrets) + len(KEEPS)))
    for split in range(splits):
        halves = _Halves.of(spec, codes, np.random.default_rng([seed, split]))
        done = 0
        for number, curve in enumerate(curves):
            figures[split, done : done + len(curve)] = _expectations(curve, halves)
            done += len(curve)
            if progress is not None:
                step = split * len(curves) + number + 1
                progress({"stage": "trade-off", "done": step, "total": splits * len(curves)})
    means = figures.mean(axis=0).tolist()
    errors = (figures.std(axis=0, ddof=1) / math.sqrt(splits)).tolist()
    return [
        _point(setting.mechanism, bound, bool(spec.secrets), mean, error)
        for setting, bound, mean, error in zip(settings, stated, means, errors, strict=True)
    ]


def expected_changes(
    spec: Spec, auxiliary_codes: ArrayLike, *, keeps: Sequence[float] = (), seed: int = 0
) -> dict[float, float]:
    """{κ: expected share of the released texts whose labels must change} for the spec's own mechanism at each
    κ of `keeps` (its own and 1 by default), from a few halvings of the auxiliary labels (N, m); empty below
    `LEAST_ROWS` rows.

    Raises:
        SpecError: as `guarantees`.
    """
    codes = as_codes(auxiliary_codes, spec.sizes)
    if len(codes) < LEAST_ROWS:
        return {}
    keeps = tuple(dict.fromkeys(keeps or (1.0, spec.mechanism.keep)))
    rows = []
    for split in range(_FEW_SPLITS):
        halves = _Halves.of(spec, codes, np.random.default_rng([seed, split]), keeps)
        rows.append(_expectations([spec], halves, most=_FEW_CANDIDATES)[0, 1 + len(spec.secrets) :])
    return dict(zip(keeps, np.mean(rows, axis=0).tolist(), strict=True))


def _grid(cap: float) -> tuple[float, ...]:
    return (*(nats for nats in BUDGETS if nats < 0.95 * cap), cap)


def _curves(spec: Spec, budgets: Sequence[float]) -> list[list[Spec]]:
    """The spec with other mechanisms, one list for each rule and pool.

    Without a secret there is nothing to spread along.
    """
    given = spec.mechanism
    spread = (SPREAD if given.spread is None else given.spread) if spec.secrets else None

    def setting(**fields: Any) -> Spec:
        fields = {"pool_size": None, "spread": None, "budget_nats": None, **fields}
        written = (
            Rewriting()
        )  # whatever fills the targets: not every rule here could be filled by public texts
        return spec.model_copy(update={"mechanism": given.model_copy(update=fields), "rewriting": written})

    kept = sorted({max(1, round(given.gamma / ratio)) for ratio in RATIOS}, reverse=True)
    paper = {"selection": "per_component", "pool": "dirichlet"}
    budgeted: list[dict[str, Any]] = [
        *([{"selection": "joint", "pool": "public", "spread": spread}] if spread is not None else []),
        {"selection": "joint", "pool": "public"},
        {"selection": "joint", "pool": "dirichlet"},
        paper,
        {"selection": "per_component", "pool": "public", "spread": spread},
    ]
    return [
        *([setting(**fields, budget_nats=nats) for nats in budgets] for fields in budgeted),
        [setting(**paper, k=k) for k in kept],
    ]


@dataclass(frozen=True)
class _Halves:
    """One split: the public half, and the other half with its combinations, their masses and its shares."""

    public: Codes
    private: Codes
    combos: Codes
    masses: Floats
    events: list[Event]
    shares: Floats
    keeps: tuple[float, ...]
    pool_seed: int

    @classmethod
    def of(
        cls, spec: Spec, codes: Codes, rng: np.random.Generator, keeps: tuple[float, ...] = KEEPS
    ) -> _Halves:
        order = rng.permutation(len(codes))
        half = min(len(codes) // 2, HALF_AT_MOST)
        private = codes[order[half : 2 * half]]
        combos, counts, _ = combinations(private)
        events: list[Event] = [spec.secret_codes(secret) for secret in spec.secrets]
        return cls(
            public=codes[order[:half]],
            private=private,
            combos=combos,
            masses=counts / half,
            events=events,
            shares=np.array([event_mask(private, event).mean() for event in events]),
            keeps=keeps,
            pool_seed=int(rng.integers(2**63)),
        )

    def work(self, sizes: Sequence[int]) -> int:
        """Numbers that one joint candidate takes: a table is tilted by every pair of attributes."""
        m = len(sizes)
        tilts = cells(sizes) * m * (m + 1) // 2 if cells(sizes) <= DENSE_CELLS else 0
        return max(tilts, self.combos.size)


def _expectations(curve: Sequence[Spec], halves: _Halves, most: int = POOL) -> Floats:
    """Mean TV, mean error on each secret, mean changed share at each κ: (points, 1 + secrets + κs)."""
    if curve[0].mechanism.selection == "per_component":
        return np.stack([_per_component(setting, halves) for setting in curve])
    size = max(POOL_AT_LEAST, min(most, POOL_WORK // halves.work(curve[0].sizes)))
    rule = release_rule(curve[0], len(halves.private), halves.public, pool_seed=halves.pool_seed)
    assert isinstance(rule, JointRule)
    means = _nearest_means(JointPool(rule.pool.source, size, rule.pool.seed), halves)
    kept = [joint_selection_size(size, setting.mechanism.budget_nats or 0.0) for setting in curve]
    chosen: Floats = means[np.array(kept) - 1]
    return chosen


def _nearest_means(pool: JointPool, halves: _Halves) -> Floats:
    """Row K − 1 holds the figures averaged over the K candidates nearest to the private half.

    Candidates are made once for all budgets and all secrets, in blocks that bound the memory.
    """
    block_size = max(1, min(4096, BLOCK_FLOATS // max(pool.source.width, len(halves.combos))))
    rng = np.random.default_rng(pool.seed)
    figures = []
    for start in range(0, pool.size, block_size):
        block = pool.source.block(min(block_size, pool.size - start), rng)
        figures.append(_figures(block, halves))
    table = np.concatenate(figures)
    nearest = table[np.argsort(table[:, 0], kind="stable")]
    means: Floats = np.cumsum(nearest, axis=0) / np.arange(1, len(nearest) + 1)[:, None]
    return means


def _per_component(setting: Spec, halves: _Halves) -> Floats:
    rule = release_rule(setting, len(halves.private), halves.public, pool_seed=halves.pool_seed)
    assert isinstance(rule, PerComponentRule)
    rng = np.random.default_rng(halves.pool_seed)
    drawn = [
        pool[rng.choice(indices, size=DRAWS)]
        for pool, indices in zip(rule.candidates, rule.kept(halves.private), strict=True)
    ]
    components = iter(drawn)
    tables = [
        np.stack([next(components) for _ in range(rows)], axis=1) for rows in rule.tree.rows(rule.sizes)
    ]
    means: Floats = _figures(TreeBlock(rule.tree, rule.sizes, tables), halves).mean(axis=0)
    return means


def _figures(block: Block, halves: _Halves) -> Floats:
    """TV, error on each secret, changed share at each κ of each candidate: (b, 1 + secrets + κs)."""
    probability = block.probability(halves.combos)
    distances = np.maximum(halves.masses - probability, 0).sum(axis=1)
    errors = [
        np.abs(block.share(event) - share) for event, share in zip(halves.events, halves.shares, strict=True)
    ]
    changed = [1 - np.minimum(probability, halves.masses / keep).sum(axis=1) for keep in halves.keeps]
    return np.column_stack([distances, *errors, *changed])


def _point(
    mechanism: Mechanism, stated: Guarantees, named: bool, mean: list[float], error: list[float]
) -> TradeoffPoint:
    budget = mechanism.budget_nats
    titles = list(stated.secrets) if named else []
    secrets = 1 + len(titles)
    return TradeoffPoint(
        selection=mechanism.selection,
        pool=mechanism.pool,
        spread=mechanism.spread,
        budget_nats=stated.worst.mechanism_nats if budget is None else budget,
        gamma_over_k=mechanism.gamma / mechanism.k if budget is None else None,
        leakage=stated.worst,
        expected_tv=mean[0],
        expected_error=dict(zip(titles, mean[1:secrets], strict=True)),
        tv_standard_error=error[0],
        error_standard_error=dict(zip(titles, error[1:secrets], strict=True)),
        changed=dict(zip(KEEPS, mean[secrets:], strict=True)),
    )
