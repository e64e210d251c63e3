"""The door to model providers: from the first half of `provider:model` to what connects to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quantext_graph.spec.models import Models, ModelSpec
from quantext_graph.spec.registry import Registry

if TYPE_CHECKING:
    from quantext_graph.models.endpoints import Endpoint


@dataclass(frozen=True)
class Connection:
    """The addresses of a model, whether any lies off this machine, and what to call at the end."""

    endpoints: tuple[Endpoint, ...]
    remote: bool
    close: Callable[[], None] | None = None


Connector = Callable[[ModelSpec, str, Models], Connection]
"""Given the model's reference, its name without the provider, and the spec's models: the connection.
It raises a QuantextError, in one line, for a model that cannot be had."""


def _unfit(_name: str, found: Any) -> str:
    return "" if callable(found) else "not a function of a reference, a name and models; make it one"


PROVIDERS: Registry[Connector] = Registry(
    "model provider",
    "quantext_graph.providers",
    {
        "embedded": "quantext_graph.models.resolve:connect_embedded",
        "ollama": "quantext_graph.models.resolve:connect_ollama",
        "openai": "quantext_graph.models.resolve:connect_openai",
    },
    _unfit,
)
