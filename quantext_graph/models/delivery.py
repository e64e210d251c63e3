"""How a request gets its answer: past the throttle, to the least busy address, again where that helps."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from quantext_graph.models.errors import Fault, Kind, ModelError, fault_of
from quantext_graph.models.replies import Usage
from quantext_graph.models.request import Answer, Request
from quantext_graph.models.throttle import LONGEST_WAIT, Throttle, delay

if TYPE_CHECKING:
    from quantext_graph.models.endpoints import Endpoint


class Delivery:
    """Sends requests to one model, which may have several addresses. Safe to call from many threads."""

    def __init__(self, name: str, addresses: Addresses, throttle: Throttle) -> None:
        self._name, self._addresses, self._throttle = name, addresses, throttle
        self._answered_once = False

    def send(self, request: Request) -> tuple[Answer | Fault, Usage]:
        """Send one request, and again while its fault can pass."""
        begun, tries, usage = time.monotonic(), 0, Usage()
        expected = _expected_tokens(request)
        while True:
            probe = self._throttle.enter(expected)
            started = time.monotonic()
            with self._addresses.least_busy() as endpoint:
                try:
                    answer = endpoint.answer(request)
                except Exception as error:  # clients raise what they like; `fault_of` sorts it
                    fault = fault_of(error, self._name)
                except BaseException:
                    self._throttle.left(probe)
                    raise
                else:
                    self._answered_once = True
                    spent = answer.input_tokens + answer.output_tokens
                    took = time.monotonic() - started
                    self._throttle.timed(_kind(request), took, answer.input_tokens, answer.output_tokens)
                    self._throttle.answered(probe, spent - expected if spent else 0)
                    self._addresses.answered(endpoint)
                    return answer, usage + Usage(
                        answer.calls, answer.input_tokens, answer.output_tokens, took
                    )
            usage += Usage(calls=1, seconds=time.monotonic() - started)
            tries += 1
            if self._ends(fault, endpoint, probe) or self._throttle.gives_up(
                fault, tries, time.monotonic() - begun
            ):
                return fault, usage
            self._throttle.pause(delay(tries) if fault.wait is None else min(fault.wait, LONGEST_WAIT))

    def _ends(self, fault: Fault, endpoint: Endpoint, probe: bool) -> bool:
        """Note a failed request; true where its fault belongs to this request alone.

        Raises:
            ModelError: where every request would meet the same.
        """
        if fault.kind in (Kind.REFUSED, Kind.UNFIT) or (fault.kind is Kind.REJECTED and self._answered_once):
            self._throttle.answered(probe)
            return True
        if fault.kind in (Kind.FATAL, Kind.REJECTED):
            self._throttle.left(probe)
            words = (
                fault.words
                if fault.kind is Kind.FATAL
                else f"{self._name}: {fault.words}; check its settings"
            )
            raise ModelError(words)
        if self._addresses.failed(endpoint, fault):
            fault = replace(fault, kind=Kind.PASSING)  # another address may answer at once
        self._throttle.failed(fault, probe)
        return False


class Addresses:
    """Endpoints of the same model. What it can do is what all of them can."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = tuple(endpoints)
        self._lock = threading.Lock()
        self._busy = [0] * len(self._endpoints)
        self._served = [0] * len(self._endpoints)
        self._failures = [0] * len(self._endpoints)
        self._out_until = [0.0] * len(self._endpoints)
        self.first = self._endpoints[0]
        self.prefills = all(endpoint.prefills for endpoint in self._endpoints)
        self.likely = min(endpoint.likely for endpoint in self._endpoints)

    @contextmanager
    def least_busy(self) -> Iterator[Endpoint]:
        with self._lock:
            now = time.monotonic()
            # where all are left out, the one that has been out longest is tried
            index = min(
                range(len(self._endpoints)),
                key=lambda at: (max(0.0, self._out_until[at] - now), self._busy[at], self._served[at]),
            )
            self._busy[index] += 1
            self._served[index] += 1
        try:
            yield self._endpoints[index]
        finally:
            with self._lock:
                self._busy[index] -= 1

    def answered(self, endpoint: Endpoint) -> None:
        with self._lock:
            index = self._endpoints.index(endpoint)
            self._failures[index], self._out_until[index] = 0, 0.0

    def failed(self, endpoint: Endpoint, fault: Fault) -> bool:
        """Leave a failing address out for a while; true where it is away and another is still in."""
        with self._lock:
            index = self._endpoints.index(endpoint)
            if fault.kind in (Kind.AWAY, Kind.PASSING, Kind.SLOW):
                self._failures[index] += 1
                self._out_until[index] = time.monotonic() + 4 * delay(self._failures[index])
            now = time.monotonic()
            return fault.kind is Kind.AWAY and any(
                until <= now for at, until in enumerate(self._out_until) if at != index
            )

    def close(self) -> None:
        for endpoint in self._endpoints:
            endpoint.close()


def _expected_tokens(request: Request) -> int:
    return (
        sum(len(str(message.content)) for message in request.messages) // 4 + request.n * request.max_tokens
    )


def _kind(request: Request) -> Hashable:
    """Calls of one kind take about as long as each other, token for token."""
    return request.schema, request.n, request.max_tokens, bool(request.likely)
