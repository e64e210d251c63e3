"""One address of a model, asked through its LangChain client: OpenAI-compatible, Ollama, or any other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import ollama
import openai
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, convert_to_openai_messages
from pydantic import SecretStr

from quantext_graph.models.http_clients import (
    ollama_client_options,
    openai_http_client,
    openai_library,
    unused_async_client,
)
from quantext_graph.models.request import (
    Answer,
    Request,
    answer_of,
    answer_of_reply,
    begun,
    generate,
    strict_schema,
    with_schema,
)


class Endpoint(Protocol):
    """One address of a model. `prefills`: it continues an assistant turn. `likely`: how many
    alternatives for a token it can name. `context`: tokens of its window. `conversational` gives a
    LangChain client for an agent that calls tools; it carries no record."""

    address: str
    prefills: bool
    likely: int
    context: int | None

    def answer(self, request: Request) -> Answer: ...

    def count_tokens(self, text: str) -> int | None: ...

    def conversational(self) -> BaseChatModel: ...

    def close(self) -> None: ...


class OpenAIEndpoint:
    """An OpenAI-compatible address. `server` is what it says it is (`owned_by`), "" where unknown.

    Records go by the client of the openai package, whose `post` sends a payload as it stands: its typed
    method walks through each key of a request and makes objects of each key of a reply, and LangChain
    turns those back into the reply's own dict, a quarter of what a call costs here.
    """

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
        self._timeout = timeout
        self._local = server in ("llamacpp", "vllm", "sglang")
        self.prefills = self._local
        self.likely = 200 if server == "llamacpp" else 20
        self._bound = True  # the server takes a schema, until it says otherwise
        self._http = openai_http_client(loopback=loopback, timeout=timeout)
        self._client = openai.OpenAI(
            base_url=address, api_key=key, http_client=self._http, timeout=timeout, max_retries=0
        )

    def answer(self, request: Request) -> Answer:
        batch = self._batch or request.n
        answer = self._once(replace(request, n=min(batch, request.n)))
        while len(answer.candidates) < request.n and self._batch:
            rest = min(batch, request.n - len(answer.candidates))
            answer += self._once(replace(request, n=rest, seed=_next_seed(request, len(answer.candidates))))
        return answer

    def _once(self, request: Request) -> Answer:
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
            messages = begun(messages, request.opening, self.prefills)
        payload = {"model": self._model, "messages": convert_to_openai_messages(messages)}
        place = f"{self.address}/chat/completions"
        reply = self._client.post(
            place, body=payload | self._body(request), cast_to=openai_library().Response
        )
        answer = answer_of_reply(reply.json(), request)
        if self._server == "llamacpp" and request.n > 1:  # it reports the tokens of one candidate only
            counts = [self.count_tokens(candidate.text) or 0 for candidate in answer.candidates]
            answer = replace(answer, output_tokens=sum(counts))
        return answer

    def _body(self, request: Request) -> dict[str, Any]:
        """What goes beside model and messages; servers not OpenAI's may know the older limit alone."""
        limit = "max_completion_tokens" if self._server == "openai" else "max_tokens"
        body: dict[str, Any] = {limit: request.max_tokens}
        if request.schema is not None and self._bound:
            body["response_format"] = {"type": "json_schema", "json_schema": strict_schema(request.schema)}
        if request.min_p is not None and self._local:
            body["min_p"] = request.min_p
        if request.opening and self._server in ("vllm", "sglang"):
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        if request.likely:
            body |= {"logprobs": True, "top_logprobs": min(request.likely, self.likely)}
        if request.n > 1:
            body["n"] = request.n
        wanted = {
            "temperature": request.temperature,
            "seed": request.seed,
            "stop": list(request.stop) or None,
        }
        return body | {name: value for name, value in wanted.items() if value is not None}

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
        except Exception:  # an estimate serves as well, whatever went wrong
            return None
        count = found.get("count", len(found["tokens"]) if "tokens" in found else None)
        return int(count) if count is not None else None

    def conversational(self) -> BaseChatModel:
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(
            model=self._model,
            base_url=self.address,
            api_key=SecretStr(self._key),
            http_client=self._http,
            http_async_client=unused_async_client(),
            timeout=self._timeout,
            cache=False,
            use_responses_api=False,
        )

    def close(self) -> None:
        self._http.close()


class OllamaEndpoint:
    """An Ollama server. It cuts a prompt that exceeds `num_ctx` in silence, so the window is always said."""

    prefills = True
    likely = 20
    context: int | None

    def __init__(self, model: str, address: str, *, timeout: float, loopback: bool, context: int) -> None:
        from langchain_ollama import ChatOllama

        self.address, self.context = address, context
        self._chat = ChatOllama(
            model=model,
            base_url=address,
            cache=False,
            **ollama_client_options(loopback=loopback, timeout=timeout),
        )

    def answer(self, request: Request) -> Answer:
        answer = self._once(request)
        for index in range(1, request.n):
            answer += self._once(replace(request, seed=_next_seed(request, index)))
        return answer

    def _once(self, request: Request) -> Answer:
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
        answer = answer_of(generate(self._chat, messages, (), **options), request)
        if self.context is not None and answer.input_tokens >= self.context - 1:
            raise ollama.ResponseError("prompt exceeds the context length", 413)
        return answer

    def count_tokens(self, text: str) -> int | None:  # noqa: ARG002
        return None

    def conversational(self) -> BaseChatModel:
        return self._chat.model_copy(update={"num_ctx": self.context})

    def close(self) -> None:
        self._chat._client.close()  # type: ignore[no-untyped-call]


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

    def answer(self, request: Request) -> Answer:
        messages = request.messages
        if request.schema is not None:
            messages = with_schema(messages, request.schema)
        if request.opening:
            messages = begun(messages, request.opening, prefills=False)
        client = self._client(request.temperature, request.max_tokens)
        answer = answer_of(generate(client, messages, request.stop), request)
        for _ in range(1, request.n):
            answer += answer_of(generate(client, messages, request.stop), request)
        return answer

    def count_tokens(self, text: str) -> int | None:  # noqa: ARG002
        return None

    def conversational(self) -> BaseChatModel:
        return self._client(None, 4096)

    def close(self) -> None:
        pass


def _next_seed(request: Request, index: int) -> int | None:
    return None if request.seed is None else request.seed + index


def _about_schema(error: openai.BadRequestError) -> bool:
    said = str(error.body).lower()
    return any(word in said for word in ("response_format", "json_schema", "schema", "grammar", "guided"))
