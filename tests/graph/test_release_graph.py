"""The release graph inside an app's own graph: state, context, progress, gate, checkpointers, async."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.errors import GraphDrained
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command
from releases import obedient, small_release
from typing_extensions import TypedDict

from quantext_graph import Approval, ReleaseContext, ReleaseState, build_graph, build_record_graph
from quantext_graph.data.records import open_table
from quantext_graph.graph.state import Progress
from quantext_graph.spec.models import Spec

CONFIG: Any = {"configurable": {"thread_id": "app"}}


class AppState(TypedDict, total=False):
    """An app's own keys, and the release's one."""

    title: str
    report: str
    n: int
    quantext: Progress


@dataclass(frozen=True)
class AppContext:
    """An app's own context, which knows nothing of releases."""

    user: str


def app(spec: Spec, release: Any, checkpointer: Any, context_schema: Any = AppContext) -> Any:
    graph: Any = StateGraph(AppState, context_schema=context_schema)
    graph.add_node("greet", lambda state: {"title": state["title"].upper(), "report": "mine", "n": -1})
    graph.add_node("release", release)
    graph.add_node("thank", lambda state: {"title": f"{state['title']}: {state['quantext']['decision']}"})
    graph.add_edge(START, "greet")
    graph.add_edge("greet", "release")
    graph.add_edge("release", "thank")
    graph.add_edge("thank", END)
    return graph.compile(checkpointer=checkpointer)


@pytest.fixture
def spec(tmp_path: Path) -> Iterator[Spec]:
    with obedient() as server:
        yield small_release(tmp_path, server.url, n=12)


def where(tmp_path: Path) -> ReleaseContext:
    return ReleaseContext(str(tmp_path / "work"), str(tmp_path / "out"))


def published(tmp_path: Path) -> int:
    return len(list(open_table(tmp_path / "out" / "data.csv")))


@contextmanager
def saver(kind: str, tmp_path: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    if kind == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver.from_conn_string(str(tmp_path / "app.sqlite")) as sqlite:
            yield sqlite


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_release_is_a_node_of_an_app(kind: str, spec: Spec, tmp_path: Path) -> None:
    with saver(kind, tmp_path) as checkpointer:
        graph = app(spec, build_graph(spec, context=where(tmp_path)), checkpointer)
        given, said = {"title": "letters"}, []
        for namespace, event in graph.stream(
            given, CONFIG, context=AppContext("ann"), stream_mode="custom", subgraphs=True
        ):
            assert namespace[0].startswith("release:")
            said.append((event["stage"], event["done"], event["total"]))
        assert ("label", 12, 12) in said
        assert ("rewrite", 12, 12) in said
        assert not (tmp_path / "out").exists()
        (waiting,) = graph.get_state(CONFIG).interrupts
        assert waiting.value["report"]["n"] == 12
        assert waiting.response_schema == Approval.model_json_schema()
        for nonsense in ("yes", {"aprove": True}, 7, [True], {"approve": "perhaps"}):
            (again,) = graph.invoke(Command(resume=nonsense), CONFIG, context=AppContext("ann"))[
                "__interrupt__"
            ]
            assert "not an answer" in again.value["error"]
            assert not (tmp_path / "out").exists()
        done = graph.invoke(Command(resume={"approve": True}), CONFIG, context=AppContext("ann"))
    assert done["title"] == "LETTERS: approved"
    assert (done["report"], done["n"]) == ("mine", -1)
    assert published(tmp_path) == 12


def test_checkpoints_of_an_app_hold_no_text_of_a_record(spec: Spec, tmp_path: Path) -> None:
    with saver("sqlite", tmp_path) as checkpointer:
        app(spec, build_graph(spec, context=where(tmp_path)), checkpointer).invoke({"title": "x"}, CONFIG)
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("app.sqlite*"))
    assert b"quantext" in kept
    assert b"patient who lives" not in kept


def test_a_release_is_refused_through_the_app_and_stays_home(spec: Spec, tmp_path: Path) -> None:
    graph = app(spec, build_graph(spec, context=where(tmp_path)), InMemorySaver())
    graph.invoke({"title": "x"}, CONFIG)
    done = graph.invoke(Command(resume={"approve": False, "reason": "ask the board"}), CONFIG)
    assert done["title"] == "X: refused"
    assert not (tmp_path / "out").exists()


def test_another_process_may_answer_the_gate(spec: Spec, tmp_path: Path) -> None:
    for step in ({"title": "x"}, Command(resume={"approve": True})):
        with saver("sqlite", tmp_path) as checkpointer:
            app(spec, build_graph(spec, context=where(tmp_path)), checkpointer).invoke(step, CONFIG)
    assert published(tmp_path) == 12


