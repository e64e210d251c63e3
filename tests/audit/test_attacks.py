import re
import subprocess
import sys
from dataclasses import replace

import audit_corpus as corpus
import numpy as np
import pytest

from quantext_graph.audit import mechanism_aware, quantification
from quantext_graph.audit.attacks import AttackedSecret, attacked_secrets
from quantext_graph.audit.counting import Labelling, counting_attack
from quantext_graph.audit.evidence import Evidence, Pairs, Reading
from quantext_graph.audit.inputs import AuditInputs
from quantext_graph.audit.labelling import label_texts, read_release
from quantext_graph.audit.mechanism_aware import mechanism_aware_attack
from quantext_graph.audit.quantification import quantification_attack
from quantext_graph.audit.residual import residual_attack
from quantext_graph.core.chow_liu import Tree
from quantext_graph.core.quantize import quantize
from quantext_graph.core.rules import MechanismParameters, build_rule
from quantext_graph.core.targets import iid_targets
from quantext_graph.models.chat_model import Outcome, Reply

SIZES = (3, 2)
TREE = Tree(0, (-1, 0))
EMBED = corpus.WordEmbeddings().embed_documents


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def secret(truth, guess=0.5):
    return AttackedSecret("likes", corpus.FAVOR, truth, guess)


def labelled(reading, truth):
    return Evidence(secrets=[secret(truth)], attributes=["Topic", "Stance"], n=1, readings=[reading])


class Reader:
    """A chat model that reads the corpus's words right, but takes one stance for the other now and then."""

    name = "stub:reader"
    context = None

    def __init__(self, wrong=lambda text: False, outcome=Outcome.OK):
        self.wrong, self.outcome, self.calls = wrong, outcome, 0

    def structured(self, messages, output, **options):
        self.calls += 1
        if self.outcome is not Outcome.OK:
            return Reply(self.outcome, reason="it did not answer")
        text = str(messages[-1].content)
        topic = next(word for word in corpus.TOPICS if word in text)
        likes = re.search(r"\blike\b", text) is not None
        stance = corpus.STANCES[int(likes == self.wrong(text))]
        return Reply(Outcome.OK, (output(Topic=topic, Stance=stance),))


# -- what is attacked -------------------------------------------------------------------------------


def test_the_guess_is_the_auxiliary_share_or_equally_likely_categories(rng):
    private, public = corpus.codes(100, 0.8, rng), corpus.codes(100, 0.3, rng)
    (known,) = attacked_secrets(corpus.spec(), private, public)
    (blind,) = attacked_secrets(corpus.spec(), private)
    assert (known.truth, known.guess, blind.guess) == (0.8, 0.3, 0.5)


def test_unlabelled_records_are_not_counted_and_an_unlabelled_secret_is_not_attacked(rng):
    private = corpus.codes(100, 0.8, rng)
    private[private[:, 1] == 1, 1] = -1
    (found,) = attacked_secrets(corpus.spec(), private)
    assert found.truth == 1.0
    private[:, 1] = -1
    assert attacked_secrets(corpus.spec(), private) == []


# -- labelling --------------------------------------------------------------------------------------


def test_a_raw_release_is_caught_by_counting_perfect_labels(rng):
    labels = corpus.codes(500, 0.8, rng)
    (attack,) = counting_attack(Reading("perfect", labels), [secret(0.8)])
    assert attack.error < 0.01
    assert attack.prior_error == pytest.approx(0.3)
    assert attack.relative_error < 0.04


def test_the_labelling_attack_asks_once_a_text_and_reports_the_labellers_own_bias(rng):
    private, released = corpus.codes(60, 0.8, rng), corpus.codes(50, 0.4, rng)
    reader = Reader(wrong=lambda text: "tea" in text)
    texts = corpus.write(private, rng), corpus.write(released, rng)
    reading = read_release(reader, AuditInputs(texts[0], private, texts[1]), corpus.spec(), rng=rng)
    (attack,), _ = Labelling().make(labelled(reading, 0.8))
    read = reading.codes
    assert reader.calls == 110
    right = released[:, 0] != 0
    assert (read[right] == released[right]).all()
    assert attack.estimate == pytest.approx((read[:, 1] == 0).mean())
    tea = private[:, 0] == 0
    flipped = np.where(tea, private[:, 1] == 1, private[:, 1] == 0).mean()
    assert attack.detail["bias"] == pytest.approx(flipped - 0.8)


