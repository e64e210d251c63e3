"""From a model's name in the spec to the addresses that serve it, past the privacy guard.

The convention is LangChain's `provider:model`: `embedded:` (llama.cpp in this process), `ollama:`,
`openai:` (any OpenAI-compatible address), those of other packages, and every provider that LangChain knows.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import httpx
from langchain.chat_models import init_chat_model
from langchain_core.language_models.chat_models import BaseChatModel

from quantext_graph.models.endpoints import Endpoint, LangChainEndpoint, OllamaEndpoint, OpenAIEndpoint
from quantext_graph.models.errors import ModelError, ModelUnavailable
from quantext_graph.models.http_clients import look
from quantext_graph.models.llamacpp_server import EmbeddedServer
from quantext_graph.models.privacy import is_loopback, refuse_remote
from quantext_graph.models.providers import PROVIDERS, Connection
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import Models, ModelSpec

OLLAMA_ADDRESS = "http://127.0.0.1:11434"
OPENAI_ADDRESS = "https://api.openai.com/v1"
OLLAMA_CONTEXT = 8192

_LOCAL_SECONDS = 600.0  # a call may wait for a slot, and a laptop is slow
_REMOTE_SECONDS = 120.0
_LOOK_SECONDS = 5.0


def connect(reference: ModelSpec, models: Models) -> Connection:
    """The addresses of `reference`, each asked whether it is there where that costs nothing.

    Raises:
        RemoteModelRefused, ModelError, ModelUnavailable, ModelFileError, SpecError: each one line.
    """
    provider, name = reference.provider, reference.name
    if not name:
        raise ModelError(
            f"models: {reference.model!r} is not provider:model; write for example `ollama:llama3.1:8b` or "
            "`embedded:qwen2.5-coder-1.5b`"
        )
    if PROVIDERS.owns(provider):
        return PROVIDERS.find(provider)(reference, name, models)
    if provider in PROVIDERS.names():
        return _theirs(provider, reference, name, models)
    return _langchain(reference, models)


def _theirs(provider: str, reference: ModelSpec, name: str, models: Models) -> Connection:
    """By another package, which is believed that a model is on this machine only where its addresses are."""
    try:
        found = PROVIDERS.find(provider)(reference, name, models)
    except QuantextError:
        raise
    except Exception as error:  # each has its own way to fail, and its words may quote a key
        raise ModelError(
            f"{reference.model}: its provider failed ({type(error).__name__}); check its settings"
        ) from None
    away = [e.address for e in found.endpoints if "://" in e.address and not is_loopback(e.address)]
    remote = found.remote or bool(away)
    if remote and not models.allow_remote:
        for endpoint in found.endpoints:
            endpoint.close()
        if found.close is not None:
            found.close()
        refuse_remote(reference.model, away[0] if away else "its provider", allow_remote=False)
    return replace(found, remote=remote)


def connect_embedded(reference: ModelSpec, name: str, models: Models) -> Connection:  # noqa: ARG001
    """A GGUF model in this process, by llama.cpp."""
    server = EmbeddedServer.shared(name, context=reference.context)
    endpoint = OpenAIEndpoint(
        server.path.name,
        f"{server.address}/v1",
        key=server.key,
        timeout=reference.timeout or _LOCAL_SECONDS,
        loopback=True,
        server="llamacpp",
        context=server.context,
        batch=server.slots,
    )
    return Connection((endpoint,), False, server.release)


def connect_ollama(reference: ModelSpec, name: str, models: Models) -> Connection:
    """A model of Ollama, at one address or several."""
    endpoints: list[Endpoint] = []
    addresses = _addresses(reference.base_url, None, OLLAMA_ADDRESS)
    remote = _guard(reference, addresses, models)
    for address, found in _look(reference.model, addresses, "/api/tags", {}):
        if found is not None:
            known = [str(item.get("name")) for item in found.get("models") or ()]
            if name not in known and f"{name}:latest" not in known:
                raise ModelError(_missing(reference.model, name, known, address, f"`ollama pull {name}`"))
        local = is_loopback(address)
        endpoints.append(
            OllamaEndpoint(
                name,
                address,
                timeout=reference.timeout or (_LOCAL_SECONDS if local else _REMOTE_SECONDS),
                loopback=local,
                context=reference.context or OLLAMA_CONTEXT,
            )
        )
    return Connection(tuple(endpoints), remote)


def connect_openai(reference: ModelSpec, name: str, models: Models) -> Connection:
    """A model behind OpenAI-compatible addresses, or OpenAI's own."""
    asked = os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE") or OPENAI_ADDRESS
    addresses = _addresses(reference.base_url, models.base_url, asked)
    remote = _guard(reference, addresses, models)
    key = _key(reference, addresses)
    headers = {"Authorization": f"Bearer {key}"}
    seen: Sequence[tuple[str, dict[str, Any] | None]]
    if addresses == (OPENAI_ADDRESS,):
        seen = [(OPENAI_ADDRESS, None)]  # looking would cost a request over the net
    else:
        seen = _look(reference.model, addresses, "/models", headers)
    endpoints: list[Endpoint] = []
    for address, found in seen:
        card = _model_card(reference.model, name, address, found)
        meta = card.get("meta") or {}
        local = is_loopback(address)
        endpoints.append(
            OpenAIEndpoint(
                name,
                address,
                key=key,
                timeout=reference.timeout or (_LOCAL_SECONDS if local else _REMOTE_SECONDS),
                loopback=local,
                server="openai" if address == OPENAI_ADDRESS else str(card.get("owned_by") or ""),
                context=reference.context or card.get("max_model_len") or meta.get("n_ctx"),
            )
        )
    return Connection(tuple(endpoints), remote)


