"""Texts as they are (`rewriting.recipe: none`) for a spec: how many of a combination, which ones, what else.

How many is public and made before the draw: `core.own_words`. Which records of a combination go out in their
own words, and which public texts fill the rest, is up to secret coins and decided once, with the draw.
"""

from __future__ import annotations

import random
import secrets
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quantext_graph.core.arrays import Codes, Floats, Indices, event_mask, grid
from quantext_graph.core.distribution import TableDistribution, joint_table
from quantext_graph.core.own_words import hidden_range, own_words_caps
from quantext_graph.core.public_pool import public_joint
from quantext_graph.core.selection import JointRule, PerComponentRule, Rule
from quantext_graph.core.targets import released_count
from quantext_graph.mechanism.draw import RecordDraw
from quantext_graph.mechanism.guarantees import public_codes, release_rule, release_tree
from quantext_graph.spec.errors import SpecError
from quantext_graph.spec.models import Spec

_CANDIDATES = 2_000
"""Candidates of a joint pool over which an outlook is taken, and of a per-component one a tenth."""


@dataclass(frozen=True)
class Outlook:
    """What can be said of a release before its draw; all of it public.

    `others` is the share of its texts that are not records in their own words, in the mean over the
    candidates, and `others_at_most` the largest. Of each secret, by its title: between which shares the
    candidates lie (`reached`), and between which the private one must lie for the number of own words to tell
    nothing of it (`hidden`).
    """

    others: float
    others_at_most: float
    reached: dict[str, tuple[float, float]]
    hidden: dict[str, tuple[float, float]]

    def to_json(self) -> dict[str, Any]:
        return {
            "others": round(self.others, 4),
            "others_at_most": round(self.others_at_most, 4),
            "reached": {title: list(shares) for title, shares in self.reached.items()},
            "hidden": {title: list(shares) for title, shares in self.hidden.items()},
        }


@dataclass(frozen=True)
class Sources:
    """Where the n′ texts come from, by the places of their targets; private.

    `used` (n′,) is the record at each place. `own` are the places whose record is published as it is,
    `public` {place: row of the auxiliary set}; a place in neither is to be written. `own_at_most` is public:
    the largest share of own words that the counts of the targets allow.
    """

    used: Indices
    own: Indices
    public: dict[int, int]
    own_at_most: float


def caps(spec: Spec, n: int, auxiliary: ArrayLike | None) -> Indices:
    """How many texts of each combination may be records in their own words, (Π ψ_r,).

    Args:
        auxiliary: public category codes (N, m).

    Raises:
        SpecError: no public joint that could be spread out.
    """
    return own_words_caps(_public(spec, auxiliary), n)


def outlook(spec: Spec, n: int, auxiliary: ArrayLike | None) -> Outlook:
    """What a release of n records by this spec will hold, from what is public.

    Raises:
        SpecError: as `caps`, or the auxiliary set cannot fill the candidates.
    """
    public, codes = _public(spec, auxiliary), public_codes(spec, auxiliary)
    count = released_count(n, spec.mechanism.keep)
    try:
        candidates = _candidates(release_rule(spec, n, codes, pool_seed=0), spec)
    except ValueError as error:
        raise SpecError(f"mechanism: {error}") from None
    others = np.maximum(candidates - own_words_caps(public, n) / count, 0).sum(axis=1)
    reached, hidden = {}, {}
    for secret in spec.secrets:
        inside = event_mask(grid(spec.sizes), spec.secret_codes(secret))
        shares = candidates[:, inside].sum(axis=1)
        reached[secret.title] = (float(shares.min()), float(shares.max()))
        hidden[secret.title] = hidden_range(public.share(spec.secret_codes(secret)))
    return Outlook(float(others.mean()), float(others.max()), reached, hidden)


