"""The mechanism-aware attack: the attacker knows the pool and which candidate was drawn from it.

A posterior by Monte Carlo: private distributions θ are drawn from a prior, each gives n records, and
θ counts where the rule would have kept the released candidate for them, since P(θ'|θ) = 1[θ' kept]/k.
The answer is the posterior median of the secret; `prior_error` is that of the same attacker without
the release. The prior is what makes the pool, what the mechanism holds possible; for the per-component
rule half of it lies near the public set, where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from quantext_graph.audit.attack_kinds import AttackKind, Found, Need
from quantext_graph.audit.attacks import Attack, AttackedSecret
from quantext_graph.audit.counting import counting_attack
from quantext_graph.audit.evidence import Evidence, Reading
from quantext_graph.core.arrays import Codes, Event, Floats, combinations
from quantext_graph.core.candidates import total_variation
from quantext_graph.core.distribution import Distribution
from quantext_graph.core.joint_pool import Block, JointPool, TreeBlock
from quantext_graph.core.rules import MechanismParameters, build_rule
from quantext_graph.core.selection import Choice, JointRule, PerComponentRule, Rule
from quantext_graph.core.targets import iid_targets

DRAWS = 800
"""θ drawn from the prior."""
FEWEST = 40
"""θ that a posterior rests on: where fewer keep the released candidate, those that rank it highest."""
RIVALS = (512, 8_192)
"""Least and most candidates that the released one is ranked among; they stand for all M."""
SPREAD = 0.3
"""How far from the public share a secret may be, where the mechanism does not say."""
RECORDS = 20_000
"""Most records drawn from a θ: beyond them the counts are as good as θ itself."""


class MechanismAware(AttackKind):
    """By an attacker who knows all of the mechanism but the private records."""

    name: ClassVar[str] = "mechanism-aware"
    title: ClassVar[str] = "Mechanism-aware"
    explanation: ClassVar[str] = (
        "The attacker knows the candidates and which one was drawn, and asks which private shares would have "
        "had it among those kept."
    )
    needs: ClassVar[tuple[Need, ...]] = ("draw",)

    def make(self, evidence: Evidence) -> Found:
        if evidence.draw is None and evidence.known_labels is not None:
            # Of a release that is drawn from the texts themselves, the count is the best there is.
            counted = Reading("count", evidence.known_labels)
            found = counting_attack(counted, evidence.secrets, attack=self.name)
            return [replace(each, detail={}) for each in found], []
        return super().make(evidence)

    def attack(self, evidence: Evidence) -> Found:
        draw = evidence.draw
        assert draw is not None
        attacks = mechanism_aware_attack(
            draw.parameters,
            draw.rule,
            draw.choice,
            evidence.secrets,
            n=evidence.n,
            auxiliary=evidence.auxiliary,
            rng=evidence.rng,
        )
        return attacks, []


@dataclass(frozen=True)
class _Beliefs:
    """What the attacker takes the share of an event to be, as samples, without the release and with it."""

    before: Callable[[Event], Floats]
    after: Callable[[Event], Floats]
    kept: int


def mechanism_aware_attack(
    parameters: MechanismParameters,
    rule: Rule,
    choice: Choice,
    secrets: Sequence[AttackedSecret],
    *,
    n: int,
    auxiliary: Codes | None = None,
    rng: np.random.Generator | None = None,
) -> list[Attack]:
    """The attack on a release that `rule` made by drawing `choice`; all but the truth is public.

    Args:
        parameters: the mechanism's.
        rule: its pool and selection sizes.
        choice: the candidates drawn.
        secrets: what is asked for.
        n: number of records.
        auxiliary: public labels (N, m), where the mechanism had some.
        rng: the attacker's own randomness.
    """
    rng = rng or np.random.default_rng()
    if isinstance(rule, JointRule):
        beliefs = _joint(rule, choice, n, rng)
    elif isinstance(rule, PerComponentRule):
        events = [secret.event for secret in secrets]
        beliefs = _per_component(parameters, rule, choice, n, auxiliary, events, rng)
    else:
        raise TypeError(f"no attack is known on a rule of type {type(rule).__name__}")
    attacks = []
    for secret in secrets:
        prior = float(np.median(beliefs.before(secret.event)))
        posterior = beliefs.after(secret.event)
        estimate = float(np.median(posterior))
        low, high = np.quantile(posterior, [0.05, 0.95]).tolist()
        detail = {"prior_estimate": prior, "interval": [low, high], "draws": beliefs.kept}
        error, prior_error = abs(estimate - secret.truth), abs(prior - secret.truth)
        attacks.append(
            Attack(
                MechanismAware.name, "posterior median", secret.title, estimate, error, prior_error, detail
            )
        )
    return attacks


def _joint(rule: JointRule, choice: Choice, n: int, rng: np.random.Generator) -> _Beliefs:
    share_kept = rule.selection_size / rule.pool.size
    rivals = _Rivals.of(rule.release(choice), rule.pool, int(np.clip(25 / share_kept, *RIVALS)), rng)
    before = rule.pool.source.block(DRAWS, rng)
    nearer = np.zeros(DRAWS)
    for index in range(DRAWS):
        records = iid_targets(before.distribution(index), min(n, RECORDS), rng=rng)
        combos, counts, _ = combinations(records)
        distances = rivals.distances(combos, counts / counts.sum(), blind_to=rule.blind_to)
        nearer[index] = (distances < distances[0]).mean()
    kept = _accepted(nearer, share_kept)
    return _Beliefs(before.share, lambda event: before.share(event)[kept], len(kept))


@dataclass(frozen=True)
class _Released:
    """The released candidate as a block of one."""

    candidate: Distribution
    count: int = 1

    def probability(self, combos: Codes) -> Floats:
        return self.candidate.probability(combos)[None]

    def share(self, event: Event) -> Floats:
        return np.array([self.candidate.share(event)])

    def distribution(self, index: int) -> Distribution:  # noqa: ARG002  (there is one)
        return self.candidate


@dataclass(frozen=True)
class _Rivals(JointPool):
    """The released candidate, and others from the source of its pool, made once: they stand for all."""

    made: tuple[Block, ...]

    @classmethod
    def of(cls, released: Distribution, pool: JointPool, count: int, rng: np.random.Generator) -> _Rivals:
        # Small blocks stay in the processor's cache.
        step = min(RIVALS[0], pool.block_size)
        made = [pool.source.block(step, rng) for _ in range(0, count, step)]
        return cls(pool.source, pool.size, pool.seed, (_Released(released), *made))

    def _blocks(self) -> Iterator[Block]:
        return iter(self.made)


def _per_component(
    parameters: MechanismParameters,
    rule: PerComponentRule,
    choice: Choice,
    n: int,
    auxiliary: Codes | None,
    events: Sequence[Event],
    rng: np.random.Generator,
) -> _Beliefs:
    """Components are drawn, kept and so believed independently of each other."""
    thetas = _component_prior(parameters, rule, n, auxiliary, events, rng)
    records = _records_per_component(rule, choice, min(n, RECORDS))
    after, kept = [], DRAWS
    for theta, pool, index, size, count in zip(
        thetas, rule.candidates, choice, rule.selection_sizes, records, strict=True
    ):
        if count == 0 or theta.shape[1] == 1:
            after.append(theta)
            continue
        seen = rng.multinomial(count, theta) / count
        distances = [total_variation(pool, row) for row in seen]
        nearer = np.array([(each < each[index]).sum() for each in distances], dtype=float)
        chosen = _accepted(nearer, size)
        kept = min(kept, len(chosen))
        after.append(theta[rng.choice(chosen, size=DRAWS)])
    return _Beliefs(_trees(rule, thetas).share, _trees(rule, after).share, kept)


def _component_prior(
    parameters: MechanismParameters,
    rule: PerComponentRule,
    n: int,
    auxiliary: Codes | None,
    events: Sequence[Event],
    rng: np.random.Generator,
) -> list[Floats]:
    """`DRAWS` of each component, (DRAWS, ψ): one half anything, the other half near the public set where
    there is one. A prior of the first alone can be led astray by a release that says little."""
    known = auxiliary is not None and len(auxiliary) > 0
    halves = [replace(parameters, pool="dirichlet", spread=None)]
    if known:
        halves.append(replace(parameters, pool="public", spread=parameters.spread or SPREAD))
    count = DRAWS // len(halves)
    made = []
    for half in halves:
        # As many candidates as draws: nothing is chosen among them, so they are the prior itself.
        prior = build_rule(
            replace(half, gamma=count, k=1, budget_nats=None, pool_size=count),
            tree=rule.tree,
            sizes=rule.sizes,
            n=n,
            auxiliary=auxiliary,
            secrets=events,
            pool_seed=int(rng.integers(2**63)),
        )
        assert isinstance(prior, PerComponentRule)
        made.append(prior.candidates)
    # Shuffled, so that the components of one draw do not all come from the same half.
    return [rng.permutation(np.concatenate(each)) for each in zip(*made, strict=True)]


def _records_per_component(rule: PerComponentRule, choice: Choice, n: int) -> list[int]:
    """About how many records stand behind each component, by the release itself."""
    released = rule.release(choice)
    counts = []
    for parent, rows in zip(rule.tree.parents, rule.tree.rows(rule.sizes), strict=True):
        counts += [n if parent < 0 else round(n * released.share({parent: (v,)})) for v in range(rows)]
    return counts


def _trees(rule: PerComponentRule, components: Sequence[Floats]) -> TreeBlock:
    left = iter(components)
    tables = [np.stack([next(left) for _ in range(rows)], axis=1) for rows in rule.tree.rows(rule.sizes)]
    return TreeBlock(rule.tree, rule.sizes, tables)


def _accepted(nearer: Floats, size: float) -> npt.NDArray[np.int64]:
    """Which θ have the released candidate among their `size` nearest, given how many are nearer."""
    return np.flatnonzero(nearer < max(size, np.nextafter(np.partition(nearer, FEWEST)[FEWEST], np.inf)))
