"""Attack errors and utility of releases of the real tweets, with columns as labels and no LLM.

    python tests/benchmarks/audit_figures.py --data DIR [--repeats 3] [--mechanism-aware]

DIR holds `stance/tweet.csv` (SemEval-2016 Task 6). Released texts are simulated by real tweets that
carry the target. Each repeat takes 1,000 private tweets whose share of FAVOR is uniform on [5 %, 55 %],
so that the public guess (about 25 %) is off, and 1,870 others as the auxiliary set.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

from quantext_graph.audit.attacks import attacked_secrets
from quantext_graph.audit.counting import counting_attack
from quantext_graph.audit.evidence import Pairs, Reading
from quantext_graph.audit.mechanism_aware import mechanism_aware_attack
from quantext_graph.audit.metrics import compare
from quantext_graph.audit.quantification import quantification_attack
from quantext_graph.audit.residual import residual_attack
from quantext_graph.audit.utility import Reference, category_tv
from quantext_graph.core.quantize import quantize
from quantext_graph.core.rules import MechanismParameters
from quantext_graph.models.embeddings import WordLlamaEmbeddings
from quantext_graph.spec.loading import parse_spec

NAMES = ("Target", "Stance", "Sentiment")
ABORTION = {"Target": "Legalization of Abortion", "Stance": "FAVOR"}
PAPER = {"selection": "per_component", "pool": "dirichlet", "gamma": 120, "targets": "iid"}
JOINT = {"selection": "joint", "pool": "public", "spread": 0.3, "pool_size": 50_000}
RELEASES = {
    "raw": None,
    "random half": None,
    "paper, γ/k = 2": {**PAPER, "k": 60},
    "paper, γ/k = 4": {**PAPER, "k": 30},
    "paper, γ/k = 12": {**PAPER, "k": 10},
    "joint, 0.5 nats": {**JOINT, "budget_nats": 0.5},
    "joint, 1 nat": {**JOINT, "budget_nats": 1.0},
    "joint, 3 nats": {**JOINT, "budget_nats": 3.0},
}
COLUMNS = (
    *("count", "aware", "prior", "adj.count", "EM", "adj.labels", "EM.labels", "residual"),
    *("precision", "recall", "FID", "attributes", "all"),
)


def one_repeat(texts, codes, points, spec, rng):
    """{release: a row of COLUMNS, errors for each of the two secrets} of one private set."""
    private, pool, public = parts(codes, spec, rng)
    n = len(private)
    columns = np.eye(np.prod(spec.sizes))[np.ravel_multi_index(codes.T, spec.sizes)]
    secrets = attacked_secrets(spec, codes[private], codes[public])
    rows = {}
    for name, mechanism in RELEASES.items():
        size = n // 2 if name == "random half" else n
        chosen = targets = rng.permutation(private)[:size]
        attacks, gain = [], [np.nan]
        if mechanism is not None:
            targets, attacks = drawn_and_attacked(
                mechanism, codes[private], codes[public], spec, secrets, rng
            )
            chosen = carrying(targets, codes, pool, rng)
            pairs = Pairs([texts[i] for i in chosen], targets, codes[private])
            found, _ = residual_attack(pairs, NAMES, rng=rng)
            gain = [100 * (each.estimate - each.detail["base_rate"]) for each in found]
        counted = counting_attack(Reading("columns", codes[chosen]), secrets)
        # By a classifier on the texts, and by one that reads the label columns: what perfect labels give.
        learned = [
            attack
            for seen in (points, columns)
            for attack in quantification_attack(seen[chosen], seen[public], codes[public], secrets)[0]
        ]
        tv = {
            a: category_tv(codes[private, r].tolist(), codes[chosen, r].tolist()) for r, a in enumerate(NAMES)
        }
        reference = Reference([texts[i] for i in private], points[private])
        utility = compare(reference, [texts[i] for i in chosen], points[chosen], attribute_tv=tv)
        aware = attacks or counted  # a release that is drawn from the texts themselves is its own estimate
        rows[name] = [
            [
                counted[s].error,
                aware[s].error,
                aware[s].prior_error,
                *(each.error for each in learned if each.secret == secret.title),
                max(gain),
                *utility.values.values(),
                utility.aggregate,
            ]
            for s, secret in enumerate(secrets)
        ]
    return rows


def parts(codes, spec, rng):
    """Rows of the private set, of the 3,000 it is taken from, and of the 1,870 auxiliary ones."""
    order = rng.permutation(len(codes))
    pool, public = order[:3000], order[3000:]
    favor = codes[pool, 1] == spec.attribute("Stance").code("FAVOR")
    n, share = 1000, rng.uniform(0.05, 0.55)
    private = np.concatenate(
        [
            rng.choice(pool[favor], round(share * n), replace=False),
            rng.choice(pool[~favor], n - round(share * n), replace=False),
        ]
    )
    return private, pool, public


def drawn_and_attacked(mechanism, private, public, spec, secrets, rng):
    """The target of each record, and what the mechanism-aware attacker makes of the draw."""
    drawn = quantize(
        private,
        spec.sizes,
        auxiliary=public,
        secrets=[secret.event for secret in secrets],
        rng=rng,
        **mechanism,
    )
    attacks = mechanism_aware_attack(
        MechanismParameters(**mechanism),
        drawn.rule,
        drawn.choice,
        secrets,
        n=len(private),
        auxiliary=public,
        rng=rng,
    )
    return drawn.assigned, attacks


def mechanism_aware_gain(codes, spec, repeats):
    """Print what the mechanism-aware attacker's error is beside its own guess, over paired repeats."""
    print("release".ljust(17), "secret".ljust(9), "  error   prior    gain  (s.e.)")
    gains = {name: [] for name, mechanism in RELEASES.items() if mechanism}
    for seed in range(repeats):
        rng = np.random.default_rng(100 + seed)
        private, _, public = parts(codes, spec, rng)
        secrets = attacked_secrets(spec, codes[private], codes[public])
        for name in gains:
            mechanism = RELEASES[name]
            _, attacks = drawn_and_attacked(mechanism, codes[private], codes[public], spec, secrets, rng)
            gains[name].append([(each.error, each.prior_error) for each in attacks])
    for name, rows in gains.items():
        for secret, (error, prior) in zip(spec.secrets, np.array(rows).transpose(1, 2, 0), strict=True):
            noise = (prior - error).std(ddof=1) / np.sqrt(repeats)
            figures = f"{error.mean():7.4f} {prior.mean():7.4f} {(prior - error).mean():+7.4f} {noise:8.4f}"
            print(name.ljust(17), secret.title.ljust(9), figures)


