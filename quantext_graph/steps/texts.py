"""What the steps ask of texts: words, copies, refusals, windows. No model is asked here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

RUN = 6
"""Words in a row that two texts may not share (REWRITING's hard filter)."""

OVERLAP = 0.5
"""Jaccard index of their words from which on a text counts as a copy of another."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")
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
    r"|</?(?:text|notes)>)",
    re.IGNORECASE,
)


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return [word.casefold() for word in _WORD.findall(text)]


def runs(text: str, length: int = RUN) -> set[tuple[str, ...]]:
    """All runs of `length` words."""
    found = words(text)
    return {tuple(found[i : i + length]) for i in range(len(found) - length + 1)}


def is_copy(text: str, other: str) -> bool:
    """Whether the two share a run of six words or half of their words, or are the same few words."""
    first, second = set(words(text)), set(words(other))
    if not first or not second:
        return text.strip() == other.strip()
    if len(first & second) > OVERLAP * len(first | second):
        return True
    return not runs(text).isdisjoint(runs(other))


def is_refusal(text: str) -> bool:
    """Whether a model declined instead of writing: a classifier lets that pass."""
    return _REFUSAL.search(text[:200]) is not None


def is_essay(text: str) -> bool:
    """Whether a model wrote about the text instead of writing it."""
    return _ESSAY.search(text) is not None


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
