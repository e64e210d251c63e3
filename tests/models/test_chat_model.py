"""Models from the spec: the privacy guard, written texts, scored options, and any LangChain chat model."""

import asyncio
import io
import json
import logging
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

import langchain_core.globals
import numpy as np
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field, field_validator
from servers import Act, OllamaServer, OpenAIServer
from threads import at_once

from quantext_graph.models.chat_model import (
    ChatModel,
    ModelError,
    ModelUnavailable,
    Outcome,
    RemoteModelRefused,
    Usage,
    chat_model,
    tracing_warning,
)
from quantext_graph.models.instances import from_langchain
from quantext_graph.models.option_scores import option_scores
from quantext_graph.models.privacy import is_loopback
from quantext_graph.models.replies import Token
from quantext_graph.models.request import strict_schema
from quantext_graph.models.resolve import connect
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Models, ModelSpec

TOKEN = "zanzibar-7731"


class Label(BaseModel):
    stance: Literal["FAVOR", "AGAINST"]


class Text(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def _not_short(cls, text: str) -> str:
        if len(text) < 8:
            raise ValueError("too short")
        return text


ASK = [SystemMessage("Label."), HumanMessage(f"{TOKEN} {{braces}} {{0}} %s")]


def on(server: OpenAIServer | OllamaServer, **options: Any) -> ChatModel:
    kind = "openai" if isinstance(server, OpenAIServer) else "ollama"
    return chat_model(ModelSpec(model=f"{kind}:tiny", base_url=server.url, **options), Models())


# The guard


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1", True),
        ("http://127.9.9.9:1", True),
        ("http://[::1]:11434", True),
        ("127.0.0.1:11434", True),
        ("http://0.0.0.0:8000", False),
        ("http://10.0.0.5", False),
        ("http://192.0.2.1", False),
        ("http://localhost.invalid", False),
        ("http://127.0.0.1@192.0.2.1/v1", False),
        ("", False),
    ],
)
def test_loopback_is_told_by_the_address_that_is_meant(url: str, loopback: bool) -> None:
    assert is_loopback(url) is loopback


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("openai:gpt-4o-mini", None),
        ("openai:x", "http://192.0.2.1/v1"),
        ("openai:x", ("http://127.0.0.1:1/v1", "http://192.0.2.1/v1")),
        ("ollama:llama3.1", "http://192.0.2.1:11434"),
        ("anthropic:claude-3-5-haiku-latest", None),
        ("anthropic:claude-3-5-haiku-latest", "http://127.0.0.1:1"),
    ],
)
def test_a_remote_model_is_refused_in_one_line_that_says_the_way_out(
    model: str, base_url: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RemoteModelRefused, match="allow_remote") as caught:
        chat_model(ModelSpec(model=model, base_url=base_url), Models())
    assert "\n" not in str(caught.value)


def test_a_remote_address_in_the_environment_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://192.0.2.1/v1")
    with pytest.raises(RemoteModelRefused, match=r"192\.0\.2\.1"):
        chat_model(ModelSpec(model="openai:x"), Models())


def test_remote_is_told_of_a_model_that_was_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_BASE", raising=False)
    assert chat_model(ModelSpec(model="openai:gpt-4o-mini"), Models(allow_remote=True)).remote
    with OpenAIServer() as server:
        assert not on(server).remote


def test_a_proxy_in_the_environment_carries_no_loopback_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as proxy, OpenAIServer() as server, OllamaServer() as second:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "OPENAI_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("OPENAI_PROXY")
        assert on(server).structured(ASK, Label).outcome is Outcome.OK
        assert on(second).structured(ASK, Label).outcome is Outcome.OK
        assert not proxy.asked


@pytest.mark.parametrize("model", ["openai:tiny", "ollama:tiny"])
def test_a_call_that_leaves_the_machine_takes_the_proxy_of_the_environment(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = OpenAIServer if model.startswith("openai") else OllamaServer
    with kind() as proxy:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        away = ModelSpec(model=model, base_url="http://192.0.2.1/v1", timeout=5)
        assert chat_model(away, Models(allow_remote=True)).structured(ASK, Label).outcome is Outcome.OK
        assert proxy.headers[0]["host"] == "192.0.2.1"


@pytest.mark.parametrize("kind", [OpenAIServer, OllamaServer])
def test_calls_one_after_the_other_use_one_connection_and_many_at_once_no_more_than_one_each(
    kind: Any,
) -> None:
    with kind(then=Act('{"stance": "FAVOR"}', seconds=0.05)) as server:
        model = on(server)
        for _ in range(5):
            model.structured(ASK, Label)
        assert server.settled(1) == 1
        with ThreadPoolExecutor(24) as pool:
            found = list(pool.map(lambda _: model.structured(ASK, Label).outcome, range(96)))
        assert set(found) == {Outcome.OK}
        assert 1 < server.settled(0, seconds=0.2) <= 25
        model.close()
        assert server.settled(0) == 0, "closing the model lets go of all of them"


@pytest.mark.parametrize("kind", [OpenAIServer, OllamaServer])
def test_a_redirect_of_a_loopback_call_is_not_followed(kind: Any) -> None:
    seen: list[bytes] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(500)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    away = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=away.serve_forever, daemon=True).start()
    location = f"http://127.0.0.1:{away.server_address[1]}/v1/chat/completions"
    with (
        kind(then=Act(status=307, headers={"Location": location})) as server,
        pytest.raises(ModelError, match="redirects"),
    ):
        on(server).structured(ASK, Label)
    away.shutdown()
    assert not seen


