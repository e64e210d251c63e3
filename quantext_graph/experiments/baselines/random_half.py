"""A random half of the private texts: what sampling noise alone hides."""

from __future__ import annotations

from typing import ClassVar

from quantext_graph.experiments.baselines.method import PRIVATE_RECORDS, Method, Released, Task, unbounded


class RandomHalf(Method):
    """Releases ⌈n/2⌉ records unchanged, drawn without replacement."""

    name: ClassVar[str] = "random_half"
    title: ClassVar[str] = "random half"

    def release(self, task: Task) -> Released:
        n = len(task.private)
        rows = task.rng.permutation(n)[: -(-n // 2)]
        codes = task.private.codes[rows]
        return Released(
            texts=[task.private.texts[row] for row in rows],
            guarantee=unbounded(task.spec, n, "none: half of the private texts as they are"),
            label_source=PRIVATE_RECORDS,
            targets=codes,
            realised=codes,
            sources=rows.tolist(),
        )
