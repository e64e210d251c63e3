"""The guarantee in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

from quantext_graph.core.own_words import LEAST, RISK

LIKE_THE_PUBLIC = (
    f"Each combination has at least {LEAST:.0%} of its public share among the private texts. Then the number "
    f"of texts in their own words is a public one but for a chance of {RISK:.0%}; where a combination is "
    "rarer, whoever knows the other texts sees that it is."
)
"""What the number of own words rests on."""


class Bound(Protocol):
    """What is said of a leakage: `core.leakage.Leakage`, or what is kept of one."""

    @property
    def mechanism_nats(self) -> float: ...
    @property
    def cap_nats(self) -> float: ...
    @property
    def bound_nats(self) -> float: ...
    @property
    def vacuous(self) -> bool: ...


def guarantee(leakage: Bound, private: bool = True) -> list[str]:
    """The guarantee for one secret in plain words, one sentence an entry."""
    if not private:
        return ["Not private: seeded. The draw was made with a seed, so anybody can repeat it."]
    bound, cap = leakage.bound_nats, leakage.cap_nats
    if leakage.vacuous:
        return [
            f"The bound is vacuous: the rule may leak {leakage.mechanism_nats:.1f} nats and the secret "
            f"holds only {cap:.1f}, so the bound promises nothing about it."
        ]
    factor = math.exp(bound)
    tenth = min(1.0, 0.1 * factor)
    return [
        f"The release leaks at most {bound:.2f} nats about it, of the {cap:.1f} nats it holds.",
        f"So whatever an attacker does, the release makes them at most {factor:.2f} times as likely to be "
        f"right: a guess that public knowledge gets right 10 % of the time is right at most {tenth:.0%}.",
    ]


def assumptions(mechanism: Mapping[str, Any], log_l: float, *, own_words: bool = False) -> list[str]:
    """What the number rests on; with `own_words`, of a release whose records are published as they are."""
    nothing = (
        "0, that is, texts of one combination are worded alike whatever the proportion is"
        if own_words
        else "0, that is, a rewritten text carries nothing of its source but the target"
    )
    style = nothing if log_l == 0 else f"{log_l}"
    said = [
        f"The style term log l is taken as {style}. It is an assumption, not a measurement.",
        "The random draw is secret and was made once.",
        "The tree and the candidates were made without the private data.",
        "Releases of the same private data add up: their nats are summed.",
        "It speaks of the named proportion, not of single persons: texts go out as they are, with all they "
        "say of persons."
        if own_words
        else "It speaks of the named proportion, not of single persons: personal details that a note "
        "carries are not removed by it.",
    ]
    if own_words:
        said.insert(1, LIKE_THE_PUBLIC)
    if mechanism["pool"] == "public":
        said.insert(
            3,
            "The auxiliary set is public. What it tells an attacker by itself is not counted as leakage, "
            "and one that has the same proportion gives it away before any release.",
        )
    return said


def why_vacuous(mechanism: Mapping[str, Any], cap_nats: float) -> str:
    """Why a bound promises nothing, and what would mend it."""
    ways = (
        f"a ratio gamma/k of at most {math.exp(cap_nats / 2):.0f} for one component, or joint selection"
        if mechanism.get("selection") == "per_component"
        else f"a budget_nats well below {cap_nats:.1f}, for example 1"
    )
    return (
        f"the secret holds {cap_nats:.1f} nats, and the rule may leak as much or more, so the bound holds of "
        f"any release; it takes {ways}, or more records"
    )
