from __future__ import annotations

import threading
import time
from itertools import count

import pytest
from instant import InstantEndpoint

from quantext_graph.graph.nodes import at_a_time
from quantext_graph.graph.workers import run_pass
from quantext_graph.models.chat_model import ChatModel
from quantext_graph.spec.loading import parse_spec
from quantext_graph.steps.context import prepare


def test_every_item_is_done_once_and_kept_in_the_callers_thread() -> None:
    kept: list[tuple[int, int]] = []
    here = threading.get_ident()
    whole = run_pass(
        range(200),
        lambda item: (item, threading.get_ident()),
        lambda result: kept.append((result[0], threading.get_ident())),
        workers=8,
        stop=lambda: False,
    )
    assert whole
    assert sorted(item for item, _ in kept) == list(range(200))
    assert {thread for _, thread in kept} == {here}


def test_a_slow_item_holds_up_nobody() -> None:
    release = threading.Event()
    kept: list[int] = []

    def work(item: int) -> int:
        if item == 0:
            assert release.wait(10)
        return item

    def keep(item: int) -> None:
        kept.append(item)
        if len(kept) == 49:
            release.set()

    assert run_pass(range(50), work, keep, workers=2, stop=lambda: False)
    assert kept[-1] == 0


def test_no_more_than_the_window_is_read_ahead() -> None:
    started, source = [], count()

    def items() -> object:
        for number in source:
            started.append(number)
            yield number

    kept: list[int] = []
    assert not run_pass(items(), lambda i: i, kept.append, workers=4, stop=lambda: len(kept) >= 10)
    assert len(started) <= 10 + 4
    assert sorted(kept) == started


def test_after_an_error_what_is_in_work_is_kept_and_nothing_is_started() -> None:
    kept: list[int] = []

    def work(item: int) -> int:
        if item == 3:
            raise OSError("down")
        time.sleep(0.01)
        return item

    with pytest.raises(OSError, match="down"):
        run_pass(count(), work, kept.append, workers=4, stop=lambda: False)
    assert 3 not in kept
    assert len(kept) < 20


@pytest.mark.parametrize(("name", "workers"), [("embedded:smollm2-135m", 1), ("openai:big", 6)])
def test_an_embedded_model_labels_one_record_at_a_time(name: str, workers: int) -> None:
    attributes = [{"name": "mood", "categories": ["glad", "sad"]}]
    raw = {"data": {"path": "none.csv"}, "attributes": attributes, "limits": {"concurrency": 6}}
    spec = parse_spec(raw)
    chat, verify = (ChatModel(each, [InstantEndpoint(spec)], remote=False) for each in ("openai:big", name))
    kit = prepare(spec, [], chat, verify)
    assert at_a_time("label", kit) == workers
    assert at_a_time("rewrite", kit) == 6
