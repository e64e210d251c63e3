"""A scripted model for the steps: it answers what a test tells it and remembers what it was asked."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from quantext_graph.models.chat_model import ChatModel
from quantext_graph.models.instances import from_langchain

Answer = Callable[[Sequence[BaseMessage]], str]


class ScriptedChat(BaseChatModel):
    """Answers by a function of the messages; no log-probabilities, no prefill."""

    answer: Answer
    _asked: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self._asked.append(list(messages))
        message = AIMessage(self.answer(messages), response_metadata={"finish_reason": "stop"})
        return ChatResult(generations=[ChatGeneration(message=message)])


class Script:
    """A chat model for a kit, and all that it was asked."""

    def __init__(self, answer: Answer) -> None:
        self._model = ScriptedChat(answer=answer)
        self.chat: ChatModel = from_langchain(self._model, remote=False)

    @property
    def asked(self) -> list[list[BaseMessage]]:
        return self._model._asked

    def words(self) -> str:
        return "\n".join(str(message.content) for call in self.asked for message in call)


SPEC: dict[str, Any] = {
    "data": {"path": "private.csv"},
    "attributes": [
        {"name": "Mood", "categories": ["glad", "sad", "None"]},
        {"name": "Topic", "categories": [{"name": "tea", "description": "the drink {hot} at $2"}, "rain"]},
    ],
    "rewriting": {"openings": "always"},
    "limits": {"candidates": 2},
}

WORDS = {
    (0, 0): "lovely wonderful kettle leaves pot of tea",
    (1, 0): "awful bitter gloomy kettle leaves pot of tea",
    (2, 0): "the shop sells kettle leaves and pots of tea",
    (0, 1): "lovely wonderful puddles umbrella drizzle of rain",
    (1, 1): "awful bitter gloomy umbrella drizzle of rain",
    (2, 1): "the forecast gives umbrella drizzle and rain",
}


def auxiliary(copies: int) -> list[tuple[str, tuple[int | None, ...]]]:
    """Invented public rows, `copies` of each combination, told apart by a number in them."""
    return [
        (f"On day {i} I noted {words}, and later on number {i} of my neighbours came", combination)
        for i in range(copies)
        for combination, words in WORDS.items()
    ]


def replies(**answers: str) -> Callable[[Sequence[BaseMessage]], str]:
    """One reply for each kind of call; texts begin with the opening that is asked for."""

    def answer(messages: Sequence[BaseMessage]) -> str:
        system, last = str(messages[0].content), str(messages[-1].content)
        if '"snippets"' in system:
            return answers.get("snippets", '{"snippets": []}')
        if '"openings"' in system:
            return answers.get("openings", '{"openings": []}')
        if system.startswith("You say one passage"):
            return answers.get("notes", "It came as somebody had said before.")
        if "say which category" in system:
            return answers.get("labels", '{"Mood": "sad", "Topic": "rain"}')
        _, _, opening = last.rpartition("go on from there: ")
        begun = opening if "go on from there" in last else ""
        return begun + answers.get("text", " and nobody in the valley had seen it coming.")

    return answer
