"""DP fine-tuning: a small causal language model learns the private texts by DP-SGD and writes new ones.

LoRA adapters (PEFT) on a frozen model, per-sample gradients and noise by Opacus. The unit of privacy is
one record with its labels; the labels to write for are public, or noised and paid for.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from quantext_graph.core.arrays import Codes
from quantext_graph.experiments.baselines.accounting import gaussian_sigma, usual_delta
from quantext_graph.experiments.baselines.kept import Kept
from quantext_graph.experiments.baselines.method import Method, Released, Task, unbounded
from quantext_graph.experiments.baselines.public_labels import (
    Proportions,
    drawn_labels,
    label_counts,
    label_source,
)
from quantext_graph.models.privacy import logging_as_it_is
from quantext_graph.spec.models import Spec

if TYPE_CHECKING:
    from quantext_graph.experiments.baselines.dp_training import Writer

LABEL_SHARE = 0.1
"""Part of (ε, δ) that noised label proportions take."""

GROUP = 16
"""Texts written at once, and kept at once."""


class DPFineTuning(Method):
    """Settings of training and writing.

    `model` is a folder or name of `transformers`, or `embedded:NAME`, whose GGUF file is turned into
    weights. `steps` of DP-SGD on Poisson batches of `batch` records on average, each gradient clipped to
    `clip`; `micro_batch` is what is computed at once. `rank` of LoRA; texts are cut at `tokens`.
    `noise` replaces what ε asks for; `size` is n', n by default.
    """

    name: ClassVar[str] = "dp_finetuning"
    title: ClassVar[str] = "DP fine-tuning"
    budgets: ClassVar = (frozenset({"epsilon"}), frozenset({"noise"}))
    simulates: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers", "peft", "opacus", "gguf")
    extra: ClassVar[str] = "dpft"

    model: str = "embedded:smollm2-135m"
    epsilon: float = Field(4.0, gt=0)
    noise: float | None = Field(None, gt=0)
    delta: float | None = Field(None, gt=0, lt=1)
    steps: int = Field(200, ge=1)
    batch: float = Field(64, gt=0)
    micro_batch: int = Field(8, ge=1)
    learning_rate: float = Field(2e-3, gt=0)
    clip: float = Field(1.0, gt=0)
    rank: int = Field(8, ge=1)
    tokens: int = Field(96, ge=8)
    temperature: float = Field(0.9, gt=0)
    size: int | None = Field(None, ge=1)
    labels: Proportions = "public"

    def release(self, task: Task) -> Released:
        # What its packages log and warn of is of no use to who compares methods.
        with logging_as_it_is(), warnings.catch_warnings(action="ignore"):
            return self._release(task)

    def _release(self, task: Task) -> Released:
        from quantext_graph.experiments.baselines.dp_training import Training, Writer, spent_epsilon, train

        n = len(task.private)
        delta = self.delta or usual_delta(n)
        labels, label_cost = self._labels(task, delta)
        rate = min(1.0, self.batch / n)
        delta_left = delta * (1 - LABEL_SHARE) if self.labels == "noised" else delta
        noise = self.noise or self._noise(delta_left, rate)
        epsilon = spent_epsilon(noise, delta_left, rate, self.steps) + label_cost
        seed = int(task.rng.integers(2**62))
        writer = Writer.load(self.model, self.rank, seed)
        prompts = [prompt(task.spec, codes) for codes in task.private.codes.tolist()]
        trained = train(
            writer,
            prompts,
            task.private.texts,
            self.tokens,
            Training(self.steps, self.batch, self.micro_batch, self.learning_rate, self.clip, noise),
            seed=seed,
            checkpoint=None if task.folder is None else task.folder / "training.pt",
            progress=task.progress,
        )
        texts = self._write(task, writer, labels, seed)
        words = f"({epsilon:.3g}, {delta:.2g})-differential privacy for one record; no bound on a proportion"
        losses = trained.losses
        return Released(
            texts=texts,
            guarantee=unbounded(task.spec, n, words, epsilon=epsilon, delta=delta),
            label_source=label_source(self.labels, task.auxiliary.codes),
            targets=labels,
            detail={
                "noise": noise,
                "steps": self.steps,
                "sample_rate": rate,
                "empty_batches": trained.empty,
                "weights_moved": trained.moved,
                "loss_first_steps": float(np.mean(losses[:5])) if losses else None,
                "loss_last_steps": float(np.mean(losses[-5:])) if losses else None,
            },
        )

    def _labels(self, task: Task, delta: float) -> tuple[Codes, float]:
        """The labels to write for, and what they cost of ε."""
        sizes, size = task.spec.sizes, self.size or len(task.private)
        if self.labels == "public":
            return drawn_labels(label_counts(task.auxiliary.codes, sizes), size, sizes, task.rng), 0.0
        cost = LABEL_SHARE * self.epsilon
        sigma = gaussian_sigma(cost, 1, LABEL_SHARE * delta)
        counts = label_counts(task.private.codes, sizes)
        return drawn_labels(counts + task.rng.normal(0, sigma, size=len(counts)), size, sizes, task.rng), cost

    def _noise(self, delta: float, rate: float) -> float:
        from quantext_graph.experiments.baselines.dp_training import noise_multiplier

        share = 1 - LABEL_SHARE if self.labels == "noised" else 1.0
        return noise_multiplier(share * self.epsilon, delta, rate, self.steps)

    def _write(self, task: Task, writer: Writer, labels: Codes, seed: int) -> list[str]:
        """A text for each of the labels; groups that are kept already are not written again."""
        kept = Kept(None if task.folder is None else task.folder / "written.jsonl")
        for start in range(0, len(labels), GROUP):
            task.progress("write", start, len(labels))
            if f"write {start}" not in kept:
                some = labels[start : start + GROUP].tolist()
                told = writer.write(
                    [prompt(task.spec, codes) for codes in some], self.tokens, self.temperature, seed + start
                )
                # An empty text would be no record; the labels are public.
                filled = [
                    text or prompt(task.spec, codes).strip() for text, codes in zip(told, some, strict=True)
                ]
                kept.put(f"write {start}", filled)
        return [text for start in range(0, len(labels), GROUP) for text in kept.get(f"write {start}")]


def prompt(spec: Spec, codes: Sequence[int]) -> str:
    """The labels in words, with which a record begins in training and in writing."""
    said = (
        f"{attribute.name}: {attribute.category_names[code]}"
        for attribute, code in zip(spec.attributes, codes, strict=True)
    )
    return " | ".join(said) + "\n"