def test_a_model_that_never_answers_gives_no_estimate(rng):
    labels = corpus.codes(20, 0.5, rng)
    texts = corpus.write(labels, rng)
    reader = Reader(outcome=Outcome.REFUSED)
    reading = read_release(reader, AuditInputs(texts, labels, texts), corpus.spec(), rng=rng)
    attacks, (skip,) = Labelling().make(labelled(reading, 0.5))
    assert attacks == []
    assert skip.reason == "stub:reader labelled no text"
    assert (reading.codes == -1).all()


def test_labels_come_in_the_order_of_the_texts(rng):
    labels = corpus.codes(200, 0.5, rng)
    assert (label_texts(Reader(), corpus.write(labels, rng), corpus.spec()) == labels).all()


# -- quantification ---------------------------------------------------------------------------------


@pytest.mark.parametrize("likes", [0.1, 0.5, 0.9])
def test_quantification_catches_a_raw_release_whose_share_differs_from_the_public_one(likes, rng):
    pytest.importorskip("quapy")
    public, released = corpus.codes(400, 0.3, rng), corpus.codes(400, likes, rng)
    public_texts, texts = corpus.write(public, rng), corpus.write(released, rng)
    attacks, skipped = quantification_attack(
        np.array(EMBED(texts)), np.array(EMBED(public_texts)), public, [secret(likes, 0.3)]
    )
    assert [attack.by for attack in attacks] == ["adjusted count", "expectation maximisation"]
    assert skipped == []
    for attack in attacks:
        assert attack.error < 0.01


def test_quantification_leaves_the_figures_of_the_host_as_they_are():
    pytest.importorskip("quapy")
    told = """
import matplotlib, numpy as np
before = dict(matplotlib.rcParams)
from quantext_graph.audit.quantification import quantification_attack
quantification_attack(np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 1), dtype=int), [])
import sys
assert "quapy" in sys.modules
assert dict(matplotlib.rcParams) == before
"""
    subprocess.run([sys.executable, "-c", told], check=True)


def test_quantification_without_enough_examples_says_so(rng):
    pytest.importorskip("quapy")
    public = corpus.codes(50, 0.04, rng)
    points = np.array(EMBED(corpus.write(public, rng)))
    attacks, (skip,) = quantification_attack(points, points, public, [secret(0.04)])
    assert attacks == []
    assert "fewer than" in skip.reason


def test_quantification_without_its_library_names_it(monkeypatch, rng):
    monkeypatch.setitem(__import__("sys").modules, "quapy.method.aggregative", None)
    _, (skip,) = quantification_attack(np.zeros((1, 1)), np.zeros((1, 1)), corpus.codes(1, 1, rng), [])
    assert skip.reason == quantification.MISSING


# -- residual ---------------------------------------------------------------------------------------


def released_for(original, share_kept, rng):
    """Targets of which a part equals the original, and texts that follow the target alone."""
    targets = corpus.codes(len(original), 0.5, rng)
    same = rng.random(len(original)) < share_kept
    targets[same] = original[same]
    return targets, corpus.write(targets, rng)


@pytest.mark.parametrize("share_kept", [0.0, 0.8])
def test_the_residual_attack_finds_planted_style(share_kept, rng):
    original = corpus.codes(600, 0.5, rng)
    targets, texts = released_for(original, share_kept, rng)
    styled = [
        text + (" forsooth" if stance == 0 and rng.random() < 0.5 else "")
        for text, stance in zip(texts, original[:, 1], strict=True)
    ]
    topic, stance = residual_attack(Pairs(styled, targets, original), ["Topic", "Stance"], rng=rng)[0]
    assert stance.detail["leaks"]
    assert stance.estimate > stance.detail["base_rate"] + 0.01
    assert not topic.detail["leaks"]


@pytest.mark.parametrize("share_kept", [0.0, 0.8])
def test_the_residual_attack_finds_nothing_in_texts_that_follow_the_target(share_kept):
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        original = corpus.codes(300, 0.5, rng)
        targets, texts = released_for(original, share_kept, rng)
        attacks, _ = residual_attack(Pairs(texts, targets, original), ["Topic", "Stance"], rng=rng)
        found += sum(attack.detail["leaks"] for attack in attacks)
    assert found <= 2  # of 20, each with a chance of 2.5 % at most


def test_the_residual_attack_answers_on_constant_rare_and_few_labels(rng):
    original = corpus.codes(40, 1.0, rng)
    original[0, 1] = 1
    targets, texts = released_for(original, 0.5, rng)
    texts[:5] = ["", " ", "\n", "🙂", "–"]
    attacks, _ = residual_attack(Pairs(texts, targets, original), ["Topic", "Stance"], rng=rng)
    assert np.isfinite([[a.estimate, a.error, a.prior_error, *a.detail["interval"]] for a in attacks]).all()
    original[:, 1] = 0
    (_, stance), _ = residual_attack(Pairs(texts, targets, original), ["Topic", "Stance"], rng=rng)
    assert (stance.estimate, stance.detail["base_rate"]) == (1.0, 1.0)
    _, skipped = residual_attack(Pairs(texts[:9], targets[:9], original[:9]), ["Topic", "Stance"], rng=rng)
    assert len(skipped) == 2


