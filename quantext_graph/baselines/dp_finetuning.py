"""DP fine-tuning: a small causal language model learns the private texts by DP-SGD and writes new ones.

LoRA adapters (PEFT) on a frozen model, per-sample gradients and noise by Opacus. The unit of privacy is
one record with its labels; the labels to write for are public, or noised and paid for.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from pydantic import Field

from quantext_graph.baselines.accounting import gaussian_epsilon, gaussian_sigma, usual_delta
from quantext_graph.baselines.kept import Kept
from quantext_graph.baselines.method import Method, Released, Task, unbounded
from quantext_graph.baselines.public_labels import Proportions, drawn_labels, label_counts, label_source
from quantext_graph.core.arrays import Codes
from quantext_graph.spec import QuantextError, Spec

LABEL_SHARE = 0.1
"""Part of ε that noised label proportions take."""


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
        raise QuantextError("not there")
