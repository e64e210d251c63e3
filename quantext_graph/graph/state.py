"""State and context of the release graph.

The whole state is one key, `quantext`, so that the graph can stand inside another without meeting
its keys. It holds counts and stages, never texts: checkpoints hold nothing private.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from pydantic import BaseModel, ConfigDict, Field


class Progress(TypedDict, total=False):
    """How far the run is. `report` holds the public figures that the gate shows."""

    n: int
    labeled: int
    rewritten: int
    verified: int
    unverified: int
    report: dict[str, Any]
    decision: Literal["approved", "refused"]
    release: str


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
