"""QuanText as a LangGraph state machine: share texts and hide a proportion."""

from quantext_graph.spec import QuantextError, Spec, load_spec

__all__ = ["QuantextError", "Spec", "load_spec"]
