"""What an audit is given: two corpora, their labels, and what is known of how one became the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from quantext_graph.core.arrays import Codes
from quantext_graph.core.leakage import Leakage
from quantext_graph.core.rules import MechanismParameters
from quantext_graph.core.selection import Choice, Rule
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.reports import Judgement


@dataclass(frozen=True)
class Pair:
    """A record before and after, with category codes; `realised` is what an evaluator read off the text.

    `attempts` is how many texts were written for it, `failures` why those that were turned down were;
    `spec_words`: no model wrote the text, it is made of the words of the spec alone.
    """

    before: str = field(repr=False)
    after: str = field(repr=False)
    labels: tuple[int, ...] = field(repr=False)
    target: tuple[int, ...]
    realised: tuple[int, ...] | None = None
    snippets: tuple[str, ...] = field(default=(), repr=False)
    attempts: int = 1
    failures: tuple[str, ...] = ()
    verified: bool = True
    fallback: bool = False
    spec_words: bool = False


@dataclass(frozen=True)
class Draw:
    """How the release was drawn, all of it public: the rule, the candidates chosen, the bounds."""

    parameters: MechanismParameters
    rule: Rule
    choice: Choice
    leakage: dict[str, Leakage]
    seeded: bool = False


@dataclass(frozen=True)
class AuditInputs:
    """A release and what it was made of. What is None is not known, and what needs it is skipped.

    Codes are (n, m) in the order of the spec's attributes and categories, `UNKNOWN` for a label nobody
    gave. The two corpora may differ in size, and their rows do not correspond: `pairs`, where there are any,
    are those of `released_texts`, in order. `judgement` is what the one who read `realised` says of it.
    """

    private_texts: Sequence[str] = field(repr=False)
    private_codes: Codes = field(repr=False)
    released_texts: Sequence[str] = field(repr=False)
    targets: Codes | None = field(default=None, repr=False)
    realised: Codes | None = field(default=None, repr=False)
    judgement: Judgement | None = None
    pairs: Sequence[Pair] = field(default=(), repr=False)
    after_attempts: Sequence[float] = ()
    auxiliary_texts: Sequence[str] = field(default=(), repr=False)
    auxiliary_codes: Codes | None = field(default=None, repr=False)
    draw: Draw | None = field(default=None, repr=False)

    def check(self, spec: Spec) -> None:
        """Refuse what no figure can be computed of.

        Raises:
            QuantextError: with one line.
        """
        m = len(spec.attributes)
        for name, texts in (("private", self.private_texts), ("released", self.released_texts)):
            if not len(texts):
                raise QuantextError(f"audit: no {name} texts; give a corpus of at least one")
        for name, codes, texts in (
            ("private", self.private_codes, self.private_texts),
            ("target", self.targets, self.released_texts),
            ("realised", self.realised, self.released_texts),
            ("auxiliary", self.auxiliary_codes, self.auxiliary_texts),
        ):
            if codes is not None and codes.shape != (len(texts), m):
                raise QuantextError(
                    f"audit: {name} labels have shape {codes.shape}, expected {(len(texts), m)}; "
                    "give one label of each attribute for each text"
                )