def test_a_reply_that_is_called_text_is_read_and_one_that_is_a_page_is_not() -> None:
    page = Act(body=b"<html>Sign in</html>", headers={"Content-Type": "text/html"})
    with OpenAIServer(
        page, then=Act('{"stance": "FAVOR"}', headers={"Content-Type": "text/plain"})
    ) as server:
        assert on(server).structured(ASK, Label).outcome is Outcome.OK
        assert len(server.asked) == 2


@pytest.mark.parametrize("kind", [OpenAIServer, OllamaServer])
def test_the_client_of_an_agent_can_be_awaited(kind: Any) -> None:
    with kind(then=Act("hello")) as server:
        model = f"{'openai' if kind is OpenAIServer else 'ollama'}:tiny"
        found = connect(ModelSpec(model=model, base_url=server.url), Models())
        client = found.endpoints[0].conversational()
        assert asyncio.run(client.ainvoke("Good morning.")).text == "hello"


def test_a_key_for_openai_is_not_shown_to_another_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-precious")
    monkeypatch.setenv("MY_KEY", "mine")
    with OpenAIServer() as server:
        on(server).structured(ASK, Label)
        on(server, api_key_env="MY_KEY").structured(ASK, Label)
        assert "sk-precious" not in json.dumps(server.headers)
        assert server.headers[-1]["authorization"] == "Bearer mine"


