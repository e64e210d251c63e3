"""The audit of one release: what it is good for, every attack that can be made on it, what a report shows.

All of it is private: it holds true shares and, in the pairs, texts. Nothing of it goes into a release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from quantext_graph.audit.attack_kinds import every_attack
from quantext_graph.audit.attacks import UNKNOWN, Attack, AttackedSecret, Skipped, attacked_secrets, share
from quantext_graph.audit.dealing import text_channels
from quantext_graph.audit.downstream import DownstreamUse, downstream_use
from quantext_graph.audit.evidence import Evidence, Pairs, Points, Reading
from quantext_graph.audit.fidelity import Fidelity, fidelity
from quantext_graph.audit.inputs import AuditInputs, Pair
from quantext_graph.audit.labelling import read_release
from quantext_graph.audit.metrics import Utility, compare
from quantext_graph.audit.on_target import judgement
from quantext_graph.audit.text_channel import TextChannel
from quantext_graph.audit.utility import Reference, category_tv
from quantext_graph.core.arrays import Codes, Floats
from quantext_graph.models.chat_model import ChatModel
from quantext_graph.spec.models import Spec

MAP_POINTS = 800
"""Texts of each corpus that are drawn on the map."""


@dataclass(frozen=True)
class AuditReport:
    """What the audit found. `to_json` is the figures; points and texts are in the HTML page alone."""

    spec: Spec
    inputs: AuditInputs = field(repr=False)
    utility: Utility
    secrets: tuple[AttackedSecret, ...]
    attacks: tuple[Attack, ...]
    skipped: tuple[Skipped, ...]
    channels: tuple[TextChannel, ...]
    fidelity: Fidelity
    downstream: tuple[DownstreamUse, ...]
    notes: tuple[str, ...]
    private_points: Floats = field(repr=False)
    released_points: Floats = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Figures that `json.dumps(allow_nan=False)` takes: what is not known is null."""
        inputs = self.inputs
        return {
            "private": True,
            "n_private": len(inputs.private_texts),
            "n_released": len(inputs.released_texts),
            "utility": self.utility.to_json(),
            "fidelity": self.fidelity.to_json(),
            "downstream": [use.to_json() for use in self.downstream],
            "attacks": [attack.to_json() for attack in self.attacks],
            "text_channel": [channel.to_json() for channel in self.channels],
            "skipped": [{"attack": skip.attack, "reason": skip.reason} for skip in self.skipped],
            "secrets": [
                {"secret": secret.title, "private": secret.truth, "public_guess": secret.guess}
                | {name: share(codes, secret.event) for name, codes in self.released_codes.items()}
                for secret in self.secrets
            ],
            "leakage": [
                {"secret": title, "bound_nats": each.bound_nats, "cap_nats": each.cap_nats}
                | {"vacuous": each.vacuous, "log_l": each.log_l}
                for title, each in (inputs.draw.leakage if inputs.draw else {}).items()
            ],
            "seeded": bool(inputs.draw and inputs.draw.seeded),
            "on_target": None if inputs.judgement is None else inputs.judgement.model_dump(),
            "notes": list(self.notes),
        }

    @property
    def released_codes(self) -> dict[str, Codes]:
        """What is known of the released texts: the `target` codes assigned, the `realised` ones read."""
        known = {"target": self.inputs.targets, "realised": self.inputs.realised}
        return {name: codes for name, codes in known.items() if codes is not None}


