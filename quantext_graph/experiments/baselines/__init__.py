"""What QuanText is compared with, behind one interface; a new method is one file.

A method is a class derived from `Method`: one of those named here, one that another package registers in
the group `quantext_graph.baselines`, or any other by `module:Class`.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint

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
from quantext_graph.spec.registry import Registry, derived_from

__all__ = ["METHODS", "Corpus", "Guarantee", "Method", "Released", "Task", "Writer", "Written", "find_method"]

METHODS: Registry[type[Method]] = Registry(
    "method",
    "quantext_graph.baselines",
    {
        "raw": f"{__name__}.raw:Raw",
        "random_half": f"{__name__}.random_half:RandomHalf",
        "per_component": f"{__name__}.quantext:PerComponent",
        "joint": f"{__name__}.quantext:Joint",
        "private_evolution": f"{__name__}.private_evolution:PrivateEvolution",
        "dp_finetuning": f"{__name__}.dp_finetuning:DPFineTuning",
    },
    derived_from(Method),
)


def find_method(name: str) -> type[Method]:
    """The class of a method: a name of `METHODS`, or `module:Class`.

    Raises:
        QuantextError: where there is none.
    """
    if ":" not in name:
        return METHODS.find(name)
    try:
        found = EntryPoint(name, name, METHODS.group).load()
    except (ImportError, AttributeError):
        raise QuantextError(f"{name}: there is no such class; check the module and its name") from None
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise QuantextError(
            f"{name}: not a method; derive it from quantext_graph.experiments.baselines.Method"
        )
    return found
