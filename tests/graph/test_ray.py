"""The passes on a local Ray of two workers, over real sockets to a model server."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from instant import instant_model
from releases import obedient, small_release
from servers import Act

from quantext_graph.data.records import open_table
from quantext_graph.graph.ray_workers import RayError, RayWorkers, _start, _Worker
from quantext_graph.graph.resources import Resources
from quantext_graph.models.chat_model import RemoteModelRefused
from quantext_graph.release.run import Interrupted, Run
from quantext_graph.release.standing import status, usage
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.loading import parse_spec
from quantext_graph.workspace.records import StoredRecord

pytest.importorskip("ray", reason="no wheel of Ray for this Python")


@pytest.fixture(scope="module")
def _ray() -> Iterator[None]:
    """One Ray for all tests; a run finds it and leaves it."""
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    yield
    ray.shutdown()


def on_ray(folder: Path, url: str, n: int, **sections: Any) -> Any:
    limits = {"concurrency": 8, **sections.pop("limits", {})}
    return small_release(folder, url, n=n, executor="ray", limits=limits, **sections)


@pytest.mark.usefixtures("_ray")
def test_a_worker_killed_in_mid_run_loses_nothing(tmp_path: Path) -> None:
    with obedient(seconds=0.05) as server:
        resources = Resources(spec := on_ray(tmp_path, server.url, 80))
        killed: list[int] = []

        def kill_one(event: dict[str, Any]) -> None:
            if event["stage"] == "rewrite" and event["done"] >= 10 and not killed:
                workers: RayWorkers = resources.once("ray", lambda: None)
                killed.append(workers.pids()[0])
                os.kill(killed[0], signal.SIGKILL)

        with Run.start(spec, resources=resources) as run:
            run.go(kill_one)
            assert killed
            assert killed[0] not in resources.once("ray", lambda: None).pids()
            run.answer(True)
        texts = server.asked_for("texts")
    rows = [row.values for row in open_table(tmp_path / "release" / "data.csv")]
    assert len(rows) == 80
    assert all(row[2] in row[1] and row[3] in row[1] for row in rows), "every text says its target"
    assert status(run.workspace).verified == 80
    # Two calls each: notes, and a text.
    assert 160 <= texts <= 160 + 8 * 6, "what the killed worker had in work, no more"
    counted = {row.step: row.calls for row in usage(run.workspace)}
    assert counted["extract"] == 80, "what was kept is counted once"


@pytest.mark.usefixtures("_ray")
def test_a_run_on_ray_that_is_stopped_goes_on_in_threads(tmp_path: Path) -> None:
    with obedient(seconds=0.05) as server:
        spec = on_ray(tmp_path, server.url, 60, limits={"workers": 1})
        with Run.start(spec) as run:

            def stop_early(event: dict[str, Any]) -> None:
                if event["stage"] == "label" and event["done"] >= 5:
                    run.control.request_drain("test")

            with pytest.raises(Interrupted, match="quantext resume"):
                run.go(stop_early)
        labeled = status(run.workspace).labeled
        assert 5 <= labeled < 60
        threads = spec.model_copy(update={"executor": "threads"})
        with Run(threads, run.workspace) as again:
            again.go()
        assert server.asked_for("labels") <= 3 * 60 + 8
    assert status(run.workspace).verified == 60


def test_what_fails_on_a_worker_comes_back_as_one_line_and_with_what_was_done(tmp_path: Path) -> None:
    """A worker as Ray would run it, in this process: nothing is raised, since Ray would log it."""
    gone = Act(status=404, error={"error": {"message": "zanzibar-7731"}})
    with obedient(faulty=lambda number, _b, act: gone if number > 6 else act) as server:
        spec = on_ray(tmp_path, server.url, 20, limits={"concurrency": 2})
        worker = _Worker((spec, []))
        chunk = [StoredRecord(i, i, f"Case {i} is a male patient with asthma", {}) for i in range(1, 21)]
        results, error = worker.run("label", chunk)
        assert 0 < len(results) < 20
        assert "not there (404)" in str(error)
        assert "zanzibar" not in str(error)
        assert "\n" not in str(error)
    broken = _Worker((spec, []))  # its server is away
    results, error = broken.run("label", chunk)
    assert results == []
    assert "no server answers" in str(error)


class TwoMachines:
    """A cluster with a second machine, as Ray names it."""

    class util:  # noqa: N801
        @staticmethod
        def get_node_ip_address() -> str:
            return "192.0.2.1"

    @staticmethod
    def is_initialized() -> bool:
        return True

    @staticmethod
    def nodes() -> list[dict[str, Any]]:
        addresses = {"192.0.2.1": True, "192.0.2.9": True, "192.0.2.5": False}
        return [{"NodeManagerAddress": address, "Alive": alive} for address, alive in addresses.items()]


def test_records_go_to_no_other_machine_unless_the_spec_says_so() -> None:
    raw = {"data": {"path": "x.csv"}, "attributes": [{"name": "a", "categories": ["b", "c"]}]}
    with pytest.raises(RemoteModelRefused, match=r"192\.0\.2\.9.*allow_remote"):
        _start(TwoMachines, parse_spec(raw))
    assert not _start(TwoMachines, parse_spec({**raw, "models": {"allow_remote": True}}))


def test_what_cannot_go_on_ray_is_refused(tmp_path: Path) -> None:
    raw = {"data": {"path": "x.csv"}, "attributes": [{"name": "a", "categories": ["b", "c"]}]}
    with pytest.raises(RayError, match="embedded"):
        RayWorkers(parse_spec({**raw, "executor": "ray"}), [])
    spec = on_ray(tmp_path, "http://127.0.0.1:9/v1", 8)
    with (
        Run.start(spec, resources=Resources(spec, chat=instant_model(spec))) as run,
        pytest.raises(QuantextError, match="cannot go to workers"),
    ):
        run.go()
