"""Faults of model servers: which can pass, which cannot, and what a person reads.

Clients raise errors of many classes whose messages may quote the request; here they become a
`Fault`, which holds a status and words of our own.
"""

from __future__ import annotations

import email.utils
import time
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from quantext_graph.spec.errors import QuantextError


class ModelError(QuantextError):
    """A model that cannot answer whatever is asked: not there, no access, wrong address."""

    public = True


class ModelUnavailable(QuantextError):
    """A model that gave no answer to anything for as long as an outage may last; the run can be resumed."""

    public = True


class Halted(ModelUnavailable):
    """A call that ended because the run was told to stop and its server does not answer."""


class Kind(Enum):
    """What a fault means for the call and for the run."""

    BUSY = auto()  # the server asks to slow down
    AWAY = auto()  # the server is down, or in front of it
    PASSING = auto()  # worth another try
    SLOW = auto()  # worth another try, and a sign that the server has too much to do
    FATAL = auto()  # the same for every request
    REFUSED = auto()  # a content filter
    UNFIT = auto()  # this record cannot be asked about: too long, or not sendable
    REJECTED = auto()  # this request is malformed for this server


@dataclass(frozen=True)
class Fault:
    """One failed request. `words` names no record text; `wait` is the server's Retry-After in seconds."""

    kind: Kind
    words: str
    wait: float | None = None


def fault_of(error: BaseException, model: str) -> Fault:
    """The fault behind a client's exception. `model` is "provider:name", for the words."""
    status = _status(error)
    if status is None:
        return _connection(error)
    code = _code(error)
    if status == 429:
        if "insufficient_quota" in code:
            return Fault(
                Kind.FATAL, f"{model}: the account has no quota left (429); add credit or use another"
            )
        return Fault(Kind.BUSY, "the server asks to slow down (429)", _retry_after(error))
    if status in (401, 403):
        return Fault(
            Kind.FATAL, f"{model}: no access ({status}); set the key in the variable that `api_key_env` names"
        )
    if status == 404:
        return Fault(Kind.FATAL, f"{model}: not there (404); check the model's name and `base_url`")
    if status in (502, 503, 504):
        return Fault(Kind.AWAY, f"the server is not ready ({status})", _retry_after(error))
    if status < 400:
        return Fault(Kind.FATAL, f"{model}: its address redirects ({status}); mend `base_url`")
    if status >= 500 or status in (408, 409, 425):
        return Fault(Kind.PASSING, f"the server fails ({status})", _retry_after(error))
    return _rejected(status, code)


_FILTERED = ("content_filter", "content filter", "content_policy", "responsible")
_TOO_LONG = (
    "context_length",
    "exceed_context",
    "context size",
    "context length",
    "context window",
    "too long",
)


def _rejected(status: int, code: str) -> Fault:
    if any(mark in code for mark in _FILTERED):
        return Fault(Kind.REFUSED, "the content filter refused")
    if status == 413 or any(mark in code for mark in _TOO_LONG):
        return Fault(Kind.UNFIT, "the prompt does not fit the context window")
    return Fault(Kind.REJECTED, f"the server rejects the request ({status})")


def _connection(error: BaseException) -> Fault:
    name = type(error).__name__
    if isinstance(error, UnicodeError) and not isinstance(error, UnicodeDecodeError):
        return Fault(Kind.UNFIT, "the text holds code points that no server takes")
    if name == "ContextOverflowError":
        return Fault(Kind.UNFIT, "the prompt does not fit the context window")
    if "Timeout" in name:
        return Fault(Kind.SLOW, "no answer in time")
    if _never_connected(error):
        return Fault(Kind.AWAY, "nothing answers at its address")
    if isinstance(error, OSError) or any(
        word in name for word in ("Connect", "Protocol", "Network", "ReadError")
    ):
        return Fault(Kind.PASSING, "the connection broke")
    return Fault(Kind.PASSING, f"the answer cannot be read ({name})")


def _never_connected(error: BaseException | None) -> bool:
    """Whether the connection was refused, which the OpenAI client says only in the cause."""
    while error is not None:
        # the ollama client says it with a bare ConnectionError
        if type(error) is ConnectionError or type(error).__name__ in (
            "ConnectError",
            "ConnectionRefusedError",
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def _status(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int) and status >= 300:
            return status
    return None


def _code(error: BaseException) -> str:
    """The server's machine words for an error, lower case; to be matched, never shown."""
    body: Any = getattr(error, "body", None)
    parts = [getattr(error, "code", None), getattr(error, "type", None)]
    if isinstance(body, dict):
        inner = body.get("error", body)
        parts += (
            [inner.get("code"), inner.get("type"), inner.get("message")]
            if isinstance(inner, dict)
            else [inner]
        )
    else:
        parts.append(getattr(error, "error", None))
    return " ".join(str(part) for part in parts if part).lower()


def _retry_after(error: BaseException) -> float | None:
    """Seconds that the server asks to wait, from `Retry-After` (seconds or a date)."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
