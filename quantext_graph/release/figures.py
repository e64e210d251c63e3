"""What the data holder is shown of a run at the gate, and what anybody may be."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from quantext_graph.mechanism.plain_words import guarantee
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.folder import Workspace


def published_folder(folder: Path) -> str:
    """Where a run was published."""
    with Workspace.open(folder) as opened:
        return str(opened.store.meta("published"))


def public_figures(folder: Path) -> dict[str, Any]:
    """What the release card will say, and no more."""
    with Workspace.open(folder) as opened:
        report, seeded = opened.store.meta("report"), opened.store.meta("draw")["seeded"]
    return {
        "records": report["n"],
        "guarantee": {each["secret"]: guarantee(each, not seeded) for each in report["leakage"]},
        "evaluation": report["evaluation"],
    }


def gate_lines(workspace: Path) -> list[str]:
    """The headline figures at the gate, private ones among them."""
    with Workspace.open(workspace) as opened:
        public, private = opened.store.meta("report"), opened.store.meta("private_report")
        seeded = opened.store.meta("draw")["seeded"]
    evaluation = public["evaluation"]
    accuracy = ", ".join(
        f"{name} {share:.0%}" if share is not None else f"{name} not known"
        for name, share in evaluation["accuracy"].items()
    )
    lines = [
        f"{public['n']} records, all rewritten; {private['verified']} on target by the verifier, "
        f"{private['fallbacks']} written from the target alone.",
        f"On target by {evaluation['evaluator']}: {evaluation['on_target']:.0%} "
        f"(its own accuracy: {accuracy}).",
        f"Private and released distribution differ by {private['tv_to_release']:.2f} in total variation "
        "(private figure).",
    ]
    lines.append(f"All figures of the run: {workspace / 'report.json'} (private).")
    for leakage in public["leakage"]:
        lines.append(f"{leakage['secret']}: " + " ".join(guarantee(leakage, not seeded)))
    for secret in private["secrets"]:
        lines.append(
            f"{secret['secret']}: {secret['private']:.1%} in private, {secret['released']:.1%} in the "
            "release (private figures)."
        )
    return lines


def sample_pairs(workspace: Path, count: int) -> list[dict[str, Any]]:
    """A few random records before and after, categories by name."""
    if count == 0:
        return []
    with Workspace.open(workspace) as opened:
        spec = opened.spec
        chosen = set(secrets.SystemRandom().sample(opened.store.ids(), min(count, opened.store.n)))
        return [named(spec, pair) for pair in opened.store.pairs() if pair["id"] in chosen]


def named(spec: Spec, pair: dict[str, Any]) -> dict[str, Any]:
    """A before/after pair with category names for its codes."""

    def names(codes: list[int]) -> list[str]:
        return [a.category_names[code] for a, code in zip(spec.attributes, codes, strict=True)]

    return {**pair, "labels": names(pair["labels"]), "target": names(pair["target"])}
