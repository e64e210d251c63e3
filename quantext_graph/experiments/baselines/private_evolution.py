"""Private Evolution for text (Aug-PE; Xie et al. 2024): a model writes, private records vote.

A population of texts is written from labels alone. In each of T rounds every private record votes for
the nearest text of its labels, Gaussian noise is added to the votes, the best are kept and varied.
A record has one vote a round, so (ε, δ) is that of T Gaussian answers of sensitivity 1, for adding or
removing one record. The label proportions are public, or noised and paid for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from quantext_graph.core.arrays import Codes, Floats, combinations
from quantext_graph.experiments.baselines.accounting import gaussian_epsilon, gaussian_sigma, usual_delta
from quantext_graph.experiments.baselines.method import Method, Released, Task, Written, unbounded
from quantext_graph.experiments.baselines.public_labels import (
    Proportions,
    drawn_labels,
    label_counts,
    label_source,
)

Rows = np.ndarray[tuple[int], np.dtype[np.int64]]


class PrivateEvolution(Method):
    """Settings of Aug-PE.

    `iterations` T; `expansion` L, the population before a vote as a multiple of n'; `lookahead`, of how
    many variations a text's place in the embedding space is the mean (0: of itself); `select` the `rank`
    best or a `sample` in proportion to the votes; `threshold` H, taken off every count; `size` n',
    n by default; `sigma` replaces what ε asks for.
    """

    name: ClassVar[str] = "private_evolution"
    title: ClassVar[str] = "Private Evolution"
    budgets: ClassVar = (frozenset({"epsilon"}), frozenset({"sigma"}))
    packages: ClassVar[tuple[str, ...]] = ("dp_accounting",)
    extra: ClassVar[str] = "pe"

    epsilon: float = Field(1.0, gt=0)
    sigma: float | None = Field(None, gt=0)
    delta: float | None = Field(None, gt=0, lt=1)
    iterations: int = Field(9, ge=1)
    expansion: int = Field(2, ge=1)
    lookahead: int = Field(0, ge=0)
    select: Literal["rank", "sample"] = "rank"
    threshold: float = Field(0.0, ge=0)
    size: int | None = Field(None, ge=1)
    labels: Proportions = "public"

    def release(self, task: Task) -> Released:
        n, spec = len(task.private), task.spec
        delta = self.delta or usual_delta(n)
        queries = self.iterations + (self.labels == "noised")
        sigma = self.sigma or gaussian_sigma(self.epsilon, queries, delta)
        epsilon = gaussian_epsilon(sigma, queries, delta)
        labels = self._labels(task, sigma)
        labels_now = np.repeat(labels, self.expansion, axis=0)
        population = task.writer.compose(labels_now, step="compose")
        voters = task.embed(task.private.texts)
        for t in range(self.iterations):
            task.progress("evolve", t, self.iterations)
            votes = self._votes(task, population, labels_now, voters, t)
            votes = votes + task.rng.normal(0, sigma, size=len(votes)) - self.threshold
            kept = self._survivors(votes, labels_now, task.rng)
            population, labels_now = _taken(population, kept), labels_now[kept]
            if t + 1 < self.iterations and self.expansion > 1:
                parents = np.repeat(np.arange(len(kept)), self.expansion - 1)
                told = labels_now[parents]
                children = task.writer.vary([population.texts[p] for p in parents], told, step=f"vary {t}")
                population, labels_now = _joined(population, children), np.concatenate([labels_now, told])
        words = f"({epsilon:.3g}, {delta:.2g})-differential privacy for one record; no bound on a proportion"
        return Released(
            texts=population.texts,
            guarantee=unbounded(spec, n, words, epsilon=epsilon, delta=delta),
            label_source=label_source(self.labels, task.auxiliary.codes),
            targets=labels_now,
            realised=population.realised,
            detail={
                "sigma": sigma,
                "iterations": self.iterations,
                "population": len(labels) * self.expansion,
            },
        )

    def _labels(self, task: Task, sigma: float) -> Codes:
        """The labels of the n' texts; they stay through all rounds."""
        sizes = task.spec.sizes
        if self.labels == "noised":
            counts = label_counts(task.private.codes, sizes)
            counts = counts + task.rng.normal(0, sigma, size=len(counts))
        else:
            counts = label_counts(task.auxiliary.codes, sizes)
        return drawn_labels(counts, self.size or len(task.private), sizes, task.rng)

    def _votes(self, task: Task, population: Written, labels: Codes, voters: Floats, t: int) -> Floats:
        """How many private records of the same labels are nearest to each text, (p,)."""
        places = task.embed(population.texts)
        if self.lookahead:
            views = [
                task.embed(task.writer.vary(population.texts, labels, step=f"lookahead {t}.{i}").texts)
                for i in range(self.lookahead)
            ]
            places = np.mean(views, axis=0)
        votes = np.zeros(len(labels))
        for combo, rows in _classes(labels):
            voting = voters[(task.private.codes == combo).all(axis=1)]
            # |x - y|² up to |x|², which does not change who is nearest
            distance = (places[rows] ** 2).sum(axis=1) - 2 * voting @ places[rows].T
            votes[rows] = np.bincount(distance.argmin(axis=1), minlength=len(rows))
        return votes

    def _survivors(self, votes: Floats, labels: Codes, rng: np.random.Generator) -> Rows:
        """Of each class one in L: the best, or a draw in proportion to the votes (with repetition)."""
        kept = []
        for _, rows in _classes(labels):
            count = len(rows) // self.expansion
            if self.select == "rank":
                kept.append(rows[np.argsort(-votes[rows], kind="stable")[:count]])
                continue
            weight = np.maximum(votes[rows], 0)
            weight = weight / weight.sum() if weight.any() else np.full(len(rows), 1 / len(rows))
            kept.append(rng.choice(rows, size=count, p=weight))
        return np.concatenate(kept)


def _classes(labels: Codes) -> Iterator[tuple[Codes, Rows]]:
    combos, _, which = combinations(labels)
    for number, combo in enumerate(combos):
        yield combo, np.flatnonzero(which == number)


def _taken(population: Written, rows: Rows) -> Written:
    realised = None if population.realised is None else population.realised[rows]
    return Written([population.texts[row] for row in rows], realised)


def _joined(first: Written, second: Written) -> Written:
    if first.realised is None or second.realised is None:
        return Written(first.texts + second.texts)
    return Written(first.texts + second.texts, np.concatenate([first.realised, second.realised]))
