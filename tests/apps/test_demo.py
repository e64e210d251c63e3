"""The bundled demo set: 40 private messages, a balanced public set, a valid spec."""

from __future__ import annotations

import csv
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from quantext_graph.spec.loading import load_spec
from quantext_graph.spec.models import Spec

DEMO = Path(str(files("quantext_graph.apps.demo")))
LABELS = Path(__file__).with_name("demo_labels.csv")


def rows(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def spec() -> Spec:
    return load_spec(DEMO / "spec.yaml")


def test_spec_names_the_files_beside_it(spec: Spec) -> None:
    assert spec.auxiliary is not None
    assert spec.data.path == DEMO / "messages.csv"
    assert spec.auxiliary.path == DEMO / "public_messages.csv"
    assert spec.secret_codes(spec.secrets[0]) == {1: (0,)}


def test_private_file_holds_texts_alone(spec: Spec) -> None:
    private = rows(spec.data.path)
    assert len(private) == 40
    assert all(set(row) == {"text"} for row in private)


def test_private_diagnosis_is_uneven_over_gender() -> None:
    labels = Counter((row["gender"], row["diagnosis"]) for row in rows(LABELS))
    assert labels.total() == 40
    assert labels["male", "diabetes"] == 13
    assert labels["female", "diabetes"] == 8


def test_public_set_is_balanced_over_the_categories_of_the_spec(spec: Spec) -> None:
    gender, diagnosis = (attribute.category_names for attribute in spec.attributes)
    public = Counter((row["gender"], row["diagnosis"]) for row in rows(DEMO / "public_messages.csv"))
    assert public == {(g, d): 12 for g in gender for d in diagnosis}


def test_no_two_messages_are_alike() -> None:
    texts = [row["text"] for name in ("messages.csv", "public_messages.csv") for row in rows(DEMO / name)]
    words = [frozenset(text.lower().split()) for text in texts]
    likeness = max(len(a & b) / len(a | b) for i, a in enumerate(words) for b in words[:i])
    assert len(texts) == 136
    assert likeness < 0.3
    assert all(20 <= len(text.split()) <= 45 for text in texts)
