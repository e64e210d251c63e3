"""The doors for others: what goes by a name, ours and that of any installed package.

A package opens a door with an entry point, for example in its pyproject.toml:

    [project.entry-points."quantext_graph.attacks"]
    guess = "their_package.attacks:Guess"

Ours are entry points too, but stand in a table: to scan what is installed takes time, and their names
cannot be taken. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from quantext_graph.spec.errors import SpecError, unknown_name

T = TypeVar("T")

LONGEST_REASON = 120


@dataclass(frozen=True)
class Known(Generic[T]):
    """What could be loaded, by name in the order of the door; and for each that could not, one line."""

    loaded: Mapping[str, T]
    broken: Mapping[str, str]


class Registry(Generic[T]):
    """One door.

    Args:
        kind: what stands behind it, in a word for messages.
        group: of its entry points.
        own: where ours are, `module:object` by name.
        unfit: given a name and what was loaded for it, what keeps that from use; "" where nothing does.
    """

    def __init__(
        self, kind: str, group: str, own: Mapping[str, str], unfit: Callable[[str, Any], str]
    ) -> None:
        self.kind, self.group, self._unfit = kind, group, unfit
        self._own = {name: EntryPoint(name, place, group) for name, place in own.items()}
        self._loaded: dict[EntryPoint, T] = {}

    def owns(self, name: str) -> bool:
        """Whether the name is one of ours."""
        return name in self._own

    def names(self) -> list[str]:
        """All names: ours, then those of other packages by the alphabet."""
        return [*self._own, *self._theirs()]

    def find(self, name: str) -> T:
        """What goes by `name`.

        Raises:
            SpecError: nothing does, or what does cannot be loaded; one line that names it.
        """
        entry = self._own.get(name) or self._theirs().get(name)
        if entry is None:
            raise SpecError(unknown_name(self.kind, name, self.names()))
        return self._load(entry)

    def known(self) -> Known[T]:
        """All that can be loaded; what cannot does not keep anybody from the rest."""
        loaded, broken = {}, dict(self._taken())
        for name in self.names():
            try:
                loaded[name] = self.find(name)
            except SpecError as error:
                broken[name] = str(error)
        return Known(loaded, broken)

    def _theirs(self) -> dict[str, EntryPoint]:
        found = {entry.name: entry for entry in reversed(_installed(self.group, tuple(sys.path)))}
        return {name: found[name] for name in sorted(found) if name not in self._own}

    def _taken(self) -> Iterator[tuple[str, str]]:
        """Entry points that are not heard, since their name is taken."""
        theirs = self._theirs()
        for entry in _installed(self.group, tuple(sys.path)):
            if theirs.get(entry.name) is not entry:
                told = f"{self._said(entry)}: the name is taken; give it another in the package"
                yield f"{entry.name} of {_package(entry)}", told

    def _load(self, entry: EntryPoint) -> T:
        if entry not in self._loaded:
            try:
                found = entry.load()
            except Exception as error:  # importing may run anything
                if self.owns(entry.name):
                    raise
                reason = f"{type(error).__name__}: {error}".splitlines()[0][:LONGEST_REASON]
                raise SpecError(
                    f"{self._said(entry)} cannot be loaded ({reason}); mend or uninstall the package"
                ) from None
            if reason := self._unfit(entry.name, found):
                raise SpecError(f"{self._said(entry)}: {reason}")
            self._loaded[entry] = found
        return self._loaded[entry]

    def _said(self, entry: EntryPoint) -> str:
        return f"{self.kind} {entry.name!r} of {_package(entry)} ({entry.value})"


def derived_from(base: type) -> Callable[[str, Any], str]:
    """What keeps a class from use: not being derived from `base`, or calling itself something else."""

    def unfit(name: str, found: Any) -> str:
        if not (isinstance(found, type) and issubclass(found, base)):
            return f"not derived from {base.__module__}.{base.__qualname__}; derive it"
        if getattr(found, "name", name) != name:
            return f"it calls itself {getattr(found, 'name', '')!r}; give both the same name"
        return ""

    return unfit


def _package(entry: EntryPoint) -> str:
    return f"package {entry.dist.name}" if entry.dist else "quantext-graph"


@lru_cache(maxsize=32)
def _installed(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Entry points of installed packages, by the alphabet of their packages; scanned anew where
    `sys.path` has changed."""
    return tuple(sorted(entry_points(group=group), key=lambda entry: (_package(entry), entry.name)))
