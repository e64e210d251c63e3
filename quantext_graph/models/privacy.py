"""What keeps private text on this machine: addresses, proxies, tracing, logs.

Every client that carries record text is built here. To a loopback address it goes with no proxy and
follows no redirect, since either could carry the text away.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from quantext_graph.spec.errors import QuantextError

_TRACING = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGSMITH_OTEL_ENABLED",
)
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
