"""A text as its passages: turns of a dialogue, sentences, lines; and the form that holds them together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_SENTENCE = re.compile(r"(?<=[.!?…])\s+")
_CLAUSE = re.compile(r"(?<=[,;:])\s+|\s+(?=(?:and|but|because|so|which|while|then)\s)")
_SPEAKER = re.compile(r"([A-Z][\w .'-]{0,30}):\s+(?=\S)")


_SENTENCES, _PARAGRAPHS = 25, 150


def is_small(model: str) -> bool:
    """Whether a model is one of those that run in this process: short passages and openings make up for
    what they cannot hold together."""
    return model.startswith("embedded:")


def passage_words(small: bool) -> int:
    """Words of a passage that a writer is given at a time: a sentence or two for a small model."""
    return _SENTENCES if small else _PARAGRAPHS


@dataclass(frozen=True)
class Passage:
    """`text` as it stands, without `head`: what the line begins with (a speaker, a bullet). `lines`
    counts the line breaks before it."""

    text: str
    head: str = ""
    lines: int = 0


def passages(text: str, size: int) -> list[Passage]:
    """`text` in passages of about `size` words, never over two turns or lines."""
    lines = text.strip().split("\n")
    turns = sum(_SPEAKER.match(line.strip()) is not None for line in lines)
    dialogue = turns >= 2 and turns >= len([line for line in lines if line.strip()]) / 2
    found: list[Passage] = []
    breaks = 0
    for line in lines:
        said = line.strip()
        if said:
            head = _head(said, dialogue)
            for number, piece in enumerate(_pieces(said[len(head) :].strip(), size)):
                found.append(Passage(piece, "" if number else head, 0 if number else breaks))
            breaks = 0
        breaks += 1
    return found


def joined(form: Sequence[Passage], texts: Sequence[str]) -> str:
    """The `texts` in the form of a record: its speakers, its lines. What is empty is left out."""
    said, breaks = "", 0
    for passage, text in zip(form, texts, strict=True):
        breaks = max(breaks, passage.lines)
        if text:
            between = "\n" * min(breaks, 2) if breaks else " "
            said += (between if said else "") + passage.head + text
            breaks = 0
    return said


def spoken(text: str) -> tuple[str, str]:
    """Who says a text ("Doctor: ", else ""), and what is said."""
    speaker = _SPEAKER.match(text)
    return (speaker.group(), text[speaker.end() :]) if speaker else ("", text)


def _head(line: str, dialogue: bool) -> str:
    if dialogue:
        return spoken(line)[0]
    bullet = re.match(r"(?:[-*•·]|\(?\d{1,2}[.)])\s+", line)
    return bullet.group() if bullet else ""


def _pieces(text: str, size: int) -> Iterator[str]:
    """Sentences put together while they fit; what is far longer is cut at clauses, else at words."""
    held: list[str] = []
    for sentence in _SENTENCE.split(text):
        for piece in _bounded(sentence, size):
            if held and sum(len(part.split()) for part in held) + len(piece.split()) > size:
                yield " ".join(held)
                held = []
            held.append(piece)
    if held:
        yield " ".join(held)


def _bounded(sentence: str, size: int) -> Iterator[str]:
    most = size + size // 2
    if len(sentence.split()) <= most:
        yield sentence
        return
    held: list[str] = []
    for clause in _CLAUSE.split(sentence):
        words = clause.split()
        if held and len(held) + len(words) > size:
            yield " ".join(held)
            held = []
        held += words
        while len(held) > most:
            yield " ".join(held[:size])
            held = held[size:]
    if held:
        yield " ".join(held)
