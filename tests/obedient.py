"""A model server that does as it is told, at once: for faults, load and crashes, never for quality.

It labels a text by the category names that stand in it, and writes texts that name the categories
it is asked for. `faulty` may turn any answer into another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import count
from typing import Any

from servers import Act, OpenAIServer

from quantext_graph.spec.models import Spec

Faulty = Callable[[int, dict[str, Any], Act], Act]


class ObedientServer(OpenAIServer):
    """An OpenAI-compatible server for the categories of `spec`."""

    def __init__(
        self, spec: Spec, *, faulty: Faulty | None = None, seconds: float = 0.0, **options: Any
    ) -> None:
        self._spec, self._seconds, self._numbers = spec, seconds, count()
        self._faulty = faulty or (lambda _number, _body, act: act)
        super().__init__(then=self._answer, owner="vllm", **options)

    def asked_for(self, kind: str) -> int:
        """How many calls asked for "labels", "snippets", "openings" or "texts"."""
        return sum(_kind(body) == kind for body in self.asked)

    def _answer(self, body: dict[str, Any]) -> Act:
        number = next(self._numbers)
        act = Act(self._text(number, body), seconds=self._seconds)
        return self._faulty(number, body, act)

    def _text(self, number: int, body: dict[str, Any]) -> str:
        system = body["messages"][0]["content"]
        last = next(m["content"] for m in reversed(body["messages"]) if m["role"] == "user")
        schema = _schema(body)
        if schema is None:
            return f" note {number} on {self._named(system)}, written anew."
        if "snippets" in schema["properties"]:
            return json.dumps({"snippets": []})
        if "openings" in schema["properties"]:
            return json.dumps({"openings": [f"Entry {i} of {self._named(system)} says" for i in range(30)]})
        return json.dumps({name: self._chosen(field, last) for name, field in schema["properties"].items()})

    def _named(self, system: str) -> str:
        """The categories that the instruction asks for, in words."""
        named = [
            next((c for c in a.category_names if f"{a.name}: {c}" in system), a.category_names[0])
            for a in self._spec.attributes
        ]
        return " and ".join(named)

    def _chosen(self, field: dict[str, Any], text: str) -> str:
        names = field.get("enum") or [field["const"]]
        places = {name: re.search(rf"\b{re.escape(name)}\b", text) for name in names}
        return next((name for name in names if places[name]), names[0])


def _schema(body: dict[str, Any]) -> dict[str, Any] | None:
    """The schema that is bound to the call, or said in its instruction."""
    bound = body.get("response_format", {}).get("json_schema", {}).get("schema")
    system = body["messages"][0]["content"] if body.get("messages") else ""
    _, _, said = system.partition("this JSON schema, and nothing else: ")
    return bound or (json.loads(said) if said else None)


def _kind(body: dict[str, Any]) -> str:
    schema = _schema(body)
    if schema is not None:
        return next((name for name in ("snippets", "openings") if name in schema["properties"]), "labels")
    limit = body.get("max_tokens") or body.get("max_completion_tokens") or 0
    return "texts" if limit > 1 else "other"