def test_an_apps_context_may_inherit_the_releases(spec: Spec, tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Ours(ReleaseContext):
        user: str = ""

    ours = Ours(str(tmp_path / "work"), str(tmp_path / "out"), user="ann")
    graph = app(spec, build_graph(spec), InMemorySaver(), Ours)
    graph.invoke({"title": "x"}, CONFIG, context=ours)
    graph.invoke(Command(resume={"approve": True}), CONFIG, context=ours)
    assert published(tmp_path) == 12


def test_a_release_is_a_node_of_an_async_app(spec: Spec, tmp_path: Path) -> None:
    async def release(checkpointer: Any) -> tuple[list[str], Any]:
        graph = app(spec, build_graph(spec, context=where(tmp_path)), checkpointer)
        stages = [
            event["stage"]
            async for _, event in graph.astream({"title": "x"}, CONFIG, stream_mode="custom", subgraphs=True)
        ]
        asked = await graph.ainvoke(Command(resume="yes"), CONFIG)
        assert "not an answer" in asked["__interrupt__"][0].value["error"]
        return stages, await graph.ainvoke(Command(resume={"approve": True}), CONFIG)

    async def on_sqlite() -> tuple[list[str], Any]:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "app.sqlite")) as checkpointer:
            return await release(checkpointer)

    stages, done = asyncio.run(on_sqlite())
    assert {"label", "match", "rewrite"} <= set(stages)
    assert done["title"] == "X: approved"
    assert published(tmp_path) == 12


def test_the_event_loop_is_free_while_a_release_runs(tmp_path: Path) -> None:
    async def beside(graph: Any) -> int:
        beats, running = 0, asyncio.create_task(graph.ainvoke({}, CONFIG, context=where(tmp_path)))
        while not running.done():
            await asyncio.sleep(0.02)
            beats += 1
        await running
        return beats

    with obedient(seconds=0.05) as server:
        spec = small_release(tmp_path, server.url, n=20)
        assert asyncio.run(beside(build_graph(spec, checkpointer=InMemorySaver()))) > 20


def test_state_is_one_key_and_context_is_frozen() -> None:
    assert set(ReleaseState.__annotations__) == {"quantext"}
    assert [each.name for each in fields(ReleaseContext)] == ["workspace", "output"]
    with pytest.raises(FrozenInstanceError):
        ReleaseContext().workspace = "elsewhere"  # type: ignore[misc]


def test_what_a_record_goes_through_is_drawn_inside_the_pass(spec: Spec) -> None:
    drawn = build_graph(spec).get_graph(xray=1)
    inside = {"extract", "rewrite", "verify", "fallback", "settle"}
    nodes = set(drawn.nodes)
    assert {f"rewrite_records:{name}" for name in inside} <= nodes
    assert not nodes & inside  # each node has a name of its own
    edges = {(edge.source, edge.target) for edge in drawn.edges}
    after_verify = {
        target.removeprefix("rewrite_records:")
        for source, target in edges
        if source == "rewrite_records:verify"
    }
    assert after_verify == {"rewrite", "fallback", "settle"}
    assert ("match_assign", "rewrite_records:extract") in edges
    assert ("rewrite_records:settle", "report") in edges


def test_the_state_of_a_run_in_its_pass_can_be_looked_at_and_holds_no_record(
    spec: Spec, tmp_path: Path
) -> None:
    control = RunControl()
    checkpointer = InMemorySaver()
    graph = build_graph(spec, checkpointer=checkpointer)

    def stream() -> None:
        for event in graph.stream({}, CONFIG, context=where(tmp_path), stream_mode="custom", control=control):
            if event["stage"] == "rewrite":
                control.request_drain("enough")

    with pytest.raises(GraphDrained):
        stream()
    state = graph.get_state(CONFIG, subgraphs=True)
    assert state.next == ("rewrite_records",)
    assert set(state.values) == {"quantext"}
    (task,) = state.tasks
    assert task.state is not None
    assert task.state.values == {}
    assert {checkpoint.config["configurable"]["checkpoint_ns"] for checkpoint in checkpointer.list(None)} == {
        ""
    }


def test_no_stream_or_callback_of_an_app_is_shown_the_draw(spec: Spec, tmp_path: Path) -> None:
    class Seen(BaseCallbackHandler):
        tools: ClassVar[list[Any]] = []

        def on_tool_start(self, *given: Any, **_: Any) -> None:
            self.tools.append(given)

        def on_tool_end(self, output: Any, **_: Any) -> None:
            self.tools.append(output)

    graph = build_graph(spec, checkpointer=InMemorySaver())
    modes: Any = ["values", "updates", "custom", "messages", "debug", "tools"]
    config: Any = {**CONFIG, "callbacks": [Seen()]}
    chunks = list(graph.stream({}, config, context=where(tmp_path), stream_mode=modes, subgraphs=True))
    assert {mode for _, mode, _ in chunks} >= {"values", "updates", "custom", "debug"}
    assert not {mode for _, mode, _ in chunks} & {"messages", "tools"}
    assert "Quantization" not in repr(chunks)
    assert Seen.tools == []


def test_schemas_of_the_graphs_can_be_read(spec: Spec) -> None:
    class Ours(ReleaseState):
        title: str

    def keys(schema: dict[str, Any] | None) -> set[str]:
        return set((schema or {})["properties"])

    own: Any = StateGraph(Ours, context_schema=AppContext)
    own.add_node("release", build_graph(spec))
    own.add_edge(START, "release")
    for graph, state, context in (
        (build_graph(spec), {"quantext"}, {"workspace", "output"}),
        (own.compile(), {"quantext", "title"}, {"user"}),
    ):
        assert keys(graph.get_input_jsonschema()) == keys(graph.get_output_jsonschema()) == state
        assert keys(graph.get_context_jsonschema()) == context
    record = build_record_graph()
    assert {"text", "labels", "target", "result"} <= keys(record.get_input_jsonschema())
    assert keys(record.get_output_jsonschema()) == keys(record.get_input_jsonschema())
    assert record.get_context_jsonschema()["type"] == "object"  # type: ignore[index]
