"""When a request may go out: limits per minute, concurrency that adapts, and a pause in an outage."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Hashable

from quantext_graph.models.errors import Fault, Halted, Kind, ModelUnavailable
from quantext_graph.models.pace import Pace
from quantext_graph.spec.models import Limits

_log = logging.getLogger(__name__)

OUTAGE_SECONDS = 300.0
"""How long a model may answer nothing before the run stops, to be resumed."""

LONGEST_WAIT = 60.0
"""Seconds to wait where a server's Retry-After asks for more."""

_LONGEST_DELAY = 5.0
_TRIES = 5
_SUSPICIOUS = 3  # calls given up in a row: then it is the server, not the request


def delay(tries: int) -> float:
    """Seconds to wait after the `tries`-th failure: exponential, with jitter, at most 5."""
    return min(_LONGEST_DELAY, 0.25 * 2.0**tries) * random.uniform(0.6, 1.0)


class Rate:
    """At most `per_minute` units a minute, evenly spaced; units may be corrected once known."""

    def __init__(self, per_minute: float | None) -> None:
        self._seconds_each = 60.0 / per_minute if per_minute else 0.0
        self._free_at = 0.0

    def wait(self, now: float) -> float:
        return self._free_at - now if self._seconds_each else 0.0

    def spend(self, units: float, now: float) -> None:
        self._free_at = max(self._free_at, now) + units * self._seconds_each

    def correct(self, units: float) -> None:
        self._free_at += units * self._seconds_each


class Throttle:
    """The gate that all calls to one model pass, from many threads.

    How many pass at a time is the `Pace`. When the server is away, one call at a time probes it and all
    others wait.
    """

    def __init__(
        self,
        name: str,
        limits: Limits | None = None,
        *,
        outage_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._clock = name, clock
        self._outage_seconds = OUTAGE_SECONDS if outage_seconds is None else outage_seconds
        self._requests = Rate(limits.requests_per_minute if limits else None)
        self._tokens = Rate(limits.tokens_per_minute if limits else None)
        self._pace = Pace(limits.concurrency if limits else 1024)
        self._changed = threading.Condition()
        self._active = 0
        self._probing = False
        self._away_since: float | None = None
        self._away_tries = 0
        self._probe_at = 0.0
        self._slowed_at = 0.0
        self._given_up = 0
        self._closed = self._halting = False

    def enter(self, tokens: int) -> bool:
        """Wait until a request with about `tokens` tokens may go; true where it is a probe."""
        with self._changed:
            while True:
                self._refuse_closed()
                wait = self._wait(self._clock())
                if wait <= 0:
                    break
                # It is for the server that it waits, not for its turn.
                if self._halting and self._active < int(self._pace.allowed):
                    self._refuse_halted()
                self._changed.wait(min(wait, 1.0))
            now = self._clock()
            self._requests.spend(1, now)
            self._tokens.spend(tokens, now)
            self._active += 1
            probe = self._away_since is not None
            self._probing = self._probing or probe
            return probe

    def _wait(self, now: float) -> float:
        if self._active >= int(self._pace.allowed):
            return 1.0
        if self._away_since is not None:
            return 1.0 if self._probing else self._probe_at - now
        return max(self._requests.wait(now), self._tokens.wait(now))

    def answered(self, probe: bool, tokens_over: int = 0) -> None:
        """A request was answered; it cost `tokens_over` more than was thought."""
        with self._changed:
            self._tokens.correct(tokens_over)
            self._given_up = 0
            if self._away_since is not None:
                _log.warning("%s answers again after %.0f s", self._name, self._clock() - self._away_since)
                self._away_since, self._away_tries = None, 0
                self._changed.notify_all()
            self._leave(probe)

    def timed(self, kind: Hashable, seconds: float, given: int, written: int) -> None:
        """What an answer to a call of this kind took, for the pace."""
        with self._changed:
            self._pace.answered(kind, seconds, given, written)

    def left(self, probe: bool) -> None:
        """A request ended in a way that says nothing about the server."""
        with self._changed:
            self._leave(probe)

    def failed(self, fault: Fault, probe: bool) -> None:
        """A request failed. Slows down, or pauses all calls where the server is away.

        Raises:
            ModelUnavailable: where nothing was answered for as long as an outage may last.
        """
        with self._changed:
            now = self._clock()
            if fault.kind in (Kind.BUSY, Kind.SLOW) and now - self._slowed_at > 1.0:
                self._pace.slow_down()
                self._slowed_at = now
            if fault.kind is Kind.AWAY or self._given_up >= _SUSPICIOUS:
                self._away(fault, now)
            self._leave(probe)
            if self._away_since is not None and now - self._away_since > self._outage_seconds:
                raise ModelUnavailable(
                    f"{self._name}: {fault.words}, for {now - self._away_since:.0f} s; what is done is kept: "
                    "start the server and resume"
                )

    def _away(self, fault: Fault, now: float) -> None:
        if self._away_since is None:
            self._away_since = now
            _log.warning("%s: %s; waiting for it", self._name, fault.words)
        self._away_tries += 1
        self._probe_at = now + min(
            delay(self._away_tries) if fault.wait is None else fault.wait, LONGEST_WAIT
        )

    def _leave(self, probe: bool) -> None:
        self._active -= 1
        self._probing = self._probing and not probe
        self._changed.notify(2)  # the pace may have risen

    def gives_up(self, fault: Fault, tries: int, waited: float) -> bool:
        """Whether a call that has failed `tries` times over `waited` seconds ends without an answer."""
        with self._changed:
            if self._away_since is not None:
                return False  # `failed` ends the outage, one way or the other
            passing = fault.kind in (Kind.PASSING, Kind.SLOW)
            over = tries >= _TRIES if passing else waited > self._outage_seconds
            self._given_up += over
            return over

    def pause(self, seconds: float) -> None:
        """Sleep, unless the model is closed meanwhile."""
        end = self._clock() + seconds
        with self._changed:
            while (left := end - self._clock()) > 0:
                self._refuse_closed()
                if self._halting:
                    self._refuse_halted()
                self._changed.wait(left)

    def halt(self, halting: bool = True) -> None:
        """End calls that wait for the server; those that it answers go on."""
        with self._changed:
            if halting != self._halting:
                self._halting = halting
                self._changed.notify_all()

    def _refuse_halted(self) -> None:
        raise Halted(f"{self._name}: stopped while a call waited for its server; resume to go on")

    def _refuse_closed(self) -> None:
        if self._closed:
            raise ModelUnavailable(f"{self._name}: closed while calls were waiting; resume to go on")

    def close(self) -> None:
        """Wake and end every call that waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
