"""The release graph for LangGraph's Studio and server: which release is said by the run's context.

`langgraph dev` serves it as `release`; see `langgraph.json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from langgraph.runtime import Runtime

from quantext_graph.graph.job import Job
from quantext_graph.graph.release_graph import assemble
from quantext_graph.graph.resources import Resources
from quantext_graph.graph.state import ReleaseContext
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.loading import load_spec
from quantext_graph.spec.models import Spec


@dataclass(frozen=True)
class StudioContext(ReleaseContext):
    """What a run is told: the path of its spec, and where it works. Relative paths start where the
    server was started."""

    spec: str = "spec.yaml"


class StudioError(ValueError):
    """What stops a run, in one line that anybody may read: LangGraph's server keeps the words of a
    `ValueError` and shows them to Studio, a page of another host. Others it hides."""


@contextmanager
def _job(runtime: Runtime[ReleaseContext]) -> Iterator[Job]:
    try:
        context = runtime.context if isinstance(runtime.context, StudioContext) else StudioContext()
        spec = load_spec(context.spec)
        held = _resources(spec.model_dump_json())
        with Job.of(spec, runtime, held, context) as job:
            yield job
    except QuantextError as error:
        raise StudioError(error.public_line) from None


@lru_cache
def _resources(spec: str) -> Resources:
    """Models and kit are made once for a spec as it stands, and kept while the server runs."""
    return Resources(Spec.model_validate_json(spec))


graph = assemble(_job, StudioContext)
