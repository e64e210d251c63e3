"""What the cells of an experiment share: the records of a repeat, embeddings, writers and readers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from threadpoolctl import threadpool_limits

from quantext_graph.audit.evidence import Points
from quantext_graph.audit.utility import Reference
from quantext_graph.experiments.attackers import ModelReader, Reader, simulated_reader
from quantext_graph.experiments.baselines import Corpus, Task, Writer
from quantext_graph.experiments.baselines.kept import Kept
from quantext_graph.experiments.baselines.model_writer import ModelWriter
from quantext_graph.experiments.baselines.simulation import AuxiliaryWriter
from quantext_graph.experiments.plan import SIMULATED_ATTACKERS, Cell, Experiment
from quantext_graph.experiments.splits import Data
from quantext_graph.models.chat_model import ChatModel, chat_model, text_embedding
from quantext_graph.spec.models import ModelSpec, Spec
from quantext_graph.steps.context import Kit, prepare


@dataclass(frozen=True)
class Setting:
    """The records of one scenario and repeat; `reference` is the private side of the utility metrics."""

    scenario: str
    spec: Spec
    private: Corpus
    auxiliary: Corpus
    reference: Reference = field(repr=False)


class Bench:
    """Makes what cells need when it is first needed, and keeps it. Leaving it closes the models."""

    def __init__(
        self,
        experiment: Experiment,
        data: Data,
        folder: Path,
        *,
        simulate: bool,
        progress: Callable[[dict[str, Any]], None],
    ) -> None:
        self.experiment, self.simulate = experiment, simulate
        self._data, self._folder, self._emit = data, folder, progress
        self.points = Points(text_embedding(experiment.models.embedding, experiment.models))
        self._opened: dict[str, ChatModel] = {}
        self._settings: dict[tuple[int, int], Setting] = {}
        self._kits: dict[tuple[int, int], Kit] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for model in self._opened.values():
            model.close()

    def setting(self, cell: Cell) -> Setting:
        """The records of the cell; those of one scenario and repeat are held at a time."""
        key = cell.scenario, cell.repeat
        if key not in self._settings:
            self._settings.clear()
            self._kits.clear()
            experiment = self.experiment
            private, auxiliary = self._data.part(experiment, *key)
            shares = experiment.split.shares
            share = shares[cell.scenario] if shares else None
            scenario = "" if share is None else f"share {_said(share)}"
            with threadpool_limits(1):
                reference = Reference(private.texts, self.points(private.texts))
            self._settings[key] = Setting(scenario, experiment.spec, private, auxiliary, reference)
        return self._settings[key]

    def task(self, cell: Cell, setting: Setting, folder: Path) -> Task:
        """What the cell's method is given; its randomness depends on the cell alone, and `folder` is for
        what it keeps."""
        spec = setting.spec.model_copy(update={"secrets": cell.secrets})
        named = f"{cell.entry.method} {cell.entry.title()} {cell.method.model_dump_json()} {cell.secrets}"
        digest = hashlib.sha256(named.encode()).digest()
        rng = np.random.default_rng(
            [
                self.experiment.seed,
                cell.repeat,
                cell.scenario,
                *np.frombuffer(digest[:16], np.uint32).tolist(),
            ]
        )
        return Task(
            spec=spec,
            private=setting.private,
            auxiliary=setting.auxiliary,
            writer=self._writer(cell, setting, folder, rng),
            embed=self.points,
            rng=rng,
            folder=None if self.simulate else folder,
            progress=self.progress,
        )

    def progress(self, step: str, done: int, total: int) -> None:
        self._emit({"stage": step, "done": done, "total": total})

    @cached_property
    def readers(self) -> list[Reader]:
        """The attackers of the labelling attack; the first also says what released texts say.

        Raises:
            QuantextError: for a model that cannot be had.
        """
        if self.simulate:
            corpora = [self._data.pool, *([self._data.public] if self._data.public else [])]
            sizes = self.experiment.spec.sizes
            return [simulated_reader(name, corpora, sizes) for name in SIMULATED_ATTACKERS]
        kept = Kept(self._folder / "work" / "read.jsonl")
        return [
            ModelReader(self._model(attacker), attacker, self.experiment.spec, kept, self.progress)
            for attacker in self.experiment.attackers
        ]

    def _writer(self, cell: Cell, setting: Setting, folder: Path, rng: np.random.Generator) -> Writer:
        if self.simulate:
            return AuxiliaryWriter(setting.auxiliary, self.points, rng)
        return ModelWriter(
            lambda: self._kit(cell, setting),
            Kept(folder / "written.jsonl"),
            setting.spec.limits,
            self.progress,
        )

    def _kit(self, cell: Cell, setting: Setting) -> Kit:
        key = cell.scenario, cell.repeat
        if key not in self._kits:
            rows: Sequence[Any] = list(
                zip(setting.auxiliary.texts, map(tuple, setting.auxiliary.codes.tolist()), strict=True)
            )
            models = setting.spec.models
            chat = self._model(models.chat)
            self._kits[key] = prepare(
                setting.spec,
                rows,
                chat,
                self._model(models.verify or models.chat),
                cache=self._folder / "work" / "openings",
                progress=self.progress,
            )
        return self._kits[key]

    def _model(self, reference: ModelSpec) -> ChatModel:
        name = reference.model_dump_json()
        if name not in self._opened:
            self._opened[name] = chat_model(reference, self.experiment.models, self.experiment.limits)
        return self._opened[name]


def _said(share: float | Sequence[float]) -> str:
    return f"{share:g}" if isinstance(share, float | int) else " to ".join(f"{end:g}" for end in share)
