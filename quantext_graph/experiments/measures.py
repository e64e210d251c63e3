"""One release attacked and measured: the rows that it adds to the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from quantext_graph.audit.attacks import UNKNOWN, Attack, AttackedSecret, attacked_secrets, counting_attack
from quantext_graph.audit.mechanism_aware import mechanism_aware_attack
from quantext_graph.audit.quantification import quantification_attack
from quantext_graph.audit.residual import residual_attack
from quantext_graph.audit.utility import Utility, category_tv
from quantext_graph.core.arrays import Codes, combinations
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
    readings = [(reader.name, reader.read(released.texts)) for reader in bench.readers]
    realised = released.realised if released.realised is not None else readings[0][1]
    attacks = [
        *_labelling(setting, secrets, readings, bench),
        *_mechanism_aware(cell, setting, released, secrets),
        *_learned(setting, released, secrets, bench),
    ]
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
            truth=truths.get(attack.secret, math.nan) if attack.attack != "residual" else 1.0,
            estimate=attack.estimate,
            error=attack.error,
            prior_error=attack.prior_error,
            bound_nats=_bound(guarantee.bound_nats, attack.secret),
            mechanism_nats=None if math.isinf(guarantee.mechanism_nats) else guarantee.mechanism_nats,
            knn_precision=utility.knn_precision,
            knn_recall=utility.knn_recall,
            fid=utility.fid,
            attribute_match=utility.attribute_match,
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
    """The bound about a secret; about an attribute, which the residual attack asks for, the largest."""
    return bounds.get(asked, max(bounds.values()))


def _labelling(
    setting: Setting, secrets: Sequence[AttackedSecret], readings: Sequence[tuple[str, Codes]], bench: Bench
) -> list[Attack]:
    """The paper's attack by every reader; where there are few texts, also with its own bias taken off."""
    attacks = []
    for (name, codes), reader in zip(readings, bench.readers, strict=True):
        raw = None
        if not bench.simulate and len(setting.private) <= MOST_READ:
            raw = (reader.read(setting.private.texts), setting.private.codes)
        found = counting_attack(codes, secrets, by=name, raw=raw)
        attacks += found
        for secret, attack in zip(secrets, found, strict=False):
            if "corrected" in attack.detail:
                attacks.append(secret.attacked("labelling, bias taken off", name, attack.detail["corrected"]))
    return attacks


def _mechanism_aware(
    cell: Cell, setting: Setting, released: Released, secrets: Sequence[AttackedSecret]
) -> list[Attack]:
    """Of a release that is drawn from the texts themselves, the count is the best estimate there is."""
    draw = released.draw
    if draw is None:
        if released.realised is None:
            return []
        counted = counting_attack(released.realised, secrets, by="count")
        return [
            Attack("mechanism-aware", each.by, each.secret, each.estimate, each.error, each.prior_error)
            for each in counted
        ]
    return mechanism_aware_attack(
        draw.parameters,
        draw.rule,
        draw.choice,
        secrets,
        n=len(setting.private),
        auxiliary=setting.auxiliary.codes if len(setting.auxiliary) else None,
        rng=np.random.default_rng([cell.repeat, 7]),
    )


def _learned(
    setting: Setting, released: Released, secrets: Sequence[AttackedSecret], bench: Bench
) -> list[Attack]:
    """Quantification, and the residual attack; of a simulation neither says anything: its texts are those
    that the first would learn from, and are drawn without regard to the record that they stand for."""
    if bench.simulate or not len(setting.auxiliary):
        return []
    found, _ = quantification_attack(
        bench.points(released.texts), bench.points(setting.auxiliary.texts), setting.auxiliary.codes, secrets
    )
    if released.sources is None or released.targets is None or released.draw is None:
        return found
    original = setting.private.codes[list(released.sources)]
    names = [attribute.name for attribute in setting.spec.attributes]
    residual, _ = residual_attack(
        released.texts, released.targets, original, names, rng=np.random.default_rng(7)
    )
    return [*found, *residual]


def _utility(setting: Setting, released: Released, realised: Codes, bench: Bench) -> Utility:
    tv = {}
    for r, attribute in enumerate(setting.spec.attributes):
        said = realised[:, r][realised[:, r] != UNKNOWN].tolist()
        if said:
            tv[attribute.name] = category_tv(setting.private.codes[:, r].tolist(), said)
    return setting.reference.compare(released.texts, bench.points(released.texts), attribute_tv=tv)


def _joint_tv(private: Codes, targets: Codes | None) -> float | None:
    """Total variation of the joint label distributions, as assigned."""
    if targets is None:
        return None
    both = np.concatenate([private, targets])
    _, counts, which = combinations(both)
    shares = [np.bincount(w, minlength=len(counts)) / len(w) for w in np.split(which, [len(private)])]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)
