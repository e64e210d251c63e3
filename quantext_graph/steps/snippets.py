"""The paper's snippets: phrases of a record, word for word, that fit the assigned target (Alg. 1 line 16)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from quantext_graph.models.chat_model import Outcome, Usage
from quantext_graph.prompts import load, marked
from quantext_graph.steps.context import Kit
from quantext_graph.steps.notes import Extraction
from quantext_graph.steps.texts import COPIED, folded, windows
from quantext_graph.steps.wording import describe

_LONGEST = COPIED - 1
"""Words of a snippet: shorter than what counts as a copy."""

_OUTPUT = 240

_ADDRESS = re.compile(r"@\w|https?:|www\.|\d[\d\s().-]{6,}\d", re.IGNORECASE)


class Snippets(BaseModel):
    """What the model replies with."""

    snippets: list[Annotated[str, Field(max_length=120)]] = Field(max_length=6)


def pick_snippets(kit: Kit, text: str, target: Sequence[int]) -> Extraction:
    """Snippets of `text` that fit `target`. A text longer than the window is read part by part."""
    head = SystemMessage(load("snippets").say("system", target=describe(kit.spec, target)))
    room = kit.room(str(head.content), _OUTPUT)
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
            unread, outcome, reason = unread + 1, reply.outcome, reply.reason
    if unread < len(parts):
        outcome, reason = Outcome.OK, ""
    return Extraction((), tuple(dict.fromkeys(found)), outcome, reason, unread, usage)


def verbatim(snippet: str, text: str) -> str:
    """The snippet as it stands in the text, white space folded, cut to its first words; "" where it
    does not stand there, or is somebody's address: an account, a link, a mail, a telephone number."""
    wanted, whole = folded(snippet).strip(" \"'“”.,;:"), folded(text)
    match = re.search(re.escape(wanted), whole, re.IGNORECASE) if wanted else None
    if match is None or _ADDRESS.search(whole[max(0, match.start() - 1) : match.end()]):
        return ""
    return " ".join(match.group().split()[:_LONGEST])
