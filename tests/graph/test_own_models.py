"""An app's own models: LangChain instances in place of the spec's names, by a real socket and in-process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from obedient import ObedientServer
from pydantic import SecretStr
from releases import obedient, small_release, write_data, write_spec
from servers import Act

from quantext_graph import (
    QuantextError,
    ReleaseContext,
    Resources,
    Spec,
    build_graph,
    build_rewriter,
    load_spec,
    rewrite_tool,
)
from quantext_graph.models.embeddings import WordLlamaEmbeddings
from quantext_graph.models.privacy import RemoteModelRefused
from quantext_graph.release.run import Run

NOWHERE = "http://127.0.0.1:9/v1"
CONFIG: Any = {"configurable": {"thread_id": "1"}}
TEXT = "Case 7 is a male patient who lives with asthma"


class InProcess(BaseChatModel):
    """A model in this process, which answers as the obedient server does. It names no address."""

    server: Any

    @property
    def _llm_type(self) -> str:
        return "in-process"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> ChatResult:
        roles = {"human": "user", "ai": "assistant"}
        body = {"messages": [{"role": roles.get(m.type, m.type), "content": m.content} for m in messages]}
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage(str(self.server.next_act(body, {}).text)))]
        )


class Counting(DeterministicFakeEmbedding):
    """Embeddings that know how many texts they were given."""

    seen: int = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.seen += len(texts)
        return super().embed_documents(texts)


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[ObedientServer]:
    with obedient() as found:
        yield found


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    """A release whose own model is nowhere."""
    return small_release(tmp_path, NOWHERE, n=12)


def client(url: str, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="tiny", base_url=url, api_key=SecretStr("none"), **options)


def test_a_release_by_the_apps_own_client(server: ObedientServer, spec: Spec, tmp_path: Path) -> None:
    graph = build_graph(spec, checkpointer=InMemorySaver(), chat=client(server.url))
    where = ReleaseContext(str(tmp_path / "work"), str(tmp_path / "out"))
    asked = graph.invoke({}, CONFIG, context=where)["__interrupt__"][0].value
    assert asked["report"]["n"] == 12
    graph.invoke(Command(resume={"approve": True}), CONFIG, context=where)
    released = json.loads((tmp_path / "out" / "release.json").read_text())
    assert released["models"] == {"rewriter": "ChatOpenAI:tiny", "verifier": "ChatOpenAI:tiny"}
    assert "Written by ChatOpenAI:tiny" in (tmp_path / "out" / "README.md").read_text()
    assert len(server.asked) >= 24


def test_what_the_client_leaves_open_each_call_says(server: ObedientServer, spec: Spec) -> None:
    def sent(**settings: Any) -> tuple[set[float], set[int | None]]:
        server.asked.clear()
        with build_rewriter(spec, chat=client(server.url, **settings)) as rewriter:
            rewriter.invoke({"text": TEXT, "target": {"diagnosis": "migraine"}})
        limits = {body.get("max_completion_tokens") or body.get("max_tokens") for body in server.asked}
        return {body["temperature"] for body in server.asked}, limits

    temperatures, limits = sent()
    assert {0.0} < temperatures
    assert None not in limits  # JSON can loop on a token for ever
    assert sent(temperature=0.3, max_tokens=77) == ({0.3}, {77})


def test_a_model_in_this_process_by_its_owners_word(
    server: ObedientServer, spec: Spec, tmp_path: Path
) -> None:
    own = InProcess(server=server)
    with Run.start(spec, tmp_path / "work", chat=own, remote=False) as run:
        assert run.go().question is not None
    with build_rewriter(spec, chat=own, remote=False) as rewriter:
        found = rewriter.invoke({"text": TEXT, "target": {"diagnosis": "migraine"}})["rewrite"]
    assert found["verified"]
    told = rewrite_tool(spec, chat=own, remote=False).invoke({"text": TEXT, "target": {"gender": "female"}})
    assert told["target"] == {"gender": "female", "diagnosis": "asthma"}
    assert not any("response_format" in body for body in server.asked)


def test_each_model_has_its_own_part(server: ObedientServer, spec: Spec) -> None:
    with obedient() as judge:
        with build_rewriter(spec, chat=client(server.url), verify=client(judge.url)) as rewriter:
            rewriter.invoke({"text": TEXT, "target": {"diagnosis": "migraine"}})
        assert judge.asked_for("labels") >= 2  # the text's and the rewrite's
        assert judge.asked_for("texts") == 0
    assert server.asked_for("texts") >= 1
    assert server.asked_for("labels") == 0


def test_the_apps_own_embeddings_help_to_label(server: ObedientServer, tmp_path: Path) -> None:
    write_data(tmp_path, 12, auxiliary=60)
    spec = load_spec(write_spec(tmp_path, NOWHERE))
    own = Counting(size=8)
    with build_rewriter(spec, chat=client(server.url), embedding=own, remote=False) as rewriter:
        rewriter.invoke({"text": TEXT, "target": {"diagnosis": "migraine"}})
    assert own.seen >= 60


@pytest.mark.parametrize(
    "own",
    [
        lambda server: {"chat": InProcess(server=server)},
        lambda _: {"chat": client("https://models.example/v1")},
        lambda server: {"chat": client(server.url), "verify": client("http://192.0.2.7/v1")},
        lambda server: {"chat": client(server.url, openai_proxy="http://192.0.2.7:80")},
        lambda server: {"chat": client(server.url, http_client=httpx.Client(proxy="http://192.0.2.7:80"))},
        lambda server: {"chat": client(server.url), "remote": True},
        lambda _: {"embedding": Counting(size=8)},
    ],
    ids=["silent", "away", "judge away", "proxy", "own transport", "said", "embedding"],
)
@pytest.mark.parametrize("build", [build_graph, build_rewriter, rewrite_tool, Resources])
def test_text_does_not_leave_by_a_model_of_the_app(
    build: Any, own: Any, server: ObedientServer, spec: Spec
) -> None:
    with pytest.raises(RemoteModelRefused, match="remote=False") as caught:
        build(spec, **own(server))
    assert "\n" not in str(caught.value)
    allowed = spec.model_copy(update={"models": spec.models.model_copy(update={"allow_remote": True})})
    build(allowed, **own(server))
    assert server.asked == []


def test_neither_a_proxy_nor_a_redirect_carries_text_away(
    spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands at the loopback address may send its client elsewhere: the client stays."""
    request: Any = {"text": TEXT, "target": {"diagnosis": "migraine"}}
    with obedient() as elsewhere, obedient() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        away = Act(status=307, headers={"Location": f"{elsewhere.url}/chat/completions"})
        with obedient() as server, build_rewriter(spec, chat=client(server.url)) as rewriter:
            assert rewriter.invoke(request)["rewrite"]["verified"]
        with (
            obedient(faulty=lambda *_: away) as server,
            build_rewriter(spec, chat=client(server.url, max_retries=0)) as rewriter,
            pytest.raises(QuantextError),
        ):
            rewriter.invoke(request)
        assert len(server.asked) > 0
        assert elsewhere.asked == proxy.asked == []


