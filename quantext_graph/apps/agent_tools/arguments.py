"""What the tools of a release take."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from quantext_graph.release.draft import Proposal


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class LookArguments(_Arguments):
    path: str = Field(description="a .csv, .tsv, .jsonl or .parquet file")


class WriteArguments(Proposal):
    path: str = Field("spec.yaml", description="where the spec goes; .yaml or .yml")
    overwrite: bool = Field(False, description="replace a spec that stands there")


class SpecArguments(_Arguments):
    spec: str = Field("spec.yaml", description="path of the spec")


class TradeoffArguments(SpecArguments):
    nats: float = Field(1.0, ge=0, le=100, description="the budget that is asked about")


class PreviewArguments(SpecArguments):
    records: int = Field(3, ge=1, le=10, description="how many records to show to the person")


class StartArguments(SpecArguments):
    workspace: str | None = Field(None, description="private folder of the run; by default RELEASE.work")
    retry_failed: bool = Field(
        False, description="of a run at the gate: write the records that missed their target again"
    )


class WorkspaceArguments(_Arguments):
    workspace: str = Field(description="private folder of the run, for example release.work")


class PublishArguments(WorkspaceArguments):
    output: str | None = Field(None, description="release folder, instead of the spec's")


class ListArguments(_Arguments):
    pass


class ShareArguments(_Arguments):
    source: str = Field("spec.yaml", description="a spec, or the workspace of a run")
