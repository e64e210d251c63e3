"""`quantext experiment` on invented data: what it writes, keeps, refuses and survives."""

import csv
import sys
from pathlib import Path
from typing import ClassVar

import pytest
import yaml
from experiments_corpus import write_experiment
from releases import ATTRIBUTES, obedient, write_data

from quantext_graph.apps.cli.main import main
from quantext_graph.experiments import runner
from quantext_graph.experiments.baselines import Method, Task
from quantext_graph.experiments.plan import READY, load_experiment
from quantext_graph.experiments.splits import Data

METHODS = [
    "raw",
    "random_half",
    {"method": "per_component", "gamma": 40, "budgets": [{"ratio": 2}, {"ratio": 8}]},
    {"method": "joint", "pool_size": 2000, "budgets": [{"nats": 0.5}, {"nats": 3}]},
    {"method": "per_component", "label": "fixed", "budgets": [{"gamma": 20, "k": 5}, {"gamma": 40, "k": 10}]},
    {"method": "private_evolution", "iterations": 2, "budgets": [{"epsilon": 1}]},
]


@pytest.fixture
def shell(monkeypatch, capfd):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["quantext", *map(str, arguments)])
        capfd.readouterr()
        try:
            main()
            code = 0
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        said = capfd.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def file(tmp_path):
    """An experiment on 500 invented texts."""
    return written(tmp_path)


def written(folder: Path, **changed) -> Path:
    return write_experiment(folder, **{"methods": METHODS, **changed})


