"""The two private names of LangChain that the package leans on, each with what breaks when it goes."""

from __future__ import annotations

import inspect

import langchain_core.globals
import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_core.outputs import ChatResult
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI

from quantext_graph.models.http_clients import ollama_client_options

GENERATE = (
    "LangChain changed {name}._generate(messages, stop=..., **options): `generate` in models/request.py "
    "calls it for every record, so each model but `embedded:` and `openai:` fails. Call what took its place, "
    "and see that debug printing, callbacks and caches still see no record."
)
CLOSE = (
    "LangChain changed ChatOllama._client: `OllamaEndpoint.close` in models/endpoints.py closes the "
    "connections of a run by it, so they stay open. Close them by what took its place."
)


@pytest.mark.parametrize("client", [BaseChatModel, ChatOllama, ChatOpenAI, FakeListChatModel])
def test_a_client_answers_at_generate(client: type[BaseChatModel]) -> None:
    words = GENERATE.format(name=client.__name__)
    assert hasattr(client, "_generate"), words
    taken = inspect.signature(client._generate).parameters
    assert list(taken)[:3] == ["self", "messages", "stop"], words
    assert any(each.kind is each.VAR_KEYWORD for each in taken.values()), words


def test_what_generate_gives_is_a_chat_result() -> None:
    found = FakeListChatModel(responses=["hello"])._generate([HumanMessage("hi")], stop=None)
    words = GENERATE.format(name="FakeListChatModel")
    assert isinstance(found, ChatResult), words
    assert found.generations[0].message.text == "hello", words


def test_the_public_way_shows_records_to_debug_printing(capfd: pytest.CaptureFixture[str]) -> None:
    """Why `_generate` is called. When this fails, the public `generate` may take its place."""
    langchain_core.globals.set_debug(True)
    try:
        FakeListChatModel(responses=["hello"]).generate([[HumanMessage("zanzibar-7731")]], callbacks=[])
    finally:
        langchain_core.globals.set_debug(False)
    assert "zanzibar-7731" in capfd.readouterr().out


def test_the_client_of_ollama_can_be_closed() -> None:
    chat = ChatOllama(model="tiny", **ollama_client_options(loopback=True, timeout=1.0))
    client = getattr(chat, "_client", None)
    assert client is not None, CLOSE
    assert callable(getattr(client, "close", None)), CLOSE
    client.close()
    assert client._client.is_closed, CLOSE
