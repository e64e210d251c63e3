"""Options scored by log-probability: how likely each is as the next words of a reply."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from quantext_graph.models.replies import Token

Likely = Callable[[str], Sequence[Token]]
"""The likely tokens after the reply has begun with these words."""

_MOST_QUESTIONS = 8
_WORTH_ASKING = 0.02  # of the mass on all options


def option_scores(options: Sequence[str], likely: Likely, *, continues: bool) -> tuple[float, ...] | None:
    """Log-probabilities (nats) of `options`, normalised over them; None where no likely token begins one.

    A token counts for the one option that it begins, whatever its case. Where it begins several, or
    is a single letter, `likely` is asked again with the token said (`continues`), else its mass is
    shared. So one question is enough for most sets of options. An option that no token begins gets
    half the mass of the least likely token seen.
    """
    folded = [option.strip().casefold() for option in options]
    distinct = len(set(folded)) == len(options)
    walk = _Walk(likely, continues, str.casefold if distinct else str)
    tokens = likely("")
    masses = walk.masses(folded if distinct else [option.strip() for option in options], tokens, said="")
    if not any(masses):
        return None
    floor = 0.5 * math.exp(min(token.log_probability for token in tokens))
    masses = [mass or floor for mass in masses]
    total = sum(masses)
    return tuple(math.log(mass / total) for mass in masses)


class _Walk:
    """Goes down the tokens that begin more than one option."""

    def __init__(self, likely: Likely, continues: bool, fold: Callable[[str], str]) -> None:
        self._likely, self._continues, self._fold = likely, continues, fold
        self._questions = 1

    def masses(self, rests: list[str], tokens: Sequence[Token], said: str) -> list[float]:
        """Mass of each option, of which `rests` is still to be said; "" for one that is said whole."""
        masses = [0.0] * len(rests)
        shared: list[tuple[Token, str, list[int]]] = []
        for token in tokens:
            word = self._fold(token.text if said else token.text.lstrip())
            hits = [at for at, rest in enumerate(rests) if rest and word and _begins(word, rest)]
            if len(hits) == 1 and (len(word) > 1 or word == rests[hits[0]]):
                masses[hits[0]] += math.exp(token.log_probability)
            elif hits:
                shared.append((token, word, hits))
        for token, word, hits in shared:
            self._share(masses, rests, said, token, word, hits)
        if "" in rests:
            masses[rests.index("")] = max(0.0, 1.0 - sum(masses))
        return masses

    def _share(
        self, masses: list[float], rests: list[str], said: str, token: Token, word: str, hits: list[int]
    ) -> None:
        mass = math.exp(token.log_probability)
        parts = [1.0 / len(hits)] * len(hits)
        worth = mass > _WORTH_ASKING * (sum(masses) + mass)
        if self._continues and worth and self._questions < _MOST_QUESTIONS:
            self._questions += 1
            text = said + token.text
            parts = self.masses([rests[at][len(word) :] for at in hits], self._likely(text), text)
        for at, part in zip(hits, parts, strict=True):
            masses[at] += mass * part


def _begins(word: str, rest: str) -> bool:
    return rest.startswith(word) or (word.startswith(rest) and not word[len(rest)].isalnum())