def test_the_apps_own_client_stays_as_it_is(server: ObedientServer, spec: Spec) -> None:
    own = client(server.url)
    before = own.root_client
    with build_rewriter(spec, chat=own) as rewriter:
        rewriter.invoke({"text": TEXT, "target": {"diagnosis": "migraine"}})
    assert own.root_client is before
    assert own.temperature is None


def test_embeddings_of_this_package_are_local(spec: Spec) -> None:
    Resources(spec, embedding=WordLlamaEmbeddings())


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"chat": "gpt-4o"}, "chat: a str is no chat model"),
        ({"chat": ChatOpenAI}, "no chat model"),
        ({"verify": DeterministicFakeEmbedding(size=2)}, "verify: a DeterministicFakeEmbedding is no chat"),
        ({"chat": client(NOWHERE).bind(stop=["x"])}, "is no chat model"),
        ({"embedding": "wordllama"}, "embedding: a str is no embedding model"),
        ({"embedding": client(NOWHERE)}, "embedding: a ChatOpenAI is no embedding model"),
    ],
)
def test_what_is_no_model_is_refused_at_once(own: Any, said: str, spec: Spec, tmp_path: Path) -> None:
    for build in (build_graph, build_rewriter, rewrite_tool, Resources, lambda s, **o: Run(s, tmp_path, **o)):
        with pytest.raises(QuantextError, match=said) as caught:
            build(spec, **own)
        assert "\n" not in str(caught.value)


def test_models_beside_resources_would_not_be_used(spec: Spec) -> None:
    with pytest.raises(QuantextError, match="given beside `resources`"):
        build_graph(spec, resources=Resources(spec), chat=client(NOWHERE))
