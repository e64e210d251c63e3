"""What a run keeps as JSON: the models read what they wrote, and what was written before they were there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from quantext_graph.mechanism.public_draw import PublicDraw
from quantext_graph.spec.loading import parse_spec
from quantext_graph.workspace.card import card, facts
from quantext_graph.workspace.folder import Workspace
from quantext_graph.workspace.records import Rewrite, RewriteDetail, StoredAttempt
from quantext_graph.workspace.reports import PrivateReport, Report

LEAKAGE = {
    "secret": "likes",
    "mechanism_nats": 1.0,
    "cap_nats": 4.1,
    "bound_nats": 1.0,
    "vacuous": False,
    "components": 1,
    "log_l": 0.0,
    "secret_levels": 61,
}
DRAW: dict[str, Any] = {
    "mechanism": {"selection": "joint", "pool": "public", "targets": "quota", "spread": None, "kept": 368},
    "leakage": [LEAKAGE],
    "released": {"kind": "table", "sizes": [2], "shares": [0.5, 0.5]},
    "shares": {"likes": 0.5},
    "tree": {"root": 0, "parents": [-1]},
    "pool_seed": 2**63 - 1,
    "choice": [7],
    "seeded": False,
    "notes": ["a note"],
    "label_errors": "what wrong labels would tell",
}
REPORT: dict[str, Any] = {
    "n": 60,
    "leakage": [LEAKAGE],
    "evaluation": {
        "evaluator": "a judge",
        "accuracy": {"mood": 0.8},
        "chance": {"mood": 0.5},
        "judge_better_than_chance": {"mood": True},
        "read_on_target": 0.7,
        "read_by_attribute": {"mood": 0.7},
        "corrected": {"share": 0.8, "low": 0.7, "high": 0.9},
        "corrected_by_attribute": {"mood": {"share": 0.8, "low": 0.7, "high": 0.9}},
    },
}
OF_BEFORE = {
    "evaluator": "a judge",
    "accuracy": {"mood": None},
    "on_target": 0.7,
    "by_attribute": {"mood": 0.7},
}
PRIVATE: dict[str, Any] = {
    "labels": {"mood": {"glad": 40, "sad": 20}},
    "secrets": [{"secret": "likes", "private": 0.6, "released": 0.5}],
    "tv_to_release": 0.2,
    "mean_changes": 0.4,
    "verified": 50,
    "unverified": 10,
    "fallbacks": 3,
    "spec_words": 1,
    "on_target_after_attempts": [0.5, 0.8],
    "failures": {"mood": 4},
    "dropped": {"empty": 1},
    "label_failures": {},
    "usage": [{"step": "l", "model": "m", "calls": 1, "input_tokens": 2, "output_tokens": 3, "seconds": 0.5}],
    "seconds": {"label": {"wall": 1.5, "cpu": 0.5}},
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    spec = parse_spec(
        {"data": {"path": "p.csv"}, "attributes": [{"name": "mood", "categories": ["glad", "sad"]}]}
    )
    made = Workspace.create(tmp_path / "work", spec)
    made.store.ingest((i + 1, f"text {i}", {}) for i in range(2))
    return made


@pytest.mark.parametrize(
    ("model", "stored"),
    [
        (PublicDraw, DRAW | {"own_at_most": None}),
        (Report, REPORT | {"models": None}),
        (PrivateReport, PRIVATE | {"origins": {}, "short_combinations": 0}),
    ],
)
def test_keys_and_values_stay_as_they_were(model: Any, stored: dict[str, Any]) -> None:
    assert json.loads(json.dumps(model.model_validate(stored).model_dump())) == stored


def test_a_run_of_before_models_were_named_or_shares_corrected_is_published(
    workspace: Workspace,
) -> None:
    store = workspace.store
    old = REPORT | {"evaluation": OF_BEFORE}
    for key, value in (("draw", DRAW), ("report", old), ("private_report", PRIVATE)):
        store.set_meta(key, value)
    draw, report = store.draw(), store.report()
    assert draw is not None
    assert report is not None
    said = facts(workspace.spec, draw, report, ["id", "text"])
    assert said.models is not None
    assert said.models.rewriter == workspace.spec.models.chat.model
    assert said.evaluation.read_on_target == 0.7
    assert (
        said.evaluation.headline == "How often a judge is right is not known: no share on target can be told."
    )
    assert "70%" not in card(said, "data.csv")
    assert store.private_report().usage[0].calls == 1


def test_what_is_not_there_yet_is_none(workspace: Workspace) -> None:
    assert workspace.store.draw() is None
    assert workspace.store.report() is None


def test_what_is_kept_cannot_be_changed(workspace: Workspace) -> None:
    report = Report.model_validate(REPORT)
    with pytest.raises(ValidationError, match="frozen"):
        report.n = 7  # type: ignore[misc]


def test_a_rewrite_comes_back_with_every_attempt_whatever_a_model_wrote(workspace: Workspace) -> None:
    """Half of a surrogate pair is no text that can be published, but it can be what was turned down."""
    store = workspace.store
    tried = (StoredAttempt.model_construct(text="\ud83d", on_target=False, failures=("mood", "copy")),)
    detail = RewriteDetail.model_construct(snippets=("a note",), fallback=True, attempts=tried)
    store.put_labels(1, [0], [1.0])
    store.put_rewrite(Rewrite(1, "new", True, detail))
    store.put_draw(PublicDraw.model_validate(DRAW), np.arange(2), np.array([[1], [0]]))
    (pair,) = store.pairs()
    assert (pair.labels, pair.target, pair.released, pair.verified) == ((0,), (1,), "new", True)
    assert pair.detail.fallback
    assert list(pair.detail.snippets) == ["a note"]
    assert pair.after(3).text == "\ud83d"
    assert list(pair.after(1).failures) == ["mood", "copy"]
