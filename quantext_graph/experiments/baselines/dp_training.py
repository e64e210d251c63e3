"""DP-SGD on LoRA adapters of a causal language model, and writing with them (PyTorch, PEFT, Opacus).

All randomness of step t follows from (seed, t), so training goes on after a stop as if there had been
none. A seed makes it reproducible and not private: this is for comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from opacus import GradSampleModule
from opacus.accountants import PRVAccountant
from opacus.accountants.utils import get_noise_multiplier
from opacus.optimizers import DPOptimizer
from peft import LoraConfig, get_peft_model
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from quantext_graph.models.model_files import KNOWN_MODELS
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.models import ModelSpec

IGNORED = -100
EVERY = 10
"""Steps from one checkpoint to the next."""

TOP_P = 0.95


@dataclass(frozen=True)
class Training:
    """How to train: see `DPFineTuning`. `noise` is the noise multiplier σ/clip."""

    steps: int
    batch: float
    micro_batch: int
    learning_rate: float
    clip: float
    noise: float


@dataclass
class Trained:
    """What training did: `moved` is ‖Δ‖₂ of the adapter weights, `empty` the Poisson batches without a
    record (noise was added for them all the same), `losses` the mean loss of a text's tokens, by step."""

    moved: float
    empty: int
    losses: list[float] = field(default_factory=list)


def noise_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """σ/clip of `steps` of DP-SGD with Poisson sampling at `rate` that together cost (ε, δ)."""
    return float(
        get_noise_multiplier(
            target_epsilon=epsilon, target_delta=delta, sample_rate=rate, steps=steps, accountant="prv"
        )
    )


def spent_epsilon(noise: float, delta: float, rate: float, steps: int) -> float:
    """ε of such a training, for adding or removing one record."""
    accountant = PRVAccountant()
    accountant.history = [(noise, rate, steps)]
    return float(accountant.get_epsilon(delta))


class Writer:
    """A causal language model with LoRA adapters, and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token

    @classmethod
    def load(cls, name: str, rank: int, seed: int) -> Writer:
        """`embedded:NAME`, or a folder or name of `transformers`; adapters are drawn from `seed`.

        Raises:
            QuantextError: where the model is not there.
        """
        folder, options = _place(name)
        transformers_logging.disable_progress_bar()
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, **options)
            with redirect_stderr(StringIO()):  # a bar of tensors that knows no off
                model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **options)
        except (OSError, ValueError) as error:
            raise QuantextError(
                f"dp_finetuning: {name} cannot be loaded ({type(error).__name__}); name a folder or a model "
                "of transformers"
            ) from None
        torch.manual_seed(seed % 2**63)
        lora = LoraConfig(
            r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
        )
        return cls(get_peft_model(model, lora), tokenizer)

    @property
    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """What is trained: the adapters."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def batch(self, prompts: Sequence[str], texts: Sequence[str], tokens: int) -> dict[str, torch.Tensor]:
        """Prompts with their texts, (b, t) each: ids, mask, and labels that leave the prompt out."""
        rows = []
        for prompt, text in zip(prompts, texts, strict=True):
            head = self.tokenizer(prompt, add_special_tokens=False)["input_ids"]
            tail = self.tokenizer(text, add_special_tokens=False)["input_ids"][: tokens - 1]
            rows.append((head, [*tail, self.tokenizer.eos_token_id]))
        width = max(len(head) + len(tail) for head, tail in rows)
        ids = torch.full((len(rows), width), self.tokenizer.pad_token_id)
        mask = torch.zeros((len(rows), width), dtype=torch.long)
        labels = torch.full((len(rows), width), IGNORED)
        for i, (head, tail) in enumerate(rows):
            end = len(head) + len(tail)
            ids[i, :end] = torch.tensor(head + tail)
            mask[i, :end] = 1
            labels[i, len(head) : end] = torch.tensor(tail)
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}

    def write(self, prompts: Sequence[str], tokens: int, temperature: float, seed: int) -> list[str]:
        """A text for each prompt, up to the end of its first line."""
        self.tokenizer.padding_side = "left"
        given = self.tokenizer(list(prompts), return_tensors="pt", padding=True, add_special_tokens=False)
        self.model.eval()
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed % 2**63)
            out = self.model.generate(
                **given,
                do_sample=True,
                temperature=temperature,
                top_p=TOP_P,
                max_new_tokens=tokens,
                pad_token_id=self.tokenizer.pad_token_id,
            )
        new = out[:, given["input_ids"].shape[1] :]
        texts = self.tokenizer.batch_decode(new, skip_special_tokens=True)
        return [text.strip().split("\n")[0].strip() for text in texts]


