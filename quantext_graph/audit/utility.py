"""What a release is still good for: distances of its texts from the private ones.

KNN precision and recall and FID compare the corpora in an embedding space, W₂ compares their token
lengths, TV their attributes. Nearest neighbours are exact at any size: distances are computed in
blocks, so memory is O(n·block) and never n×n.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from quantext_graph.core.arrays import Floats

NEIGHBOUR = 3
"""Which nearest neighbour sets the radius (the paper's k)."""

BLOCK_ENTRIES = 20_000_000  # 160 MB of distances at a time
# Squared distances come from inner products, which leave about 1e-15 of the squared norm between equal
# points; what is nearer than this share of the largest squared norm counts as equal.
EQUAL = 1e-12

# A token is a word, a number, a punctuation mark, or one character of a script without spaces.
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+|[^\w\s]")


class PrecisionRecall(NamedTuple):
    """`precision`: share of released points inside the private manifold; `recall`: the converse."""

    precision: float
    recall: float


def knn_precision_recall(
    private: npt.ArrayLike, released: npt.ArrayLike, k: int = NEIGHBOUR
) -> PrecisionRecall:
    """Share of the points of one corpus that lie within some point of the other's k-NN radius.

    A point's radius is its distance to its k-th nearest neighbour in its own corpus, itself excluded
    (Kynkäänniemi et al. 2019). A corpus with k points or fewer takes its farthest one, a single point
    has radius 0.

    Args:
        private: (n, d) embeddings.
        released: (n', d) embeddings.
        k: which neighbour sets the radius.

    Raises:
        ValueError: if a corpus is empty, not finite, or the dimensions differ.
    """
    reference, points = _embedded(private, released)
    return _precision_recall(reference, _radii(reference, k), points, _radii(points, k))


def _precision_recall(reference: Floats, inner: Floats, points: Floats, outer: Floats) -> PrecisionRecall:
    """With the radii of both, (n,) and (n',)."""
    centre = reference.mean(axis=0)  # a smaller norm leaves more digits for the distances
    reference, points = reference - centre, points - centre
    equal = EQUAL * max(_squared(reference).max(), _squared(points).max())
    reach_private = _squared(reference) - inner**2
    reach_released = _squared(points) - outer**2
    precise = np.empty(len(points), dtype=bool)
    nearest = np.full(len(reference), np.inf)
    block = max(1, BLOCK_ENTRIES // len(reference))
    for start in range(0, len(points), block):
        rows = slice(start, start + block)
        # |x - y|² ≤ r_y²  ⇔  |y|² - r_y² - 2x·y ≤ -|x|²: one product serves both directions.
        product = -2 * (points[rows] @ reference.T)
        precise[rows] = (product + reach_private).min(axis=1) <= equal - _squared(points[rows])
        product += reach_released[rows, None]
        np.minimum(nearest, product.min(axis=0), out=nearest)
    recalled = nearest <= equal - _squared(reference)
    return PrecisionRecall(float(precise.mean()), float(recalled.mean()))


def frechet_distance(private: npt.ArrayLike, released: npt.ArrayLike) -> float:
    """‖μ₁−μ₂‖² + Tr(Σ₁+Σ₂−2(Σ₁Σ₂)^½) of two (n, d) sets of embeddings, Σ unbiased (Heusel et al. 2017).

    Tr (Σ₁Σ₂)^½ is the nuclear norm of Σ₁^½·Σ₂^½, which stays exact where Σ is singular (fewer texts than
    dimensions). One point alone has Σ = 0.

    Raises:
        ValueError: as `knn_precision_recall`.
    """
    reference, points = _embedded(private, released)
    first = _covariance(reference)
    return _frechet(reference.mean(axis=0), first, _root(first), points)


def _frechet(mean: Floats, first: Floats, root: Floats, points: Floats) -> float:
    """With the mean, the covariance and its root of the other side."""
    shift, second = mean - points.mean(axis=0), _covariance(points)
    cross = np.linalg.svd(root @ _root(second), compute_uv=False).sum()
    return max(0.0, float(shift @ shift + np.trace(first) + np.trace(second) - 2 * cross))


def length_wasserstein(private: Sequence[float], released: Sequence[float]) -> float:
    """W₂ of two samples of lengths: the root mean squared gap between their quantile functions.

    Raises:
        ValueError: if a sample is empty.
    """
    if not len(private) or not len(released):
        raise ValueError("lengths of at least one text are needed on either side")
    first, second = np.sort(np.asarray(private, float)), np.sort(np.asarray(released, float))
    n, m = len(first), len(second)
    # Both quantile functions are constant between neighbouring cuts, counted in steps of 1/(n·m).
    cuts = np.union1d(np.arange(n + 1, dtype=np.int64) * m, np.arange(m + 1, dtype=np.int64) * n)
    gaps = first[cuts[:-1] // m] - second[cuts[:-1] // n]
    return float(np.sqrt(np.sum(np.diff(cuts) / (n * m) * gaps**2)))


def category_tv(private: Sequence[Hashable], released: Sequence[Hashable]) -> float:
    """Total variation, in [0, 1], of the category shares of two samples.

    Raises:
        ValueError: if a sample is empty.
    """
    if not len(private) or not len(released):
        raise ValueError("categories of at least one text are needed on either side")
    first, second = Counter(private), Counter(released)
    n, m = len(private), len(released)
    gaps = (abs(first[category] / n - second[category] / m) for category in {*first, *second})
    return sum(sorted(gaps)) / 2  # sorted: the sum must not depend on hashing


def token_length(text: str) -> int:
    """Number of words, numbers and punctuation marks; a character is a word in scripts without spaces."""
    return len(_TOKEN.findall(text))


class Reference:
    """The private side of a comparison, made once for many releases: (n, d) embeddings at norm 1, their
    radii, moments and token lengths.

    Raises:
        ValueError: as `knn_precision_recall`.
    """

    def __init__(self, texts: Sequence[str], points: npt.ArrayLike) -> None:
        self.texts = texts
        self.points, _ = _embedded(*[unit_norm(points)] * 2)
        self.lengths = [token_length(text) for text in texts]
        self.mean_length = float(np.mean(self.lengths))
        self.radii = _radii(self.points, NEIGHBOUR)
        self.mean, self.covariance = self.points.mean(axis=0), _covariance(self.points)
        self.root = _root(self.covariance)


@dataclass(frozen=True)
class Comparison:
    """A release beside the private corpus: n' texts, their (n', d) embeddings at norm 1, and the TV of
    each attribute. What several metrics need is computed once."""

    reference: Reference
    texts: Sequence[str] = field(repr=False)
    points: Floats = field(repr=False)
    attribute_tv: Mapping[str, float]

    @classmethod
    def of(
        cls,
        reference: Reference,
        texts: Sequence[str],
        points: npt.ArrayLike,
        attribute_tv: Mapping[str, float],
    ) -> Comparison:
        """With embeddings of any norm.

        Raises:
            ValueError: as `knn_precision_recall`.
        """
        return cls(reference, texts, _embedded(reference.points, unit_norm(points))[1], attribute_tv)

    @cached_property
    def precision_recall(self) -> PrecisionRecall:
        private = self.reference
        return _precision_recall(private.points, private.radii, self.points, _radii(self.points, NEIGHBOUR))

    @cached_property
    def frechet(self) -> float:
        private = self.reference
        return _frechet(private.mean, private.covariance, private.root, self.points)

    @cached_property
    def length_w2(self) -> float:
        return length_wasserstein(self.reference.lengths, [token_length(text) for text in self.texts])


def unit_norm(embeddings: npt.ArrayLike) -> Floats:
    """(n, d) embeddings at norm 1, the scale on which FID is rescaled; the zero vector of a text that has
    no known word stays zero."""
    rows = np.asarray(embeddings, dtype=np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return unit


def _embedded(private: npt.ArrayLike, released: npt.ArrayLike) -> tuple[Floats, Floats]:
    first, second = np.asarray(private, np.float64), np.asarray(released, np.float64)
    for name, rows in (("private", first), ("released", second)):
        if rows.ndim != 2 or not len(rows):
            raise ValueError(f"{name} embeddings must be (n, d) with n ≥ 1, got shape {rows.shape}")
        if not np.isfinite(rows).all():
            raise ValueError(f"{name} embeddings hold values that are not finite")
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"embeddings differ in dimension: {first.shape[1]} private, {second.shape[1]} released"
        )
    return first, second


def _radii(points: Floats, k: int) -> Floats:
    """(n,) distance of each point to its k-th nearest other one."""
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    k = min(k, len(points) - 1)
    if k == 0:
        return np.zeros(1)
    from sklearn.neighbors import NearestNeighbors  # takes a second, and most commands compare nothing

    distances, _ = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points).kneighbors()
    return np.asarray(distances[:, -1], dtype=np.float64)


def _squared(points: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", points, points), dtype=np.float64)


def _covariance(points: Floats) -> Floats:
    if len(points) == 1:
        return np.zeros((points.shape[1], points.shape[1]))
    return np.asarray(np.atleast_2d(np.cov(points, rowvar=False)), dtype=np.float64)


def _root(covariance: Floats) -> Floats:
    values, vectors = eigh(covariance)
    scaled: Floats = vectors * np.sqrt(np.clip(values, 0, None))
    return scaled @ vectors.T
