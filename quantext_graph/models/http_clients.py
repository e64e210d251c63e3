"""The HTTP clients that carry record text: to a loopback address with no proxy and no redirect."""

from __future__ import annotations

import importlib
import threading
import time
from functools import lru_cache
from typing import Any
from urllib.request import getproxies

import httpx
import openai

from quantext_graph.models.privacy import is_loopback

_POOLS = 16


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
