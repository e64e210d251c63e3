"""What the steps ask of texts: words, copies, refusals, windows. No model is asked here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from pydantic import BaseModel, field_validator

COPIED = 9
"""Words in a row that a new text may not share with its record or with one public text: eight may be."""

OVERLAP = 0.8
"""Jaccard index of their words from which on a text counts as a copy of another."""

WORD = re.compile(r"\w+(?:['’]\w+)*")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_REFUSAL = re.compile(
    r"\b(?:i(?:'|’)?m sorry,? but i|i am sorry,? but i|as an ai\b|as a language model"
    r"|i (?:can(?:no|'|’)?t|am unable to|am not able to) "
    r"(?:assist|help|write|fulfil+|comply|provide|create|generate|continue|do that))",
    re.IGNORECASE,
)
_ESSAY = re.compile(
    r"\b(?:the (?:author|writer|speaker) "
    r"(?:of|is|has|seems|expresses|believes|argues|supports|opposes|feels)\b"
    r"|the (?:author|writer|speaker)['’]s (?:stance|sentiment|tone|attitude|opinion|view)\b"
    r"|(?:sentiment|tone|stance) of (?:the|this) (?:text|post|tweet|message)\b"
    r"|stance (?:against|towards?|on) the target\b"
    r"|this (?:text|post|tweet|message|passage) (?:is|expresses|shows|reflects|conveys|was written)\b"
    r"|\b(?:original|corrected|revised|rewritten) (?:text|version|passage)\b"
    r"|</?(?:text|notes)>)",
    re.IGNORECASE,
)


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return [word.casefold() for word in WORD.findall(text)]


def shared_run(text: str, other: str, length: int = COPIED) -> int | None:
    """Where in `text` (which word) the first run of `length` words begins that stands in `other` too."""
    found, known = words(text), words(other)
    there = {tuple(known[i : i + length]) for i in range(len(known) - length + 1)}
    starts = range(len(found) - length + 1)
    return next((i for i in starts if tuple(found[i : i + length]) in there), None)


def shares_run(text: str, other: str, length: int = COPIED) -> bool:
    """Whether some `length` words in a row stand in both."""
    return shared_run(text, other, length) is not None


def uncopied(text: str, other: str) -> str:
    """`text` with a word left out of every run of nine, within a line, that stands in `other` too."""
    lines = []
    for line in text.split("\n"):
        while (start := shared_run(line, other)) is not None:
            first, last = [match.span() for match in WORD.finditer(line)][start + COPIED // 2]
            line = f"{line[:first].rstrip()}{line[last:]}"
        lines.append(line)
    return "\n".join(lines)


def is_copy(text: str, other: str) -> bool:
    """Whether a line of `text` shares a run of nine words with `other`, or the two share most of their words,
    or are the same few words."""
    first, second = set(words(text)), set(words(other))
    if not first or not second:
        return text.strip() == other.strip()
    if len(first & second) > OVERLAP * len(first | second):
        return True
    return any(shares_run(line, other) for line in text.split("\n"))


class Written(BaseModel):
    """A text that a model wrote."""

    text: str

    @field_validator("text")
    @classmethod
    def _plain(cls, text: str) -> str:
        """Without quotation marks around it and what no reader sees; raises where nothing is left."""
        text = visible(text).strip()
        if len(text) > 1 and text[0] in '"“' and text[-1] in '"”':
            text = text[1:-1].strip()
        if not text:
            raise ValueError("the text is empty")
        return text


def is_refusal(text: str) -> bool:
    """Whether a model declined instead of writing: a classifier lets that pass."""
    return _REFUSAL.search(text[:200]) is not None


def is_essay(text: str) -> bool:
    """Whether a model wrote about the text instead of writing it."""
    return _ESSAY.search(text) is not None


def visible(text: str) -> str:
    """`text` without control characters and what turns the order of letters about."""
    return _UNSEEN.sub("", text)


def folded(text: str) -> str:
    return " ".join(text.split())


def windows(text: str, limit: int, count: Callable[[str], int]) -> Iterator[str]:
    """`text` in parts of at most `limit` tokens by `count`, cut between sentences or words where it
    can be; the parts together are the whole text but for white space at the cuts."""
    rest = text
    while rest:
        if len(rest.encode("utf-8", "replace")) <= limit or count(rest) <= limit:  # no token is under a byte
            yield rest
            return
        end = _cut(rest, _fitting(rest, limit, count))
        yield rest[:end]
        rest = rest[end:].lstrip()


def _fitting(text: str, limit: int, count: Callable[[str], int]) -> int:
    """A length, in characters, that fits `limit` tokens: halved by measure, so a few calls find it."""
    low, high = max(1, limit // 4), min(len(text), limit * 12)  # a character has at most four bytes
    if count(text[:high]) <= limit:
        return high
    while high - low > max(8, low // 16):
        middle = (low + high) // 2
        low, high = (middle, high) if count(text[:middle]) <= limit else (low, middle)
    return low


def _cut(text: str, end: int) -> int:
    """The last end of a sentence, else of a word, in the second half of text[:end]."""
    for pattern in (r"[.!?]\s|\n", r"\s"):
        places = [match.end() for match in re.finditer(pattern, text[:end])]
        if places and places[-1] > end // 2:
            return places[-1]
    return end


def shortest(texts: Sequence[str], limit: int) -> list[int]:
    """Indices of texts of at most `limit` words, shortest first; the single shortest where none is."""
    lengths = [len(text.split()) for text in texts]
    order = sorted(range(len(texts)), key=lengths.__getitem__)
    return [i for i in order if lengths[i] <= limit] or order[:1]
