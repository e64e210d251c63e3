"""What the data holder is shown of a run at the gate, and what anybody may be."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue
from typing_extensions import TypedDict

from quantext_graph.mechanism.plain_words import guarantee
from quantext_graph.mechanism.public_draw import PublicDraw
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.disk import WorkspaceError
from quantext_graph.workspace.folder import Workspace
from quantext_graph.workspace.reports import PrivateReport, Report


def published_folder(folder: Path) -> str:
    """Where a run was published."""
    with Workspace.open(folder) as opened:
        return str(opened.store.meta("published"))


def published_card(folder: Path, name: str) -> str:
    """The card of a published release. `name` is what the run is called in errors.

    Raises:
        WorkspaceError: where the run is not published, or its release folder is gone.
    """
    with Workspace.open(folder) as opened:
        published = opened.store.meta("published")
    if published is None:
        raise WorkspaceError(f"{name}: not published, so it has no card")
    try:
        return (Path(published) / "README.md").read_text(encoding="utf-8")
    except OSError:
        raise WorkspaceError(f"{name}: its release folder is gone") from None


class PublicFigures(TypedDict):
    """What the release card will say: `guarantee` in plain words by secret, the share `on_target` in words,
    `evaluation` of the texts in figures."""

    records: int
    guarantee: dict[str, list[str]]
    on_target: str
    evaluation: dict[str, JsonValue]


def public_figures(folder: Path) -> PublicFigures:
    """What the release card will say, and no more."""
    with Workspace.open(folder) as opened:
        report, draw = _at_gate(opened)
    return {
        "records": report.n,
        "guarantee": {each.secret: guarantee(each, not draw.seeded) for each in report.leakage},
        "on_target": report.evaluation.headline,
        "evaluation": report.evaluation.model_dump(),
    }


def _at_gate(opened: Workspace) -> tuple[Report, PublicDraw]:
    report, draw = opened.store.report(), opened.store.draw()
    if report is None or draw is None:
        raise WorkspaceError(
            f"{opened.folder}: not at the gate yet; `quantext resume {opened.folder}` goes on"
        )
    return report, draw


def gate_lines(workspace: Path) -> list[str]:
    """The headline figures at the gate, private ones among them."""
    with Workspace.open(workspace) as opened:
        public, draw = _at_gate(opened)
        private = opened.store.private_report()
    lines = _how_made(public.n, private)
    if set(private.origins) - {"own", "public"} or not private.origins:
        lines.append(public.evaluation.headline)
    lines += [
        f"Private and released distribution differ by {private.tv_to_release:.2f} in total variation "
        "(private figure).",
        f"All figures of the run: {workspace / 'report.json'} (private).",
    ]
    for leakage in public.leakage:
        lines.append(f"{leakage.secret}: " + " ".join(guarantee(leakage, not draw.seeded)))
    for secret in private.secrets:
        lines.append(
            f"{secret.secret}: {secret.private:.1%} in private, {secret.released:.1%} in the "
            "release (private figures)."
        )
    return lines


def _how_made(n: int, private: PrivateReport) -> list[str]:
    own, public = (private.origins.get(origin, 0) for origin in ("own", "public"))
    written = n - own - public
    worded = f", {private.spec_words} made of the spec's words alone" if private.spec_words else ""
    accepted = (
        f"{private.verified - own - public} accepted by the verifier, which chose among them, "
        f"{private.fallbacks} written from less of the record{worded}."
    )
    if not own and not public:
        return [f"{n} records; {accepted}"]
    said = [
        f"{n} texts: {own} records in their own words, {public} public texts, {written} written (private)."
    ]
    if written:
        said.append(f"Of those written {accepted}")
    if private.short_combinations:
        said.append(
            f"{private.short_combinations} combinations had fewer records than may go out as they are: "
            "whoever knows the public texts can see how many they are (private figure)."
        )
    return said


class NamedPair(TypedDict):
    """A record before and after, with the names of its categories."""

    text: str
    labels: list[str]
    target: list[str]
    released: str
    verified: bool


def sample_pairs(workspace: Path, count: int) -> list[NamedPair]:
    """A few random records before and after."""
    if count == 0:
        return []
    with Workspace.open(workspace) as opened:
        spec = opened.spec
        chosen = set(secrets.SystemRandom().sample(opened.store.used(), min(count, opened.store.n_released)))
        return [
            named(spec, pair.text, pair.labels, pair.target, pair.released, pair.verified)
            for pair in opened.store.pairs()
            if pair.id in chosen
        ]


def named(
    spec: Spec, text: str, labels: Sequence[int], target: Sequence[int], released: str, verified: bool
) -> NamedPair:
    """A pair with category names for its codes."""

    def names(codes: Sequence[int]) -> list[str]:
        return [a.category_names[code] for a, code in zip(spec.attributes, codes, strict=True)]

    return NamedPair(
        text=text, labels=names(labels), target=names(target), released=released, verified=verified
    )


def pair_lines(pair: NamedPair) -> list[str]:
    """A before/after pair with category names, as a person is shown it: private."""
    mark = "" if pair["verified"] else "  [turned down by the verifier]"
    return [
        f"before  ({', '.join(pair['labels'])})",
        f"  {pair['text']}",
        f"after   ({', '.join(pair['target'])}){mark}",
        f"  {pair['released']}",
        "",
    ]
