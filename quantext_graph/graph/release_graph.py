"""The state machine of a release.

    START → label ⟲ → match_assign → rewrite ⟲ → report → release_gate → END

`match_assign` is a barrier: it needs every label. A pass that is told to stop returns early and is
entered again, so a drain request ends the run at the next step and `resume` goes on there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Checkpointer, interrupt
from pydantic import ValidationError

from quantext_graph.graph import nodes as stages
from quantext_graph.graph.resources import Job, Resources
from quantext_graph.graph.state import Approval, Progress, ReleaseContext, ReleaseState
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.publish import publish

Node = Callable[[ReleaseState, Runtime[ReleaseContext]], ReleaseState]
JobOf = Callable[[Runtime[ReleaseContext]], AbstractContextManager[Job]]


def build_graph(
    spec: Spec,
    *,
    checkpointer: Checkpointer = None,
    resources: Resources | None = None,
    context: ReleaseContext | None = None,
) -> CompiledStateGraph[ReleaseState, ReleaseContext, ReleaseState, ReleaseState]:
    """Compile the release graph for `spec`, alone or as a node of an app's graph.

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
        resources: models made elsewhere (tests, an app that holds its own clients).
        context: where the run lives when the caller's context is no `ReleaseContext`.
    """

    held, default = resources or Resources(spec), context or ReleaseContext()
    return assemble(lambda runtime: Job.of(spec, runtime, held, default), ReleaseContext, checkpointer)


def assemble(
    job_of: JobOf, context_schema: type[ReleaseContext], checkpointer: Checkpointer = None
) -> CompiledStateGraph[ReleaseState, ReleaseContext, ReleaseState, ReleaseState]:
    """The release graph over whatever job `job_of` opens for a node's run."""

    def node(stage: Callable[[Job], Progress]) -> Node:
        def run(state: ReleaseState, runtime: Runtime[ReleaseContext]) -> ReleaseState:
            with job_of(runtime) as job:
                return {"quantext": {**state.get("quantext", {}), **stage(job)}}

        return run

    graph: Any = StateGraph(ReleaseState, context_schema=context_schema)
    graph.add_node("label", node(stages.label))
    graph.add_node("match_assign", node(stages.match_assign))
    graph.add_node("rewrite", node(stages.rewrite))
    graph.add_node("report", node(stages.report))
    graph.add_node("release_gate", _gate(job_of))
    graph.add_edge(START, "label")
    graph.add_conditional_edges(
        "label", _again_or("labeled", "label", "match_assign"), ["label", "match_assign"]
    )
    graph.add_edge("match_assign", "rewrite")
    graph.add_conditional_edges("rewrite", _again_or("rewritten", "rewrite", "report"), ["rewrite", "report"])
    graph.add_edge("report", "release_gate")
    graph.add_edge("release_gate", END)
    return graph.compile(checkpointer=checkpointer, name="quantext")  # type: ignore[no-any-return]


def _again_or(
    counter: Literal["labeled", "rewritten"], again: str, then: str
) -> Callable[[ReleaseState], str]:
    def route(state: ReleaseState) -> str:
        progress = state["quantext"]
        return then if progress[counter] >= progress["n"] else again

    return route


def _gate(job_of: JobOf) -> Node:
    """Ask before anything is published; an answer that is none is asked for again."""

    def release_gate(state: ReleaseState, runtime: Runtime[ReleaseContext]) -> ReleaseState:
        progress = state["quantext"]
        question = {"question": "Publish this release?", "report": progress["report"]}
        schema = Approval.model_json_schema()  # as a class it would raise, not ask again
        while True:
            try:
                approval = Approval.model_validate(interrupt(question, response_schema=schema))
                break
            except ValidationError:
                question |= {"error": 'not an answer; give {"approve": true} or {"approve": false}'}
        with job_of(runtime) as job:
            if not approval.approve:
                job.store.set_meta("decision", {"approved": False, "reason": approval.reason})
                return {"quantext": {**progress, "decision": "refused"}}
            folder = publish(job.workspace, Path(job.output))
        return {"quantext": {**progress, "decision": "approved", "release": str(folder)}}

    return release_gate