def test_no_trace_no_cache_no_log_holds_a_record(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Everything that could carry a text along is switched on, and stays empty."""
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    cache = InMemoryCache()
    langchain_core.globals.set_llm_cache(cache)
    langchain_core.globals.set_debug(True)
    langchain_core.globals.set_verbose(True)
    try:
        with OpenAIServer() as collector, OpenAIServer() as server, OllamaServer() as second:
            for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
                monkeypatch.setenv(name, "true")
            monkeypatch.setenv("LANGSMITH_ENDPOINT", f"http://127.0.0.1:{collector.port}")
            monkeypatch.setenv("LANGSMITH_API_KEY", "lsv2_test")
            fake = from_langchain(FakeListChatModel(responses=['{"stance": "FAVOR"}']), remote=False)
            for model in (on(server), on(second), fake):
                assert model.structured(ASK, Label).outcome is Outcome.OK
                assert model.structured(ASK, Label).outcome is Outcome.OK
            assert len(server.asked) == len(second.asked) == 2, "no cache answers"
            assert not collector.asked
            assert "LANGSMITH_TRACING" in (tracing_warning() or "")
    finally:
        langchain_core.globals.set_llm_cache(None)
        langchain_core.globals.set_debug(False)
        langchain_core.globals.set_verbose(False)
        root.removeHandler(handler)
        root.setLevel(level)
    assert not cache._cache
    captured = capfd.readouterr()
    assert log.getvalue(), "the log was listened to"
    assert TOKEN not in log.getvalue() + captured.out + captured.err


def test_no_reply_text_in_a_repr() -> None:
    with OpenAIServer(then=Act(f'{{"stance": "FAVOR", "x": "{TOKEN}"}}')) as server:
        assert TOKEN not in repr(on(server).write([HumanMessage("x")], Text))


def test_tracing_is_warned_of_only_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.delenv(name, raising=False)
    assert tracing_warning() is None
    monkeypatch.setenv("LANGCHAIN_TRACING_V2", "false")
    assert tracing_warning() is None


# Models that are not there


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("llama3.1", "provider:model"),
        ("nobody:x", "providers"),
        ("embedded:qwen", "known: qwen2.5-coder-1.5b"),
        ("embedded:none/such.gguf", "no such file"),
        ("mistralai:mistral-small", "pip install langchain-mistralai"),
    ],
)
def test_a_model_that_cannot_be_is_one_line(model: str, said: str) -> None:
    with pytest.raises(QuantextError, match=said) as caught:
        chat_model(ModelSpec(model=model), Models(allow_remote=True))
    assert "\n" not in str(caught.value)


def test_an_embedded_model_that_was_not_pulled_says_how(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("QUANTEXT_CACHE", str(tmp_path))
    with pytest.raises(QuantextError, match="quantext model pull smollm2-135m"):
        chat_model(ModelSpec(model="embedded:smollm2-135m"), Models())


def test_a_server_that_is_down_says_its_address() -> None:
    with OpenAIServer() as server:
        url = server.url
    with pytest.raises(ModelUnavailable, match="no server answers"):
        chat_model(ModelSpec(model="openai:tiny", base_url=url), Models())


def test_a_model_the_server_does_not_have_names_the_nearest() -> None:
    with OpenAIServer() as server, pytest.raises(ModelError, match="'tiny'"):
        chat_model(ModelSpec(model="openai:tinny", base_url=server.url), Models())
    with OllamaServer() as ollama, pytest.raises(ModelError, match="ollama pull other"):
        chat_model(ModelSpec(model="ollama:other", base_url=ollama.url), Models())


def test_the_window_is_what_the_server_or_the_spec_says() -> None:
    with OpenAIServer() as server:
        assert on(server).context == 4096
        assert on(server, context=1024).context == 1024
    with OllamaServer() as ollama:
        assert on(ollama, context=2048).context == 2048


def test_tokens_are_estimated_on_the_high_side() -> None:
    with OpenAIServer() as server:
        assert on(server).count_tokens("four words in all") >= 5


# Written texts


@pytest.mark.parametrize("continued", [" a good day.", "So glad that Monday is a good day."])
@pytest.mark.parametrize("server_kind", ["vllm", "llamacpp", "ollama"])
def test_a_prefilled_opening_is_continued_and_the_text_is_whole(server_kind: str, continued: str) -> None:
    act = Act(continued)
    with OllamaServer(act) if server_kind == "ollama" else OpenAIServer(act, owner=server_kind) as server:
        reply = on(server).write(ASK, Text, opening="So glad that Monday is ", min_p=0.06, max_tokens=50)
        assert reply.value.text == "So glad that Monday is a good day."
        body = server.asked[0]
        assert body["messages"][-1] == {"role": "assistant", "content": "So glad that Monday is"}
        assert (body.get("options") or body)["min_p"] == 0.06
        assert body.get("continue_final_message", False) is (server_kind == "vllm")


def test_elsewhere_the_opening_is_told_and_the_reply_held_to_it() -> None:
    with OpenAIServer(Act("So  glad it is Monday."), Act("It is Monday, so glad.")) as server:
        model = on(server)
        reply = model.write(ASK, Text, opening="So glad", min_p=0.06)
        assert reply.value.text == "So  glad it is Monday."
        body = server.asked[0]
        assert body["messages"][-1]["role"] == "user"
        assert body["messages"][-1]["content"].endswith("So glad")
        assert "min_p" not in body
        assert model.write(ASK, Text, opening="So glad").outcome is Outcome.INVALID


def test_of_several_candidates_those_that_are_cut_or_invalid_are_dropped() -> None:
    texts = ("The first of them.", "cut off in the", "short", "The last of them.")
    with OpenAIServer(Act(texts, finish=("stop", "length", "stop", "stop"))) as server:
        reply = on(server).write(ASK, Text, n=4)
        assert [value.text for value in reply.values] == ["The first of them.", "The last of them."]
        assert server.asked[0]["n"] == 4


def test_a_server_that_gives_one_candidate_is_asked_for_each_with_another_seed() -> None:
    with OllamaServer(then=Act("A text that is long enough.")) as server:
        reply = on(server).write(ASK, Text, n=3, seed=7)
        assert len(reply.values) == 3
        assert len({body["options"]["seed"] for body in server.asked}) == 3
        assert reply.usage.calls == 3


def test_a_text_without_an_opening_loses_its_thoughts() -> None:
    with OpenAIServer(Act("<think>secretly</think> A fine morning.")) as server:
        assert on(server).write(ASK, Text).value.text == "A fine morning."


def test_a_written_text_that_is_cut_is_truncated() -> None:
    with OpenAIServer(then=Act("A text that goes on and", finish="length")) as server:
        assert on(server).write(ASK, Text).outcome is Outcome.TRUNCATED


def test_settings_of_the_spec_hold_for_every_call() -> None:
    with OpenAIServer() as server:
        on(server, temperature=1.0, max_tokens=99).structured(ASK, Label, temperature=0.0)
        assert server.asked[0]["temperature"] == 1.0
        assert server.asked[0]["max_tokens"] == 99


# Scored options


@pytest.mark.parametrize("kind", [OpenAIServer, OllamaServer])
def test_options_are_scored_by_their_next_words(kind: Any) -> None:
    act = Act(
        "x", finish="length", logprobs={" fan": math.log(0.5), " Fan": math.log(0.1), " cr": math.log(0.2)}
    )
    with kind(act) as server:
        scores = on(server).score(ASK, ["Fan", "Critic"]).value.log_probabilities
        assert np.exp(scores) == pytest.approx([0.75, 0.25])


def test_scores_are_unavailable_where_a_server_gives_none() -> None:
    with OpenAIServer(then=Act("x")) as server:
        assert on(server).score(ASK, ["Fan", "Critic"]).outcome is Outcome.UNAVAILABLE
    fake = from_langchain(FakeListChatModel(responses=["x"]), remote=False)
    assert fake.score(ASK, ["Fan", "Critic"]).outcome is Outcome.UNAVAILABLE


def test_scores_are_invalid_where_no_option_is_likely() -> None:
    with OpenAIServer(then=Act("x", logprobs={"Perhaps": -0.1})) as server:
        assert on(server).score(ASK, ["Fan", "Critic"]).outcome is Outcome.INVALID


def scored(options: list[str], asked: dict[str, dict[str, float]], continues: bool = True) -> list[float]:
    def likely(said: str) -> list[Token]:
        return [Token(text, math.log(mass)) for text, mass in asked[said].items()]

    found = option_scores(options, likely, continues=continues)
    assert found is not None
    return list(np.exp(found))


def test_a_token_that_begins_two_options_is_followed() -> None:
    asked = {"": {" rel": 0.6, " atheist": 0.2}, " rel": {"igious": 0.9, "axed": 0.1}}
    assert scored(["religious", "relaxed", "atheist"], asked) == pytest.approx([0.675, 0.075, 0.25])


def test_an_option_that_begins_another_gets_what_does_not_go_on() -> None:
    asked = {"": {"Yes": 0.8, "No": 0.2}, "Yes": {" it": 0.25, ".": 0.75}}
    assert scored(["yes", "yes it is", "no"], asked) == pytest.approx([0.6, 0.2, 0.2])


def test_without_continuing_a_shared_token_is_shared() -> None:
    assert scored(["left", "less"], {"": {"le": 0.8, "lef": 0.2}}, continues=False) == pytest.approx(
        [0.6, 0.4]
    )


def test_options_that_differ_by_case_alone_are_kept_apart() -> None:
    assert scored(["US", "us"], {"": {"US": 0.9, "us": 0.1}}) == pytest.approx([0.9, 0.1])


def test_an_unseen_option_is_less_likely_than_all_that_was_seen() -> None:
    scores = scored(["yes", "no"], {"": {"yes": 0.9, "maybe": 0.01}})
    assert scores[1] < 0.01
    assert sum(scores) == pytest.approx(1)


# Any LangChain chat model


def test_any_langchain_chat_model_is_told_the_schema_and_read_strictly() -> None:
    seen: list[Any] = []

    class Seen(FakeListChatModel):
        def _call(self, messages: Any, *args: Any, **options: Any) -> str:
            seen.append(messages)
            return super()._call(messages, *args, **options)

    model = from_langchain(
        Seen(responses=["Well.", 'Then {"stance": "AGAINST"}']), name="custom:fake", remote=True
    )
    reply = model.structured(ASK, Label)
    assert reply.value.stance == "AGAINST"
    assert reply.usage.calls == 2
    assert model.name == "custom:fake"
    assert model.remote
    assert '"enum"' in seen[0][0].content
    assert isinstance(seen[1][-2], AIMessage)
    assert ASK[1].content in [message.content for message in seen[1]], (
        "the text is not formatted into a template"
    )


def test_many_threads_share_a_model() -> None:
    with OpenAIServer(then=Act('{"stance": "FAVOR"}', seconds=0.05)) as server:
        model = on(server)
        outcomes = at_once(32, lambda: model.structured(ASK, Label).outcome)
        assert outcomes == [Outcome.OK] * 32
        assert server.most_at_once > 8


def test_usage_adds() -> None:
    assert Usage(1, 2, 3, 0.5) + Usage(1, 1, 1, 0.5) == Usage(2, 3, 4, 1.0)


def test_a_strict_schema_requires_all_and_says_where_it_cannot() -> None:
    class Inner(BaseModel):
        default: str = "x"  # a field of this name is not a default

    class Outer(BaseModel):
        parts: list[Inner] = Field(default_factory=list, max_length=3)
        kind: Literal["a"] = "a"

    class Free(BaseModel):
        by_name: dict[str, str]

    strict = strict_schema(Outer)
    assert strict["strict"] is True
    assert strict["schema"]["required"] == ["parts", "kind"]
    assert strict["schema"]["additionalProperties"] is False
    assert list(strict["schema"]["$defs"]["Inner"]["properties"]) == ["default"]
    assert strict_schema(Free)["strict"] is False
