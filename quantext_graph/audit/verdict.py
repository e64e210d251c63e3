"""The audit in three sentences, for a reader who is no engineer."""

from __future__ import annotations

from quantext_graph.audit.assessment import AuditReport
from quantext_graph.audit.attacks import Attack
from quantext_graph.audit.metrics import METRICS

NEAR = 0.01
"""A guess within a point of the truth leaves nothing worth hiding."""


def verdict(report: AuditReport) -> tuple[str, str, str]:
    """How well the secret is hidden, what is guaranteed, and what the texts are still good for."""
    return _privacy(report), _guarantee(report), _utility(report)


def strongest(report: AuditReport) -> Attack | None:
    """The attack on a share that came nearest compared with its own guess without the release."""
    shares = [attack for attack in report.attacks if attack.about == "secret"]
    return max(shares, key=lambda attack: attack.prior_error - attack.error, default=None)


def _privacy(report: AuditReport) -> str:
    attack = strongest(report)
    if attack is None:
        return "No attack could be made on a secret, so nothing is known of how well one is hidden."
    found = (
        f"The attack that gained most ({attack.attack} by {attack.by}) puts “{attack.secret}” at "
        f"{attack.estimate:.1%}, {100 * attack.error:.1f} points from the truth, where its guess without the "
        f"release is {100 * attack.prior_error:.1f} points off: "
    )
    if attack.prior_error < NEAR:
        return found + "public knowledge gives the secret away already, with or without this release."
    if attack.error >= 0.8 * attack.prior_error:
        return found + "it learned little from the release."
    if attack.error >= 0.4 * attack.prior_error:
        return found + "it learned a part of what there was to learn."
    return found + "it learned most of what there was to learn."


def _guarantee(report: AuditReport) -> str:
    draw = report.inputs.draw
    styled = [a.secret for a in report.attacks if a.about == "attribute" and a.detail.get("leaks")]
    told = max(report.channels, key=lambda channel: channel.nats, default=None)
    style = (
        told.words
        if told is not None
        else f", but the texts still tell the original {' and '.join(styled)}, which the bound does not count"
        if styled
        else ", as long as the style of the texts tells nothing of the originals"
    )
    if draw is None or not draw.leakage:
        return "Nothing is guaranteed: it is not known by which mechanism the release was made."
    if draw.seeded:
        return "Nothing is guaranteed: the draw was seeded, and whoever knows the seed can repeat it."
    worst = max(draw.leakage.values(), key=lambda each: each.bound_nats)
    if worst.vacuous:
        return (
            f"The mechanism may leak {worst.mechanism_nats:.1f} nats, and {worst.cap_nats:.1f} are all there "
            "is to know of the secret: its bound is vacuous and promises nothing."
        )
    return (
        f"By the mechanism's bound of {worst.bound_nats:.2f} nats no attacker's chance of being right grows "
        f"by more than a factor of {worst.success_factor:.1f}{style}."
    )


def _utility(report: AuditReport) -> str:
    rescaled = report.utility.rescaled
    counted = [name for name in rescaled if METRICS.find(name).aggregated]
    least = min(counted, key=lambda name: rescaled[name])
    kept = (
        f"The released texts score {report.utility.aggregate:.0%} in the mean of four measures of "
        f"usefulness, least in {METRICS.find(least).phrase} ({rescaled[least]:.0%})"
    )
    judged = report.inputs.judgement
    if judged is None:
        return kept + "; nobody has read whether they say what they were written to say."
    if judged.corrected is None:
        return f"{kept}. {judged.headline}"
    return f"{kept}, and {judged.corrected} of them say all they were written to say."
