"""What the README shows runs as it stands: its spec, its Python, its configuration of MCP clients."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from obedient import ObedientServer

from quantext_graph import build_graph, load_spec
from quantext_graph.spec.loading import parse_spec

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the README's spec, data for it, and a model server in place of the spec's."""
    (text,) = blocks("yaml")
    raw: dict[str, Any] = yaml.safe_load(text)
    with ObedientServer(parse_spec(raw)) as server:
        raw["models"] = {"chat": {"model": "openai:tiny", "base_url": server.url}}
        raw["mechanism"]["pool_size"] = 2000
        raw["limits"]["min_verified"] = 0
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
        stances = [category["name"] for category in raw["attributes"][1]["categories"]]
        for name, start in (("posts.csv", 0), ("public_posts.csv", 100)):
            with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
                rows = csv.writer(file)
                rows.writerow(["Tweet", "Target", "Stance"])
                for i in range(start, start + 24):
                    target, stance = raw["attributes"][0]["categories"][i % 2], stances[i % 3]
                    rows.writerow([f"Post {i} on {target}, which is {stance} for me", target, stance])
        monkeypatch.chdir(tmp_path)
        yield tmp_path


def test_the_spec_of_the_readme_is_one(folder: Path) -> None:
    assert [a.name for a in load_spec(folder / "spec.yaml").attributes] == ["Target", "Stance"]


def test_the_python_of_the_readme_runs(folder: Path) -> None:
    names: dict[str, Any] = {}
    ran = [block for block in blocks("python") if "langgraph_sdk" not in block]
    assert len(ran) == 4
    for block in ran:
        exec(compile(block, "README.md", "exec"), names)
    assert (folder / "release" / "README.md").is_file()
    assert not (folder / "second").exists()  # refused
    assert names["found"]["target"]["Stance"] == "FAVOR"


def test_the_state_machine_of_the_readme_is_the_programs(folder: Path) -> None:
    (shown,) = blocks("mermaid")
    assert shown == build_graph(load_spec(folder / "spec.yaml")).get_graph(xray=1).draw_mermaid()


def test_every_command_is_in_the_readme() -> None:
    from typer.main import get_command

    from quantext_graph.apps.cli.main import app

    rows = "\n".join(re.findall(r"^\| (`.*?) \|", README, re.MULTILINE))
    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    missing = {name for name in known if f"`{name}" not in rows and f"quantext {name}" not in README}
    assert missing == set()
