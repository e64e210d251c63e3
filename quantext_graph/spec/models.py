"""The YAML spec as Pydantic models: what is released, what is secret, and how."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from quantext_graph.spec.errors import unknown_name
from quantext_graph.spec.own_words import check_own_words


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)


class Source(_Model):
    """A file of records: its path, the column that holds the text, and how to read it."""

    path: Path
    text: str = "text"
    encoding: str | None = None
    delimiter: str | None = None


class Auxiliary(Source):
    """The public auxiliary set; `columns` maps an attribute to the column that labels it there."""

    columns: dict[str, str] = {}


class Category(_Model):
    """One value of an attribute. All but the name help models to read and write it.

    `word` names a person or text of this category ("supporter"); `opinions` are first-person
    sentences that such a writer would sign.
    """

    name: str = Field(min_length=1)
    description: str = ""
    word: str = ""
    opinions: tuple[str, ...] = ()


def _category(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


Labeller = Literal["auto", "column", "llm", "classifier", "both"]


class Attribute(_Model):
    """An attribute type φ with its ψ categories.

    `labels` says where the private labels come from; `auto` is `column` where a column is named,
    else `both` where the auxiliary set is labelled and has at least 300 rows, else `llm`.
    `weight` is what a changed attribute costs in the matching (Alg. 1 line 13).
    """

    name: str = Field(min_length=1)
    categories: tuple[Annotated[Category, BeforeValidator(_category)], ...] = Field(min_length=1)
    column: str | None = None
    description: str = ""
    labels: Labeller = "auto"
    weight: float = Field(1.0, gt=0, le=1000, allow_inf_nan=False)

    @property
    def by_column(self) -> bool:
        """Whether a column of the private set gives the labels."""
        return self.column is not None and self.labels in ("auto", "column")

    @property
    def category_names(self) -> tuple[str, ...]:
        return tuple(category.name for category in self.categories)

    def code(self, name: str) -> int:
        """Index of the category called `name`; raises `ValueError` where there is none."""
        return self.category_names.index(name)

    @model_validator(mode="after")
    def _check(self) -> Attribute:
        names = self.category_names
        double = sorted({name for name in names if names.count(name) > 1})
        if double:
            raise ValueError(f"category {double[0]!r} stands twice in attribute {self.name!r}; keep one")
        if self.labels == "column" and self.column is None:
            raise ValueError(f"attribute {self.name!r} is labelled by column but names none; add `column:`")
        return self


def _categories(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class Secret(_Model):
    """A proportion to hide: the share of records whose attributes all lie in the named categories.

    `precision` is the step in which the secret is counted (default 1/n); it sets the cap log|G|.
    """

    name: str = ""
    where: dict[str, Annotated[tuple[str, ...], BeforeValidator(_categories)]] = Field(min_length=1)
    precision: float | None = Field(None, gt=0, le=1)

    @property
    def title(self) -> str:
        clauses = (f"{key} = {' or '.join(values)}" for key, values in self.where.items())
        return self.name or ", ".join(clauses)


PAPER_DEFAULTS = {"pool": "dirichlet", "targets": "iid"}
RECOMMENDED_DEFAULTS = {"pool": "public", "targets": "quota", "budget_nats": 1.0}


class Mechanism(_Model):
    """How the released distribution is chosen. What is left out follows the selection rule: the
    paper's setting for `per_component`, the recommended one for `joint`.

    `selection`: `per_component` (the paper's rule; `gamma` candidates, `k` kept) or `joint`
    (`budget_nats`). `pool`: `dirichlet` (the paper's, `alpha`, `pool_size` draws) or `public`
    (around the auxiliary joint, `spread` along the secrets). `targets`: `iid` or `quota`.
    `keep` is κ: ⌊κ·n⌋ of the n records are released, public and fixed before the draw. With fewer texts than
    records, a target goes to a record that already has it wherever there is one; 1 is the paper.
    `blind` keeps the joint rule from looking at the secrets' shares when it selects.
    `tree` (child: parent) replaces the tree learned from the auxiliary set. `log_l` is the style
    term log l of the bound, an assumption. `seed` is for tests and experiments only: a release
    made with it is not private, and says so.
    """

    selection: Literal["per_component", "joint"] = "joint"
    pool: Literal["dirichlet", "public"] = "public"
    gamma: int = Field(120, ge=1)
    k: int = Field(30, ge=1)
    alpha: float = Field(1.0, gt=0, allow_inf_nan=False)
    pool_size: int | None = Field(None, ge=1)
    spread: float | None = Field(None, ge=0, le=1)
    budget_nats: float | None = Field(None, ge=0, allow_inf_nan=False)
    targets: Literal["iid", "quota"] = "quota"
    keep: float = Field(1.0, gt=0, le=1)
    blind: bool = False
    tree: dict[str, str] | None = None
    log_l: float = Field(0.0, ge=0, allow_inf_nan=False)
    seed: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        paper = raw.get("selection", "joint") == "per_component"
        filled = {**(PAPER_DEFAULTS if paper else RECOMMENDED_DEFAULTS), **raw}
        if filled["pool"] == "public" and "spread" not in raw:
            filled["spread"] = 0.3
        return filled

    @model_validator(mode="after")
    def _check(self) -> Mechanism:
        if self.selection == "per_component" and self.k > self.gamma:
            raise ValueError(
                f"k = {self.k} candidates cannot be kept of gamma = {self.gamma}; lower k or raise gamma"
            )
        return self


Recipe = Literal["notes", "source", "none"]
Shortage = Literal["notes", "public"]


class Rewriting(_Model):
    """How a text is made of a record and its target.

    `recipe`: `notes` (neutral notes of the whole record, the same for every record, then a text from notes
    and target), `source` (the paper's Alg. 1 line 17: the rewriter sees record, snippets and target) or
    `none` (a record that has its target is published in its own words). `shortage` says where the other
    texts come from by `none`: written by `notes`, or public texts of the target, without any model.
    `openings` begins each text with a few words for its target: small models need them, capable ones
    do not; `auto` is `always` for an embedded model. By `none` the labels come from columns, or a measured
    `label_error` says how many in a hundred are wrong: below 2.
    """

    recipe: Recipe = "notes"
    shortage: Shortage = "notes"
    openings: Literal["auto", "always", "never"] = "auto"
    label_error: float | None = Field(None, ge=0, lt=1)

    @property
    def own_words(self) -> bool:
        """Whether records that have their target are published as they are."""
        return self.recipe == "none"

    @property
    def needs_model(self) -> bool:
        """Whether any text is written; else no model is opened, for labels and judgement neither."""
        return not self.own_words or self.shortage == "notes"

    @model_validator(mode="after")
    def _check(self) -> Rewriting:
        if self.shortage == "public" and self.recipe != "none":
            raise ValueError(
                f"`shortage: public` is for `recipe: none`; by `{self.recipe}` every text is written"
            )
        if self.label_error is not None and not self.own_words:
            raise ValueError(f"`label_error` is for `recipe: none`; by `{self.recipe}` it changes nothing")
        return self


class Price(_Model):
    """What a million tokens cost, read and written, in any currency."""

    input: float = Field(0.0, ge=0, allow_inf_nan=False)
    output: float = Field(0.0, ge=0, allow_inf_nan=False)


class ModelSpec(_Model):
    """A model by LangChain's `provider:model` convention, with what its client needs.

    `context` is the number of tokens its window holds, where the program cannot find out. Several
    addresses in `base_url` share the work. `price` and `tokens_per_second` (written by all calls
    together) make `check` say what a release costs and takes.
    """

    model: str
    base_url: str | tuple[str, ...] | None = None
    temperature: float | None = Field(None, ge=0)
    max_tokens: int | None = Field(None, ge=1)
    timeout: float | None = Field(None, gt=0)
    context: int | None = Field(None, ge=256)
    api_key_env: str | None = None
    price: Price | None = None
    tokens_per_second: float | None = Field(None, gt=0, allow_inf_nan=False)

    @property
    def provider(self) -> str:
        """What stands before the first colon: `embedded`, `ollama`, `openai` or another of LangChain's."""
        return self.model.partition(":")[0]

    @property
    def name(self) -> str:
        """What the provider calls the model; empty where no provider is named."""
        return self.model.partition(":")[2]

    @property
    def embedded(self) -> bool:
        """Whether it runs in this process."""
        return self.provider == "embedded"


def _model(value: Any) -> Any:
    return {"model": value} if isinstance(value, str) else value


ModelRef = Annotated[ModelSpec, BeforeValidator(_model)]

DEFAULT_CHAT = "embedded:qwen2.5-coder-1.5b"


class Models(_Model):
    """The models of a run. `verify` defaults to `chat`; `evaluate`, which takes no part in picking,
    labels the finished release and defaults to `verify`."""

    chat: ModelRef = ModelSpec(model=DEFAULT_CHAT)
    verify: ModelRef | None = None
    evaluate: ModelRef | None = None
    embedding: str = "wordllama"
    base_url: str | tuple[str, ...] | None = None
    allow_remote: bool = False


class Limits(_Model):
    """What a run may spend and what it must reach. `workers` are Ray's (`executor: ray`)."""

    attempts: int = Field(3, ge=1, le=20)
    candidates: int = Field(1, ge=1, le=16)
    concurrency: int = Field(8, ge=1, le=1024)
    workers: int = Field(2, ge=1, le=256)
    min_verified: float = Field(0.8, ge=0, le=1)
    on_missing: Literal["error", "drop"] = "error"
    requests_per_minute: float | None = Field(None, gt=0)
    tokens_per_minute: float | None = Field(None, gt=0)


class Output(_Model):
    """The release folder; `attributes` adds the assigned target categories as columns."""

    path: Path = Path("release")
    format: Literal["csv", "tsv", "jsonl", "parquet"] = "csv"
    attributes: bool = True

    @field_validator("format")
    @classmethod
    def _writable(cls, format_: str) -> str:
        # Here, since a run would find it out when all texts are written.
        if format_ == "parquet" and find_spec("pyarrow") is None:
            raise ValueError(
                "Parquet needs pyarrow; pip install 'quantext-graph[parquet]', or use csv or jsonl"
            )
        return format_


class Spec(_Model):
    """A whole release."""

    data: Source
    auxiliary: Auxiliary | None = None
    attributes: tuple[Attribute, ...] = Field(min_length=1)
    secrets: tuple[Secret, ...] = ()
    mechanism: Mechanism = Field(default_factory=lambda: Mechanism.model_validate({}))
    rewriting: Rewriting = Rewriting()
    models: Models = Models()
    limits: Limits = Limits()
    output: Output = Output()
    executor: Literal["threads", "ray"] = "threads"

    @property
    def sizes(self) -> tuple[int, ...]:
        """ψ_i: the number of categories of each attribute."""
        return tuple(len(attribute.categories) for attribute in self.attributes)

    @property
    def weights(self) -> tuple[float, ...]:
        return tuple(attribute.weight for attribute in self.attributes)

    @property
    def label_columns(self) -> dict[str, str]:
        """The columns of the private set that label attributes: {attribute: column}."""
        return {a.name: a.column for a in self.attributes if a.by_column and a.column}

    @property
    def auxiliary_columns(self) -> dict[str, str]:
        """The column of the auxiliary set for each attribute: as `auxiliary.columns` says, else the
        one the private set uses, else the attribute's own name."""
        given = self.auxiliary.columns if self.auxiliary else {}
        return {a.name: given.get(a.name) or a.column or a.name for a in self.attributes}

    def attribute(self, name: str) -> Attribute:
        return next(attribute for attribute in self.attributes if attribute.name == name)

    def secret_codes(self, secret: Secret) -> dict[int, tuple[int, ...]]:
        """`where` as {attribute index: category codes}, the form that `core` takes."""
        names = [attribute.name for attribute in self.attributes]
        return {
            names.index(name): tuple(self.attribute(name).code(value) for value in values)
            for name, values in secret.where.items()
        }

    @model_validator(mode="after")
    def _check(self) -> Spec:
        names = [attribute.name for attribute in self.attributes]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"attribute {name!r} stands twice; keep one")
        for secret in self.secrets:
            self._check_secret(secret, names)
        if self.rewriting.own_words:
            check_own_words(self)
        tree = self.mechanism.tree or {}
        _check_known("mechanism.tree", [*tree, *tree.values()], names)
        if self.auxiliary is not None:
            _check_known("auxiliary.columns", self.auxiliary.columns, names)
        return self

    def _check_secret(self, secret: Secret, names: list[str]) -> None:
        _check_known(f"secret {secret.title!r}", secret.where, names)
        for name, values in secret.where.items():
            known = self.attribute(name).category_names
            for value in values:
                if value not in known:
                    unknown = unknown_name(f"category of {name}", value, known)
                    raise ValueError(f"secret {secret.title!r}: {unknown}")


def _check_known(where: str, used: Iterable[str], names: list[str]) -> None:
    for name in used:
        if name not in names:
            raise ValueError(f"{where}: {unknown_name('attribute', name, names)}")
