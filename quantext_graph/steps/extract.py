"""Alg. 1 line 16: what of a record may stand in its new text, by the spec's recipe."""

from __future__ import annotations

from collections.abc import Sequence

from quantext_graph.steps.context import Kit
from quantext_graph.steps.notes import Extraction, take_notes
from quantext_graph.steps.snippets import pick_snippets

__all__ = ["Extraction", "extract"]


def extract(kit: Kit, text: str, target: Sequence[int]) -> Extraction:
    """What of `text` is kept. By notes that is the same whatever the target is."""
    if kit.spec.rewriting.recipe == "source":
        return pick_snippets(kit, text, target)
    return take_notes(kit, text)
