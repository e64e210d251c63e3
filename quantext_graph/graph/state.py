"""State and context of the release graph.

The whole state is one key, `quantext`, so that the graph can stand inside another without meeting
its keys. It holds counts and stages, never texts: checkpoints hold nothing private. `TypedDict` is
that of typing_extensions, since Pydantic, which makes the JSON schemas of a graph, takes no other
before Python 3.12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from typing_extensions import TypedDict


class Progress(TypedDict, total=False):
    """How far the run is: of `n` records all are labeled, and `released` are rewritten and come out.
    `report` holds the public figures that the gate shows."""

    n: int
    released: int
    labeled: int
    rewritten: int
    verified: int
    unverified: int
    report: dict[str, JsonValue]
    decision: Literal["approved", "refused"]
    release: str


class Question(TypedDict):
    """What the gate's interrupt asks: the public figures, and what was wrong with an answer before."""

    question: str
    report: dict[str, JsonValue]
    error: NotRequired[str]


class ReleaseState(TypedDict, total=False):
    """State of the release graph: one key."""

    quantext: Progress


@dataclass(frozen=True)
class ReleaseContext:
    """What a caller may set for one run: the private folder, and where the release goes."""

    workspace: str | None = None
    output: str | None = None


class Approval(BaseModel):
    """The answer that the release gate waits for."""

    model_config = ConfigDict(extra="forbid")

    approve: bool = Field(description="true publishes the release, false keeps it private")
    reason: str = Field("", description="why, for the private report")
