"""Tools that let an agent make a release: look, write a spec, check, preview, run, audit, publish.

Every tool answers with two parts. The *content* is public, whatever model reads it; the *artifact* is
private and for the person alone: its `shown` are the lines that a program at their terminal prints.

What is public: paths, number of rows, names and kinds of columns (unless a name reads like a cell), what
a spec says, the guarantee, how far a run is, the figures of the release card. What is private: whatever
else depends on a record: texts, categories that stand in the private file alone, shares, labels, how many
reached their target, attempts, failures, what an audit found, and lines of errors that count or place any
of it. A spec written here keeps its models on this machine, whatever is proposed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel

from quantext_graph.apps.agent_tools.arguments import (
    ListArguments,
    LookArguments,
    PreviewArguments,
    PublishArguments,
    ShareArguments,
    SpecArguments,
    StartArguments,
    TradeoffArguments,
    WorkspaceArguments,
    WriteArguments,
)
from quantext_graph.apps.agent_tools.disclosure import Answer, Reader, never_raising
from quantext_graph.release import background
from quantext_graph.release.draft import SUFFIXES, Proposal, draft
from quantext_graph.release.figures import public_figures, published_folder
from quantext_graph.spec.errors import SpecError
from quantext_graph.spec.loading import load_spec
from quantext_graph.spec.models import Spec
from quantext_graph.workspace.folder import default_workspace

__all__ = ["Answer", "Reader", "ReleaseTools", "public_figures", "release_tools"]


class ReleaseTools:
    """The tools over the files of one folder, for one reader. Relative paths are taken from `folder`."""

    def __init__(self, folder: Path | None = None, reader: Reader | None = None) -> None:
        self.folder = (folder or Path.cwd()).absolute()
        self.reader = reader or Reader()

    def tools(self) -> list[BaseTool]:
        return [
            self._tool(self.look_at_file, LookArguments),
            self._tool(self.write_spec, WriteArguments),
            self._tool(self.check_release, SpecArguments),
            self._tool(self.tradeoff, TradeoffArguments),
            self._tool(self.preview_release, PreviewArguments),
            self._tool(self.start_release, StartArguments),
            self._tool(self.release_status, WorkspaceArguments),
            self._tool(self.cancel_release, WorkspaceArguments),
            self._tool(self.explain_audit, WorkspaceArguments),
            self._tool(self.publish_release, PublishArguments),
            self._tool(self.list_releases, ListArguments),
            self._tool(self.private_share, ShareArguments),
        ]

    def look_at_file(self, path: str) -> Answer:
        """Look at a data set: number of rows, names and kinds of its columns, which one holds the texts.
        The person is shown the categories and their shares. A large file is known by its first rows."""
        from quantext_graph.data.inspection import glance

        look, estimated = glance(self.path(path))
        public = {"path": path, **look.public()}
        if estimated:
            public["rows_are_estimated"] = True
        shown = list(look.warnings)
        for column in look.categorical:
            shares = (f"{name} {column.counts[name] / look.looked_at:.0%}" for name in column.categories)
            shown.append(f"{column.name}: {', '.join(shares)}")
        return Answer(public, shown, look.private())

    def write_spec(self, path: str, overwrite: bool, **proposed: Any) -> Answer:
        """Write the spec of a release: files, attributes with categories, secrets, budget. The categories
        of the auxiliary file are filled in; a category of the private file alone must be named here."""
        place = self.path(path)
        if place.suffix not in SUFFIXES:
            raise SpecError(f"{path}: a spec is called .yaml or .yml; name it so")
        if place.exists() and not overwrite:
            raise SpecError(f"{path}: stands already; say overwrite, or name another")
        made = draft(Proposal.model_validate(proposed), self.folder)
        try:
            place.write_text(made.text, encoding="utf-8")
        except OSError as error:
            raise SpecError(f"{path}: cannot be written ({error.strerror}); name another place") from None
        public = {
            "written": path,
            "attributes": {a.name: list(a.category_names) for a in made.spec.attributes},
            "secrets": [secret.title for secret in made.spec.secrets],
        }
        return Answer(public, [f"{place}:", *made.text.splitlines()])

    def check_release(self, spec: str) -> Answer:
        """What a release by this spec would be: number of records, the guarantee for each secret in plain
        words, why it is vacuous if it is, model calls at least and at most, and what the data set has spent.
        The person is shown tokens, money and time."""
        from quantext_graph.release.check import check

        found = check(self.spec(spec))
        # Tokens and time go by the length of private texts.
        shown = [found.estimate.line(), *found.warnings, *found.spending.lines()]
        return Answer(found.public(), shown, {"dropped": found.dropped})

    def tradeoff(self, spec: str, nats: float) -> Answer:
        """What a budget buys: for several budgets the bound in nats, by what factor an attacker's chance
        can grow, how far the released distribution is from the true one (TV) and the expected error of
        each released share. Estimated on the public auxiliary file alone."""
        return self.tradeoff_of(self.spec(spec), nats)

    @staticmethod
    def tradeoff_of(spec: Spec, nats: float) -> Answer:
        """What `tradeoff` says of a spec that need not be written yet."""
        from quantext_graph.mechanism.tradeoff_views import public_points
        from quantext_graph.release.check import check_tradeoff

        points = check_tradeoff(spec, budgets=sorted({0.25, 0.5, 1.0, 2.0, 4.0, nats}))
        rows = public_points(points, spec.mechanism, nats)
        return Answer({"asked_nats": nats, "estimated_on": "the auxiliary file", "points": rows})

    def preview_release(self, spec: str, records: int) -> Answer:
        """Rewrite a few records and show them to the person, before and after. Nothing is kept and no
        draw is made. You are not shown the texts: ask the person what they think of them."""
        from quantext_graph.release.figures import pair_lines
        from quantext_graph.release.preview import preview

        pairs = preview(self.spec(spec), records, lambda _: None)
        shown = [line for pair in pairs for line in pair_lines(pair)]
        return Answer({"shown_to_the_person": len(pairs)}, shown, {"pairs": pairs})

    def start_release(self, spec: str, workspace: str | None, retry_failed: bool) -> Answer:
        """Start a release in the background, or go on with one that was stopped. It runs to the gate and
        waits there: nothing is published. Its draw counts in the ledger, so each new start spends nats."""
        folder = self.path(workspace) if workspace else default_workspace(self.spec(spec))
        if (folder / "store.sqlite").is_file():
            if background.standing(folder).state != "running":
                background.resume(folder, retry_failed=retry_failed)
            return Answer({"going_on": True, **background.standing(folder).public()})
        from quantext_graph.release.check import check

        found = check(self.spec(spec))
        if found.spending.over_cap:
            raise SpecError(
                f"{spec}: with the releases before, the sum of nats would promise nothing any more; "
                "a person may start it all the same with `quantext release`"
            )
        background.start(found.spec, folder)
        return Answer({"started": True, **background.standing(folder).public()}, found.spending.lines())

    def release_status(self, workspace: str) -> Answer:
        """How far a run is: running, at the gate (done, waits for approval), published, stopped, failed."""
        found = background.standing(self.path(workspace))
        counts = found.counts
        shown = [f"{counts.verified} of {counts.rewritten} texts accepted by the verifier (private figure)"]
        if found.reason and found.state in ("stopped", "failed"):
            shown.append(found.reason)
        return Answer(found.public(), shown, {"verified": counts.verified, "unverified": counts.unverified})

    def cancel_release(self, workspace: str) -> Answer:
        """Stop a run after the records in work. What is done is kept; start_release goes on with it."""
        found = background.cancel(self.path(workspace)).public()
        if found["state"] == "running":
            found["stopping"] = "it ends after the records in work; a second call ends it at once"
        return Answer(found)

    def explain_audit(self, workspace: str) -> Answer:
        """What a finished run promises and how well its texts say what they should, from the public
        figures. What attacks found is private: the person is shown it, and where its report lies."""
        from quantext_graph.audit.auditing import lines_at_gate
        from quantext_graph.release.figures import gate_lines
        from quantext_graph.workspace.folder import REPORT

        folder = self.path(workspace)
        found = background.standing(folder)
        if found.state not in ("gate", "published"):
            raise SpecError(f"{workspace}: {found.state}, so there is no audit yet; ask for its status")
        lines = [*lines_at_gate(folder, lambda _: None), *gate_lines(folder)]
        return Answer({**public_figures(folder), "private_report": str(folder / REPORT)}, lines)

    def publish_release(self, workspace: str, output: str | None) -> Answer:
        """Publish a run that waits at the gate: write its release folder. Only after the person agreed."""
        from quantext_graph.release.run import publish

        work = self.path(workspace)
        if output is None and background.standing(work).state == "published":
            return Answer({"published": published_folder(work), "already": True})
        folder = publish(work, None if output is None else self.path(output))
        return Answer({"published": str(folder), "card": str(folder / "README.md")})

    def list_releases(self) -> Answer:
        """The runs in this folder and where each stands."""
        found = [background.standing(folder).public() for folder in background.workspaces(self.folder)]
        return Answer({"releases": found})

    def private_share(self, source: str) -> Answer:
        """The true share of each secret. It is private: a model off this machine is refused, and a local
        one is told only that the person was shown it."""
        if self.reader.remote:
            refusal = (
                f"refused: {self.reader.name} is not on this machine, and a private proportion never leaves "
                "it; the person finds it in the private report of the run"
            )
            return Answer({"refused": refusal})
        from quantext_graph.audit.sources import true_shares

        shares = true_shares(self.path(source))
        shown = [f"{title}: {share:.1%} (private figure)" for title, share in shares.items()]
        return Answer({"shown_to_the_person": list(shares)}, shown, {"shares": shares})

    def path(self, name: str) -> Path:
        return self.folder / Path(name).expanduser()

    def spec(self, name: str) -> Spec:
        if Path(name).suffix not in SUFFIXES:
            raise SpecError(f"{name}: no spec; a spec is called .yaml or .yml")
        return load_spec(self.path(name))

    def _tool(self, method: Callable[..., Answer], arguments: type[BaseModel]) -> BaseTool:
        return StructuredTool.from_function(
            func=never_raising(method),
            name=method.__name__,
            description=" ".join((method.__doc__ or "").split()),
            args_schema=arguments,
            response_format="content_and_artifact",
        )


def release_tools(folder: Path | None = None, reader: Reader | None = None) -> list[BaseTool]:
    """The tools of this module, for any agent. Give the content to the model and the artifact to nobody
    but the person; ask them before `publish_release`.

    Args:
        folder: where relative paths start; the working folder by default.
        reader: who reads the content. By default a remote model, to whom private shares are refused.
    """
    return ReleaseTools(folder, reader).tools()
