"""The private report: one HTML page that needs no network, for the data holder's eyes only."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import pairwise
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined

from quantext_graph.audit.assessment import AuditReport
from quantext_graph.audit.attack_kinds import attack_kind
from quantext_graph.audit.attacks import UNKNOWN, Attack, share
from quantext_graph.audit.fidelity import RIVALS
from quantext_graph.audit.inputs import Pair
from quantext_graph.audit.metrics import METRICS, Utility
from quantext_graph.audit.utility import token_length
from quantext_graph.audit.verdict import verdict
from quantext_graph.audit.word_runs import LONGEST
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.reports import Judgement

MOST_ROWS = 2_000
"""Records on the page; a browser gets slow beyond. Those that missed their target come first."""
BINS = 24

Row = dict[str, Any]


def render(report: AuditReport) -> str:
    """The page. Every text of a record is escaped, and a script that came with one would not run: only
    the page's own carries the page's random nonce."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["points"] = lambda value: f"{100 * value:.1f}"
    environment.filters["percent"] = lambda value: "–" if value is None else f"{100 * value:.1f}\u00a0%"
    source = resources.files(__package__).joinpath("report.html").read_text(encoding="utf-8")
    return environment.from_string(source).render(
        nonce=secrets.token_urlsafe(18),
        verdict=verdict(report),
        report=report,
        secrets=_secrets(report),
        kinds=_kinds(report.attacks),
        leakage=report.inputs.draw.leakage if report.inputs.draw else {},
        seeded=bool(report.inputs.draw and report.inputs.draw.seeded),
        metrics=_metrics(report.utility),
        distributions=_distributions(report),
        lengths=_lengths(report.inputs.private_texts, report.inputs.released_texts),
        points={
            "private": (report.private_points * [96, 56] + 2).round(2).tolist(),
            "released": (report.released_points * [96, 56] + 2).round(2).tolist(),
        },
        rivals=RIVALS,
        longest_run=LONGEST,
        verification=_verification(report),
        pairs=list(_rows(report.spec, report.inputs.pairs)),
        pair_count=len(report.inputs.pairs),
    )


def _secrets(report: AuditReport) -> list[Row]:
    """Each secret with a bar for every attack on it, on a scale of its own."""
    rows = []
    for secret in report.secrets:
        attacks = [a for a in report.attacks if a.secret == secret.title and a.about == "secret"]
        scale = max([0.02, *(max(attack.error, attack.prior_error) for attack in attacks)])
        shares = {name: share(codes, secret.event) for name, codes in report.released_codes.items()}
        rows.append(
            {
                "title": secret.title,
                "truth": secret.truth,
                "guess": secret.guess,
                "target": shares.get("target"),
                "realised": shares.get("realised"),
                "bars": [_bar(attack, scale) for attack in attacks],
                "scale": scale,
            }
        )
    return rows


def _bar(attack: Attack, scale: float) -> Row:
    return {
        "attack": attack,
        "width": round(100 * attack.error / scale, 2),
        "mark": round(100 * attack.prior_error / scale, 2),
    }


def _kinds(attacks: Sequence[Attack]) -> list[Row]:
    """What each kind of attack says of itself, with those that it made about attributes."""
    rows = []
    for name in dict.fromkeys(attack.attack for attack in attacks):
        if kind := attack_kind(name):
            about = [a for a in attacks if a.attack == name and a.about == "attribute"]
            rows.append({"title": kind.title, "explanation": kind.explanation, "attributes": about})
    return rows


def _metrics(utility: Utility) -> list[Row]:
    kinds = {name: METRICS.find(name) for name in utility.values}
    return [
        {
            "title": kind.title,
            "meaning": kind.meaning,
            "raw": kind().raw(utility),
            "score": utility.rescaled[name],
        }
        for name, kind in kinds.items()
    ]


def _distributions(report: AuditReport) -> list[Row]:
    sides = {"private": report.inputs.private_codes, **report.released_codes}
    found = []
    for r, attribute in enumerate(report.spec.attributes):
        columns = {name: codes[:, r][codes[:, r] != UNKNOWN] for name, codes in sides.items()}
        shares = {
            name: np.bincount(column, minlength=len(attribute.categories)) / len(column)
            for name, column in columns.items()
            if len(column)
        }
        rows = [
            {"name": category, "shares": {name: float(values[code]) for name, values in shares.items()}}
            for code, category in enumerate(attribute.category_names)
        ]
        found.append(
            {"name": attribute.name, "rows": rows, "top": max([1e-9, *(v.max() for v in shares.values())])}
        )
    return found


