"""The interface of a method: private and public records in, a released set and its guarantee out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict

from quantext_graph.audit.inputs import Draw
from quantext_graph.core.arrays import Codes, Floats
from quantext_graph.core.leakage import secret_levels
from quantext_graph.spec.models import Spec

PRIVATE_RECORDS = "the private records themselves"
"""The label source of a method that releases private texts as they are."""


@dataclass(frozen=True)
class Corpus:
    """n texts and their (n, m) category codes."""

    texts: Sequence[str] = field(repr=False)
    codes: Codes = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Written:
    """Texts, and the (n, m) codes of what they say where that is known without reading them."""

    texts: list[str] = field(repr=False)
    realised: Codes | None = field(default=None, repr=False)


class Writer(Protocol):
    """What puts targets into words: a language model, or the simulation of a perfect one."""

    def compose(self, targets: Codes, *, step: str) -> Written:
        """A text for each target (n, m), from the target alone. `step` names the request, so that what
        was written for it is found again."""
        ...

    def rewrite(self, texts: Sequence[str], labels: Codes, targets: Codes, *, step: str) -> Written:
        """Each private text, labelled (n, m), rewritten to its target (n, m)."""
        ...

    def vary(self, texts: Sequence[str], targets: Codes, *, step: str) -> Written:
        """Another text like each of these, which say their targets (n, m)."""
        ...


@dataclass(frozen=True)
class Task:
    """What a method is asked to release, and what with.

    `spec` names the attributes and the secrets to hide; `embed` gives (n, d) unit vectors; `folder` is
    where a method that takes long keeps what it has done. A release made with `rng` is for comparison
    only: it is not private.
    """

    spec: Spec
    private: Corpus
    auxiliary: Corpus
    writer: Writer
    embed: Callable[[Sequence[str]], Floats]
    rng: np.random.Generator
    folder: Path | None = None
    progress: Callable[[str, int, int], None] = lambda _step, _done, _total: None


@dataclass(frozen=True)
class Guarantee:
    """What a method promises about each secret, by title.

    `mechanism_nats` is what the method itself limits the leakage to (infinite where it does not),
    `bound_nats` the same capped at log|G|. `epsilon` and `delta` are of differential privacy for one
    record, which limits nothing about a proportion.
    """

    words: str
    bound_nats: Mapping[str, float]
    mechanism_nats: float = math.inf
    epsilon: float | None = None
    delta: float | None = None


def unbounded(
    spec: Spec, n: int, words: str, *, epsilon: float | None = None, delta: float | None = None
) -> Guarantee:
    """The guarantee of a method that does not limit the leakage about a proportion: log|G| of each secret."""
    caps = {secret.title: math.log(secret_levels(n, secret.precision)) for secret in spec.secrets}
    return Guarantee(words, caps, epsilon=epsilon, delta=delta)


@dataclass(frozen=True)
class Released:
    """A released set.

    `targets` (n', m) is what each text was written for, `realised` what it says where that is known;
    `sources` the private record that each was made of; `label_source` says where the label proportions
    come from; `detail` holds figures of the method's own.
    """

    texts: Sequence[str] = field(repr=False)
    guarantee: Guarantee
    label_source: str
    targets: Codes | None = field(default=None, repr=False)
    realised: Codes | None = field(default=None, repr=False)
    sources: Sequence[int] | None = field(default=None, repr=False)
    draw: Draw | None = field(default=None, repr=False)
    detail: Mapping[str, Any] = field(default_factory=dict)


class Method(BaseModel, ABC):
    """A method with its settings; a budget sets some of them anew.

    `name` is what an experiment calls it, `title` what a figure does. `budgets` are the sets of settings
    that a budget may name. `simulates`: it can do with a simulated writer. `packages`: what it imports,
    and the extra that brings it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: ClassVar[str]
    title: ClassVar[str]
    budgets: ClassVar[tuple[frozenset[str], ...]] = ()
    simulates: ClassVar[bool] = True
    packages: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""

    @property
    def depends_on_secrets(self) -> bool:
        """Whether the release differs with the secrets that are named."""
        return False

    def missing(self) -> str:
        """What to install before it can run; "" where nothing is missing."""
        lacking = [package for package in self.packages if find_spec(package) is None]
        if not lacking:
            return ""
        return f"{self.name} needs {', '.join(lacking)}; pip install 'quantext-graph[{self.extra}]'"

    @abstractmethod
    def release(self, task: Task) -> Released:
        """Make the released set.

        Raises:
            QuantextError: what keeps the method from it, in one line.
        """
