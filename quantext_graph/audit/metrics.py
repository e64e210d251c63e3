"""The metrics of utility, ours and those of other packages: what each says of itself, and all of them
for one release."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy.typing as npt

from quantext_graph.audit.utility import Comparison, Reference
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.registry import Registry, derived_from


class Metric(ABC):
    """One measure of what a release is still good for.

    `name` is what tables and files call it, `title` a heading, `phrase` its place in a sentence; `meaning`
    says in a few words what is compared. `aggregated`: it counts for the aggregate, which is the mean of
    the paper's four, so that the figure means the same wherever other packages are installed.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    phrase: ClassVar[str]
    meaning: ClassVar[str]
    aggregated: ClassVar[bool] = False

    @abstractmethod
    def measure(self, release: Comparison) -> float:
        """The raw value."""

    def rescaled(self, value: float) -> float:
        """A raw value on [0, 1], 1 the best."""
        return unit(value)

    def raw(self, release: Utility) -> str:
        """The raw value in words, where the rescaled one does not say it all."""
        return f"{release.values[self.name]:.4g}"


class KnnPrecision(Metric):
    """Of Kynkäänniemi et al. 2019, on embeddings."""

    name: ClassVar[str] = "knn_precision"
    title: ClassVar[str] = "KNN precision"
    phrase: ClassVar[str] = "precision"
    meaning: ClassVar[str] = "released texts that lie among the private ones"
    aggregated: ClassVar[bool] = True

    def measure(self, release: Comparison) -> float:
        return release.precision_recall.precision

    def raw(self, release: Utility) -> str:  # noqa: ARG002  (the score is the value)
        return ""


class KnnRecall(KnnPrecision):
    """The converse of `KnnPrecision`."""

    name: ClassVar[str] = "knn_recall"
    title: ClassVar[str] = "KNN recall"
    phrase: ClassVar[str] = "recall"
    meaning: ClassVar[str] = "private texts that lie among the released ones"

    def measure(self, release: Comparison) -> float:
        return release.precision_recall.recall


class FrechetDistance(Metric):
    """Of Heusel et al. 2017. Rescaled as 1 − FID/2: two independent draws of unit vectors are 2 − 2μ₁·μ₂
    apart."""

    name: ClassVar[str] = "fid"
    title: ClassVar[str] = "Fréchet distance"
    phrase: ClassVar[str] = "the Fréchet distance"
    meaning: ClassVar[str] = "how far the corpora are apart as a whole"
    aggregated: ClassVar[bool] = True

    def measure(self, release: Comparison) -> float:
        return release.frechet

    def rescaled(self, value: float) -> float:
        return unit(1 - value / 2)

    def raw(self, release: Utility) -> str:
        return f"{release.values[self.name]:.4f}"


class AttributeMatch(Metric):
    """Mean over the features: 1 − TV of each attribute, and length as 1 − W₂ / mean private length."""

    name: ClassVar[str] = "attribute_match"
    title: ClassVar[str] = "Attribute match"
    phrase: ClassVar[str] = "attribute match"
    meaning: ClassVar[str] = "lengths and categories alike"
    aggregated: ClassVar[bool] = True

    def measure(self, release: Comparison) -> float:
        mean = release.reference.mean_length
        length = unit(1 - release.length_w2 / mean) if mean else 0.0
        features = [length, *(1 - tv for tv in release.attribute_tv.values())]
        return sum(features) / len(features)

    def raw(self, release: Utility) -> str:
        tv = ", ".join(f"{name} {value:.3f}" for name, value in release.attribute_tv.items())
        return f"TV {tv or 'no attribute'}; length W₂ {release.length_w2:.2f} tokens"


METRICS: Registry[type[Metric]] = Registry(
    "metric",
    "quantext_graph.metrics",
    {
        kind.name: f"{__name__}:{kind.__name__}"
        for kind in (KnnPrecision, KnnRecall, FrechetDistance, AttributeMatch)
    },
    derived_from(Metric),
)


@dataclass(frozen=True)
class Utility:
    """The metrics of one release by name: `values` are raw, `rescaled` on [0, 1], 1 the best.

    `attribute_tv` compares the private labels with what the released texts *say*, `assigned_tv` with the
    targets that were assigned to them. An attribute nobody labelled is not in them. `missing` says in one
    line of each metric why it could not be had.
    """

    values: Mapping[str, float]
    rescaled: Mapping[str, float]
    length_w2: float
    attribute_tv: Mapping[str, float]
    assigned_tv: Mapping[str, float] = field(default_factory=dict)
    missing: Sequence[str] = ()

    @property
    def aggregate(self) -> float:
        """Mean of the rescaled metrics that count for it."""
        counted = [value for name, value in self.rescaled.items() if METRICS.find(name).aggregated]
        return sum(counted) / len(counted)

    def to_json(self) -> dict[str, object]:
        return {
            **self.values,
            "aggregate": self.aggregate,
            "rescaled": dict(self.rescaled),
            "length_w2": self.length_w2,
            "attribute_tv": dict(self.attribute_tv),
            "assigned_tv": dict(self.assigned_tv),
        }


def compare(
    reference: Reference,
    released_texts: Sequence[str],
    released: npt.ArrayLike,
    *,
    attribute_tv: Mapping[str, float],
    assigned_tv: Mapping[str, float] | None = None,
) -> Utility:
    """All metrics of one release, given its texts, their (n', d) embeddings and the TV of the attributes.

    Raises:
        ValueError: as `knn_precision_recall`.
    """
    release = Comparison.of(reference, released_texts, released, attribute_tv)
    known = METRICS.known()
    values: dict[str, float] = {}
    rescaled: dict[str, float] = {}
    missing = list(known.broken.values())
    for name, kind in known.loaded.items():
        try:
            metric = kind()
            value = float(metric.measure(release))
            rescaled[name] = unit(metric.rescaled(value))
            values[name] = value
        except QuantextError as error:
            missing.append(f"{name}: {error}")
        except Exception as error:  # somebody else's code: it may not stop the others
            if METRICS.owns(name) or os.environ.get("QUANTEXT_DEBUG"):
                raise
            missing.append(f"{name}: failed ({type(error).__name__}); QUANTEXT_DEBUG=1 shows where")
    return Utility(values, rescaled, release.length_w2, attribute_tv, assigned_tv or {}, tuple(missing))


def unit(value: float) -> float:
    return min(1.0, max(0.0, value))
