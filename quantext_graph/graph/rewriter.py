"""One text to one target, verified: the verify loop for an app or an agent of one's own.

Names go in and come out, and the models are those of a spec. Nothing is drawn and nothing is kept: a
rewrite alone hides no proportion of a corpus, that is what `build_graph` is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, Unpack

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langsmith import tracing_context
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, create_model, with_config
from typing_extensions import TypedDict

from quantext_graph.graph.record_graph import build_record_graph
from quantext_graph.graph.resources import OwnModels, Resources
from quantext_graph.spec.errors import QuantextError, unknown_name
from quantext_graph.spec.models import Spec
from quantext_graph.steps.label import label


class RewriteRequest(TypedDict):
    """A text and where it should go: `target` maps attributes to categories, and what it does not name
    stays as it is. `labels` says what is known of the text; the rest is labelled by the models."""

    text: str
    target: Mapping[str, str]
    labels: NotRequired[Mapping[str, str]]


class Rewrite(TypedDict):
    """The rewrite of a text. `target` is whole; `verified` says that the verifier read all of it in
    `text`, after so many `attempts`; `missed` names what it did not."""

    text: str
    target: dict[str, str]
    verified: bool
    attempts: int
    missed: list[str]


class RewriteReply(TypedDict):
    """One key, so that a rewriter can be a node of a graph that keeps `text` and `target` in its state."""

    rewrite: Rewrite


class Rewriter(Runnable[RewriteRequest, RewriteReply]):
    """A verified rewriter (Alg. 1 lines 15-18, with retries); made by `build_rewriter`.

    Safe to call from many threads; `ainvoke`, `batch` and `abatch` work too. It takes no part in
    tracing, since what it is given is text of records. Leaving it as a context manager closes the models.
    """

    def __init__(self, spec: Spec, resources: Resources) -> None:
        self._spec, self._resources = spec, resources
        self._graph = build_record_graph()

    def __enter__(self) -> Rewriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def invoke(
        self,
        input: RewriteRequest,  # noqa: A002
        config: RunnableConfig | None = None,  # noqa: ARG002
        **_: Any,
    ) -> RewriteReply:
        """Rewrite `input["text"]` to `input["target"]`.

        Raises:
            QuantextError: an empty text, an attribute or category that the spec does not know, or a
                model that cannot be had.
        """
        text = input.get("text", "")
        if not isinstance(text, str) or not text.strip():
            raise QuantextError("text: empty; give the text to rewrite")
        wanted = self._codes("target", input.get("target") or {})
        known = self._codes("labels", input.get("labels") or {})
        with tracing_context(enabled=False):
            kit = self._resources.kit(lambda _: None)
            labels = label(kit, text, known).codes
            target = tuple(wanted.get(i, code) for i, code in enumerate(labels))
            given: Any = {"record": 0, "text": text, "labels": labels, "target": target}
            state: Any = self._graph.invoke(given, context=kit)
        return {"rewrite": self._named(target, state)}

    def _codes(self, where: str, names: Mapping[str, str]) -> dict[int, int]:
        attributes = {a.name: i for i, a in enumerate(self._spec.attributes)}
        codes = {}
        for name, category in names.items():
            if name not in attributes:
                raise QuantextError(f"{where}: {unknown_name('attribute', name, tuple(attributes))}")
            known = self._spec.attributes[attributes[name]].category_names
            if category not in known:
                raise QuantextError(f"{where}: {unknown_name(f'category of {name}', category, known)}")
            codes[attributes[name]] = known.index(category)
        return codes

    def _named(self, target: tuple[int, ...], state: Any) -> Rewrite:
        result = state["result"]
        return {
            "text": result.text,
            "target": {
                a.name: a.category_names[code] for a, code in zip(self._spec.attributes, target, strict=True)
            },
            "verified": result.on_target,
            "attempts": len(state["attempts"]),
            "missed": [] if result.on_target else list(result.failures),
        }


def build_rewriter(spec: Spec, *, resources: Resources | None = None, **own: Unpack[OwnModels]) -> Rewriter:
    """A verified rewriter for the attributes and models of `spec`; its private data set is not opened.

    ```python
    with build_rewriter(spec) as rewriter:
        rewriter.invoke({"text": text, "target": {"Stance": "FAVOR"}})["rewrite"]["text"]
    ```

    Args:
        spec: attributes, auxiliary set, models and limits are used.
        resources: what is shared with other graphs of the spec, models among it.
        **own: an app's own models, as for `build_graph`.
    """
    return Rewriter(spec, Resources.held(spec, resources, own))


class RewriteTool(BaseTool):
    """A rewriter as a tool for an agent. The agent's model reads the text and the rewrite, so give it
    texts that this model may see."""

    _rewriter: Rewriter = PrivateAttr()

    def __init__(self, rewriter: Rewriter, **fields: Any) -> None:
        super().__init__(**fields)
        self._rewriter = rewriter

    def _run(self, text: str, target: dict[str, str]) -> Rewrite | dict[str, str]:
        try:
            return self._rewriter.invoke({"text": text, "target": target})["rewrite"]
        except QuantextError as error:
            return {"error": str(error)}


def rewrite_tool(spec: Spec, *, resources: Resources | None = None, **own: Unpack[OwnModels]) -> BaseTool:
    """`build_rewriter` as the LangChain tool `rewrite_to_target`, whose schema lists the attributes and
    categories of `spec`. A mistake in the arguments is answered as `{"error": ...}`."""
    categories = {a.name: Literal[a.category_names] for a in spec.attributes}
    target = with_config(ConfigDict(extra="forbid"))(
        TypedDict("Target", categories, total=False)  # type: ignore[operator]
    )
    arguments: type[BaseModel] = create_model(
        "RewriteArguments",
        text=(str, Field(description="the text to rewrite")),
        target=(target, Field(description="the category that the new text should have, by attribute")),
    )
    return RewriteTool(
        build_rewriter(spec, resources=resources, **own),
        name="rewrite_to_target",
        description=(
            "Rewrite a text so that it reads as the target categories, and have the result verified. "
            "Attributes that the target does not name stay as they are. `verified` says whether the "
            "verifier read the whole target in the new text, `missed` what it did not."
        ),
        args_schema=arguments,
    )
