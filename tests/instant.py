"""A model of no latency in this process: what a run costs beside its model, and nothing else."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

from quantext_graph.models.chat_model import ChatModel
from quantext_graph.models.replies import Candidate
from quantext_graph.models.request import Answer, Request
from quantext_graph.spec.models import Limits, Spec


class InstantEndpoint:
    """Answers as `obedient.ObedientServer` does, at once. It names no likely tokens, so that labels
    and verdicts are structured calls."""

    address = "instant"
    prefills = True
    likely = 0
    context: int | None = None

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._numbers = itertools.count()
        self._names = {
            name: re.compile(rf"\b{re.escape(name)}\b") for a in spec.attributes for name in a.category_names
        }
        self.calls = 0

    def answer(self, request: Request) -> Answer:
        self.calls += 1
        system = str(request.messages[0].content)
        if request.schema is None:
            said = f" note {next(self._numbers)} on {self._named(system)}, written anew."
            texts = (said,) * request.n
        else:
            texts = (json.dumps(self._filled(request.schema, str(request.messages[-1].content), system)),)
        return Answer(tuple(Candidate(text) for text in texts), input_tokens=200, output_tokens=20)

    def _filled(self, schema: Any, text: str, system: str) -> dict[str, Any]:
        fields = schema.model_fields
        if "snippets" in fields:
            return {"snippets": []}
        if "openings" in fields:
            return {"openings": [f"Entry {i} of {self._named(system)} says" for i in range(10)]}
        return {name: self._chosen(field.annotation.__args__, text) for name, field in fields.items()}

    def _named(self, system: str) -> str:
        named = [
            next((c for c in a.category_names if f"{a.name}: {c}" in system), a.category_names[0])
            for a in self._spec.attributes
        ]
        return " and ".join(named)

    def _chosen(self, names: tuple[str, ...], text: str) -> str:
        return next((name for name in names if self._names[name].search(text)), names[0])

    def count_tokens(self, text: str) -> int:
        return 1 + len(text) // 4

    def close(self) -> None:
        pass


def instant_model(spec: Spec, limits: Limits | None = None) -> ChatModel:
    return ChatModel("instant:none", [InstantEndpoint(spec)], remote=False, limits=limits)