def _model_card(reference: str, name: str, address: str, found: dict[str, Any] | None) -> dict[str, Any]:
    """What the server's list says about the model; {} where it has no list."""
    cards = {str(card.get("id")): card for card in (found or {}).get("data") or () if isinstance(card, dict)}
    if not cards:
        return {}
    if name in cards:
        return dict(cards[name])
    only = next(iter(cards.values()))
    if only.get("owned_by") == "llamacpp":
        return dict(only)  # llama.cpp serves one model and takes any name
    raise ModelError(_missing(reference, name, list(cards), address, "another name"))


def _langchain(reference: ModelSpec, models: Models) -> Connection:
    """A provider that LangChain knows."""
    refuse_remote(reference.model, "its provider", allow_remote=models.allow_remote)
    given: dict[str, Any] = {"timeout": reference.timeout or _REMOTE_SECONDS, "max_retries": 0}
    if reference.base_url is not None:
        given["base_url"] = _addresses(reference.base_url, None, "")[0]
    if reference.api_key_env:
        given["api_key"] = _key(reference, ())

    @lru_cache(maxsize=16)
    def client(temperature: float | None, max_tokens: int) -> BaseChatModel:
        made = (
            {"max_tokens": max_tokens}
            if temperature is None
            else {"temperature": temperature, "max_tokens": max_tokens}
        )
        model: BaseChatModel = init_chat_model(reference.model, cache=False, **given, **made)
        return model

    try:
        client(None, 512)
    except ImportError as error:
        package = next((word for word in str(error).split() if word.startswith("langchain-")), None)
        hint = (
            f"install it with `pip install {package.strip('`.,')}`"
            if package
            else "install its LangChain package"
        )
        raise ModelError(f"{reference.model}: the provider's package is not installed; {hint}") from None
    except Exception as error:  # each provider has its own way to refuse settings, which may quote a key
        known = (
            isinstance(error, ValueError)
            and "Unable to infer" not in str(error)
            and "nsupported" not in str(error)
        )
        hint = (
            "check its settings and key"
            if known
            else f"providers: {', '.join(PROVIDERS.names())}, or one of LangChain's"
        )
        raise ModelError(f"{reference.model}: cannot be made ({type(error).__name__}); {hint}") from None
    return Connection((LangChainEndpoint(client, address="remote", context=reference.context),), True)


def _addresses(
    own: str | Sequence[str] | None, shared: str | Sequence[str] | None, default: str
) -> tuple[str, ...]:
    chosen = own or shared or default
    found = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    return tuple((url if "://" in url else f"http://{url}").rstrip("/") for url in found)


def _guard(reference: ModelSpec, addresses: Sequence[str], models: Models) -> bool:
    away = [address for address in addresses if not is_loopback(address)]
    if away:
        refuse_remote(reference.model, away[0], allow_remote=models.allow_remote)
    return bool(away)


def _key(reference: ModelSpec, addresses: Sequence[str]) -> str:
    if reference.api_key_env:
        key = os.environ.get(reference.api_key_env)
        if not key:
            raise ModelError(
                f"{reference.model}: the variable {reference.api_key_env} is not set; put the key there"
            )
        return key
    if addresses == (OPENAI_ADDRESS,):
        key = os.environ.get("OPENAI_API_KEY")
        if not key:
            raise ModelError(f"{reference.model}: the variable OPENAI_API_KEY is not set; put the key there")
        return key
    return "none"  # a key for one provider is not shown to another


def _look(
    model: str, addresses: Sequence[str], path: str, headers: dict[str, str]
) -> list[tuple[str, dict[str, Any] | None]]:
    """What each address answers at `path`; None where it has no such page or is down while another is up."""
    seen: list[tuple[str, dict[str, Any] | None]] = []
    up = False
    for address in addresses:
        try:
            reply = look(address + path, headers=headers, seconds=_LOOK_SECONDS)
            up = up or reply.status_code < 500
        except httpx.HTTPError:
            seen.append((address, None))
            continue
        if reply.status_code in (401, 403):
            raise ModelError(
                f"{model}: no access to {address} ({reply.status_code}); "
                "name the variable that holds the key in `api_key_env`"
            )
        seen.append((address, _json(reply)))
    if not up:
        raise ModelUnavailable(
            f"{model}: no server answers at {', '.join(addresses)}; "
            "start it, or set `base_url` to where it is"
        )
    return seen


def _json(reply: httpx.Response) -> dict[str, Any] | None:
    try:
        found = reply.json() if reply.status_code == 200 else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _missing(reference: str, name: str, known: Sequence[str], address: str, remedy: str) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there: {', '.join(known[:5]) or 'none'}"
    return f"{reference}: {address} has no such model; {hint}; get it with {remedy}"
