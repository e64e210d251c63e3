"""What keeps private text on this machine: addresses, proxies, tracing, logs.

Every client that carries record text is built here. To a loopback address it goes with no proxy and
follows no redirect, since either could carry the text away.
"""

from __future__ import annotations

import importlib
import ipaddress
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx
import openai

from quantext_graph.spec.models import QuantextError

_TRACING = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGSMITH_OTEL_ENABLED",
)
_POOLS = 16
_LOGGERS_WITH_BODIES = ("openai._base_client", "anthropic._base_client", "groq._base_client")


class RemoteModelRefused(QuantextError):
    """A model whose address is not loopback, in a spec that keeps private text on this machine."""

    public = True


def is_loopback(url: str) -> bool:
    """Whether every address that the host of `url` resolves to is a loopback address."""
    host = urlsplit(url if "//" in url else f"//{url}").hostname
    if not host:
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(str(item[4][0])).is_loopback for item in found)


def refuse_remote(model: str, address: str, *, allow_remote: bool) -> None:
    """Let a remote model pass only where the spec allows it.

    Raises:
        RemoteModelRefused: with one line that names the address and the way out.
    """
    if not allow_remote:
        raise RemoteModelRefused(
            f"{model}: private text would leave this machine (to {address}); use a model at a loopback "
            "address, or set `models.allow_remote: true`"
        )


def tracing_warning() -> str | None:
    """One line where the environment asks for tracing, which is never done for record steps."""
    asked = [name for name in _TRACING if os.environ.get(name, "").lower() in ("1", "true", "yes", "on")]
    if not asked:
        return None
    return (
        f"{', '.join(asked)} is set: calls that carry records are not traced; "
        "traces of the rest leave this machine"
    )


def keep_bodies_out_of_logs() -> None:
    """Drop the debug lines in which older client libraries log request bodies."""
    for name in _LOGGERS_WITH_BODIES:
        logger = logging.getLogger(name)
        if _above_debug not in logger.filters:
            logger.addFilter(_above_debug)


@contextmanager
def logging_as_it_is() -> Iterator[None]:
    """For the import of a package that configures everybody's log (Opacus, wordllama): undone at the end."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _above_debug(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


@lru_cache
def openai_library() -> Any:
    """The HTTP library under the openai package, which has changed it; its base class says which it is."""
    return importlib.import_module(openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])


def openai_http_client(*, loopback: bool, timeout: float) -> openai.DefaultHttpxClient:
    """The HTTP client of an OpenAI-compatible address."""
    library = openai_library()
    return openai.DefaultHttpxClient(
        **_common(library, loopback=loopback, timeout=timeout),
        **_carrying(library, loopback=loopback, timeout=timeout),
    )


def unused_async_client() -> openai.DefaultAsyncHttpxClient:
    """For a client that wants one and would else read the certificates again. It carries nothing."""
    return openai.DefaultAsyncHttpxClient(verify=_certificates(openai_library()))


def look(url: str, *, headers: dict[str, str], seconds: float) -> httpx.Response:
    """What an address says about itself. Raises `httpx.HTTPError`."""
    local = is_loopback(url)
    return httpx.get(
        url,
        headers=headers,
        timeout=seconds,
        trust_env=not local,
        follow_redirects=not local,
        verify=_certificates(httpx),
    )


def ollama_client_options(*, loopback: bool, timeout: float) -> dict[str, Any]:
    """What LangChain's Ollama classes take for their HTTP clients: the sync one carries records."""
    return {
        "client_kwargs": _common(httpx, loopback=loopback, timeout=timeout),
        "sync_client_kwargs": _carrying(httpx, loopback=loopback, timeout=timeout),
    }


def _common(library: Any, *, loopback: bool, timeout: float) -> dict[str, Any]:
    return {
        "timeout": library.Timeout(timeout, connect=min(10.0, timeout)),
        "limits": _unlimited(library),
        "follow_redirects": not loopback,
        "trust_env": not loopback,
        "verify": _certificates(library),
    }


def _carrying(library: Any, *, loopback: bool, timeout: float) -> dict[str, Any]:
    """What a client that waits for its answers has besides: a deadline, and pools, unless requests go to a
    proxy of the environment, which a client with a transport of its own would pass by."""
    options = {"event_hooks": {"response": [_deadline(library, timeout)]}}
    if loopback or not getproxies():
        options["transport"] = _pools(library)
    return options


def _unlimited(library: Any) -> Any:
    return library.Limits(max_connections=None, max_keepalive_connections=None)


def _pools(library: Any) -> Any:
    """A transport whose threads share `_POOLS` pools: one pool looks at each of its connections whenever a
    request comes or goes, and at 64 of them that is two thirds of what an HTTP call costs."""

    class Pools(library.BaseTransport):  # type: ignore[misc]
        def __init__(self) -> None:
            self._pools = [
                library.HTTPTransport(verify=_certificates(library), limits=_unlimited(library))
                for _ in range(_POOLS)
            ]

        def handle_request(self, request: Any) -> Any:
            return self._pools[threading.get_native_id() % _POOLS].handle_request(request)

        def close(self) -> None:
            for pool in self._pools:
                pool.close()

    return Pools()


@lru_cache
def _certificates(library: Any) -> Any:
    """Read once: it takes a quarter of a second, and each of a model's clients would."""
    return library.create_ssl_context()


def _deadline(library: Any, seconds: float) -> Any:
    """A hook after which a reply's body must be complete within `seconds`: read timeouts alone let a
    server that drips a byte at a time hold a worker for ever."""

    class DeadlineStream(library.SyncByteStream):  # type: ignore[misc]
        def __init__(self, response: Any) -> None:
            self._inner, self._request = response.stream, response.request
            self._end = time.monotonic() + seconds

        def __iter__(self) -> Any:
            for chunk in self._inner:
                if time.monotonic() > self._end:
                    raise library.ReadTimeout("the reply took too long", request=self._request)
                yield chunk

        def close(self) -> None:
            self._inner.close()

    def bound(response: Any) -> None:
        response.stream = DeadlineStream(response)

    return bound
