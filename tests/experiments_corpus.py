"""An experiment on 500 invented texts."""

import csv
from pathlib import Path

import numpy as np
import yaml
from audit_corpus import STANCES, TOPICS, codes, write


def write_experiment(folder: Path, **changed) -> Path:
    """Write its texts and its file into `folder`; `changed` are other keys of the file."""
    rng = np.random.default_rng(1)
    labels = codes(500, 0.4, rng)
    with (folder / "texts.csv").open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["text", "Topic", "Stance"])
        for i, (text, (topic, stance)) in enumerate(zip(write(labels, rng), labels, strict=True)):
            rows.writerow([f"{text} {i}", TOPICS[topic], STANCES[stance]])
    raw = {
        "data": {"path": "texts.csv"},
        "attributes": [
            {"name": "Topic", "categories": list(TOPICS), "column": "Topic"},
            {"name": "Stance", "categories": list(STANCES), "column": "Stance"},
        ],
        "secrets": [
            {"name": "likes", "where": {"Stance": "like"}},
            {"name": "tea", "where": {"Topic": "tea"}},
        ],
        "split": {"private": 200, "auxiliary": 150},
        "repeats": 2,
        **changed,
    }
    path = folder / "compare.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path
