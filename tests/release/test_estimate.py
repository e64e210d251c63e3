"""Tokens, money and time: what is estimated before a run is about what is counted after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from releases import obedient, small_release
from servers import Act

from quantext_graph.release.check import check
from quantext_graph.release.estimate import estimate, spent, usage_line
from quantext_graph.release.run import Run
from quantext_graph.release.standing import usage
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.ledger import ledger_path
from quantext_graph.workspace.records import UsageRow
from quantext_graph.workspace.speeds import remember_speed

PRICE = {"input": 2.0, "output": 10.0}


def test_the_estimate_is_about_what_is_counted(tmp_path: Path) -> None:
    """The server counts four characters a token, as the estimate does."""

    def counted(_: int, body: dict[str, Any], act: Act) -> Act:
        read = sum(len(str(message["content"])) for message in body["messages"]) // 4
        return Act(act.text, tokens=(read, len(str(act.text)) // 4))

    with obedient(faulty=counted) as server:
        chat = {"model": "openai:tiny", "base_url": server.url, "price": PRICE}
        spec = small_release(tmp_path, server.url, n=30, models={"chat": chat})
        before = check(spec).estimate
        with Run.start(spec) as run:
            run.go()
        rows = usage(run.workspace)
    calls, read = sum(row.calls for row in rows), sum(row.input_tokens for row in rows)
    assert 0.9 * before.least.calls <= calls <= before.most.calls
    assert before.least.input_tokens / 2 < read < 2 * before.least.input_tokens
    for row in rows:
        cost = (2.0 * row.input_tokens + 10.0 * row.output_tokens) / 1e6
        assert row.cost == pytest.approx(cost, abs=1e-6)
    assert "in money" in before.line()
    assert before.least.cost == pytest.approx(
        (2.0 * before.least.input_tokens + 10.0 * before.least.output_tokens) / 1e6
    )


def test_retries_are_counted(tmp_path: Path) -> None:
    failing = {n: Act(status=500) for n in range(20, 60, 10)}
    with obedient(faulty=lambda number, _b, act: failing.get(number, act)) as server:
        spec = small_release(tmp_path, server.url, n=20)
        with Run.start(spec) as run:
            run.go()
        asked = sum("messages" in body for body in server.asked)  # the others count tokens
        rows = usage(run.workspace)
    assert sum(row.calls for row in rows) == asked
    assert {row.step for row in rows} == {"label", "extract", "rewrite", "verify", "judge"}
    assert sum(row.calls for row in rows if row.step != "rewrite") >= 4 * 20 + 2


def spec_with(tmp_path: Path, **model: Any) -> Spec:
    chat = {"model": "openai:tiny", "base_url": "http://127.0.0.1:9/v1", **model}
    return small_release(tmp_path, "http://127.0.0.1:9/v1", n=10, models={"chat": chat})


def test_time_is_said_with_where_it_is_known_from(tmp_path: Path) -> None:
    spec = spec_with(tmp_path)
    assert estimate(spec, 100, characters=200).seconds is None
    assert "tokens_per_second" in estimate(spec, 100, characters=200).line()
    remember_speed("openai:tiny", 10, 100.0)  # too few calls to tell
    assert estimate(spec, 100, characters=200).seconds is None
    remember_speed("openai:tiny", 500, 100.0)
    found = estimate(spec, 100, characters=200)
    assert found.seconds == pytest.approx(0.2 * found.least.calls)
    assert "last run" in found.line()
    stated = estimate(spec_with(tmp_path, tokens_per_second=1000.0), 100, characters=200)
    assert stated.seconds == pytest.approx(stated.least.output_tokens / 1000.0)
    embedded = spec_with(tmp_path, model="embedded:smollm2-135m", base_url=None)
    found = estimate(embedded, 100, characters=200)
    assert found.seconds == pytest.approx(4.0 * found.least.calls)


def test_a_speed_file_that_is_damaged_is_no_matter(tmp_path: Path) -> None:
    spec = spec_with(tmp_path)
    ledger_path().with_name("speeds.json").write_text("[1, 2", encoding="utf-8")
    assert estimate(spec, 10, characters=100).seconds is None
    remember_speed("openai:tiny", 500, 100.0)
    assert estimate(spec, 10, characters=100).seconds is not None


def test_without_a_price_there_is_no_cost(tmp_path: Path) -> None:
    spec = spec_with(tmp_path)
    row = UsageRow(step="label", model="openai:tiny", calls=3, input_tokens=2_500_000, output_tokens=40)
    found = spent(spec, [row])[0]
    assert found.cost is None
    assert usage_line(found) == "label with openai:tiny: 3 calls, 2.5M tokens read, 40 written"
