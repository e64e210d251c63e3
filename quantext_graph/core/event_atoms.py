"""The parts that events cut the combinations into: what is in the same of them and out of the others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quantext_graph.core.arrays import Codes, Event, Floats, event_mask

Events = Sequence[dict[int, tuple[int, ...]]]


@dataclass(frozen=True)
class Atom:
    """The combinations that are in the same events: their positions, and their mass in P̂.

    `events` says which events they are in and which not; none where none is asked for.
    """

    members: NDArray[np.int64]
    mass: float
    events: tuple[tuple[Event, bool], ...]

    def share(self, share_of: Callable[[Event], Floats]) -> Floats:
        """Mass of the atom under b candidates, (b,), by inclusion and exclusion of shares of events, (b,)."""
        inside = [event for event, within in self.events if within]
        outside = [event for event, within in self.events if not within]
        terms = []
        for chosen in itertools.product((False, True), repeat=len(outside)):
            excluded = list(itertools.compress(outside, chosen))
            terms.append((-1) ** len(excluded) * share_of(_meeting([*inside, *excluded])))
        total: Floats = np.sum(terms, axis=0)
        return total


def atoms(combos: Codes, masses: Floats, events: Events) -> list[Atom]:
    """The combinations parted by the events that they are in."""
    if not events:
        return [Atom(np.arange(len(combos)), float(masses.sum()), ())]
    within = np.stack([event_mask(combos, event) for event in events])
    found = []
    for signature in np.unique(within, axis=1).T.tolist():
        members = np.flatnonzero((signature == within.T).all(axis=1))
        parted = tuple(zip(events, signature, strict=True))
        found.append(Atom(members, float(masses[members].sum()), parted))
    return found


def _meeting(events: Sequence[Event]) -> dict[int, tuple[int, ...]]:
    """The event that all of the events happen."""
    met: dict[int, set[int]] = {}
    for event in events:
        for attribute, categories in event.items():
            met[attribute] = met.get(attribute, set(categories)) & set(categories)
    return {attribute: tuple(sorted(categories)) for attribute, categories in met.items()}