def short_combinations(spec: Spec, labels: Codes, most: Indices) -> int:
    """In how many combinations the records (n, m) are fewer than may be published of them, so that whoever
    knows the public texts could count them; private."""
    return int((np.bincount(_cells(labels, spec), minlength=len(most)) < most).sum())


def share_out(
    spec: Spec, drawn: RecordDraw, labels: Codes, auxiliary: Codes, most: Indices, order: Indices
) -> Sources:
    """Who is published in their own words, and what fills the other targets where no model writes them.

    Of the records of a combination as many keep it as their target as the matching says, and of these as many
    as `most` (Π ψ_r,) allows go out as they are. Which ones is decided by the secret `order` (n,) of the
    records: the first of each combination. Two releases in one order show the same records of it, where two
    choices by chance would tell, by what they have in common, how many there are. Public texts are drawn by
    the operating system's randomness, without repeats where there are enough.

    Args:
        labels: private codes (n, m).
        auxiliary: public codes (N, m).
    """
    target, label = _cells(drawn.assigned, spec), _cells(labels, spec)
    seed = spec.mechanism.seed
    coins = secrets.SystemRandom() if seed is None else random.Random(seed)
    ordered, used, own = _grouped(label, order), drawn.used.copy(), list[int]()
    for combination, places in _grouped(label[drawn.used], range(len(target))).items():
        staying = [place for place in places if target[place] == combination]
        leaving = [place for place in places if target[place] != combination]
        used[staying + leaving] = ordered[combination][: len(places)]
        own += staying[: most[combination]]
    demand = np.bincount(target, minlength=len(most))
    own_at_most = float(np.minimum(demand, most).sum() / len(target))
    public: dict[int, int] = {}
    if not spec.rewriting.needs_model:
        rows = _grouped(_cells(auxiliary, spec), range(len(auxiliary)))
        left = np.setdiff1d(np.arange(len(target)), own)
        for combination, places in _grouped(target, left).items():
            public |= zip(places, _drawn(rows[combination], len(places), coins), strict=True)
    return Sources(used, np.array(sorted(own), dtype=np.int64), public, own_at_most)


def _drawn(rows: list[int], count: int, coins: random.Random) -> list[int]:
    """So many of the rows. A row comes again only when all have come: where a combination runs short of
    records there may be more to fill than the public set holds, and that it ran short can be seen anyway."""
    again, rest = divmod(count, len(rows))
    return rows * again + coins.sample(rows, rest)


def _grouped(cells: Indices, places: Iterable[int]) -> dict[int, list[int]]:
    """The places by the combination that stands there."""
    found: dict[int, list[int]] = defaultdict(list)
    for place in places:
        found[int(cells[place])].append(int(place))
    return found


def _cells(codes: Codes, spec: Spec) -> Indices:
    cells: Indices = np.ravel_multi_index(tuple(codes.T), spec.sizes).astype(np.int64)
    return cells


def _public(spec: Spec, auxiliary: ArrayLike | None) -> TableDistribution:
    codes = public_codes(spec, auxiliary)
    if codes is None:
        raise SpecError("auxiliary: no rows, so nothing says how many texts may go out as they are; add some")
    joint = public_joint(codes, release_tree(spec, codes), spec.sizes)
    if not isinstance(joint, TableDistribution):
        raise SpecError(
            "rewriting.recipe none: too many combinations of categories to count the texts of each; name "
            "fewer attributes, or use recipe: notes"
        )
    return joint


def _candidates(rule: Rule, spec: Spec) -> Floats:
    """Some of the rule's candidates, (candidates, Π ψ_r)."""
    rng = np.random.default_rng(0)
    if isinstance(rule, JointRule):
        return rule.pool.source.block(min(rule.pool.size, _CANDIDATES), rng).probability(grid(spec.sizes))
    assert isinstance(rule, PerComponentRule)
    choices = rng.integers(rule.gamma, size=(_CANDIDATES // 10, len(rule.candidates)))
    return np.stack([joint_table(rule.release(tuple(choice))) for choice in choices.tolist()])
