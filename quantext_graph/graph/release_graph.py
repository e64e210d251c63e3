"""The state machine of a release.

    START → label ⟲ → match_assign → rewrite_records ⟲ → report → release_gate → END
    per record in rewrite_records:  extract → rewrite → verify ⟲ → fallback → settle

`match_assign` is a barrier: it needs every label. A pass that is told to stop returns early and is
entered again, so a drain request ends the run at the next step and `resume` goes on there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, Protocol, Unpack

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Checkpointer, interrupt
from pydantic import ValidationError

from quantext_graph.graph import nodes
from quantext_graph.graph.job import Job
from quantext_graph.graph.record_graph import build_record_graph
from quantext_graph.graph.resources import OwnModels, Resources
from quantext_graph.graph.state import Approval, Progress, Question, ReleaseContext, ReleaseState
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.publish import publish

JobOf = Callable[[Runtime[ReleaseContext]], AbstractContextManager[Job]]
ReleaseGraph = CompiledStateGraph[ReleaseState, ReleaseContext, ReleaseState, ReleaseState]


class Node(Protocol):
    """A node as LangGraph calls it."""

    def __call__(self, state: ReleaseState, *, runtime: Runtime[ReleaseContext]) -> ReleaseState: ...


def build_graph(
    spec: Spec,
    *,
    checkpointer: Checkpointer = None,
    resources: Resources | None = None,
    context: ReleaseContext | None = None,
    **own: Unpack[OwnModels],
) -> ReleaseGraph:
    """Compile the release graph for `spec`, alone or as a node of an app's graph.

    `get_graph(xray=1)` draws it with what a record goes through.

    Call it with `{}` and a `ReleaseContext`, or by `ainvoke` and `astream`. Progress comes out with
    `stream_mode="custom"` (and `subgraphs=True` in an app): `{"stage", "done", "total"}`, where the stage
    is learn, openings, label, match, rewrite (with `"verified"`) or report. The gate is an `interrupt`
    whose `response_schema` is that of `Approval`; `Command(resume={"approve": True})` answers it, and
    what is no `Approval` is asked for again. Without a checkpointer, its own or the app's, there is no
    gate to stop at, so give one.

    An app's state takes in the one key `quantext` (inherit `ReleaseState`, or name it: `Progress`).
    An app's own context is met with `context`, or by a context class that inherits `ReleaseContext`.

    Args:
        spec: what to release and how.
        checkpointer: any LangGraph checkpointer; it is given counts and public figures only.
        resources: what is shared with other graphs of the spec, models among it.
        context: where the run lives when the caller's context is no `ReleaseContext`.
        **own: an app's own models in place of the spec's: `chat`, `verify`, `embedding`, and whether
            they are `remote`; see `OwnModels`.

    Raises:
        ModelError, RemoteModelRefused: a model of the app's own that cannot serve, or may not.
    """
    held, default = Resources.held(spec, resources, own), context or ReleaseContext()
    return assemble(lambda runtime: Job.of(spec, runtime, held, default), ReleaseContext, checkpointer)


def assemble(
    job_of: JobOf, context_schema: type[ReleaseContext], checkpointer: Checkpointer = None
) -> ReleaseGraph:
    """The release graph over whatever job `job_of` opens for a node's run."""

    def node(stage: Callable[[Job], Progress]) -> Node:
        def run(state: ReleaseState, *, runtime: Runtime[ReleaseContext]) -> ReleaseState:
            with job_of(runtime) as job:
                return {"quantext": {**state.get("quantext", {}), **stage(job)}}

        return run

    graph = StateGraph(ReleaseState, context_schema=context_schema)
    graph.add_node("label", node(nodes.label))
    graph.add_node("match_assign", node(nodes.match_assign))
    graph.add_node("rewrite_records", _rewrite(job_of))
    graph.add_node("report", node(nodes.report))
    graph.add_node("release_gate", _gate(job_of))
    graph.add_edge(START, "label")
    graph.add_conditional_edges(
        "label", _again_or("labeled", "label", "match_assign"), ["label", "match_assign"]
    )
    graph.add_edge("match_assign", "rewrite_records")
    graph.add_conditional_edges(
        "rewrite_records", _again_or("rewritten", "rewrite_records", "report"), ["rewrite_records", "report"]
    )
    graph.add_edge("report", "release_gate")
    graph.add_edge("release_gate", END)
    return graph.compile(checkpointer=checkpointer, name="quantext")


def _rewrite(job_of: JobOf) -> Node:
    """The pass over the records through the record graph. LangGraph finds that graph in the node's closure
    and draws it inside; one that is compiled without checkpoints it would leave out, so here it is
    compiled for whatever may come, and the pass runs it without."""
    record_graph = build_record_graph().copy(update={"checkpointer": None})

    def rewrite_records(state: ReleaseState, *, runtime: Runtime[ReleaseContext]) -> ReleaseState:
        with job_of(runtime) as job:
            return {"quantext": {**state["quantext"], **nodes.rewrite(job, record_graph)}}

    return rewrite_records


def _again_or(
    counter: Literal["labeled", "rewritten"], again: str, then: str
) -> Callable[[ReleaseState], str]:
    def route(state: ReleaseState) -> str:
        progress = state["quantext"]
        total = progress["n"] if counter == "labeled" else progress.get("released", progress["n"])
        return then if progress[counter] >= total else again

    return route


def _gate(job_of: JobOf) -> Node:
    """Ask before anything is published; an answer that is none is asked for again."""

    def release_gate(state: ReleaseState, *, runtime: Runtime[ReleaseContext]) -> ReleaseState:
        progress = state["quantext"]
        question: Question = {"question": "Publish this release?", "report": progress["report"]}
        schema = Approval.model_json_schema()  # as a class it would raise, not ask again
        while True:
            try:
                approval = Approval.model_validate(interrupt(question, response_schema=schema))
                break
            except ValidationError:
                question["error"] = 'not an answer; give {"approve": true} or {"approve": false}'
        with job_of(runtime) as job:
            if not approval.approve:
                job.store.set_meta("decision", {"approved": False, "reason": approval.reason})
                return {"quantext": {**progress, "decision": "refused"}}
            folder = publish(job.workspace, Path(job.output))
        return {"quantext": {**progress, "decision": "approved", "release": str(folder)}}

    return release_gate
