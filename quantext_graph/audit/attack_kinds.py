"""The kinds of attack there are, ours and those of other packages, and the door to all of them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

from quantext_graph.audit.attacks import Attack, Skipped
from quantext_graph.audit.evidence import Evidence
from quantext_graph.spec.errors import QuantextError, SpecError
from quantext_graph.spec.registry import Registry, derived_from

Need = Literal["readings", "draw", "auxiliary", "pairs"]
Found = tuple[Sequence[Attack], Sequence[Skipped]]

LACKING: dict[Need, str] = {
    "readings": "no chat model was given",
    "draw": "the mechanism that made the release is not known",
    "auxiliary": "there is no labelled auxiliary set to learn from",
    "pairs": "it is not known which record a released text was made of",
}
"""Why an attack is not made, where a release lacks what it needs."""


class AttackKind(ABC):
    """A way of attacking a release. It says of itself what lists of attacks show.

    `name` is what tables and files call it, `title` a heading; `explanation` says in a sentence or two
    what the attacker does. `needs` is what a release must have for it, asked in this order. `about` says
    what it answers: the share of a secret, or a record's label of an attribute. `simulates`: it says
    something of a simulated release, whose texts are real ones of the auxiliary set. `shown`: the figures
    and the overview of an experiment show it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    explanation: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()
    about: ClassVar[Literal["secret", "attribute"]] = "secret"
    simulates: ClassVar[bool] = True
    shown: ClassVar[bool] = True

    def make(self, evidence: Evidence) -> Found:
        """The attacks on a release, or why there are none."""
        for need in self.needs:
            if not _has(evidence, need):
                return [], [Skipped(self.name, LACKING[need])]
        return self.attack(evidence)

    @abstractmethod
    def attack(self, evidence: Evidence) -> Found:
        """What was found of each secret or attribute, and what could not be asked and why. All that
        `needs` names is there."""


ATTACKS: Registry[type[AttackKind]] = Registry(
    "attack",
    "quantext_graph.attacks",
    {
        "labelling": "quantext_graph.audit.counting:Labelling",
        "mechanism-aware": "quantext_graph.audit.mechanism_aware:MechanismAware",
        "quantification": "quantext_graph.audit.quantification:Quantification",
        "residual": "quantext_graph.audit.residual:Residual",
    },
    derived_from(AttackKind),
)


def attack_kind(name: str) -> type[AttackKind] | None:
    """The kind of an attack that was made; None where its package is here no more, or it only corrects
    another."""
    try:
        return ATTACKS.find(name)
    except SpecError:
        return None


def every_attack(evidence: Evidence, *, simulated: bool = False) -> tuple[list[Attack], list[Skipped]]:
    """Make all attacks that a release has enough for; of a simulated one those that say something of it."""
    known = ATTACKS.known()
    attacks: list[Attack] = []
    skipped: list[Skipped] = []
    for name, kind in known.loaded.items():
        if simulated and not kind.simulates:
            continue
        made, left_out = _made(name, kind, evidence)
        attacks += made
        skipped += left_out
    return attacks, [*skipped, *(Skipped(name, line) for name, line in known.broken.items())]


def _made(name: str, kind: type[AttackKind], evidence: Evidence) -> Found:
    try:
        return kind().make(evidence)
    except QuantextError as error:
        return [], [Skipped(name, str(error))]
    except Exception as error:  # somebody else's code: it may not stop the audit
        if ATTACKS.owns(name) or os.environ.get("QUANTEXT_DEBUG"):
            raise
        return [], [Skipped(name, f"failed ({type(error).__name__}); QUANTEXT_DEBUG=1 shows where")]


def _has(evidence: Evidence, need: Need) -> bool:
    if need == "readings":
        return bool(evidence.readings)
    if need == "draw":
        return evidence.draw is not None
    if need == "auxiliary":
        return evidence.auxiliary is not None and len(evidence.auxiliary_texts) > 0
    return evidence.pairs is not None
