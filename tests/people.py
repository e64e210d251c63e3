"""People for tests of the chat: they answer what they are asked, and remember what they saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Answers = Sequence[tuple[str, str | None]] | Callable[[str], str | None]


class ScriptedPerson:
    """Answers each question by the first entry that stands in it, which is used up; leaves at None.

    A question that no entry answers is a mistake of the test.
    """

    def __init__(self, *answers: tuple[str, str | None]) -> None:
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
        for place, (part, answer) in enumerate(self.answers):
            if part in question:
                del self.answers[place]
                return answer
        raise AssertionError(f"not expected: {question!r}; left: {self.answers}; shown: {self.shown[-5:]}")

    def progress(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)

    @property
    def saw(self) -> str:
        return "\n".join(self.shown)