def test_equal_texts_tell_nothing(rng):
    original = corpus.codes(100, 0.5, rng)
    attacks, _ = residual_attack(
        Pairs(["same"] * 100, original[::-1], original), ["Topic", "Stance"], rng=rng
    )
    assert not any(attack.detail["leaks"] for attack in attacks)


# -- mechanism-aware --------------------------------------------------------------------------------

JOINT = MechanismParameters(pool="public", spread=0.4, budget_nats=3.0, pool_size=2_000)
PAPER = MechanismParameters(selection="per_component", pool="dirichlet", gamma=60, k=6, targets="iid")
RULES = pytest.mark.parametrize("parameters", [JOINT, PAPER], ids=["joint", "per component"])


def attacked(parameters, private, public, rng):
    """A release of `private`, attacked."""
    drawn = quantize(
        private, SIZES, auxiliary=public, tree=TREE, secrets=[corpus.FAVOR], rng=rng, **vars(parameters)
    )
    (attack,) = mechanism_aware_attack(
        parameters,
        drawn.rule,
        drawn.choice,
        [secret((private[:, 1] == 0).mean())],
        n=len(private),
        auxiliary=public,
        rng=rng,
    )
    return attack


def from_prior(parameters, public, rng, n=400):
    """Private labels from what the mechanism holds possible."""
    many = replace(parameters, gamma=2, k=1, pool_size=2, budget_nats=0.0 if parameters.k != 6 else None)
    rule = build_rule(
        many,
        tree=TREE,
        sizes=SIZES,
        n=n,
        auxiliary=public,
        secrets=[corpus.FAVOR],
        pool_seed=int(rng.integers(1e9)),
    )
    first = (0,) if parameters.selection == "joint" else (0,) * len(rule.candidates)
    return iid_targets(rule.release(first), n, rng=rng)


@RULES
def test_knowing_the_mechanism_helps_over_truths_that_it_holds_possible(parameters, monkeypatch):
    """Over truths from its prior the posterior median is the better guess; it can lose on a single one."""
    monkeypatch.setattr(mechanism_aware, "DRAWS", 300)
    rng = np.random.default_rng(3)
    public = corpus.codes(500, 0.5, rng)
    attacks = [attacked(parameters, from_prior(parameters, public, rng), public, rng) for _ in range(25)]
    error, prior = (np.array([getattr(a, name) for a in attacks]) for name in ("error", "prior_error"))
    noise = (error - prior).std(ddof=1) / np.sqrt(len(attacks))
    assert error.mean() < prior.mean() - noise
    assert all(attack.detail["draws"] >= mechanism_aware.FEWEST for attack in attacks)


def test_a_release_that_says_nothing_leaves_the_prior_guess(rng):
    silent = replace(JOINT, budget_nats=0.0)
    attack = attacked(silent, corpus.codes(300, 0.8, rng), corpus.codes(300, 0.5, rng), rng)
    assert attack.estimate == attack.detail["prior_estimate"]
    assert attack.error == attack.prior_error


def test_a_component_drawn_among_all_leaves_the_prior_guess(rng):
    silent = replace(PAPER, k=PAPER.gamma)
    attack = attacked(silent, corpus.codes(300, 0.8, rng), corpus.codes(300, 0.5, rng), rng)
    assert attack.estimate == pytest.approx(attack.detail["prior_estimate"], abs=0.04)  # resampled


def test_a_release_that_says_all_is_caught(rng):
    """The nearest of many candidates is as good as a raw release."""
    loud = replace(JOINT, pool_size=20_000, budget_nats=float(np.log(20_000)))
    attack = attacked(loud, corpus.codes(2_000, 0.8, rng), corpus.codes(2_000, 0.5, rng), rng)
    assert attack.prior_error > 0.2
    assert attack.error < 0.05


def test_selection_blind_to_the_secret_tells_less_of_it(monkeypatch):
    monkeypatch.setattr(mechanism_aware, "DRAWS", 200)
    errors = {}
    for blind in (False, True):
        rng = np.random.default_rng(5)
        public = corpus.codes(500, 0.5, rng)
        private = corpus.codes(500, 0.85, rng)
        parameters = replace(JOINT, blind=blind)
        errors[blind] = np.mean([attacked(parameters, private, public, rng).error for _ in range(6)])
    assert errors[True] > 2 * errors[False]
