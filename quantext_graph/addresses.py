"""The addresses of one model: requests go to the least busy, and one that fails is left out for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from quantext_graph.faults import Fault, Kind
from quantext_graph.providers import Endpoint
from quantext_graph.throttle import delay


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
        """Leave an address that is away out for a while; true where another is still in."""
        with self._lock:
            index = self._endpoints.index(endpoint)
            if fault.kind in (Kind.AWAY, Kind.PASSING):
                self._failures[index] += 1
                self._out_until[index] = time.monotonic() + 4 * delay(self._failures[index])
            now = time.monotonic()
            return any(until <= now for at, until in enumerate(self._out_until) if at != index)

    def close(self) -> None:
        for endpoint in self._endpoints:
            endpoint.close()
