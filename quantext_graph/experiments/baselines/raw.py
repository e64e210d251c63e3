"""The private texts as they are: the best utility, and no protection."""

from __future__ import annotations

from typing import ClassVar

from quantext_graph.experiments.baselines.method import PRIVATE_RECORDS, Method, Released, Task, unbounded


class Raw(Method):
    """Releases every record unchanged."""

    name: ClassVar[str] = "raw"
    title: ClassVar[str] = "raw release"

    def release(self, task: Task) -> Released:
        n = len(task.private)
        return Released(
            texts=list(task.private.texts),
            guarantee=unbounded(task.spec, n, "none: the private texts as they are"),
            label_source=PRIVATE_RECORDS,
            targets=task.private.codes,
            realised=task.private.codes,
            sources=range(n),
        )
