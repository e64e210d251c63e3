"""The graph that one record goes through: extract → rewrite → verify ⟲ → fallback → settle.

It stands alone, too: `build_record_graph` gives a verification loop to anybody who wants one text
rewritten to one target (Alg. 1 lines 15-18, with retries). It keeps no checkpoints. It speaks category
codes and takes a prepared `Kit`; `rewriter` puts names and a spec before it.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from quantext_graph.models.chat_model import Usage
from quantext_graph.steps.context import Kit
from quantext_graph.steps.extract import Extraction, extract
from quantext_graph.steps.rewrite import Draft, fallback, last_resort, rewrite
from quantext_graph.steps.texts import uncopied
from quantext_graph.steps.verify import verify


@dataclass(frozen=True)
class Attempt:
    """One rewrite and what the verifier said of it.

    `failures` names what was missed: attributes, or "copy", "refusal", "invalid" and the like.
    """

    text: str
    on_target: bool
    publishable: bool
    score: float
    failures: tuple[str, ...]
    fallback: bool = False


class RecordState(TypedDict, total=False):
    """State of one record. A caller gives `record`, `text`, `labels` and `target` (category codes);
    `text` in `result` is what may be published."""

    record: int
    text: str
    labels: tuple[int, ...]
    target: tuple[int, ...]
    kept: Extraction
    draft: Draft
    attempts: Annotated[list[Attempt], operator.add]
    usage: Annotated[list[tuple[str, Usage]], operator.add]
    result: Attempt


def _extract(state: RecordState, runtime: Runtime[Kit]) -> RecordState:
    found = extract(runtime.context, state["text"], state["target"])
    return {"kept": found, "usage": [("extract", found.usage)], "attempts": []}


def _rewrite(state: RecordState, runtime: Runtime[Kit]) -> RecordState:
    tried = state["attempts"]
    feedback = ", ".join(tried[-1].failures) if tried else ""
    draft = rewrite(runtime.context, state["text"], state["kept"], state["target"], len(tried), feedback)
    return {"draft": _own(draft, state), "usage": [("rewrite", draft.usage)]}


def _fallback(state: RecordState, runtime: Runtime[Kit]) -> RecordState:
    draft = fallback(runtime.context, state["kept"], state["target"])
    return {"draft": _own(draft, state), "usage": [("fallback", draft.usage)]}


def _own(draft: Draft, state: RecordState) -> Draft:
    """A draft that holds no nine words of its record in a row: what a writer puts into a gap may be just what
    stood there."""
    return replace(draft, text=uncopied(draft.text, state["text"]))


def _verify(state: RecordState, runtime: Runtime[Kit]) -> RecordState:
    kit = runtime.context
    draft = state["draft"]
    late = len(state["attempts"]) >= kit.spec.limits.attempts
    if not draft.text:
        failed = Attempt("", False, False, float("-inf"), (str(draft.outcome),), fallback=late)
        return {"attempts": [failed]}
    verdict = verify(kit, draft.text, state["target"], source=state["text"])
    attempt = Attempt(
        draft.text, verdict.on_target, verdict.publishable, verdict.score, verdict.failures, fallback=late
    )
    return {"attempts": [attempt], "usage": [("verify", verdict.usage)]}


def _after_verify(state: RecordState, runtime: Runtime[Kit]) -> Literal["rewrite", "fallback", "settle"]:
    tried, limit = state["attempts"], runtime.context.spec.limits.attempts
    if tried[-1].on_target or len(tried) > limit:
        return "settle"
    return "rewrite" if len(tried) < limit else "fallback"


def _settle(state: RecordState, runtime: Runtime[Kit]) -> RecordState:
    """What is published: the text on target; else the fallback as it is; else the best that may be
    published; else words that come from the spec alone. Never nothing, never a copy."""
    tried = state["attempts"]
    publishable = [attempt for attempt in tried if attempt.publishable]
    if tried[-1].publishable:
        return {"result": tried[-1]}
    if publishable:
        return {"result": max(publishable, key=lambda attempt: attempt.score)}
    text = last_resort(runtime.context, state["target"])
    return {"result": Attempt(text, False, True, float("-inf"), ("last resort",), fallback=True)}


RecordGraph = CompiledStateGraph[RecordState, Kit, RecordState, RecordState]


def build_record_graph() -> RecordGraph:
    """The verify loop for one record, to be called with a `Kit` as context.

    ```python
    kit = prepare(spec, auxiliary, chat, verifier)
    state = build_record_graph().invoke(
        {"record": 1, "text": text, "labels": (0, 2), "target": (1, 2)}, context=kit
    )
    state["result"].text, state["result"].on_target
    ```
    """
    graph = StateGraph(RecordState, context_schema=Kit)
    graph.add_node("extract", _extract)
    graph.add_node("rewrite", _rewrite)
    graph.add_node("verify", _verify)
    graph.add_node("fallback", _fallback)
    graph.add_node("settle", _settle)
    graph.add_edge(START, "extract")
    graph.add_edge("extract", "rewrite")
    graph.add_edge("rewrite", "verify")
    graph.add_edge("fallback", "verify")
    graph.add_conditional_edges("verify", _after_verify)
    graph.add_edge("settle", END)
    return graph.compile(checkpointer=False, name="record")