def text_losses(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The mean loss over each text's own tokens, (b,): no text's loss depends on another's length."""
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, :-1]
    labels = batch["labels"][:, 1:]
    losses = cross_entropy(logits.transpose(1, 2), labels, ignore_index=IGNORED, reduction="none")
    counted: torch.Tensor = losses.sum(dim=1) / (labels != IGNORED).sum(dim=1)
    return counted


def train(
    writer: Writer,
    prompts: Sequence[str],
    texts: Sequence[str],
    tokens: int,
    training: Training,
    *,
    seed: int,
    checkpoint: Path | None = None,
    progress: Callable[[str, int, int], None] = lambda _step, _done, _total: None,
) -> Trained:
    """DP-SGD (Abadi et al. 2016): Poisson batches, each text's gradient clipped, noise in every step,
    also in one whose batch is empty."""
    wrapped = GradSampleModule(writer.model, loss_reduction="sum")
    generator = torch.Generator()
    optimizer = DPOptimizer(
        torch.optim.AdamW(writer.parameters.values(), lr=training.learning_rate, weight_decay=0.0),
        noise_multiplier=training.noise,
        max_grad_norm=training.clip,
        expected_batch_size=max(1, round(training.batch)),
        loss_reduction="mean",
        generator=generator,
    )
    start = {name: p.detach().clone() for name, p in writer.parameters.items()}
    state = _Progress.load(checkpoint, writer, optimizer)
    rate = min(1.0, training.batch / len(texts))
    writer.model.train()
    try:
        for step in range(state.step, training.steps):
            progress("train", step, training.steps)
            rng = np.random.default_rng([seed, step])
            generator.manual_seed(int(rng.integers(2**62)))
            rows = np.flatnonzero(rng.random(len(texts)) < rate)
            groups = np.array_split(rows, -(-len(rows) // training.micro_batch)) if len(rows) else []
            if not groups:
                _empty_batch(writer)
                optimizer.step()
            total = 0.0
            for number, group in enumerate(groups):
                optimizer.signal_skip_step(do_skip=number < len(groups) - 1)
                batch = writer.batch([prompts[i] for i in group], [texts[i] for i in group], tokens)
                losses = text_losses(wrapped, batch)
                losses.sum().backward()
                optimizer.step()
                if number < len(groups) - 1:
                    optimizer.zero_grad()
                total += float(losses.detach().sum())
            optimizer.zero_grad()
            state.empty += not len(rows)
            state.losses += [total / len(rows)] if len(rows) else []
            state.step = step + 1
            if state.step % EVERY == 0 or state.step == training.steps:
                state.save(checkpoint, writer, optimizer)
    finally:
        wrapped.remove_hooks()
    moved = sum(float((p.detach() - start[name]).pow(2).sum()) for name, p in writer.parameters.items())
    return Trained(moved**0.5, state.empty, state.losses)


def _empty_batch(writer: Writer) -> None:
    for p in writer.parameters.values():
        p.grad_sample = torch.zeros((0, *p.shape))


@dataclass
class _Progress:
    step: int = 0
    empty: int = 0
    losses: list[float] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path | None, writer: Writer, optimizer: DPOptimizer) -> _Progress:
        if path is None or not path.exists():
            return cls()
        kept = torch.load(path, weights_only=True)
        with torch.no_grad():
            for name, p in writer.parameters.items():
                p.copy_(kept["weights"][name])
        optimizer.original_optimizer.load_state_dict(kept["optimizer"])
        return cls(kept["step"], kept["empty"], kept["losses"])

    def save(self, path: Path | None, writer: Writer, optimizer: DPOptimizer) -> None:
        if path is None:
            return
        weights = {name: p.detach().clone() for name, p in writer.parameters.items()}
        state = optimizer.original_optimizer.state_dict()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = path.with_suffix(".part")
        torch.save(
            {
                "step": self.step,
                "empty": self.empty,
                "losses": self.losses,
                "weights": weights,
                "optimizer": state,
            },
            part,
        )
        part.replace(path)


def _place(name: str) -> tuple[str, dict[str, Any]]:
    known = ModelSpec(model=name)
    if not known.embedded:
        return name, {}
    model = known.name
    path = KNOWN_MODELS[model].path if model in KNOWN_MODELS else Path(model)
    if not path.is_file():
        raise QuantextError(f"dp_finetuning: {name} is not here; `quantext model pull {model}` fetches it")
    return str(path.parent), {"gguf_file": path.name}
