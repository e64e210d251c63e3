"""People for tests of the chat: they answer what they are asked, and remember what they saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Said = str | None | Callable[[], str | None]


class ScriptedPerson:
    """Answers its questions in order: each entry is a part of the question and the answer to it, None to
    leave. An empty part stands for the prompt at which a person says what they like.

    A question that is not the next one is a mistake of the test.
    """

    def __init__(self, *answers: tuple[str, Said]) -> None:
        self.answers = list(answers)
        self.said: list[str] = []
        self.shown: list[str] = []
        self.asked: list[str] = []
        self.events: list[Mapping[str, Any]] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def show(self, lines: Sequence[str]) -> None:
        self.shown.extend(lines)

    def ask(self, question: str) -> str | None:
        self.asked.append(question)
        part, answer = self.answers.pop(0) if self.answers else ("nothing", None)
        fits = part in question if part else not question
        assert fits, f"asked {question!r}, expected {part!r}; seen: {self.said[-3:]} {self.shown[-8:]}"
        return answer() if callable(answer) else answer

    def progress(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)

    @property
    def saw(self) -> str:
        return "\n".join(self.shown)