def table(folder: Path, name: str = "results.csv") -> list[dict[str, str]]:
    with (folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_simulation_writes_its_table_and_figures(file, tmp_path, shell):
    out = tmp_path / "out"
    path = written(tmp_path, secrets=[{"name": "likes", "where": {"Stance": "like"}}])
    code, said, _ = shell("experiment", path, "--simulate", "--out", out)
    assert code == 0
    rows = table(out)
    wanted = {"method", "budget", "secret", "repeat", "attack", "error", "prior_error", "bound_nats"}
    assert wanted | {"knn_precision", "knn_recall", "fid", "attribute_match", "aggregate"} <= rows[0].keys()
    assert {row["texts"] for row in rows} == {"simulation"}
    releases = {(row["method"], row["budget"], row["secret"], row["repeat"]) for row in rows}
    assert len(releases) == 2 * 9
    for row in rows:
        assert float(row["error"]) == pytest.approx(
            abs(float(row["estimate"]) - float(row["truth"])), abs=1e-5
        )
        if row["method"] == "raw release" and row["attacker"] == "true labels":
            assert float(row["error"]) == 0
            assert float(row["knn_recall"]) == float(row["attribute_match"]) == 1
        if row["method"] == "Private Evolution" and row["attacker"] == "true labels":  # public proportions
            assert float(row["error"]) == pytest.approx(float(row["prior_error"]), abs=0.02)
        if row["budget"] == "nats=0.5":
            assert float(row["bound_nats"]) == pytest.approx(0.5, abs=1e-3)
    figures = {path.name for path in (out / "figures").iterdir()}
    for name in ("error_and_utility_likes", "stability_likes", "relative_error_likes", "bound_likes"):
        assert {f"{name}.png", f"{name}.svg"} <= figures
    assert "rank_correlation.png" in figures
    assert {row["other attacker"] for row in table(out, "rank_correlation.csv")} == {"words", "characters"}
    summary = {(r["method"], r["budget"], r["secret"], r["attacker"]): r for r in table(out, "summary.csv")}
    assert summary["fixed", "gamma=20 k=5", "likes", "true labels"]["error_sd"]
    assert "simulated" in said
    told = " ".join(said.split())
    assert "Private Evolution epsilon=1: (1, " in told
    assert "label proportions: public: shares of the auxiliary set" in told
    assert out.stat().st_mode & 0o077 == 0


def simulated(path: Path, out: Path) -> list[dict[str, str]]:
    runner.run_experiment(load_experiment(path), out, simulate=True)
    return table(out)


def test_what_is_done_is_not_done_again_and_more_repeats_add_to_it(file, tmp_path, monkeypatch):
    out, measured = tmp_path / "out", []
    path = written(tmp_path, methods=METHODS[:3], repeats=1)
    first = simulated(path, out)
    original = runner.measure

    def count(cell, *rest):
        measured.append((cell.entry.method, cell.repeat))
        return original(cell, *rest)

    monkeypatch.setattr(runner, "measure", count)
    assert simulated(path, out) == first
    assert measured == []
    more = simulated(written(tmp_path, methods=METHODS[:4], repeats=2), out)
    assert sorted(measured) == sorted(
        [("joint", 0)] * 4
        + [("joint", 1)] * 4
        + [("raw", 1), ("random_half", 1)]
        + [("per_component", 1)] * 2
    )
    assert [row for row in more if row["repeat"] == "0" and row["method"] != "QuanText, joint"] == first


def test_a_run_that_is_stopped_ends_as_if_it_had_not_been(file, tmp_path, shell, monkeypatch):
    path, broken = written(tmp_path, methods=METHODS[:4], repeats=1), tmp_path / "broken"
    whole = simulated(path, tmp_path / "whole")
    original, seen = runner.measure, []

    def stop(cell, *rest):
        seen.append(cell)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return original(cell, *rest)

    monkeypatch.setattr(runner, "measure", stop)
    code, _, error = shell("experiment", path, "--simulate", "--out", broken)
    assert code == 130
    assert "nothing that was done is lost" in error
    monkeypatch.setattr(runner, "measure", original)
    for one, other in zip(whole, simulated(path, broken), strict=True):
        assert {**one, "seconds": ""} == {**other, "seconds": ""}


class Failing(Method):
    name: ClassVar[str] = "failing"
    title: ClassVar[str] = "failing method"

    def release(self, task: Task):
        raise ValueError(f"cannot do {task.private.texts[0]}")


def test_a_method_that_fails_leaves_the_results_of_the_others(tmp_path, file, shell, monkeypatch):
    monkeypatch.setitem(sys.modules, "their_methods", sys.modules[__name__])
    path = written(tmp_path, methods=["their_methods:Failing", "raw"], repeats=1)
    code, _, error = shell("experiment", path, "--simulate", "--out", tmp_path / "out")
    assert code == 2
    assert "failing method: failed (ValueError)" in error
    assert "cannot do" not in error  # a message may hold a text
    assert {row["method"] for row in table(tmp_path / "out")} == {"raw release"}


def test_a_method_whose_package_is_missing_is_left_out(file, tmp_path, shell, monkeypatch):
    path = written(tmp_path, methods=["raw", "private_evolution", "dp_finetuning"], repeats=1)
    monkeypatch.setattr("quantext_graph.experiments.baselines.method.find_spec", lambda name: None)
    monkeypatch.setattr("quantext_graph.mechanism.figure_style.find_spec", lambda name: None)
    code, _, error = shell("experiment", path, "--simulate", "--out", tmp_path / "out")
    assert code == 0
    said = " ".join(error.split())
    assert "pip install 'quantext-graph[pe]'" in said
    assert "pip install 'quantext-graph[dpft]'" in said
    assert "pip install 'quantext-graph[plot]'" in said


class Training(Method):
    name: ClassVar[str] = "training"
    title: ClassVar[str] = "a method that trains"
    simulates: ClassVar[bool] = False

    def release(self, task: Task):
        raise AssertionError("it was asked")


def left_out(path: Path, folder: Path) -> str:
    return " ".join(runner.run_experiment(load_experiment(path), folder, simulate=True).left_out)


def test_a_method_that_cannot_be_simulated_is_left_out(file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "their_methods", sys.modules[__name__])
    path = written(tmp_path, methods=["raw", "their_methods:Training"], repeats=1)
    assert "training: cannot be simulated" in left_out(path, tmp_path / "out")


@pytest.mark.torch
def test_dp_fine_tuning_cannot_be_simulated(file, tmp_path):
    path = written(tmp_path, methods=["raw", "dp_finetuning"], repeats=1)
    assert "dp_finetuning: cannot be simulated" in left_out(path, tmp_path / "out")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"methods": [{"method": "raw", "budgets": [{"nats": 1}]}]}, "method raw knows no budget of nats"),
        ({"methods": [{"method": "joint", "budgets": [{"gamma": 4, "k": 2}]}]}, "it knows nats"),
        ({"methods": [{"method": "joint", "budgets": [{"nats": -1}]}]}, "nats: .*greater than or equal"),
        ({"methods": [{"method": "per_component", "budgets": [{"ratio": 7}]}]}, "no multiple of the ratio"),
        ({"methods": [{"method": "joint", "sprad": 0.1}]}, "sprad"),
        ({"methods": ["joynt"]}, "did you mean 'joint'"),
        ({"methods": []}, "methods"),
        ({"secrets": [{"where": {"Stance": "hate"}}]}, "hate"),
        ({"split": {"private": 400, "auxiliary": 300}}, "500 records, the split asks for 700"),
        ({"split": {"private": 300, "auxiliary": 150, "shares": [0.9]}}, "cannot be drawn"),
        ({"repeets": 3}, "repeets: unknown key; did you mean 'repeats'"),
        ({"attackers": ["openai:a", "openai:a"]}, "openai:a stands twice"),
    ],
)
def test_what_cannot_be_run_is_refused_at_the_start(file, tmp_path, shell, changed, said):
    import re

    code, _, error = shell("experiment", written(tmp_path, **changed), "--simulate", "--out", tmp_path / "o")
    assert code == 2
    assert re.search(said, " ".join(error.split()))
    assert "Traceback" not in error


