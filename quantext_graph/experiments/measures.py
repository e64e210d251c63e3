"""One release attacked and measured: the rows that it adds to the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from quantext_graph.audit.attack_kinds import every_attack
from quantext_graph.audit.attacks import UNKNOWN, Attack, AttackedSecret, attacked_secrets
from quantext_graph.audit.evidence import Evidence, Pairs, Reading
from quantext_graph.audit.metrics import Utility, compare
from quantext_graph.audit.utility import category_tv
from quantext_graph.core.arrays import Codes, combinations
from quantext_graph.experiments.attackers import Reader
from quantext_graph.experiments.baselines import Released
from quantext_graph.experiments.bench import Bench, Setting
from quantext_graph.experiments.plan import Cell
from quantext_graph.experiments.results import Result

MOST_READ = 200
"""Private texts up to which an attacking model reads them all, to know its own bias."""


def measure(
    cell: Cell, setting: Setting, released: Released, bench: Bench, seconds: Callable[[], float]
) -> list[Result]:
    """Attack the release of a cell and measure its utility; `seconds` is asked when all is done."""
    spec = setting.spec.model_copy(update={"secrets": cell.secrets})
    secrets = attacked_secrets(spec, setting.private.codes, setting.auxiliary.codes)
    readings = [_read(reader, setting, released, bench) for reader in bench.readers]
    realised = released.realised if released.realised is not None else readings[0].codes
    evidence = Evidence(
        secrets=secrets,
        attributes=[attribute.name for attribute in spec.attributes],
        n=len(setting.private),
        released=released.texts,
        readings=readings,
        auxiliary_texts=setting.auxiliary.texts,
        auxiliary=setting.auxiliary.codes if len(setting.auxiliary) else None,
        draw=released.draw,
        known_labels=released.realised,
        pairs=_pairs(setting, released),
        embed=bench.points,
        rng=np.random.default_rng([cell.repeat, 7]),
    )
    found, _ = every_attack(evidence, simulated=bench.simulate)
    attacks = [each for attack in found for each in (attack, *_bias_taken_off(attack, secrets))]
    utility = _utility(setting, released, realised, bench)
    joint_tv = _joint_tv(setting.private.codes, released.targets)
    truths = {secret.title: secret.truth for secret in secrets}
    guarantee, spent = released.guarantee, seconds()
    return [
        Result(
            texts="simulation" if bench.simulate else "models",
            scenario=setting.scenario,
            method=cell.entry.title(),
            budget=cell.budget_name,
            secret=attack.secret,
            repeat=cell.repeat,
            attack=attack.attack,
            attacker=attack.by,
            truth=truths[attack.secret] if attack.about == "secret" else 1.0,
            estimate=attack.estimate,
            error=attack.error,
            prior_error=attack.prior_error,
            bound_nats=_bound(guarantee.bound_nats, attack.secret),
            mechanism_nats=None if math.isinf(guarantee.mechanism_nats) else guarantee.mechanism_nats,
            metrics=utility.values,
            aggregate=utility.aggregate,
            length_w2=utility.length_w2,
            joint_tv=joint_tv,
            n=len(setting.private),
            released=len(released.texts),
            label_source=released.label_source,
            guarantee=guarantee.words,
            seconds=round(spent, 3),
        )
        for attack in attacks
    ]


def _bound(bounds: Mapping[str, float], asked: str) -> float:
    """The bound about a secret; about an attribute, the largest."""
    return bounds.get(asked, max(bounds.values()))


def _read(reader: Reader, setting: Setting, released: Released, bench: Bench) -> Reading:
    """What a reader says; a model, where there are few texts, also of the private ones."""
    raw = None
    if not bench.simulate and len(setting.private) <= MOST_READ:
        raw = (reader.read(setting.private.texts), setting.private.codes)
    return Reading(reader.name, reader.read(released.texts), raw)


def _bias_taken_off(attack: Attack, secrets: Sequence[AttackedSecret]) -> list[Attack]:
    """The attack once more, with the reader's own bias taken off where it is known."""
    if "corrected" not in attack.detail:
        return []
    secret = next(secret for secret in secrets if secret.title == attack.secret)
    return [secret.attacked(f"{attack.attack}, bias taken off", attack.by, attack.detail["corrected"])]


def _pairs(setting: Setting, released: Released) -> Pairs | None:
    """A text that was released as it was is its own target, and tells nothing beyond it."""
    if released.sources is None or released.targets is None or released.draw is None:
        return None
    return Pairs(released.texts, released.targets, setting.private.codes[list(released.sources)])


def _utility(setting: Setting, released: Released, realised: Codes, bench: Bench) -> Utility:
    tv = {}
    for r, attribute in enumerate(setting.spec.attributes):
        said = realised[:, r][realised[:, r] != UNKNOWN].tolist()
        if said:
            tv[attribute.name] = category_tv(setting.private.codes[:, r].tolist(), said)
    return compare(setting.reference, released.texts, bench.points(released.texts), attribute_tv=tv)


def _joint_tv(private: Codes, targets: Codes | None) -> float | None:
    """Total variation of the joint label distributions, as assigned."""
    if targets is None:
        return None
    both = np.concatenate([private, targets])
    _, counts, which = combinations(both)
    shares = [np.bincount(w, minlength=len(counts)) / len(w) for w in np.split(which, [len(private)])]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)
