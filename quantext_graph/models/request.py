"""What is asked of a model and what it answers, between our calls and a LangChain client.

LangChain's clients are called at `_generate`, the method that every chat model must have. What stands
above it (callbacks, tracers, global debug printing, the LLM cache whose keys forget temperature and
seed, the clients' own retries) never sees a record: by the public `generate` debug printing would, and no
argument turns that off.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatResult
from langsmith.run_helpers import tracing_context
from pydantic import BaseModel

from quantext_graph.models.replies import Candidate, Token


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


def generate(
    model: BaseChatModel, messages: Sequence[BaseMessage], stop: Sequence[str], **options: Any
) -> ChatResult:
    """The client's own answer, with no tracer, callback, cache or retry in between."""
    with tracing_context(enabled=False):
        return model._generate(list(messages), stop=list(stop) or None, **options)


def answer_of(result: ChatResult, request: Request) -> Answer:
    """Candidates of a LangChain client with their finish reasons folded, and the tokens it was told of."""
    candidates = []
    for generation in result.generations:
        message = generation.message
        info = {**message.response_metadata, **(generation.generation_info or {})}
        candidates.append(_candidate(message.text, info, message.additional_kwargs.get("refusal")))
    used = (result.llm_output or {}).get("token_usage") or {}
    first = result.generations[0].message if result.generations else None
    metadata: Any = (first.usage_metadata if isinstance(first, AIMessage) else None) or {}
    given = int(used.get("prompt_tokens") or metadata.get("input_tokens") or 0)
    written = int(used.get("completion_tokens") or metadata.get("output_tokens") or 0)
    return _answer(candidates, given, written, request)


def answer_of_reply(reply: Any, request: Request) -> Answer:
    """The same of what an OpenAI-compatible server replies.

    Raises:
        ValueError, KeyError, TypeError: where it is no reply of such a server.
    """
    if reply.get("error"):
        raise ValueError(reply["error"])
    candidates = []
    for choice in reply["choices"]:
        message = choice["message"]
        text = AIMessage(message.get("content") or "").text
        candidates.append(_candidate(text, choice, message.get("refusal")))
    used = reply.get("usage") or {}
    given, written = used.get("prompt_tokens") or 0, used.get("completion_tokens") or 0
    return _answer(candidates, int(given), int(written), request)


def _answer(candidates: list[Candidate], given: int, written: int, request: Request) -> Answer:
    if len(candidates) == 1 and not candidates[0].finish:
        cut = written >= request.max_tokens
        candidates = [replace(candidates[0], finish="length" if cut else "stop")]
    return Answer(tuple(candidates), given, written)


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


def _candidate(text: str, info: Mapping[str, Any], refusal: str | None) -> Candidate:
    said = info.get("finish_reason") or info.get("done_reason") or info.get("stop_reason") or ""
    finish = _FINISHES.get(str(said).lower(), str(said).lower())
    if refusal:
        finish = "refusal"
    if "done" in info and not info["done"]:
        finish = "length"  # an Ollama stream that broke off
    return Candidate(text, finish, _likely(info.get("logprobs")))


def _likely(found: Any) -> tuple[Token, ...]:
    """Alternatives for the first token, as OpenAI ({"content": [...]}) and Ollama ([...]) give them."""
    positions = found.get("content") if isinstance(found, dict) else found
    if not positions:
        return ()
    top = positions[0].get("top_logprobs") or ()
    return tuple(
        Token(item["token"], float(item["logprob"])) for item in top if math.isfinite(float(item["logprob"]))
    )


def begun(messages: Sequence[BaseMessage], opening: str, prefills: bool) -> tuple[BaseMessage, ...]:
    """`messages` with the opening begun in an assistant turn, or said where none would be continued."""
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


@lru_cache(maxsize=64)
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
    if not isinstance(node.get("default"), dict):  # a dict would be a field of that name
        node.pop("default", None)
    return all(parts)