def _lengths(private: Sequence[str], released: Sequence[str]) -> Row:
    """Histograms of token lengths in shares, up to the 99th percentile of both."""
    samples = {
        "private": np.array([token_length(text) for text in private]),
        "released": np.array([token_length(text) for text in released]),
    }
    top = int(np.ceil(np.quantile(np.concatenate(list(samples.values())), 0.99)))
    width = top // BINS + 1  # whole tokens, else some bins hold one more than others
    edges = np.arange(0, top + width + 1, width)
    shares = {
        name: np.histogram(np.minimum(sample, top), edges)[0] / len(sample)
        for name, sample in samples.items()
    }
    highest = max(float(values.max()) for values in shares.values())
    return {
        "top": int(edges[-1]),
        "means": {name: float(sample.mean()) for name, sample in samples.items()},
        "lines": {name: _steps(values / highest) for name, values in shares.items()},
    }


def _steps(heights: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    """The outline of a histogram as SVG points in a box of 100 × 40."""
    width = 100 / len(heights)
    corners = [(0.0, 40.0)]
    for i, height in enumerate(heights):
        corners += [(i * width, 40 - 38 * height), ((i + 1) * width, 40 - 38 * height)]
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in [*corners, (100.0, 40.0)])


def _verification(report: AuditReport) -> Row:
    inputs, judged = report.inputs, report.inputs.judgement
    return {
        "judged": judged,
        "by_attribute": [] if judged is None else [_judged(judged, name) for name in judged.accuracy],
        "after_attempts": list(enumerate(inputs.after_attempts, 1)),
        "failures": Counter(reason for pair in inputs.pairs for reason in pair.failures).most_common(),
        "verified": sum(pair.verified for pair in inputs.pairs),
        "fallbacks": sum(pair.fallback and not pair.spec_words for pair in inputs.pairs),
        "spec_words": sum(pair.spec_words for pair in inputs.pairs),
        "pairs": len(inputs.pairs),
    }


def _judged(judged: Judgement, name: str) -> Row:
    return {
        "name": name,
        "corrected": judged.corrected_by_attribute.get(name),
        "read": judged.read_by_attribute[name],
        "accuracy": judged.accuracy[name],
        "chance": judged.chance.get(name),
    }


def _rows(spec: Spec, pairs: Sequence[Pair]) -> Iterator[Row]:
    numbered = sorted(enumerate(pairs, 1), key=lambda item: item[1].verified)[:MOST_ROWS]
    for number, pair in sorted(numbered, key=lambda item: item[0]):
        labels, target = _names(spec, pair.labels), _names(spec, pair.target)
        realised = _names(spec, pair.realised or [UNKNOWN] * len(target))
        yield {
            "number": number,
            "before": marked_segments(pair.before, pair.snippets),
            "kept": " / ".join(line for line in pair.snippets if line not in pair.before),
            "after": pair.after,
            "labels": labels,
            "target": [
                {"name": wanted, "changed": wanted != had, "read": read if read not in (wanted, "?") else ""}
                for had, wanted, read in zip(labels, target, realised, strict=True)
            ],
            "changes": sum(had != wanted for had, wanted in zip(labels, target, strict=True)),
            "attempts": pair.attempts,
            "failures": list(dict.fromkeys(pair.failures)),
            "status": _status(pair),
        }


def _status(pair: Pair) -> str:
    if pair.spec_words:
        return "spec"
    if not pair.verified:
        return "missed"
    return "fallback" if pair.fallback else "verified"


def _names(spec: Spec, codes: Sequence[int]) -> list[str]:
    return [
        "?" if code == UNKNOWN else attribute.category_names[code]
        for attribute, code in zip(spec.attributes, codes, strict=True)
    ]


def marked_segments(text: str, snippets: Sequence[str]) -> list[tuple[str, bool]]:
    """The text in pieces, and whether each was handed on word for word; blanks count alike."""
    marked = np.zeros(len(text) + 1, dtype=bool)  # one more, so that the last piece ends
    for snippet in snippets:
        words = snippet.split()
        if not words:
            continue
        for found in re.finditer(r"\s+".join(map(re.escape, words)), text):
            marked[found.start() : found.end()] = True
    cuts = [0, *(np.flatnonzero(np.diff(marked[:-1])) + 1).tolist(), len(text)] if text else [0]
    return [(text[a:b], bool(marked[a])) for a, b in pairwise(cuts)]
