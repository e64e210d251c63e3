"""One address of a model, asked through its LangChain client: OpenAI-compatible, Ollama, or any other.

Clients are called at `_generate`, the method that every LangChain chat model must have. What stands
above it (callbacks, tracers, global debug printing, the LLM cache whose keys forget temperature and
seed, the clients' own retries) never sees a record.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import ollama
import openai
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from langsmith.run_helpers import tracing_context
from pydantic import BaseModel, SecretStr

from quantext_graph.guard import ollama_client_options, openai_http_client
from quantext_graph.replies import Candidate, Token


@dataclass(frozen=True)
class Request:
    """What is asked. `opening` is how the reply must begin; `likely` how many alternatives for its
    first token are wanted."""

    messages: tuple[BaseMessage, ...] = field(repr=False)
    max_tokens: int
    schema: type[BaseModel] | None = None
    opening: str = field(default="", repr=False)
    temperature: float | None = None
    min_p: float | None = None
    stop: tuple[str, ...] = ()
    n: int = 1
    seed: int | None = None
    likely: int = 0


@dataclass(frozen=True)
class Answer:
    """Candidates and what they cost."""

    candidates: tuple[Candidate, ...]
    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 1

    def __add__(self, other: Answer) -> Answer:
        return Answer(
            self.candidates + other.candidates,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.calls + other.calls,
        )


class Endpoint(Protocol):
    """One address of a model. `prefills`: it continues an assistant turn. `likely`: how many
    alternatives for a token it can name. `context`: tokens of its window."""

    address: str
    prefills: bool
    likely: int
    context: int | None

    def ask(self, request: Request) -> Answer: ...

    def count_tokens(self, text: str) -> int | None: ...

    def close(self) -> None: ...


class OpenAIEndpoint:
    """An OpenAI-compatible address. `server` is what it says it is (`owned_by`), "" where unknown."""

    def __init__(
        self,
        model: str,
        address: str,
        *,
        key: str,
        timeout: float,
        loopback: bool,
        server: str = "",
        context: int | None = None,
        batch: int | None = None,
    ) -> None:
        self.address, self.context = address, context
        self._model, self._server, self._key, self._batch = model, server, key, batch
        self._local = server in ("llamacpp", "vllm", "sglang")
        self.prefills = self._local
        self.likely = 200 if server == "llamacpp" else 20
        self._bound = True  # the server takes a schema, until it says otherwise
        self._http = openai_http_client(loopback=loopback, timeout=timeout)
        self._chat = ChatOpenAI(
            model=model,
            base_url=address,
            api_key=SecretStr(key),
            http_client=self._http,
            timeout=timeout,
            max_retries=0,
            cache=False,
            use_responses_api=False,
        )

    def ask(self, request: Request) -> Answer:
        batch = self._batch or request.n
        answer = self._ask(replace(request, n=min(batch, request.n)))
        while len(answer.candidates) < request.n and self._batch:
            rest = min(batch, request.n - len(answer.candidates))
            answer += self._ask(replace(request, n=rest, seed=_next_seed(request, len(answer.candidates))))
        return answer

    def _ask(self, request: Request) -> Answer:
        if request.schema is not None and self._bound:
            try:
                return self._send(request)
            except openai.BadRequestError as error:
                if not _about_schema(error):
                    raise
                self._bound = False
        return self._send(request)

    def _send(self, request: Request) -> Answer:
        messages = request.messages
        if request.schema is not None and not self._bound:
            messages = with_schema(messages, request.schema)
        if request.opening:
            messages = _begun(messages, request.opening, self.prefills)
        result = _generate(self._chat, messages, request.stop, **self._options(request))
        return _answer(result, request)

    def _options(self, request: Request) -> dict[str, Any]:
        # Limits and schema go beside the client's own parameters: it would rename the limit to one that
        # older servers do not know, and parse the reply itself, raising on what is cut or malformed.
        extra: dict[str, Any] = {}
        options: dict[str, Any] = {"extra_body": extra}
        if self._server == "openai":
            options["max_tokens"] = request.max_tokens
        else:
            extra["max_tokens"] = request.max_tokens
        if request.schema is not None and self._bound:
            extra["response_format"] = {"type": "json_schema", "json_schema": strict_schema(request.schema)}
        if request.min_p is not None and self._local:
            extra["min_p"] = request.min_p
        if request.opening and self._server in ("vllm", "sglang"):
            extra |= {"continue_final_message": True, "add_generation_prompt": False}
        if request.likely:
            options |= {"logprobs": True, "top_logprobs": min(request.likely, self.likely)}
        wanted = {
            "temperature": request.temperature,
            "seed": request.seed,
            "n": request.n if request.n > 1 else None,
        }
        return options | {name: value for name, value in wanted.items() if value is not None}

    def count_tokens(self, text: str) -> int | None:
        root = self.address.removesuffix("/").removesuffix("/v1")
        if self._server not in ("llamacpp", "vllm"):
            return None
        body = {"content": text} if self._server == "llamacpp" else {"model": self._model, "prompt": text}
        try:
            reply = self._http.post(
                f"{root}/tokenize", json=body, headers={"Authorization": f"Bearer {self._key}"}
            )
            found = reply.json() if reply.status_code == 200 else {}
        except (OSError, ValueError, RuntimeError):
            return None
        count = found.get("count", len(found["tokens"]) if "tokens" in found else None)
        return int(count) if count is not None else None

    def close(self) -> None:
        self._http.close()


class OllamaEndpoint:
    """An Ollama server. It cuts a prompt that exceeds `num_ctx` in silence, so the window is always said."""

    prefills = True
    likely = 20

    def __init__(self, model: str, address: str, *, timeout: float, loopback: bool, context: int) -> None:
        self.address, self.context = address, context
        self._chat = ChatOllama(
            model=model,
            base_url=address,
            cache=False,
            sync_client_kwargs=ollama_client_options(loopback=loopback, timeout=timeout),
        )

    def ask(self, request: Request) -> Answer:
        answer = self._ask(request)
        for index in range(1, request.n):
            answer += self._ask(replace(request, seed=_next_seed(request, index)))
        return answer

    def _ask(self, request: Request) -> Answer:
        wanted = {
            "num_ctx": self.context,
            "num_predict": request.max_tokens,
            "temperature": request.temperature,
            "min_p": request.min_p,
            "seed": request.seed,
            "stop": list(request.stop) or None,
        }
        options: dict[str, Any] = {
            "stream": False,
            "options": {name: value for name, value in wanted.items() if value is not None},
        }
        if request.schema is not None:
            options["format"] = request.schema.model_json_schema()
        if request.likely:
            options |= {"logprobs": True, "top_logprobs": request.likely}
        messages = request.messages
        if request.opening:
            messages = (*messages, AIMessage(request.opening))
        answer = _answer(_generate(self._chat, messages, (), **options), request)
        if self.context is not None and answer.input_tokens >= self.context - 1:
            raise ollama.ResponseError("prompt exceeds the context length", 413)
        return answer

    def count_tokens(self, text: str) -> int | None:  # noqa: ARG002
        return None

    def close(self) -> None:
        self._chat._client.close()


class LangChainEndpoint:
    """Any other LangChain chat model. `client` gives it for a temperature and a token limit, which
    providers take under different names at call time but alike when a model is made."""

    prefills = False
    likely = 0

    def __init__(
        self,
        client: Callable[[float | None, int], BaseChatModel],
        *,
        address: str,
        context: int | None = None,
    ) -> None:
        self.address, self.context, self._client = address, context, client

    def ask(self, request: Request) -> Answer:
        messages = request.messages
        if request.schema is not None:
            messages = with_schema(messages, request.schema)
        if request.opening:
            messages = _begun(messages, request.opening, prefills=False)
        client = self._client(request.temperature, request.max_tokens)
        answer = _answer(_generate(client, messages, request.stop), request)
        for _ in range(1, request.n):
            answer += _answer(_generate(client, messages, request.stop), request)
        return answer

    def count_tokens(self, text: str) -> int | None:  # noqa: ARG002
        return None

    def close(self) -> None:
        pass


def _generate(
    model: BaseChatModel, messages: Sequence[BaseMessage], stop: Sequence[str], **options: Any
) -> ChatResult:
    with tracing_context(enabled=False):
        return model._generate(list(messages), stop=list(stop) or None, **options)


def _answer(result: ChatResult, request: Request) -> Answer:
    candidates = tuple(_candidate(generation) for generation in result.generations)
    used = (result.llm_output or {}).get("token_usage") or {}
    message = result.generations[0].message if result.generations else None
    metadata = (message.usage_metadata if isinstance(message, AIMessage) else None) or {}
    given = int(used.get("prompt_tokens") or metadata.get("input_tokens") or 0)
    written = int(used.get("completion_tokens") or metadata.get("output_tokens") or 0)
    if len(candidates) == 1 and not candidates[0].finish:
        cut = written >= request.max_tokens
        candidates = (replace(candidates[0], finish="length" if cut else "stop"),)
    return Answer(candidates, given, written)


_FINISHES = {
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "end_turn": "stop",
    "eos": "stop",
    "safety": "refusal",
    "prohibited_content": "refusal",
    "content_filter": "refusal",
}


def _candidate(generation: ChatGeneration) -> Candidate:
    message = generation.message
    info = {**message.response_metadata, **(generation.generation_info or {})}
    said = info.get("finish_reason") or info.get("done_reason") or info.get("stop_reason") or ""
    finish = _FINISHES.get(str(said).lower(), str(said).lower())
    if message.additional_kwargs.get("refusal"):
        finish = "refusal"
    if "done" in info and not info["done"]:
        finish = "length"  # an Ollama stream that broke off
    return Candidate(message.text, finish, _likely(info.get("logprobs")))


def _likely(found: Any) -> tuple[Token, ...]:
    """Alternatives for the first token, as OpenAI ({"content": [...]}) and Ollama ([...]) give them."""
    positions = found.get("content") if isinstance(found, dict) else found
    if not positions:
        return ()
    top = positions[0].get("top_logprobs") or ()
    return tuple(
        Token(item["token"], float(item["logprob"])) for item in top if math.isfinite(float(item["logprob"]))
    )


def _begun(messages: Sequence[BaseMessage], opening: str, prefills: bool) -> tuple[BaseMessage, ...]:
    if prefills:
        return (*messages, AIMessage(opening))
    words = f"Begin the reply with exactly these words, and go on from there: {opening}"
    last = messages[-1]
    if isinstance(last, HumanMessage) and isinstance(last.content, str):
        return (*messages[:-1], HumanMessage(f"{last.content}\n\n{words}"))
    return (*messages, HumanMessage(words))


def with_schema(messages: Sequence[BaseMessage], output: type[BaseModel]) -> tuple[BaseMessage, ...]:
    """`messages` with the schema said in the system turn, for models that no schema can be bound to."""
    words = "Reply with one JSON object that follows this JSON schema, and nothing else: " + json.dumps(
        output.model_json_schema()
    )
    first = messages[0]
    if isinstance(first, SystemMessage) and isinstance(first.content, str):
        return (SystemMessage(f"{first.content}\n\n{words}"), *messages[1:])
    return (SystemMessage(words), *messages)


def strict_schema(output: type[BaseModel]) -> dict[str, Any]:
    """`output` as OpenAI's strict mode wants it: all properties required, none added. Objects with
    free keys cannot be said that way, so a schema that has one is not strict."""
    schema = output.model_json_schema()
    strict = _tighten(schema)
    return {"name": output.__name__, "schema": schema, "strict": strict}


def _tighten(node: Any) -> bool:
    if isinstance(node, list):
        parts = [_tighten(item) for item in node]
        return all(parts)
    if not isinstance(node, dict):
        return True
    parts = [_tighten(value) for value in node.values()]
    if node.get("type") == "object":
        if "properties" not in node:
            return False
        node["required"] = list(node["properties"])
        node["additionalProperties"] = False
    node.pop("default", None)
    return all(parts)


def _next_seed(request: Request, index: int) -> int | None:
    return None if request.seed is None else request.seed + index


def _about_schema(error: openai.BadRequestError) -> bool:
    said = str(error.body).lower()
    return any(word in said for word in ("response_format", "json_schema", "schema", "grammar", "guided"))