def test_files_that_are_none_are_one_line(tmp_path, shell):
    assert "tweet_stance" in shell("experiment", tmp_path / "none.yaml", "--simulate")[2]
    (tmp_path / "bad.yaml").write_text("methods: [")
    assert "not valid YAML" in shell("experiment", tmp_path / "bad.yaml", "--simulate")[2]
    (tmp_path / "list.yaml").write_text("[1]")
    assert "is a mapping" in shell("experiment", tmp_path / "list.yaml", "--simulate")[2]


def test_without_attackers_and_without_a_simulation_nothing_is_run(file, tmp_path, shell):
    code, _, error = shell("experiment", file, "--out", tmp_path / "out")
    assert code == 2
    assert "--simulate" in error


def test_a_split_is_disjoint_and_has_the_share_that_is_asked_for(file, tmp_path):
    path = written(tmp_path, split={"private": 150, "auxiliary": 200, "shares": [0.2, [0.1, 0.5]]})
    experiment = load_experiment(path)
    data = Data.read(experiment)
    for repeat in range(3):
        for scenario, share in ((0, 0.2), (1, None)):
            private, public = data.part(experiment, scenario, repeat)
            assert len(set(private.texts)) == 150
            assert len(set(public.texts)) == 200
            assert not set(private.texts) & set(public.texts)
            found = (private.codes[:, 1] == 0).mean()
            assert found == pytest.approx(share) if share else 0.1 <= found <= 0.5


@pytest.mark.parametrize("name", READY)
def test_the_ready_files_can_be_read_wherever_one_stands(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = load_experiment(Path(name))
    assert found.data.path.parent == tmp_path
    assert {entry.method for entry in found.methods} >= {"raw", "joint", "private_evolution", "dp_finetuning"}
    assert load_experiment(Path(f"{name}.yaml")) == found


def test_models_write_and_attack_and_each_text_is_read_once(tmp_path, shell):
    """Against servers that label a text by the categories that stand in it."""
    write_data(tmp_path, 2, auxiliary=90)
    with obedient() as writer, obedient() as attacker:
        attacker.model = "other"
        raw = {
            "data": {"path": "public.csv", "text": "message"},
            "attributes": [{**attribute, "column": attribute["name"]} for attribute in ATTRIBUTES],
            "secrets": [{"name": "diabetes", "where": {"diagnosis": "diabetes"}}],
            "split": {"private": 24, "auxiliary": 60},
            "repeats": 1,
            "methods": [
                "raw",
                "random_half",
                {"method": "joint", "pool_size": 500},
                {"method": "private_evolution", "iterations": 2, "size": 10},
            ],
            "models": {"chat": {"model": "openai:tiny", "base_url": writer.url}},
            "attackers": [
                {"model": "openai:tiny", "base_url": writer.url},
                {"model": "openai:other", "base_url": attacker.url},
            ],
            "limits": {"attempts": 1, "concurrency": 4},
        }
        path = tmp_path / "models.yaml"
        path.write_text(yaml.safe_dump(raw))
        code, _, error = shell("experiment", path, "--out", tmp_path / "out")
        assert code == 0, error
        rows = table(tmp_path / "out")
        assert {row["texts"] for row in rows} == {"models"}
        assert {row["attacker"] for row in rows if row["attack"] == "labelling"} == {
            "openai:tiny",
            "openai:other",
        }
        assert {"mechanism-aware", "labelling, bias taken off", "residual"} <= {row["attack"] for row in rows}
        raw_rows = [row for row in rows if (row["method"], row["attack"]) == ("raw release", "labelling")]
        assert [float(row["error"]) for row in raw_rows] == [0, 0]
        read = attacker.asked_for("labels")
        assert read <= 24 + 24 + 10  # raw and half share their texts
        asked = len(writer.asked)
        runner.run_experiment(load_experiment(path), tmp_path / "out", simulate=False)
        for kept in (tmp_path / "out" / "cells").iterdir():
            kept.unlink()
        runner.run_experiment(load_experiment(path), tmp_path / "out", simulate=False)
        assert (attacker.asked_for("labels"), len(writer.asked)) == (read, asked)
