"""The paper's attack: count the labels that somebody read off the released texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from quantext_graph.audit.attack_kinds import AttackKind, Found, Need
from quantext_graph.audit.attacks import Attack, AttackedSecret, Skipped, labelled_rows, share
from quantext_graph.audit.evidence import Evidence, Reading


class Labelling(AttackKind):
    """By every reader, each with its own bias where that is known."""

    name: ClassVar[str] = "labelling"
    title: ClassVar[str] = "Labelling"
    explanation: ClassVar[str] = (
        "A chat model, or whoever else labels them, reads every released text; the labels are counted."
    )
    needs: ClassVar[tuple[Need, ...]] = ("readings",)

    def attack(self, evidence: Evidence) -> Found:
        attacks: list[Attack] = []
        skipped: list[Skipped] = []
        for reading in evidence.readings:
            found = counting_attack(reading, evidence.secrets)
            attacks += found
            if evidence.secrets and not found:
                skipped.append(Skipped(self.name, f"{reading.by} labelled no text"))
        return attacks, skipped


def counting_attack(
    reading: Reading, secrets: Sequence[AttackedSecret], *, attack: str = Labelling.name
) -> list[Attack]:
    """The share of each secret among the texts that were labelled; the others are not counted."""
    attacks = []
    for secret in secrets:
        estimate = share(reading.codes, secret.event)
        if estimate is None:
            continue
        detail: dict[str, Any] = {"labelled": int(labelled_rows(reading.codes, secret.event).sum())}
        if reading.raw is not None:
            read, true = (share(codes, secret.event) for codes in reading.raw)
            if read is not None and true is not None:
                detail |= {"bias": read - true, "corrected": min(1.0, max(0.0, estimate - (read - true)))}
        attacks.append(secret.attacked(attack, reading.by, estimate, **detail))
    return attacks
