"""The YAML spec: what is released, what is secret, and how; and the errors that a user can mend."""

from quantext_graph.spec.errors import QuantextError, SpecError
from quantext_graph.spec.loading import load_spec
from quantext_graph.spec.models import (
    Attribute,
    Auxiliary,
    Category,
    Limits,
    Mechanism,
    Models,
    ModelSpec,
    Output,
    Secret,
    Source,
    Spec,
)

__all__ = [
    "Attribute",
    "Auxiliary",
    "Category",
    "Limits",
    "Mechanism",
    "ModelSpec",
    "Models",
    "Output",
    "QuantextError",
    "Secret",
    "Source",
    "Spec",
    "SpecError",
    "load_spec",
]
