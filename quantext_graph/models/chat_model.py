"""Chat models of the spec, behind one door: structured calls, written texts, scored options.

Every call to a model is made here: it passes the throttle, goes to the address that has least to
do, is retried where the fault can pass, and comes back as one of five outcomes. Models that would
carry private text away are refused when they are made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel

from quantext_graph.models.delivery import Addresses, Delivery
from quantext_graph.models.embeddings import text_embedding
from quantext_graph.models.errors import Fault, Kind, ModelError, ModelUnavailable
from quantext_graph.models.option_scores import option_scores
from quantext_graph.models.privacy import RemoteModelRefused, keep_bodies_out_of_logs, tracing_warning
from quantext_graph.models.replies import (
    Candidate,
    Outcome,
    Reply,
    Scores,
    Token,
    Unreadable,
    Usage,
    read_json,
    read_text,
)
from quantext_graph.models.request import Request
from quantext_graph.models.throttle import Throttle
from quantext_graph.spec.models import Limits, Models, ModelSpec

if TYPE_CHECKING:
    from quantext_graph.models.endpoints import Endpoint

__all__ = [
    "ChatModel",
    "ModelError",
    "ModelUnavailable",
    "Outcome",
    "RemoteModelRefused",
    "Reply",
    "Scores",
    "Usage",
    "chat_model",
    "text_embedding",
    "tracing_warning",
]

T = TypeVar("T", bound=BaseModel)

_OUTCOMES = {
    Kind.BUSY: Outcome.UNAVAILABLE,
    Kind.AWAY: Outcome.UNAVAILABLE,
    Kind.PASSING: Outcome.UNAVAILABLE,
    Kind.SLOW: Outcome.UNAVAILABLE,
    Kind.REFUSED: Outcome.REFUSED,
    Kind.UNFIT: Outcome.INVALID,
    Kind.REJECTED: Outcome.INVALID,
}
_WARMER = 0.4  # a reply that ran into its limit at temperature 0 would do so again


class ChatModel:
    """One model of the spec. Safe to call from many threads.

    A temperature or a token limit in the spec holds for every call; else what the call says.
    """

    def __init__(
        self,
        name: str,
        endpoints: Sequence[Endpoint],
        *,
        remote: bool,
        limits: Limits | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        outage_seconds: float | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self.name, self.remote = name, remote
        contexts = [endpoint.context for endpoint in endpoints if endpoint.context is not None]
        self.context: int | None = min(contexts, default=None)
        self._addresses = Addresses(endpoints)
        self._throttle = Throttle(name, limits, outage_seconds=outage_seconds)
        self._delivery = Delivery(name, self._addresses, self._throttle)
        # Instructions are counted again for every record; a server that counts takes a request each.
        self._counted = lru_cache(maxsize=128)(self._addresses.first.count_tokens)
        self._temperature, self._max_tokens = temperature, max_tokens
        self._on_close = on_close
        self._closing = threading.Lock()

    def __repr__(self) -> str:
        return f"ChatModel({self.name!r}, remote={self.remote})"

    def structured(
        self,
        messages: Sequence[BaseMessage],
        output: type[T],
        *,
        temperature: float | None = None,
        max_tokens: int = 512,
        seed: int | None = None,
        repairs: int = 1,
        n: int = 1,
    ) -> Reply[T]:
        """Ask for JSON that validates as `output`; the one function for such calls.

        An invalid reply is asked for again, `repairs` times, with the mistake in the prompt and
        another seed. Texts outside the JSON object are never used.

        Raises:
            ModelError: where the model cannot answer whatever is asked (404, 401).
            ModelUnavailable: where it has answered nothing for as long as an outage may last.
        """
        request = self._request(messages, temperature, max_tokens, seed=seed, n=n, schema=output)
        return self._ask_until_valid(request, lambda candidate: read_json(candidate, output), repairs)

    def write(
        self,
        messages: Sequence[BaseMessage],
        output: type[T],
        *,
        opening: str = "",
        temperature: float | None = None,
        min_p: float | None = None,
        max_tokens: int = 256,
        stop: Sequence[str] = (),
        n: int = 1,
        seed: int | None = None,
    ) -> Reply[T]:
        """Ask for free text that begins with `opening`, validated as `output(text=...)`.

        `text` is whole, opening included. Candidates that were cut off are dropped.

        Raises:
            ModelError, ModelUnavailable: as `structured`.
        """
        opening = opening.rstrip()  # a trailing space would split the next word's token
        request = self._request(
            messages, temperature, max_tokens, seed=seed, n=n, opening=opening, min_p=min_p, stop=tuple(stop)
        )
        prefilled = self._addresses.prefills and bool(opening)
        return self._ask_until_valid(
            request, lambda candidate: read_text(candidate, output, opening, prefilled), repairs=0
        )

    def score(
        self, messages: Sequence[BaseMessage], options: Sequence[str], *, opening: str = ""
    ) -> Reply[Scores]:
        """Log-probability of each option as the next words of the reply, normalised over the options.

        UNAVAILABLE where the server gives no log-probabilities.

        Raises:
            ModelError, ModelUnavailable: as `structured`.
        """
        if not self._addresses.likely:
            return Reply(Outcome.UNAVAILABLE, reason="the server gives no log-probabilities")
        opening = opening.rstrip()
        base = self._request(messages, 0.0, 1, likely=self._addresses.likely, fixed=True)
        usage = Usage()

        def likely(said: str) -> Sequence[Token]:
            nonlocal usage
            begun = opening + said if opening else said.lstrip()
            answer, cost = self._delivery.send(replace(base, opening=begun))
            usage += cost
            if isinstance(answer, Fault):
                raise Unreadable(_OUTCOMES[answer.kind], answer.words)
            if not answer.candidates or not answer.candidates[0].likely:
                raise Unreadable(Outcome.UNAVAILABLE, "the server gives no log-probabilities")
            return answer.candidates[0].likely

        try:
            scores = option_scores(options, likely, continues=self._addresses.prefills)
        except Unreadable as failure:
            return Reply(failure.outcome, reason=failure.reason, usage=usage)
        if scores is None:
            return Reply(Outcome.INVALID, reason="no option is among the likely next words", usage=usage)
        return Reply(Outcome.OK, (Scores(log_probabilities=scores),), usage=usage)

    def count_tokens(self, text: str) -> int:
        """Tokens of `text`: exact where the server can say, else estimated on the high side."""
        exact = self._counted(text)
        return exact if exact is not None else 1 + len(text.encode("utf-8", "replace")) // 2

    def halt(self, halting: bool = True) -> None:
        """End calls that wait for a server which does not answer, with `faults.Halted`; others go on."""
        self._throttle.halt(halting)

    def close(self) -> None:
        """End waiting calls and let go of the server. Closing twice is no mistake."""
        self._throttle.close()
        with self._closing:
            on_close, self._on_close = self._on_close, None
        self._addresses.close()
        if on_close is not None:
            on_close()

    def _request(
        self,
        messages: Sequence[BaseMessage],
        temperature: float | None,
        max_tokens: int,
        *,
        fixed: bool = False,
        seed: int | None = None,
        n: int = 1,
        schema: type[BaseModel] | None = None,
        opening: str = "",
        min_p: float | None = None,
        stop: tuple[str, ...] = (),
        likely: int = 0,
    ) -> Request:
        """`fixed`: temperature and limit are part of what is measured, and the spec does not change them."""
        if not fixed:
            temperature = temperature if self._temperature is None else self._temperature
            max_tokens = max_tokens if self._max_tokens is None else self._max_tokens
        return Request(
            tuple(messages), max_tokens, schema, opening, temperature, min_p, stop, n, seed, likely
        )

    def _ask_until_valid(self, request: Request, read: Callable[[Candidate], T], repairs: int) -> Reply[T]:
        usage = Usage()
        for left in range(repairs, -1, -1):
            answer, cost = self._delivery.send(request)
            usage += cost
            if isinstance(answer, Fault):
                return Reply(_OUTCOMES[answer.kind], reason=answer.words, usage=usage)
            values, failure, failed = _read_all(answer.candidates, read)
            if values:
                return Reply(Outcome.OK, values, usage=usage)
            if failure.outcome is Outcome.REFUSED or not left:
                break
            request = _again(request, failed, failure)
        return Reply(failure.outcome, reason=failure.reason, usage=usage)


def chat_model(reference: ModelSpec, models: Models, limits: Limits | None = None) -> ChatModel:
    """The model that `reference` names, checked to be there.

    Raises:
        RemoteModelRefused: where text would leave the machine and `models.allow_remote` is not set.
        ModelError: for an unknown provider, a missing package or a model that is not there.
        ModelUnavailable: where no server answers.
        ModelFileError: for an embedded model whose file is not there.
    """
    from quantext_graph.models.resolve import connect  # its clients take a second to import

    keep_bodies_out_of_logs()
    connection = connect(reference, models)
    return ChatModel(
        reference.model,
        connection.endpoints,
        remote=connection.remote,
        limits=limits,
        temperature=reference.temperature,
        max_tokens=reference.max_tokens,
        on_close=connection.close,
    )


def _read_all(
    candidates: Sequence[Candidate], read: Callable[[Candidate], T]
) -> tuple[tuple[T, ...], Unreadable, Candidate | None]:
    """Candidates that can be read, and the first that cannot."""
    values: list[T] = []
    failure, failed = Unreadable(Outcome.INVALID, "the reply is empty"), None
    for candidate in candidates:
        try:
            values.append(read(candidate))
        except Unreadable as found:
            if failed is None:
                failure, failed = found, candidate
    return tuple(values), failure, failed


def _again(request: Request, failed: Candidate | None, failure: Unreadable) -> Request:
    seed = None if request.seed is None else request.seed + 1_000_003
    if failure.outcome is Outcome.TRUNCATED or failed is None or not failed.text.strip():
        warmer = max(request.temperature or 0.0, _WARMER)
        return replace(request, seed=seed, temperature=warmer)
    mistake = HumanMessage(
        f"That reply cannot be used: {failure.feedback}. Reply again with one JSON object that follows the "
        "schema, and nothing else."
    )
    return replace(request, seed=seed, messages=(*request.messages, AIMessage(failed.text[:2000]), mistake))
