"""What a release would be, before it is one: counts, guarantee, calls and time. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from quantext_graph.core.targets import released_count
from quantext_graph.data.auxiliary import read_auxiliary, refuse_private_auxiliary
from quantext_graph.data.records import read_private
from quantext_graph.mechanism.guarantees import Guarantees, guarantees
from quantext_graph.mechanism.own_words import Outlook, outlook
from quantext_graph.mechanism.plain_words import assumptions, guarantee, why_vacuous
from quantext_graph.mechanism.tradeoff import Progress, TradeoffPoint, expected_changes, tradeoff
from quantext_graph.models.privacy import tracing_warning
from quantext_graph.release.estimate import Estimate, estimate
from quantext_graph.release.own_words import own_words_lines, own_words_warnings
from quantext_graph.release.spending import Spending, spending_of
from quantext_graph.spec.models import Spec
from quantext_graph.steps.held_out import rehearse


@dataclass(frozen=True)
class Check:
    """The answer of `quantext check`."""

    spec: Spec
    records: int
    auxiliary: int
    dropped: dict[str, int]
    guarantees: Guarantees
    estimate: Estimate
    spending: Spending
    released: int
    changes: dict[float, float]
    texts: Outlook | None
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "released": self.released,
            "changed_at_keep": {f"{keep:g}": share for keep, share in self.changes.items()},
            "own_words": None if self.texts is None else self.texts.to_json(),
            "auxiliary": self.auxiliary,
            "dropped": self.dropped,
            "attributes": {a.name: list(a.category_names) for a in self.spec.attributes},
            "components": self.guarantees.components,
            "mechanism": self.guarantees.mechanism,
            "leakage": asdict(self.guarantees.worst),
            "secrets": [
                {"secret": title, **asdict(leakage)} for title, leakage in self.guarantees.secrets.items()
            ],
            "estimate": self.estimate.to_json(),
            "ledger": self.spending.to_json(),
            "wrong_labels": self.guarantees.label_errors,
            "warnings": list(self.warnings),
        }

    def public(self) -> dict[str, Any]:
        """What any chat model may read: nothing that goes by the length or the labels of a record."""
        spec, found = self.spec, self.guarantees
        said: dict[str, Any] = {
            "records": self.records,
            "auxiliary": self.auxiliary,
            "attributes": {a.name: len(a.categories) for a in spec.attributes},
            "mechanism": {k: v for k, v in found.mechanism.items() if v is not None},
            "guarantee": {
                title: guarantee(each, spec.mechanism.seed is None) for title, each in found.secrets.items()
            },
            "assumptions": assumptions(
                found.mechanism, spec.mechanism.log_l, own_words=spec.rewriting.own_words
            ),
            "wrong_labels": found.label_errors,
            "model_calls": [self.estimate.calls, self.estimate.calls_at_most],
            "nats_spent_before": round(self.spending.spent, 4),
            "nats_added": round(found.worst.bound_nats, 4),
            "notes": list(found.notes),
        }
        if self.texts is not None:
            said["texts"] = own_words_lines(spec, self.texts)
        if found.worst.vacuous:
            said["why_vacuous"] = why_vacuous(found.mechanism, found.worst.cap_nats)
        if self.spending.over_cap:
            said["over_cap"] = "with the releases before, the sum of nats promises nothing any more"
        return said

    def lines(self) -> list[str]:
        spec = self.spec
        said = [
            f"{self.records} records in {spec.data.path.name}, {self.auxiliary} public ones beside them",
            "attributes: " + ", ".join(f"{a.name} ({len(a.categories)})" for a in spec.attributes),
            "mechanism: "
            + ", ".join(f"{k} {v}" for k, v in self.guarantees.mechanism.items() if v is not None),
        ]
        for title, leakage in self.guarantees.secrets.items():
            said.append(f"{title}: " + " ".join(guarantee(leakage, spec.mechanism.seed is None)))
        if self.texts is not None:
            said += own_words_lines(spec, self.texts)
        said.append(self._keep_line())
        said += filter(None, [self.guarantees.label_errors])
        said.append("estimate: " + self.estimate.line())
        return said + self.spending.lines()

    def _keep_line(self) -> str:
        """How many texts are released, and how many of them must change a label."""
        keep = self.spec.mechanism.keep
        said = f"keep {keep:g}: {self.released} of the {self.records} records are released"
        if self.texts is not None or keep not in self.changes:
            return said
        said += f"; about {self.changes[keep]:.1%} of them must change a label"
        if keep < 1:
            return f"{said}, {self.changes[1.0]:.1%} if all were released"
        return f"{said}; `keep: 0.6` leaves fewer to change"


def check(spec: Spec) -> Check:
    """Read both sets, state the guarantee and estimate the work.

    Raises:
        QuantextError: whatever would stop a release.
    """
    source = read_private(spec)
    texts, codes = read_auxiliary(spec)
    refuse_private_auxiliary(spec, source, texts)
    characters = sum(len(record.text) for record in source) / len(source)
    found = guarantees(spec, len(source), codes, rehearse(spec, texts, codes))
    rewriting = spec.rewriting
    texts_to_come = outlook(spec, len(source), codes) if rewriting.own_words else None
    warnings = [*source.table.warnings, *found.notes]
    if (warning := tracing_warning()) is not None:
        warnings.append(warning)
    if not spec.secrets:
        warnings.append("no secret is named; the bound is stated for any one proportion of the records")
    if rewriting.own_words:
        warnings += own_words_warnings(spec, source, codes)
    return Check(
        spec=spec,
        records=len(source),
        auxiliary=len(texts),
        dropped=dict(source.dropped),
        guarantees=found,
        estimate=estimate(
            spec,
            len(source),
            characters=characters,
            public=texts,
            written=1.0 if texts_to_come is None else texts_to_come.others,
        ),
        released=released_count(len(source), spec.mechanism.keep),
        changes=expected_changes(spec, codes) if rewriting.needs_model else {},
        texts=texts_to_come,
        spending=spending_of(spec, source, adding=found.worst.bound_nats, cap_nats=found.worst.cap_nats),
        warnings=tuple(warnings),
    )


def check_tradeoff(
    spec: Spec,
    *,
    n: int | None = None,
    budgets: Sequence[float] | None = None,
    progress: Progress | None = None,
) -> list[TradeoffPoint]:
    """What each budget buys; with `n` given the private file is not opened, else its records are counted.

    Args:
        budgets: nats; by default those of `tradeoff`.

    Raises:
        QuantextError: no auxiliary set or one of a few rows, or a private file that cannot be read.
    """
    _, codes = read_auxiliary(spec)
    if n is None:
        n = len(read_private(spec))
    return tradeoff(spec, codes, n=n, budgets=budgets, progress=progress)
