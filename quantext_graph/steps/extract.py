"""Alg. 1 line 16: what of a record may stand in its rewrite, relevant to the assigned target.

A snippet occurs word for word in the text, or it is dropped. What speaks for a category that the
target leaves behind is dropped too: it would spoil the new text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from quantext_graph.models.chat_model import Outcome, Usage
from quantext_graph.prompts import load, marked
from quantext_graph.steps.context import Kit
from quantext_graph.steps.texts import folded, windows, words
from quantext_graph.steps.wording import describe

MOST = 2
"""Snippets that a rewrite gets."""

_LONGEST = 5
"""Words of a snippet: it carries a matter, not a style, and is shorter than what counts as a copy."""

_AGAINST = 1.1
"""Log-odds (nats) for the left category over the target's from which on a snippet contradicts."""

_OUTPUT = 160


_ADDRESS = re.compile(r"@\w|https?:|www\.|\d[\d\s().-]{6,}\d", re.IGNORECASE)


class Snippets(BaseModel):
    """What the model replies with."""

    snippets: list[Annotated[str, Field(max_length=80)]] = Field(max_length=3)


@dataclass(frozen=True)
class Extraction:
    """Snippets in the order of the text. `unread` counts characters in parts of a long text for which
    the model gave no usable reply; nothing of such a reply is used."""

    snippets: tuple[str, ...] = field(default=(), repr=False)
    outcome: Outcome = Outcome.OK
    reason: str = ""
    unread: int = 0
    usage: Usage = field(default_factory=Usage)


def extract(kit: Kit, text: str, labels: Sequence[int], target: Sequence[int]) -> Extraction:
    """Snippets of `text` that fit `target`. A text longer than the window is read part by part."""
    head = SystemMessage(load("extract").say("system", target=describe(kit.spec, target)))
    room = _room(kit, str(head.content))
    parts = [text] if room is None else list(windows(text, room, kit.chat.count_tokens))
    found: list[str] = []
    unread, usage = 0, Usage()
    outcome, reason = Outcome.OK, ""
    for part in parts:
        reply = kit.chat.structured(
            [head, HumanMessage(marked(part))], Snippets, temperature=0.0, max_tokens=_OUTPUT, repairs=1
        )
        usage += reply.usage
        if reply.outcome is Outcome.OK:
            found += [snippet for raw in reply.value.snippets if (snippet := verbatim(raw, part))]
        else:
            unread += len(part)
            outcome, reason = reply.outcome, reply.reason
    kept = _fitting(kit, list(dict.fromkeys(found)), labels, target)
    if unread < len(text):
        outcome, reason = Outcome.OK, ""
    return Extraction(tuple(kept), outcome, reason, unread, usage)


def verbatim(snippet: str, text: str) -> str:
    """The snippet as it stands in the text, white space folded, cut to its first words; "" where it
    does not stand there, or is somebody's address: an account, a link, a mail, a telephone number."""
    wanted, whole = folded(snippet).strip(" \"'“”.,;:"), folded(text)
    match = re.search(re.escape(wanted), whole, re.IGNORECASE) if wanted else None
    if match is None or _ADDRESS.search(whole[max(0, match.start() - 1) : match.end()]):
        return ""
    return " ".join(match.group().split()[:_LONGEST])


def _fitting(kit: Kit, snippets: list[str], labels: Sequence[int], target: Sequence[int]) -> list[str]:
    """Those that do not contradict the target, fewer where the leading attribute changes."""
    changed = [i for i, (old, new) in enumerate(zip(labels, target, strict=True)) if old != new]
    meaty = [snippet for snippet in snippets if any(len(word) > 2 for word in words(snippet))]
    classifier = kit.openings.classifier
    if changed and meaty and classifier is not None:
        found = classifier.log_probabilities(meaty, even=True)
        meaty = [
            snippet
            for row, snippet in enumerate(meaty)
            if all(found[i][row, labels[i]] - found[i][row, target[i]] < _AGAINST for i in changed)
        ]
    most = 1 if kit.order[0] in changed else MOST
    return meaty[:most]


def _room(kit: Kit, instruction: str) -> int | None:
    """Tokens of a text that fit beside the instruction and the reply; None where the window is unknown."""
    if kit.chat.context is None:
        return None
    return max(64, int(0.85 * kit.chat.context) - kit.chat.count_tokens(instruction) - _OUTPUT)
