"""The audit of one release: its utility, every attack that can be made on it, and what a report shows.

All of it is private: it holds true shares and, in the pairs, texts. Nothing of it goes into a release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from quantext_graph.audit.attacks import UNKNOWN, Attack, AttackedSecret, Skipped, attacked_secrets, share
from quantext_graph.audit.inputs import AuditInputs
from quantext_graph.audit.labelling import labelling_attack
from quantext_graph.audit.mechanism_aware import mechanism_aware_attack
from quantext_graph.audit.utility import Array, Utility, category_tv, compare, unit_norm
from quantext_graph.core.arrays import Codes
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
    notes: tuple[str, ...]
    private_points: Array = field(repr=False)
    released_points: Array = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Figures that `json.dumps(allow_nan=False)` takes: what is not known is null."""
        inputs = self.inputs
        accuracy = inputs.evaluator_accuracy or [math.nan] * len(self.spec.attributes)
        return {
            "private": True,
            "n_private": len(inputs.private_texts),
            "n_released": len(inputs.released_texts),
            "utility": self.utility.to_json(),
            "attacks": [attack.to_json() for attack in self.attacks],
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
            "evaluator": {
                "name": inputs.evaluator,
                "accuracy": {
                    attribute.name: None if math.isnan(value) else value
                    for attribute, value in zip(self.spec.attributes, accuracy, strict=True)
                },
            },
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
    private, released, auxiliary = (
        _embed(embedding, texts)
        for texts in (inputs.private_texts, inputs.released_texts, inputs.auxiliary_texts)
    )
    progress("attack")
    attacks: list[Attack] = []
    skipped = _not_answerable(spec, secrets)
    for model in attackers:
        found, codes = labelling_attack(
            model,
            inputs.released_texts,
            inputs.private_texts,
            inputs.private_codes,
            spec,
            secrets,
            rng=rng,
            progress=progress,
        )
        attacks += found
        if secrets and not found:
            skipped.append(Skipped("labelling", f"{model.name} labelled no text"))
        if inputs.realised is None and (codes != UNKNOWN).any():
            inputs = _judged_by(inputs, codes, model.name)
    if not attackers:
        skipped.append(Skipped("labelling", "no chat model was given"))
    for made, left_out in (
        _mechanism_aware(inputs, secrets, rng),
        _quantification(inputs, released, auxiliary, secrets),
        _residual(inputs, spec, rng),
    ):
        attacks += made
        skipped += left_out
    progress("measure")
    utility, notes = measure(inputs, spec, private, released)
    points = _map(private, released, rng)
    return AuditReport(
        spec, inputs, utility, tuple(secrets), tuple(attacks), tuple(skipped), tuple(notes), *points
    )


def measure(inputs: AuditInputs, spec: Spec, private: Array, released: Array) -> tuple[Utility, list[str]]:
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
        inputs.private_texts,
        inputs.released_texts,
        private,
        released,
        attribute_tv=realised or assigned,
        assigned_tv=assigned,
    )
    return utility, notes


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


def _embed(embedding: Embeddings, texts: Sequence[str]) -> Array:
    return unit_norm(embedding.embed_documents(list(texts))) if len(texts) else np.empty((0, 0))


def _judged_by(inputs: AuditInputs, codes: Codes, name: str) -> AuditInputs:
    return replace(inputs, realised=codes, evaluator=name, evaluator_accuracy=None)


def _not_answerable(spec: Spec, secrets: Sequence[AttackedSecret]) -> list[Skipped]:
    if not spec.secrets:
        return [Skipped("all", "the spec names no secret")]
    known = {secret.title for secret in secrets}
    return [
        Skipped("all", f"{secret.title}: no private record has a label of its attributes")
        for secret in spec.secrets
        if secret.title not in known
    ]


Found = tuple[Sequence[Attack], Sequence[Skipped]]


def _mechanism_aware(
    inputs: AuditInputs, secrets: Sequence[AttackedSecret], rng: np.random.Generator
) -> Found:
    draw = inputs.draw
    if draw is None:
        return [], [Skipped("mechanism-aware", "the mechanism that made the release is not known")]
    attacks = mechanism_aware_attack(
        draw.parameters,
        draw.rule,
        draw.choice,
        secrets,
        n=len(inputs.private_texts),
        auxiliary=inputs.auxiliary_codes,
        rng=rng,
    )
    return attacks, []


def _quantification(
    inputs: AuditInputs, released: Array, auxiliary: Array, secrets: Sequence[AttackedSecret]
) -> Found:
    if inputs.auxiliary_codes is None or not len(inputs.auxiliary_texts):
        return [], [Skipped("quantification", "there is no labelled auxiliary set to learn from")]
    from quantext_graph.audit.quantification import quantification_attack  # with scikit-learn: takes seconds

    return quantification_attack(released, auxiliary, inputs.auxiliary_codes, secrets)


def _residual(inputs: AuditInputs, spec: Spec, rng: np.random.Generator) -> Found:
    if not inputs.pairs:
        return [], [Skipped("residual", "it is not known which record a released text was made of")]
    from quantext_graph.audit.residual import residual_attack  # with scikit-learn

    return residual_attack(
        [pair.after for pair in inputs.pairs],
        np.array([pair.target for pair in inputs.pairs]),
        np.array([pair.labels for pair in inputs.pairs]),
        [attribute.name for attribute in spec.attributes],
        rng=rng,
    )


def _map(private: Array, released: Array, rng: np.random.Generator) -> tuple[Array, Array]:
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