def carrying(targets, codes, pool, rng):
    """For each target the index of a tweet that carries it; of one that misses least, where none does."""
    found = np.empty(len(targets), dtype=int)
    combos, which = np.unique(targets, axis=0, return_inverse=True)
    for number, combo in enumerate(combos):
        misses = (codes[pool] != combo).sum(axis=1)
        fitting = pool[misses == misses.min()]
        rows = np.flatnonzero(which.reshape(-1) == number)
        found[rows] = rng.choice(fitting, len(rows))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--mechanism-aware", action="store_true", help="that attack alone, with its noise")
    arguments = parser.parse_args()
    with (arguments.data / "stance" / "tweet.csv").open(encoding="utf-8", newline="") as file:
        tweets = list(csv.DictReader(file))
    categories = {name: sorted({tweet[name] for tweet in tweets}) for name in NAMES}
    spec = parse_spec(
        {
            "data": {"path": "tweet.csv"},
            "attributes": [{"name": name, "categories": categories[name]} for name in NAMES],
            "secrets": [
                {"name": "abortion", "where": ABORTION},
                {"name": "favor", "where": {"Stance": "FAVOR"}},
            ],
        }
    )
    codes = np.array([[categories[name].index(tweet[name]) for name in NAMES] for tweet in tweets])
    if arguments.mechanism_aware:
        mechanism_aware_gain(codes, spec, arguments.repeats)
        return
    texts = [tweet["Tweet"] for tweet in tweets]
    points = np.array(WordLlamaEmbeddings().embed_documents(texts))
    repeats = [
        one_repeat(texts, codes, points, spec, np.random.default_rng(seed))
        for seed in range(arguments.repeats)
    ]
    for number, secret in enumerate(spec.secrets):
        print(f"\n{secret.title}: mean errors over {arguments.repeats} repeats")
        print("release".ljust(17), *(column.rjust(10) for column in COLUMNS))
        for name in RELEASES:
            row = np.mean([rows[name][number] for rows in repeats], axis=0)
            print(name.ljust(17), *(f"{value:10.3f}" for value in row))


if __name__ == "__main__":
    main()
