"""How many requests a server is given at a time: by a simulated server first, by one over sockets last."""

from __future__ import annotations

import heapq
import random
import threading
from collections.abc import Callable, Hashable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel
from servers import Act, OpenAIServer
from threads import at_once

from quantext_graph.models.chat_model import Outcome, chat_model
from quantext_graph.models.pace import Pace
from quantext_graph.spec.models import Limits, Models, ModelSpec

Seconds = Callable[[int], float]


def run(
    pace: Pace, answers: int, seconds: Seconds, kinds: tuple[tuple[Hashable, int], ...] = (("a", 50),)
) -> float:
    """Keep a simulated server as busy as the pace allows; answers a second. `seconds` is what an answer
    of 60 units of work takes beside so many others, `kinds` are kinds of calls with their tokens."""
    chance = random.Random(1)
    now, ends = 0.0, list[tuple[float, float, int]]()
    for _ in range(answers):
        while len(ends) < int(pace.allowed):
            which = chance.randrange(len(kinds))
            took = seconds(len(ends) + 1) * (10 + kinds[which][1]) / 60 * chance.uniform(0.8, 1.25)
            heapq.heappush(ends, (now + took, took, which))
        now, took, which = heapq.heappop(ends)
        pace.answered(kinds[which][0], took, 0, kinds[which][1])
    return answers / now


def test_it_rises_to_its_limit_while_the_server_keeps_up() -> None:
    pace = Pace(64)
    assert pace.allowed == 4
    run(pace, 130, lambda _: 0.05)
    assert pace.allowed == 64


def test_a_server_that_batches_is_filled() -> None:
    """Each answer takes up to two and a half times its best, all together ten times as many are made."""
    pace = Pace(32)
    run(pace, 3000, lambda active: 1.0 + 1.5 * active / 32)
    assert pace.allowed == 32


@pytest.mark.parametrize("capacity", [1, 4, 16])
def test_a_saturated_server_is_given_about_what_it_can_do(capacity: int) -> None:
    def seconds(active: int) -> float:
        return max(1.0, active / capacity)

    pace = Pace(256)
    rate = run(pace, 6000, seconds)
    assert capacity <= pace.allowed <= max(4.0, 4 * capacity) + 16
    assert rate > 0.85 * capacity, "no work is lost by it"


def test_a_server_that_grows_slow_is_given_less_and_one_that_recovers_more() -> None:
    pace = Pace(64)
    run(pace, 500, lambda _: 1.0)
    run(pace, 2000, lambda active: max(1.0, active / 2))
    assert pace.allowed < 16
    run(pace, 5000, lambda _: 1.0)
    assert pace.allowed == 64


def test_calls_of_other_kinds_and_lengths_are_not_slow_ones() -> None:
    pace = Pace(64)
    run(pace, 4000, lambda _: 1.0, (("labels", 5), ("texts", 300), ("snippets", 60)))
    assert pace.allowed == 64


def test_it_never_stops() -> None:
    pace = Pace(64)
    for _ in range(50):
        pace.slow_down()
    assert pace.allowed == 1
    run(pace, 100, lambda _: 1.0)
    assert 1 < pace.allowed < 16


class Label(BaseModel):
    stance: str


def test_a_server_that_answers_slower_and_slower_is_given_fewer_at_a_time() -> None:
    """It serves one at a time, ten milliseconds each, refuses nothing, and queues the rest."""
    turn = threading.Lock()

    def act(_: dict[str, Any]) -> Act:
        with turn:
            threading.Event().wait(0.01)
        return Act('{"stance": "FAVOR"}')

    with OpenAIServer(then=act) as server:
        spec = ModelSpec(model="openai:tiny", base_url=server.url)
        model = chat_model(spec, Models(), Limits(concurrency=48))

        def ask(count: int) -> None:
            for _ in range(count):
                assert model.structured([HumanMessage("?")], Label).outcome is Outcome.OK

        at_once(48, lambda: ask(8))
        server.most_at_once = 0
        at_once(48, lambda: ask(2))
        assert 1 <= server.most_at_once < 30
        model.close()
