"""What has been spent on a private data set, and what a new release would make of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from quantext_graph.data.records import Records, open_table
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.ledger import Entry, Ledger, NearCopy


@dataclass(frozen=True)
class Spending:
    """Leakage bounds summed over the releases of one data set, in nats.

    `adding` is the bound of a release that is about to be made, `cap_nats` = log|G| of its secret.
    """

    data: Path
    n: int
    entries: tuple[Entry, ...]
    near_copies: tuple[NearCopy, ...]
    adding: float | None = None
    cap_nats: float | None = None

    @property
    def spent(self) -> float:
        return sum(entry.bound_nats for entry in self.entries)

    @property
    def over_cap(self) -> bool:
        """Whether the sum would pass the cap although this release alone does not reach it."""
        if self.adding is None or self.cap_nats is None or not self.entries:
            return False
        return self.spent + self.adding >= self.cap_nats

    def lines(self) -> list[str]:
        said = [
            f"{self.data}: {len(self.entries)} releases so far, {self.spent:.2f} nats spent"
            if self.entries
            else f"{self.data}: no release so far on this machine"
        ]
        if self.adding is not None:
            total = self.spent + self.adding
            said.append(f"this release adds at most {self.adding:.2f} nats, {total:.2f} in all")
        if self.over_cap:
            said.append(
                f"together they pass the cap of {self.cap_nats:.2f} nats: the sum promises nothing any more"
            )
        for copy in self.near_copies:
            said.append(
                f"{copy.share:.0%} of these texts were released before in a set of {copy.n} records "
                f"({copy.spent_nats:.2f} nats); what was spent there counts for them too"
            )
        return said

    def to_json(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "spent_nats": self.spent,
            "releases": [{**asdict(entry), "when": entry.when.isoformat()} for entry in self.entries],
            "near_copies": [{**asdict(copy), "when": copy.when.isoformat()} for copy in self.near_copies],
        }


def spending(data: Path, text: str | None = None) -> Spending:
    """Look a data set up in the ledger; `text` is its text column, guessed where it is None."""
    table = open_table(data)
    column = table.column(text or _text_column(table.columns))
    texts = (row.values[column] for row in table)
    return _look_up(data, (text for text in texts if text is not None and text.strip()))


def spending_of(
    spec: Spec, records: Records, *, adding: float | None = None, cap_nats: float | None = None
) -> Spending:
    """Look up the private set of a spec by the records that a release would take in."""
    texts = (record.text for record in records)
    return _look_up(spec.data.path, texts, adding=adding, cap_nats=cap_nats)


def _look_up(data: Path, texts: Iterator[str], **adding: float | None) -> Spending:
    with Ledger.open() as ledger:
        fingerprint = ledger.fingerprint(texts)
        entries, copies = ledger.entries(fingerprint), ledger.near_copies(fingerprint)
    return Spending(data, fingerprint.n, tuple(entries), tuple(copies), **adding)


def _text_column(columns: tuple[str, ...]) -> str:
    """The column called text in one of its usual names, else the first."""
    usual = {"text", "tweet", "message", "body", "content", "review", "narrative", "comment"}
    return next((column for column in columns if column.lower() in usual), columns[0])
