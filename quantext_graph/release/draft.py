"""A spec from what somebody proposes: what a chat writes, checked against the files it names.

A category becomes public when the spec names it, since the card prints it. So none is taken from the
private file: it comes from the proposal or from the auxiliary file, and where the private column
holds others, the proposal is refused and the person is shown which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from quantext_graph.data.inspection import ColumnSummary, DatasetSummary, inspect
from quantext_graph.spec.errors import QuantextError, SpecError
from quantext_graph.spec.loading import parse_spec
from quantext_graph.spec.models import DEFAULT_CHAT, Spec

SUFFIXES = (".yaml", ".yml")


class UnnamedCategories(QuantextError):
    """Categories that stand in the private file alone. The line names them, so it is for the person."""

    withheld = (
        "a column of the private file holds categories that neither the proposal nor the auxiliary file "
        "names; the person has been shown which: ask which may be public, name them all, or correct the file"
    )


class _Proposed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ProposedCategory(_Proposed):
    name: str = Field(min_length=1, description="exactly as it stands in the files")
    description: str = Field("", description="what a text of this category says, in a few words")
    word: str = Field("", description="a noun for such a writer or text, for example 'supporter'")


class ProposedAttribute(_Proposed):
    name: str = Field(min_length=1, description="what the attribute is called, for example Stance")
    description: str = Field("", description="what it says about a text or its writer")
    column: str | None = Field(
        None, description="column of the private file that labels it; leave out and the texts are labelled"
    )
    categories: list[ProposedCategory] = Field(
        default=[], description="its categories; those in the auxiliary file are added by themselves"
    )


class ProposedSecret(_Proposed):
    """A proportion to hide: the share of records in the named categories."""

    name: str = Field("", description="in words, for example 'share of patients with diabetes'")
    where: dict[str, list[str]] = Field(description="{attribute: [category, ...]}")


class Proposal(_Proposed):
    """What is released, what is secret in it, and how."""

    data: str = Field(description="path of the private file")
    text: str | None = Field(None, description="its text column; the one with the longest cells if left out")
    auxiliary: str | None = Field(
        None, description="path of a public, labelled file; needed for more than one attribute"
    )
    attributes: list[ProposedAttribute] = Field(
        min_length=1, description="what must stay useful, or is secret"
    )
    secrets: list[ProposedSecret] = Field(min_length=1, description="the proportions to hide")
    budget_nats: float = Field(1.0, ge=0, le=100, description="what the release may leak about each secret")
    keep: float = Field(
        1.0, gt=0, le=1, description="share of the records that is released; at 0.6 few texts must change"
    )
    model: str = Field(DEFAULT_CHAT, description="model on this machine that rewrites, as provider:name")
    base_url: str | None = Field(None, description="address of an openai: or ollama: model on this machine")
    attempts: int = Field(3, ge=1, le=20, description="tries to write a text on its target")
    min_verified: float = Field(0.8, ge=0, le=1, description="share that must succeed to publish")
    on_missing: Literal["error", "drop"] = Field("error", description="records without a text or label")
    output: str = Field("release", description="the release folder, from the spec's own folder")


@dataclass(frozen=True)
class Draft:
    """A spec that loads, and what is written of it."""

    spec: Spec
    text: str


def draft(proposal: Proposal, folder: Path) -> Draft:
    """The spec of a proposal; relative paths are taken from `folder`, where the spec will stand.

    Models that are not on this machine cannot be proposed: whoever allows that writes it by hand.

    Raises:
        UnnamedCategories: where a private column holds categories that nobody named.
        SpecError: what else keeps it from being a spec; no private category is named.
        RecordsError: a file that cannot be read.
    """
    data = inspect(folder / Path(proposal.data).expanduser(), None)
    public = proposal.auxiliary and inspect(folder / Path(proposal.auxiliary).expanduser(), None)
    text = proposal.text or data.text
    if text is None:
        raise SpecError(f"{data.path}: no column looks like texts; name the text column")
    raw: dict[str, Any] = {"data": {"path": str(data.path), "text": _known(data, text)}}
    if public:
        raw["auxiliary"] = {"path": str(public.path), "text": _text_like(public, text)}
    raw["attributes"] = [_attribute(attribute, data, public or None) for attribute in proposal.attributes]
    raw["secrets"] = [secret.model_dump(exclude_defaults=True) for secret in proposal.secrets]
    raw["mechanism"] = {
        "selection": "joint",
        "pool": "public" if public else "dirichlet",
        "budget_nats": proposal.budget_nats,
        "keep": proposal.keep,
        "targets": "quota",
    }
    chat = {"model": proposal.model} | ({"base_url": proposal.base_url} if proposal.base_url else {})
    raw["models"] = {"chat": chat, "allow_remote": False}
    raw["limits"] = proposal.model_dump(include={"attempts", "min_verified", "on_missing"})
    raw["output"] = {"path": proposal.output, "format": "csv", "attributes": True}
    spec = parse_spec(raw, folder=folder)
    written = yaml.safe_dump(raw, sort_keys=False, allow_unicode=True, width=100)
    return Draft(spec, f"# Look it over: `quantext check` says what it promises.\n{written}")


def _known(look: DatasetSummary, name: str) -> str:
    if all(column.name != name for column in look.columns):
        raise SpecError(f"{look.path}: no column is called {name!r}; look at the file for their names")
    return name


def _text_like(public: DatasetSummary, text: str) -> str:
    if any(column.name == text for column in public.columns):
        return text
    if public.text is None:
        raise SpecError(f"{public.path}: no column looks like texts; call it {text!r} as in the data")
    return public.text


def _attribute(
    proposed: ProposedAttribute, data: DatasetSummary, public: DatasetSummary | None
) -> dict[str, Any]:
    raw: dict[str, Any] = {"name": proposed.name}
    if proposed.description:
        raw["description"] = proposed.description
    column = _column(data, proposed.column) if proposed.column else None
    if column is not None:
        raw["column"] = column.name
    named = [category.model_dump(exclude_defaults=True) for category in proposed.categories]
    known = {category["name"] for category in named}
    beside = _column_of(public, (proposed.column, proposed.name))
    added = [name for name in (beside.categories if beside else ()) if name not in known]
    if column is not None:
        unnamed = sorted(set(column.categories) - known - set(added))
        if unnamed:
            raise UnnamedCategories(
                f"{data.path}, column {column.name}: holds also {', '.join(map(repr, unnamed))}; name "
                "every category that may be public, or correct the file"
            )
    raw["categories"] = [*named, *({"name": name} for name in added)]
    if not raw["categories"]:
        raise SpecError(f"attribute {proposed.name!r}: no categories are known; name them")
    return raw


def _column(data: DatasetSummary, name: str) -> ColumnSummary:
    found = _column_of(data, (_known(data, name),))
    if found is None:
        raise SpecError(
            f"{data.path}, column {name!r}: not 2 to 20 short values shared by several rows, so it labels no "
            "attribute; leave `column` out and the texts are labelled"
        )
    return found


def _column_of(look: DatasetSummary | None, names: Sequence[str | None]) -> ColumnSummary | None:
    """The first of these columns that is categorical."""
    for name in names:
        for column in look.categorical if look else ():
            if column.name == name:
                return column
    return None
