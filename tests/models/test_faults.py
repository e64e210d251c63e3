"""What model servers do wrong, one test each: the outcome, the calls it costs, and what a person reads."""

import json
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel
from servers import Act, OllamaServer, OpenAIServer
from threads import at_once

from quantext_graph.models import throttle
from quantext_graph.models.chat_model import (
    ChatModel,
    ModelError,
    ModelUnavailable,
    Outcome,
    Reply,
    chat_model,
)
from quantext_graph.spec.models import Limits, Models, ModelSpec

SECRET = "zanzibar-7731"
ASK = [HumanMessage(f"Which stance? {SECRET} " + '{braces} {"json": 1}')]
GOOD = Act('{"stance": "FAVOR"}')


class Label(BaseModel):
    stance: Literal["FAVOR", "AGAINST"]


class Text(BaseModel):
    text: str


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backoff in hundredths, so that what takes minutes in life takes none here."""
    monkeypatch.setattr(throttle, "_LONGEST_DELAY", 0.02)


@pytest.fixture(params=["openai", "ollama"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


Opened = tuple[ChatModel, Any]


@pytest.fixture
def opened(kind: str) -> Iterator[Any]:
    """Opens a model on a server of the kind, which goes through the given acts."""
    closing: list[Any] = []

    def opening(*acts: Any, timeout: float = 5.0, limits: Limits | None = None, **options: Any) -> Opened:
        server = (OpenAIServer if kind == "openai" else OllamaServer)(*acts, **options)
        spec = ModelSpec(model=f"{kind}:tiny", base_url=server.url, timeout=timeout)
        model = chat_model(spec, Models(), limits)
        closing.extend([model.close, server.stop])
        return model, server

    yield opening
    for close in closing:
        close()


def label(model: ChatModel, **options: Any) -> Reply[Label]:
    reply = model.structured(ASK, Label, **options)
    assert bool(reply.values) == (reply.outcome is Outcome.OK)
    assert SECRET not in reply.reason
    return reply


READABLE = [
    '{"stance": "FAVOR"}',
    'Sure! Here it is:\n```json\n{"stance": "FAVOR"}\n```\nAnything else?',
    '<think>It is {"stance": "AGAINST"}? No.</think>{"stance": "FAVOR"}',
    'Hm, {"stance": "AGAINST"} at first.</think>\n{"stance": "FAVOR"}',
    'In {braces} I say {"stance": "FAVOR"}.',
    '{"stance": "FAVOR"} {"stance": "FAVOR"}',
]


@pytest.mark.parametrize("text", READABLE)
def test_an_object_is_found_among_fences_prose_and_thoughts(opened: Any, text: str) -> None:
    model, server = opened(Act(text))
    assert label(model).value == Label(stance="FAVOR")
    assert len(server.asked) == 1


UNREADABLE = [
    f'{{"stance": "{SECRET}"}}',  # not in the enum
    f'{{"{SECRET}": "FAVOR"}}',
    f"I think the writer of {SECRET} is in favour.",
    '{"stance": "FAVOR"',
    '{"stance": "FAVOR"} or {"stance": "AGAINST"}',
    '<think>{"stance": "FAVOR"}',
    '["FAVOR"]',
    "",
    "  \n",
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_does_not_validate_is_invalid_and_asked_again_once(opened: Any, text: str) -> None:
    model, server = opened(then=Act(text))
    reply = label(model, seed=1)
    assert reply.outcome is Outcome.INVALID
    assert reply.usage.calls == len(server.asked) == 2
    first, second = (json.dumps(asked) for asked in server.asked)
    assert first != second, "the second request has another seed"


def test_the_mistake_goes_back_to_the_model_with_another_seed(opened: Any, kind: str) -> None:
    model, server = opened(Act('{"stance": "MAYBE"}'), GOOD)
    reply = label(model, seed=3)
    assert reply.value.stance == "FAVOR"
    assert reply.usage.calls == 2
    first, second = server.asked
    assert second["messages"][: len(first["messages"])] == first["messages"], "the cached prefix stays"
    assert "'FAVOR' or 'AGAINST'" in second["messages"][-1]["content"]
    seeds = [body.get("seed") or body.get("options", {}).get("seed") for body in server.asked]
    assert seeds[0] == 3
    assert seeds[1] != 3


def test_a_reply_cut_at_its_limit_is_truncated_though_it_parses(opened: Any) -> None:
    model, _ = opened(then=Act('{"stance": "FAVOR"}', finish="length"))
    reply = label(model, repairs=0)
    assert reply.outcome is Outcome.TRUNCATED
    assert "token limit" in reply.reason


def test_a_reply_without_a_finish_reason_is_cut_where_it_fills_its_limit(opened: Any) -> None:
    model, _ = opened(
        Act(GOOD.text, finish=None, tokens=(9, 512)), Act(GOOD.text, finish=None, tokens=(9, 9))
    )
    assert label(model, repairs=0).outcome is Outcome.TRUNCATED
    assert label(model, repairs=0).outcome is Outcome.OK


def test_every_request_has_a_limit_and_a_schema(opened: Any, kind: str) -> None:
    model, server = opened()
    label(model, max_tokens=77, temperature=0.0)
    body = server.asked[0]
    if kind == "openai":
        assert body["max_tokens"] == 77
        schema = body["response_format"]["json_schema"]["schema"]
    else:
        assert body["options"]["num_predict"] == 77
        assert body["options"]["num_ctx"] == model.context
        schema = body["format"]
    assert schema["properties"]["stance"]["enum"] == ["FAVOR", "AGAINST"]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_fault_that_passes_is_waited_out(opened: Any, status: int) -> None:
    model, server = opened(*[Act(status=status, error={"error": {"message": SECRET}})] * 3)
    reply = label(model)
    assert reply.outcome is Outcome.OK
    assert reply.usage.calls == len(server.asked) == 4


def test_retry_after_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    pause = throttle.Throttle.pause
    monkeypatch.setattr(throttle.Throttle, "pause", lambda self, s: (waits.append(s), pause(self, s))[1])
    with OpenAIServer(Act(status=429, headers={"Retry-After": "0.6"})) as server:
        model = _model(server)
        began = time.monotonic()
        assert label(model).outcome is Outcome.OK
        assert time.monotonic() - began >= 0.6
    assert waits == [0.6]


def test_a_connection_reset_in_mid_reply_is_tried_again(opened: Any) -> None:
    model, server = opened(Act(GOOD.text, reset=True))
    assert label(model).outcome is Outcome.OK
    assert len(server.asked) == 2


def test_silence_ends_at_the_timeout(opened: Any) -> None:
    model, server = opened(Act(GOOD.text, seconds=1.5), timeout=0.3)
    assert label(model).outcome is Outcome.OK
    assert len(server.asked) == 2, "the first call was given up before its answer came"


def test_a_slow_drip_ends_at_the_timeout_too(opened: Any) -> None:
    model, server = opened(Act(GOOD.text, drip=0.02), timeout=0.5)
    assert label(model).outcome is Outcome.OK
    assert len(server.asked) == 2, "the first call was given up in the midst of its answer"


@pytest.mark.parametrize("body", [b"<html>bad gateway</html>", b"", b"{", b'{"choices": null}', b"[]"])
def test_an_answer_that_is_none_is_never_used(opened: Any, body: bytes) -> None:
    model, server = opened(then=Act(body=body))
    reply = label(model)
    assert reply.outcome in (Outcome.UNAVAILABLE, Outcome.INVALID)
    assert len(server.asked) <= 5


def test_a_request_that_always_fails_is_given_up_and_others_go_on(opened: Any) -> None:
    poison = Act(status=500)
    model, _ = opened(GOOD, *[poison] * 5)
    assert label(model).outcome is Outcome.OK
    reply = label(model)
    assert reply.outcome is Outcome.UNAVAILABLE
    assert "500" in reply.reason
    assert reply.usage.calls == 5
    assert label(model).outcome is Outcome.OK


@pytest.mark.parametrize(("status", "said"), [(404, "not there"), (401, "no access"), (403, "no access")])
def test_what_cannot_pass_stops_the_run_at_once(opened: Any, status: int, said: str) -> None:
    model, server = opened(then=Act(status=status, error={"error": {"message": SECRET}}))
    with pytest.raises(ModelError, match=said) as caught:
        label(model)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)
    assert len(server.asked) == 1


def test_no_quota_left_stops_the_run() -> None:
    with OpenAIServer(then=Act(status=429, error={"error": {"code": "insufficient_quota"}})) as server:
        with pytest.raises(ModelError, match="quota"):
            label(_model(server))
        assert len(server.asked) == 1


REFUSALS = [
    Act("", message={"refusal": f"I cannot help with {SECRET}"}),
    Act("", finish="content_filter"),
    Act(status=400, error={"error": {"code": "content_filter", "message": SECRET}}),
]


@pytest.mark.parametrize("act", REFUSALS)
def test_a_refusal_is_one_and_is_not_asked_again(act: Act) -> None:
    with OpenAIServer(then=act) as server:
        assert label(_model(server)).outcome is Outcome.REFUSED
        assert len(server.asked) == 1


def test_a_prompt_that_does_not_fit_is_said_so() -> None:
    error = {
        "error": {"code": 400, "type": "exceed_context_size_error", "message": "exceeds the context size"}
    }
    with OpenAIServer(then=Act(status=400, error=error)) as server:
        reply = label(_model(server))
        assert reply.outcome is Outcome.INVALID
        assert "context window" in reply.reason
        assert len(server.asked) == 1


def test_a_prompt_that_ollama_would_cut_in_silence_is_invalid() -> None:
    with OllamaServer(then=Act(GOOD.text, tokens=(512, 5))) as server:
        model = chat_model(ModelSpec(model="ollama:tiny", base_url=server.url, context=512), Models())
        assert label(model).outcome is Outcome.INVALID


def test_a_request_that_is_rejected_stops_the_run_at_first_and_is_invalid_later() -> None:
    rejection = Act(status=400, error={"error": {"message": f"bad {SECRET}"}})
    with OpenAIServer(rejection, GOOD, rejection) as server:
        model = _model(server)
        with pytest.raises(ModelError, match="rejects") as caught:
            label(model)
        assert SECRET not in str(caught.value)
        assert label(model).outcome is Outcome.OK
        assert label(model).outcome is Outcome.INVALID


def test_a_server_that_takes_no_schema_is_told_it_in_words() -> None:
    no = Act(status=400, error={"error": {"message": "response_format json_schema is not supported"}})
    with OpenAIServer(no) as server:
        model = _model(server)
        assert label(model).outcome is Outcome.OK
        assert label(model).outcome is Outcome.OK
        assert len(server.asked) == 3, "it is found out once"
        assert "response_format" not in server.asked[-1]
        assert '"enum"' in server.asked[-1]["messages"][0]["content"]


def test_lone_surrogates_are_this_records_trouble_only(opened: Any) -> None:
    model, _ = opened()
    reply = model.structured([HumanMessage("a \ud800 b")], Label)
    assert reply.outcome in (Outcome.OK, Outcome.INVALID)
    assert label(model).outcome is Outcome.OK


def test_an_outage_pauses_all_calls_with_one_probe_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """A second of 503 while eight threads ask: every call comes out, and few requests hit the server."""
    up_at = time.monotonic() + 1.0

    def act(_: dict[str, Any]) -> Act:
        return GOOD if time.monotonic() > up_at else Act(status=503)

    with OpenAIServer(then=act) as server, caplog.at_level(logging.WARNING):
        model = _model(server)
        replies = at_once(8, lambda: label(model))
        assert [reply.outcome for reply in replies] == [Outcome.OK] * 8
        assert len(server.asked) < 130
        assert any("waiting for it" in line for line in caplog.messages)
        assert any("answers again" in line for line in caplog.messages)
        assert SECRET not in caplog.text


def test_an_outage_without_end_stops_the_run_and_says_how_to_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "OUTAGE_SECONDS", 0.3)
    with OpenAIServer(GOOD) as server:
        model = _model(server)
        assert label(model).outcome is Outcome.OK
    with pytest.raises(ModelUnavailable, match="resume"):
        label(model)


def test_a_server_that_comes_back_at_the_same_address_is_used_again() -> None:
    first = OpenAIServer()
    model = _model(first)
    assert label(model).outcome is Outcome.OK
    first.stop()
    back = threading.Timer(0.4, lambda: second.append(OpenAIServer(port=first.port)))
    second: list[OpenAIServer] = []
    back.start()
    assert label(model).outcome is Outcome.OK
    second[0].stop()


def test_closing_ends_calls_that_wait() -> None:
    with OpenAIServer(then=Act(status=503, headers={"Retry-After": "30"})) as server:
        model = _model(server)
        threading.Timer(0.3, model.close).start()
        began = time.monotonic()
        with pytest.raises(ModelUnavailable, match="closed"):
            label(model)
        assert time.monotonic() - began < 30, "the server asked to wait so long"


def test_several_addresses_are_balanced_and_a_failing_one_is_left_out() -> None:
    with OpenAIServer() as one, OpenAIServer() as two:
        model = chat_model(ModelSpec(model="openai:tiny", base_url=(one.url, two.url)), Models())
        for _ in range(20):
            label(model)
        assert len(one.asked) == len(two.asked) == 10
        one.stop()
        for _ in range(20):
            assert label(model).outcome is Outcome.OK
        assert len(two.asked) == 30


def test_an_address_that_is_back_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = OpenAIServer(), OpenAIServer()
    model = chat_model(ModelSpec(model="openai:tiny", base_url=(one.url, two.url)), Models())
    label(model)
    one.stop()
    for _ in range(10):
        assert label(model).outcome is Outcome.OK
    with OpenAIServer(port=one.port) as back:
        time.sleep(0.2)  # it is left out for 0.08 s, here
        for _ in range(10):
            assert label(model).outcome is Outcome.OK
        assert len(back.asked) >= 4
    two.stop()


def test_concurrency_falls_when_the_server_asks_to_slow_down() -> None:
    with OpenAIServer(*[Act(status=429)] * 4, then=Act(GOOD.text, seconds=0.05)) as server:
        model = _model(server, limits=Limits(concurrency=8))
        _many(model, 8)
        server.most_at_once = 0
        _many(model, 8)
        assert server.most_at_once <= 7


def test_requests_per_minute_are_kept() -> None:
    with OpenAIServer() as server:
        model = _model(server, limits=Limits(requests_per_minute=600))  # one in 0.1 s
        began = time.monotonic()
        _many(model, 6)
        assert time.monotonic() - began >= 0.5


def test_tokens_per_minute_are_kept_by_what_was_used() -> None:
    with OpenAIServer(then=Act(GOOD.text, tokens=(90, 10))) as server:
        model = _model(server, limits=Limits(tokens_per_minute=60_000))  # 100 tokens in 0.1 s
        began = time.monotonic()
        for _ in range(6):
            label(model, max_tokens=10_000)
        took = time.monotonic() - began
        assert took >= 0.5
        assert took < 5 * 10.0, "10,000 tokens were allowed each time, which take 10 s; 100 were used"


def test_usage_counts_retries_and_tokens(opened: Any) -> None:
    model, _ = opened(Act(status=500), Act("nonsense", tokens=(10, 5)), Act(GOOD.text, tokens=(20, 7)))
    usage = label(model).usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (3, 30, 12)
    assert usage.seconds > 0


def test_a_tenth_of_faulty_replies_costs_few_calls() -> None:
    faults = [
        Act("prose"),
        Act("", finish="stop"),
        Act(status=500),
        Act(status=429),
        Act(GOOD.text, reset=True),
        Act('{"stance": "X"}'),
    ]
    acts = [faults[(at // 10) % len(faults)] if at % 10 == 0 else GOOD for at in range(300)]
    with OpenAIServer(*acts) as server:
        model = _model(server)
        assert all(label(model).outcome is Outcome.OK for _ in range(200))
        assert len(server.asked) < 1.2 * 200


def _model(server: OpenAIServer, limits: Limits | None = None) -> ChatModel:
    return chat_model(ModelSpec(model="openai:tiny", base_url=server.url, timeout=5.0), Models(), limits)


def _many(model: ChatModel, count: int) -> None:
    assert {reply.outcome for reply in at_once(count, lambda: label(model))} == {Outcome.OK}
