"""Releases of other shares by the rule of a release: labels and targets as its mechanism would have them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from quantext_graph.audit.inputs import AuditInputs, Draw
from quantext_graph.audit.text_channel import Deal, TextChannel, text_channel
from quantext_graph.core.arrays import Codes, Event, event_mask
from quantext_graph.core.joint_pool import Block, JointPool
from quantext_graph.core.matching import UNUSED
from quantext_graph.core.quantize import draw_targets
from quantext_graph.core.selection import JointRule, Rule
from quantext_graph.spec.models import Spec

CANDIDATES = 2_000
"""M of a joint rule here: what is measured hangs on K/M and hardly on M."""

APART = 0.15
"""The two shares that are to be told apart lie so far below and above the true one."""


def text_channels(inputs: AuditInputs, spec: Spec, rng: np.random.Generator) -> list[TextChannel]:
    """The text channel of each secret, where the draw, the pairs and labelled public texts are known and
    enough texts have changed."""
    draw, public = inputs.draw, inputs.auxiliary_codes
    if draw is None or not inputs.pairs or public is None:
        return []
    labels, targets = (
        np.array([getattr(pair, side) for pair in inputs.pairs]) for side in ("labels", "target")
    )
    found = []
    for secret in spec.secrets:
        event, leakage = spec.secret_codes(secret), draw.leakage.get(secret.title)
        if leakage is None:
            continue
        truth = float(event_mask(inputs.private_codes, event).mean())
        channel = text_channel(
            [pair.after for pair in inputs.pairs],
            labels,
            targets,
            event,
            (inputs.auxiliary_texts, public),
            dealer(draw, inputs.private_codes, event, spec.weights),
            secret=secret.title,
            bound_nats=leakage.mechanism_nats + leakage.log_l,
            shares=(max(0.02, truth - APART), min(0.98, truth + APART)),
            rng=rng,
        )
        if channel is not None:
            found.append(channel)
    return found


def dealer(draw: Draw, labels: Codes, event: Event, weights: tuple[float, ...]) -> Deal:
    """What gives (labels of the records used, their targets) of a release from records like the private ones
    (n, m), of which a given share lies in the event."""
    inside, outside = (np.flatnonzero(event_mask(labels, event) == side) for side in (True, False))
    rule = _at_hand(draw.rule)

    def deal(share: float, rng: np.random.Generator) -> tuple[Codes, Codes]:
        count = round(share * len(labels))
        rows = np.concatenate([rng.choice(inside, count), rng.choice(outside, len(labels) - count)])
        _, targets, places = draw_targets(rule, labels[rows], draw.parameters, weights, rng, rng)
        used = np.flatnonzero(places != UNUSED)
        return labels[rows][used], targets[places[used]]

    return deal


def _at_hand(rule: Rule) -> Rule:
    """The rule with fewer candidates, made once: a release makes them anew whenever they are looked at."""
    if not isinstance(rule, JointRule):
        return rule
    pool = rule.pool
    size = min(pool.size, CANDIDATES)
    kept = max(1, round(size * rule.selection_size / pool.size))
    block = pool.source.block(size, np.random.default_rng(pool.seed))
    return replace(rule, pool=_Made(pool.source, size, pool.seed, block), selection_size=kept)


@dataclass(frozen=True)
class _Made(JointPool):
    """A pool of one block that is there."""

    block: Block

    @property
    def block_size(self) -> int:
        return self.size

    def _block(self, number: int) -> Block:  # noqa: ARG002
        return self.block
