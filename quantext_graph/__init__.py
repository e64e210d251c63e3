"""QuanText as a LangGraph state machine: share texts and hide a proportion.

Names are loaded when they are used: the graph and its clients take seconds to import, a spec does not.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quantext_graph.graph.record_graph import build_record_graph
    from quantext_graph.graph.release_graph import build_graph
    from quantext_graph.graph.resources import OwnModels, Resources
    from quantext_graph.graph.rewriter import Rewriter, build_rewriter, rewrite_tool
    from quantext_graph.graph.state import Approval, ReleaseContext, ReleaseState
    from quantext_graph.spec.errors import QuantextError
    from quantext_graph.spec.loading import load_spec
    from quantext_graph.spec.models import Spec

_HOMES = {
    "Approval": "graph.state",
    "OwnModels": "graph.resources",
    "QuantextError": "spec",
    "ReleaseContext": "graph.state",
    "ReleaseState": "graph.state",
    "Resources": "graph.resources",
    "Rewriter": "graph.rewriter",
    "Spec": "spec",
    "build_graph": "graph.release_graph",
    "build_record_graph": "graph.record_graph",
    "build_rewriter": "graph.rewriter",
    "load_spec": "spec",
    "rewrite_tool": "graph.rewriter",
}

__all__ = [
    "Approval",
    "OwnModels",
    "QuantextError",
    "ReleaseContext",
    "ReleaseState",
    "Resources",
    "Rewriter",
    "Spec",
    "build_graph",
    "build_record_graph",
    "build_rewriter",
    "load_spec",
    "rewrite_tool",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("quantext-graph")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
