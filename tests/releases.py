"""Small releases for tests of whole runs: invented data, a spec for it, a model server."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

from obedient import Faulty, ObedientServer

from quantext_graph.spec.loading import load_spec, parse_spec
from quantext_graph.spec.models import Spec

ATTRIBUTES: list[dict[str, Any]] = [
    {"name": "gender", "categories": ["female", "male"]},
    {"name": "diagnosis", "categories": ["diabetes", "asthma", "migraine"]},
]


def write_data(folder: Path, n: int, *, auxiliary: int = 23, mark: str = "") -> None:
    """Private texts that name their categories, and a labelled public set."""
    chance = random.Random(n)
    with (folder / "private.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "message"])
        for i in range(n):
            gender = chance.choice(["female", "male"])
            diagnosis = chance.choice(["diabetes", "diabetes", "asthma", "migraine"])
            rows.writerow([f"{mark}{i}", f"Case {i}{mark} is a {gender} patient who lives with {diagnosis}"])
    with (folder / "public.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["message", "gender", "diagnosis"])
        for i in range(auxiliary):
            gender, diagnosis = ("female", "male")[i % 2], ("diabetes", "asthma", "migraine")[i % 3]
            rows.writerow([f"Public letter {i} from a {gender} reader about {diagnosis}", gender, diagnosis])


def write_spec(folder: Path, url: str, **sections: Any) -> Path:
    """A spec beside the data, as JSON, which is YAML too."""
    import json

    raw: dict[str, Any] = {
        "data": {"path": "private.csv", "text": "message"},
        "auxiliary": {"path": "public.csv", "text": "message"},
        "attributes": ATTRIBUTES,
        "secrets": [{"name": "share of diabetes", "where": {"diagnosis": "diabetes"}}],
        "mechanism": {"pool_size": 2000},
        "models": {"chat": {"model": "openai:tiny", "base_url": url}},
        "limits": {"attempts": 2, "concurrency": 4},
    }
    for name, section in sections.items():
        raw[name] = {**raw[name], **section} if isinstance(section, dict) and name in raw else section
    path = folder / "spec.yaml"
    path.write_text(json.dumps(raw), encoding="utf-8")
    return path


def obedient(*, faulty: Faulty | None = None, **options: Any) -> ObedientServer:
    spec = parse_spec({"data": {"path": "none.csv"}, "attributes": ATTRIBUTES})
    return ObedientServer(spec, faulty=faulty, **options)


def small_release(folder: Path, url: str, n: int = 40, **sections: Any) -> Spec:
    write_data(folder, n)
    return load_spec(write_spec(folder, url, **sections))