def audit(
    inputs: AuditInputs,
    spec: Spec,
    embedding: Embeddings,
    *,
    attackers: Sequence[ChatModel] = (),
    rng: np.random.Generator | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> AuditReport:
    """Measure a release and attack it.

    Args:
        inputs: what is known of it.
        spec: its attributes and secrets.
        embedding: of the texts, for the metrics, the map and the quantification attacks.
        attackers: chat models of the labelling attack; the labels that the first reads off stand for what
            the texts say where `inputs.realised` is not given.
        rng: samples and folds.
        progress: told what comes next.

    Raises:
        QuantextError: where a corpus is empty, or codes and texts do not match.
    """
    inputs.check(spec)
    rng = rng or np.random.default_rng()
    secrets = attacked_secrets(spec, inputs.private_codes, inputs.auxiliary_codes)
    progress("embed")
    points = Points(embedding)
    private, released = points(inputs.private_texts), points(inputs.released_texts)
    progress("attack")
    readings = [read_release(model, inputs, spec, rng=rng, progress=progress) for model in attackers]
    evidence = Evidence(
        secrets=secrets,
        attributes=[attribute.name for attribute in spec.attributes],
        n=len(inputs.private_texts),
        released=inputs.released_texts,
        readings=readings,
        auxiliary_texts=inputs.auxiliary_texts,
        auxiliary=inputs.auxiliary_codes,
        draw=inputs.draw,
        pairs=_pairs(inputs.pairs),
        embed=points,
        rng=rng,
    )
    attacks, skipped = every_attack(evidence)
    channels = text_channels(inputs, spec, rng)
    inputs = _judged(inputs, readings, spec)
    progress("measure")
    utility, notes = measure(inputs, spec, private, released)
    uses, unlearned = downstream_use(inputs, spec, rng)
    return AuditReport(
        spec,
        inputs,
        utility,
        tuple(secrets),
        tuple(attacks),
        (*_not_answerable(spec, secrets), *skipped, *unlearned),
        tuple(channels),
        fidelity(inputs, points, rng),
        tuple(uses),
        tuple(notes),
        *_map(private, released, rng),
    )


def measure(inputs: AuditInputs, spec: Spec, private: Floats, released: Floats) -> tuple[Utility, list[str]]:
    """The utility of a release, given the (n, d) and (n', d) embeddings of both corpora; and notes."""
    notes = []
    realised, assigned = _tv(inputs, spec, inputs.realised), _tv(inputs, spec, inputs.targets)
    if not realised and assigned:
        notes.append("Nobody labelled the released texts: attribute match counts the assigned categories.")
    elif not realised:
        notes.append("No labels of the released texts: attribute match is that of their lengths alone.")
    if len(inputs.private_texts) != len(inputs.released_texts):
        notes.append(
            f"The corpora differ in size: {len(inputs.private_texts)} private texts, "
            f"{len(inputs.released_texts)} released."
        )
    utility = compare(
        Reference(inputs.private_texts, private),
        inputs.released_texts,
        released,
        attribute_tv=realised or assigned,
        assigned_tv=assigned,
    )
    return utility, [*notes, *utility.missing]


def _tv(inputs: AuditInputs, spec: Spec, codes: Codes | None) -> dict[str, float]:
    """TV of each attribute that is labelled on both sides."""
    if codes is None:
        return {}
    found = {}
    for r, attribute in enumerate(spec.attributes):
        sides = [column[column != UNKNOWN].tolist() for column in (inputs.private_codes[:, r], codes[:, r])]
        if all(sides):
            found[attribute.name] = category_tv(*sides)
    return found


def _judged(inputs: AuditInputs, readings: Sequence[Reading], spec: Spec) -> AuditInputs:
    """Where nobody has said what the released texts say, the first who could read them does; how often they
    are right is known of the private texts that they read beside them."""
    able = [reading for reading in readings if (reading.codes != UNKNOWN).any()]
    if inputs.realised is not None or not able:
        return inputs
    judge, targets = able[0], inputs.targets
    judged = None
    if targets is not None:
        names = [attribute.name for attribute in spec.attributes]
        judged = judgement(judge.codes, targets, judge.raw, names, evaluator=judge.by)
    return replace(inputs, realised=judge.codes, judgement=judged)


def _pairs(pairs: Sequence[Pair]) -> Pairs | None:
    if not pairs:
        return None
    targets, labels = ([getattr(pair, side) for pair in pairs] for side in ("target", "labels"))
    return Pairs([pair.after for pair in pairs], np.array(targets), np.array(labels))


def _not_answerable(spec: Spec, secrets: Sequence[AttackedSecret]) -> list[Skipped]:
    if not spec.secrets:
        return [Skipped("all", "the spec names no secret")]
    known = {secret.title for secret in secrets}
    return [
        Skipped("all", f"{secret.title}: no private record has a label of its attributes")
        for secret in spec.secrets
        if secret.title not in known
    ]


def _map(private: Floats, released: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Both corpora on the first two principal axes of their union, (·, 2) each, scaled to [0, 1]."""
    some = [rows[rng.permutation(len(rows))[:MAP_POINTS]] for rows in (private, released)]
    both = np.concatenate(some)
    both = both - both.mean(axis=0)
    axes = np.linalg.svd(both, full_matrices=False)[2][:2]
    flat = np.zeros((len(both), 2))
    flat[:, : len(axes)] = both @ axes.T
    span = np.ptp(flat, axis=0)
    flat = np.where(span > 1e-9, (flat - flat.min(axis=0)) / np.where(span > 1e-9, span, 1), 0.5)
    return flat[: len(some[0])], flat[len(some[0]) :]
