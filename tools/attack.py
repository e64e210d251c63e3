"""Attacks on a release as a tool: what its labels, and the mechanism, give away of a secret share."""

from __future__ import annotations

from typing import Any

import numpy as np
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from quantext_graph.audit.attacks import Attack, AttackedSecret, public_guess, share
from quantext_graph.audit.counting import Labelling
from quantext_graph.audit.evidence import Evidence, Reading
from quantext_graph.audit.inputs import Draw
from quantext_graph.audit.mechanism_aware import MechanismAware
from quantext_graph.core.arrays import Codes, as_codes
from quantext_graph.core.quantize import public_dependency_tree
from quantext_graph.core.rules import MechanismParameters, build_rule


class KnownDraw(BaseModel):
    """How a release was drawn, all of it public."""

    mechanism: dict[str, Any] = Field(description="selection, pool, spread, budget_nats, gamma, k, ...")
    pool_seed: int = Field(description="seed of the candidate pool")
    choice: list[int] = Field(min_length=1, description="index of the candidate drawn for each component")


class AttackArguments(BaseModel):
    """Arguments of the attack tool. `private_labels` is private: it holds the truth."""

    released_labels: list[list[int]] = Field(
        min_length=1, description="category codes read off the released texts"
    )
    private_labels: list[list[int]] = Field(min_length=1, description="category codes of the private texts")
    category_counts: list[int] = Field(min_length=1, description="number of categories of each attribute")
    secrets: list[dict[int, list[int]]] = Field(
        min_length=1, description="each secret as {attribute index: category codes}"
    )
    auxiliary: list[list[int]] | None = Field(None, description="public category codes, same columns")
    draw: KnownDraw | None = Field(None, description="for the attacker who knows the mechanism")


def attack_release(arguments: AttackArguments) -> list[Attack]:
    """Count the labels that are there; where the draw is known, attack as one who knows the mechanism.

    Raises:
        ValueError: codes out of range, or a draw that contradicts itself.
    """
    sizes = arguments.category_counts
    released, private = as_codes(arguments.released_labels, sizes), as_codes(arguments.private_labels, sizes)
    auxiliary = None if arguments.auxiliary is None else as_codes(arguments.auxiliary, sizes)
    secrets = [
        AttackedSecret(
            title=f"secret {number}",
            event=event,
            truth=share(private, event) or 0.0,
            guess=public_guess(event, sizes, auxiliary),
        )
        for number, event in enumerate(arguments.secrets, 1)
    ]
    evidence = Evidence(
        secrets=secrets,
        attributes=[],
        n=len(private),
        readings=[Reading("labels given", released)],
        auxiliary=auxiliary,
        draw=None
        if arguments.draw is None
        else _drawn(arguments.draw, secrets, len(private), sizes, auxiliary),
        rng=np.random.default_rng(0),
    )
    # Our own alone: what they answer is public by what they are, and the content goes to any agent.
    return [attack for kind in (Labelling, MechanismAware) for attack in kind().make(evidence)[0]]


def _drawn(
    draw: KnownDraw, secrets: list[AttackedSecret], n: int, sizes: list[int], auxiliary: Codes | None
) -> Draw:
    parameters = MechanismParameters(**draw.mechanism)
    rule = build_rule(
        parameters,
        tree=public_dependency_tree(auxiliary, sizes),
        sizes=sizes,
        n=n,
        auxiliary=auxiliary,
        secrets=[secret.event for secret in secrets],
        pool_seed=draw.pool_seed,
    )
    return Draw(parameters, rule, tuple(draw.choice), {})


@tool("attack", args_schema=AttackArguments, response_format="content_and_artifact")
def attack(**arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Attack a release: count the labels of its texts and, where the draw is known, take the posterior
    of the private share. The content is public: what attackers can compute, their estimates. The
    artifact is private: how far each is from the truth, and how far a guess without the release is."""
    try:
        attacks = attack_release(AttackArguments(**arguments))
    except (ValueError, TypeError) as error:
        return {"error": str(error)}, {}
    public = [{"attack": each.attack, "secret": each.secret, "estimate": each.estimate} for each in attacks]
    return {"attacks": public}, {"attacks": [each.to_json() for each in attacks]}
