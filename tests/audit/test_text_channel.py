"""The text channel: a leak that was planted is found with its size, and one that is not there is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quantext_graph.audit.dealing import dealer
from quantext_graph.audit.inputs import Draw
from quantext_graph.audit.text_channel import FEWEST, text_channel
from quantext_graph.core.arrays import event_mask
from quantext_graph.core.quantize import public_dependency_tree
from quantext_graph.core.rules import MechanismParameters, build_rule

SIZES = (3, 2)
EVENT = {0: (1,)}
WORDS = [["tea", "cup", "leaf", "pot"], ["rain", "cloud", "storm", "wet"], ["road", "bus", "wheel", "stop"]]
FILLER = list(range(20))  # words that tell nothing


def write(label, rng, count=5):
    """A text of filler and of words that tell the first attribute."""
    return [*map(str, rng.choice(FILLER, 8)), *rng.choice(WORDS[label[0]], count)]


def corpus(n, share, rng):
    first = np.where(rng.random(n) < share, 1, rng.choice([0, 2], n))
    return np.column_stack([first, rng.integers(2, size=n)])


class World:
    """A public set, a rule at 0.1 nats, a private set, and texts that carry so many words of their record."""

    def __init__(self, seed, n=500, keep=1.0, carry=0):
        rng = np.random.default_rng(seed)
        self.public = corpus(800, 0.4, rng)
        self.public_texts = [" ".join(write(label, rng)) for label in self.public]
        parameters = MechanismParameters(spread=0.3, budget_nats=0.1, pool_size=1000, keep=keep)
        rule = build_rule(
            parameters,
            tree=public_dependency_tree(self.public, SIZES),
            sizes=SIZES,
            n=n,
            auxiliary=self.public,
            secrets=[EVENT],
            pool_seed=seed,
        )
        draw = Draw(parameters, rule, (0,), {})
        private = corpus(n, 0.3, rng)
        self.deal = dealer(draw, private, EVENT, (1.0, 1.0))
        self.labels, self.targets = self.deal(float(event_mask(private, EVENT).mean()), rng)
        self.texts = []
        for label, target in zip(self.labels, self.targets, strict=True):
            self.texts.append(" ".join(write(target, rng) + list(rng.choice(WORDS[label[0]], carry))))
        self.rng = rng

    def found(self):
        return text_channel(
            self.texts,
            self.labels,
            self.targets,
            EVENT,
            (self.public_texts, self.public),
            self.deal,
            secret="rain",
            bound_nats=0.1,
            shares=(0.15, 0.45),
            rng=self.rng,
            releases=80,
        )


@pytest.mark.parametrize("seed", range(3))
def test_words_of_the_old_label_are_found(seed):
    found = World(seed, carry=2).found()
    assert found is not None
    assert found.leaks
    assert found.carried > 3 * found.carried_standard_error
    assert found.success > 0.8
    assert found.allowed == pytest.approx(0.5 * math.exp(0.1))
    assert found.nats <= math.log(1 / found.allowed)
    assert "names" not in found.words
    assert "at least" in found.words


def test_texts_that_carry_nothing_are_seldom_suspected_and_the_power_is_said():
    found = [World(seed, carry=0).found() for seed in range(3, 9)]
    judged = [channel for channel in found if channel is not None]
    assert len(judged) >= 4
    assert sum(channel.leaks for channel in judged) <= 1
    for channel in judged:
        assert channel.leaks or f"less than {channel.power_nats:.2f} nats" in channel.words


def test_what_too_few_texts_can_tell_is_not_said():
    world = World(1, n=500, keep=0.4)
    changed = (event_mask(world.labels, EVENT) != event_mask(world.targets, EVENT)).sum()
    assert changed < FEWEST
    assert world.found() is None


def test_a_dealt_release_has_the_share_and_the_mechanisms_targets():
    world = World(2, n=400, keep=0.6)
    labels, targets = world.deal(0.25, np.random.default_rng(0))
    assert labels.shape == targets.shape == (240, 2)
    whole = World(2, n=400)
    labels, _ = whole.deal(0.25, np.random.default_rng(0))
    assert event_mask(labels, EVENT).mean() == 0.25
