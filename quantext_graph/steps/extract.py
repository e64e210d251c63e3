"""Alg. 1 line 16: what of a record may stand in its new text, by the spec's recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from quantext_graph.models.chat_model import Outcome, Usage
from quantext_graph.steps.context import Kit
from quantext_graph.steps.notes import Note, take_notes
from quantext_graph.steps.snippets import pick_snippets


@dataclass(frozen=True)
class Extraction:
    """Notes of the whole record (`recipe: notes`) or its snippets for the target (`recipe: source`).
    `unread` counts passages or parts of the record for which the model gave no usable reply."""

    notes: tuple[Note, ...] = field(default=(), repr=False)
    snippets: tuple[str, ...] = field(default=(), repr=False)
    outcome: Outcome = Outcome.OK
    reason: str = ""
    unread: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def lines(self) -> tuple[str, ...]:
        """All that was kept, as the rewriter sees it."""
        return self.snippets or tuple(note.text for note in self.notes if note.text)


def extract(kit: Kit, text: str, target: Sequence[int]) -> Extraction:
    """What of `text` is kept. By notes that is the same whatever the target is."""
    if kit.spec.rewriting.recipe == "source":
        picked = pick_snippets(kit, text, target)
        return Extraction((), picked.snippets, picked.outcome, picked.reason, picked.unread, picked.usage)
    taken = take_notes(kit, text)
    return Extraction(taken.notes, (), taken.outcome, taken.reason, taken.unread, taken.usage)
