"""The experiment file as Pydantic models, and the cells that it asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from quantext_graph.experiments.baselines import Method, find_method
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.loading import anchored, mapping, read_text, validated
from quantext_graph.spec.models import Attribute, Auxiliary, Limits, ModelRef, Models, Secret, Source, Spec

SIMULATED_ATTACKERS = ("true labels", "words", "characters")
"""Who reads the texts of a simulation: one who errs never, and two classifiers with their held-out errors."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Share = float | Annotated[tuple[float, ...], Field(min_length=2, max_length=2)]


class Split(_Model):
    """How many records of the data are private and how many are public, parted anew in each repeat.

    `shares` picks the private set so that the first secret has that share: one scenario for each, a number
    or [low, high], from which each repeat takes one at random. The auxiliary set stays as the data are.
    """

    private: int = Field(ge=1)
    auxiliary: int = Field(ge=0)
    shares: tuple[Share, ...] = ()


class Entry(_Model):
    """One method with its settings, and the budgets it is tried at (none: once, as it is)."""

    method: str
    label: str = ""
    settings: dict[str, Any] = {}
    budgets: tuple[dict[str, float], ...] = ()

    @model_validator(mode="after")
    def _known(self) -> Entry:
        for budget in self.budgets or ({},):
            self.at(budget)
        return self

    def at(self, budget: Mapping[str, float]) -> Method:
        """The method at a budget.

        Raises:
            ValueError: a budget or a setting that it does not know.
        """
        try:
            kind = find_method(self.method)
        except QuantextError as error:
            raise ValueError(str(error)) from None
        if budget and frozenset(budget) not in kind.budgets:
            known = " or ".join(" with ".join(sorted(names)) for names in kind.budgets) or "none"
            given = " with ".join(sorted(budget))
            raise ValueError(f"method {self.method} knows no budget of {given}; it knows {known}")
        try:
            return kind.model_validate({**self.settings, **{k: _number(v) for k, v in budget.items()}})
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            told = first["msg"].removeprefix("Value error, ")
            raise ValueError(f"method {self.method}: {f'{place}: ' if place else ''}{told}") from None

    def title(self) -> str:
        return self.label or find_method(self.method).title


def _number(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value


def _entry(value: Any) -> Any:
    """A method by name, or with settings beside `budgets` and `label`."""
    if isinstance(value, str):
        return {"method": value}
    if not isinstance(value, dict):
        return value
    own = {key: value[key] for key in ("method", "label", "budgets") if key in value}
    return {**own, "settings": {key: item for key, item in value.items() if key not in own}}


class Experiment(_Model):
    """A whole comparison.

    Without `auxiliary` the public records are parted from the data. `attackers` are the chat models that
    read the released texts; of a simulation, any of `SIMULATED_ATTACKERS`.
    """

    title: str = ""
    data: Source
    auxiliary: Auxiliary | None = None
    attributes: tuple[Attribute, ...] = Field(min_length=1)
    secrets: tuple[Secret, ...] = Field(min_length=1)
    split: Split
    repeats: int = Field(10, ge=1)
    seed: int = 0
    methods: tuple[Annotated[Entry, BeforeValidator(_entry)], ...] = Field(min_length=1)
    models: Models = Models()
    attackers: tuple[ModelRef, ...] = ()
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _check(self) -> Experiment:
        self.spec  # noqa: B018  (its own checks of secrets and attributes)
        for attribute in self.attributes:
            if attribute.column is None:
                raise ValueError(
                    f"attribute {attribute.name!r}: an experiment needs its column; add `column:`"
                )
        names = [attacker.model for attacker in self.attackers]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"attackers: {name} stands twice; keep one")
        return self

    @property
    def spec(self) -> Spec:
        """Attributes, secrets, models and limits in the words of a release."""
        return Spec(
            data=self.data,
            auxiliary=self.auxiliary,
            attributes=self.attributes,
            secrets=self.secrets,
            models=self.models,
            limits=self.limits,
        )

    def reduced(self, rows: int | None, repeats: int | None, data: Path | None) -> Experiment:
        """With other private rows, repeats or data."""
        changed: dict[str, Any] = {}
        if rows is not None:
            changed["split"] = self.split.model_copy(update={"private": rows})
        if repeats is not None:
            changed["repeats"] = repeats
        if data is not None:
            changed["data"] = self.data.model_copy(update={"path": data})
        return self.model_copy(update=changed)


@dataclass(frozen=True)
class Cell:
    """One release to make: a method at a budget, in one scenario and repeat, hiding `secrets`."""

    entry: Entry
    budget: Mapping[str, float]
    scenario: int
    repeat: int
    secrets: tuple[Secret, ...]

    @property
    def method(self) -> Method:
        return self.entry.at(self.budget)

    @property
    def budget_name(self) -> str:
        return " ".join(f"{name}={value:g}" for name, value in self.budget.items())


def cells(experiment: Experiment) -> Iterator[Cell]:
    """All releases, repeat by repeat. A method that looks at the secrets hides one at a time; of any
    other one release serves for all."""
    for repeat in range(experiment.repeats):
        for scenario in range(max(1, len(experiment.split.shares))):
            for entry in experiment.methods:
                for budget in entry.budgets or ({},):
                    apart = entry.at(budget).depends_on_secrets
                    groups = [(s,) for s in experiment.secrets] if apart else [experiment.secrets]
                    for secrets in groups:
                        yield Cell(entry, budget, scenario, repeat, secrets)


READY = ("tweet_stance", "tweet_stance_shifted", "dialogues_gender", "dialogues_diagnosis")


def load_experiment(path: Path) -> Experiment:
    """Read an experiment file, or the ready one of that name; its paths are taken from its own folder,
    those of a ready one from the current folder.

    Raises:
        SpecError: one line for the first mistake.
    """
    folder = path.parent
    if not path.exists() and path.stem in READY and folder == Path():
        text = (files(__package__) / f"{path.stem}.yaml").read_text(encoding="utf-8")
    else:
        text = read_text(path, f"the ready ones are {', '.join(READY)}")
    raw = mapping(
        text, str(path), "an experiment is a mapping with data, attributes, secrets, split, methods"
    )
    return anchored(validated(Experiment, raw, str(path)), folder)
