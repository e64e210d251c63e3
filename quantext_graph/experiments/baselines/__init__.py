"""What QuanText is compared with, behind one interface; a new method is one file.

A method is a class that satisfies `Method`: one of those named here, or any other by `module:Class`.
"""

from __future__ import annotations

import difflib
import importlib
from types import MappingProxyType

from quantext_graph.experiments.baselines.method import (
    Corpus,
    Guarantee,
    Method,
    Released,
    Task,
    Writer,
    Written,
)
from quantext_graph.spec.errors import QuantextError

__all__ = ["METHODS", "Corpus", "Guarantee", "Method", "Released", "Task", "Writer", "Written", "find_method"]

METHODS = MappingProxyType(
    {
        "raw": "quantext_graph.experiments.baselines.raw:Raw",
        "random_half": "quantext_graph.experiments.baselines.random_half:RandomHalf",
        "per_component": "quantext_graph.experiments.baselines.quantext:PerComponent",
        "joint": "quantext_graph.experiments.baselines.quantext:Joint",
        "private_evolution": "quantext_graph.experiments.baselines.private_evolution:PrivateEvolution",
        "dp_finetuning": "quantext_graph.experiments.baselines.dp_finetuning:DPFineTuning",
    }
)
"""Where each method that comes with the package is."""


def find_method(name: str) -> type[Method]:
    """The class of a method: a name of `METHODS`, or `module:Class`.

    Raises:
        QuantextError: where there is none.
    """
    place = METHODS.get(name, name)
    module, _, attribute = place.partition(":")
    if not attribute:
        near = difflib.get_close_matches(name, METHODS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(METHODS)}, or module:Class"
        raise QuantextError(f"no method is called {name!r}; {hint}")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError):
        raise QuantextError(f"{place}: there is no such class; check the module and its name") from None
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise QuantextError(
            f"{place}: not a method; derive it from quantext_graph.experiments.baselines.Method"
        )
    return found
