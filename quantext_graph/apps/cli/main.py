"""`quantext`: the command line. It parses, asks and draws; what it does is in `run` and below."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from quantext_graph.apps.cli import terminal
from quantext_graph.apps.cli import views as cli_views
from quantext_graph.apps.cli.assistants import chat, mcp
from quantext_graph.apps.cli.models import fetch_model, model_app
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.loading import load_spec
from quantext_graph.spec.models import Recipe, Spec

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Share a corpus of texts and hide a proportion in it.",
)

SpecPath = Annotated[Path, typer.Argument(help="the YAML spec")]
WorkspacePath = Annotated[Path, typer.Argument(help="the private folder of the run")]
Json = Annotated[bool, typer.Option("--json", help="print JSON on standard output")]
Yes = Annotated[bool, typer.Option("--yes", help="do not ask")]
Out = Annotated[Path | None, typer.Option("--out", help="release folder, instead of the spec's")]
Work = Annotated[Path | None, typer.Option("--workspace", help="private folder, instead of RELEASE.work")]


@app.command()
def init(
    data: Annotated[Path, typer.Argument(help="the data set to release")],
    auxiliary: Annotated[Path | None, typer.Option(help="a public data set with the same attributes")] = None,
    text: Annotated[str | None, typer.Option(help="the column that holds the text")] = None,
    recipe: Annotated[
        Recipe, typer.Option(help="how texts are made; none: as they are, filled by public ones, no model")
    ] = "notes",
    out: Annotated[Path, typer.Option("--out", help="where the spec goes")] = Path("spec.yaml"),
) -> None:
    """Write a commented spec from a look at the columns of DATA."""
    from quantext_graph.release.commented_spec import propose_spec

    if out.exists():
        raise QuantextError(f"{out}: stands already; name another with --out")
    out.write_text(propose_spec(data, auxiliary, text=text, recipe=recipe), encoding="utf-8")
    terminal.out.print(f"{out} written. Edit the attributes and the secret, then: quantext check {out}")


@app.command()
def check(
    spec: SpecPath,
    as_json: Json = False,
    tradeoff: Annotated[
        bool, typer.Option("--tradeoff", help="what each budget buys, estimated on the auxiliary set")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="the trade-off as a picture: png, svg or pdf")
    ] = None,
    records: Annotated[
        int | None,
        typer.Option("--records", min=1, help="for the trade-off: n, so that no private file is read"),
    ] = None,
) -> None:
    """Validate SPEC, estimate calls and time, state the guarantee. Changes nothing."""
    if tradeoff or plot is not None:
        cli_views.show_tradeoff(load_spec(spec), as_json, plot, records)
        return
    from quantext_graph.release.check import check as look

    found = look(load_spec(spec))
    if as_json:
        print(json.dumps(found.to_json(), indent=2))
        return
    terminal.lines(found.lines())
    for warning in found.warnings:
        terminal.warn(warning)


@app.command()
def preview(
    spec: SpecPath, n: Annotated[int, typer.Option("-n", min=1, max=50, help="records to show")] = 5
) -> None:
    """Show a few records before and after. Nothing is kept, and the draw is not made."""
    from quantext_graph.release.preview import preview as look

    with terminal.progress_bars() as bars:
        shown = look(load_spec(spec), n, bars)
    cli_views.show_pairs(shown)


@app.command()
def release(spec: SpecPath, yes: Yes = False, workspace: Work = None, out: Out = None) -> None:
    """Release the data set of SPEC: run to the gate, ask, publish."""
    from quantext_graph.release.run import Run

    loaded = load_spec(spec)
    cli_views.confirm_spending(loaded, yes)
    cli_views.drive(Run.start(loaded, workspace, output=out), yes)


@app.command()
def status(
    workspace: WorkspacePath,
    failed: Annotated[
        bool, typer.Option("--failed", help="the rows that a step failed on, with the reasons (private)")
    ] = False,
    as_json: Json = False,
) -> None:
    """How far a run is, what it has spent, what failed."""
    from quantext_graph.release import estimate as accounting
    from quantext_graph.release import standing

    counts, usage = asdict(standing.status(workspace)), standing.usage(workspace)
    failures = standing.failures(workspace) if failed else []
    if as_json:
        listed = {"failed": [asdict(failure) for failure in failures]} if failed else {}
        print(json.dumps({**counts, "usage": [row.model_dump() for row in usage], **listed}))
        return
    terminal.out.print(", ".join(f"{key} {value}" for key, value in counts.items()))
    for row in usage:
        terminal.out.print(accounting.usage_line(row), markup=False)
    for failure in failures:
        terminal.out.print(f"row {failure.row}, {failure.step}: {failure.reason}", markup=False)


@app.command()
def resume(
    workspace: WorkspacePath,
    yes: Yes = False,
    out: Out = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="write the records that missed their target again")
    ] = False,
    min_verified: Annotated[
        float | None, typer.Option("--min-verified", min=0, max=1, help="instead of the spec's")
    ] = None,
) -> None:
    """Go on with a run that was stopped or killed: same draw, nothing done twice."""
    from quantext_graph.release.run import Run

    run = Run.resume(workspace, retry_failed=retry_failed, min_verified=min_verified, output=out)
    cli_views.drive(run, yes)


@app.command()
def publish(workspace: WorkspacePath, yes: Yes = False, out: Out = None) -> None:
    """Publish a run that stands at the gate."""
    from quantext_graph.release.run import publish as write
    from quantext_graph.release.standing import status as look

    target = out or _spec_of(workspace).output.path
    if not yes and terminal.agreed(f"Publish {look(workspace).released} records to {target}?") is not True:
        raise QuantextError(f"{workspace}: not published; answer y, or give --yes")
    terminal.out.print(f"Published: {write(workspace, out)}")


@app.command()
def purge(workspace: WorkspacePath, yes: Yes = False) -> None:
    """Remove the private folder of a run and all that is in it."""
    from quantext_graph.workspace.folder import purge as remove

    _spec_of(workspace)  # says so where there is none, before it asks
    if not yes and terminal.agreed(f"Remove {workspace} with its draw and all results for good?") is not True:
        raise QuantextError(f"{workspace}: kept; answer y, or give --yes")
    remove(workspace)
    terminal.out.print(f"Removed: {workspace}")


@app.command()
def audit(
    workspace: Annotated[Path | None, typer.Argument(help="the private folder of a run")] = None,
    private: Annotated[Path | None, typer.Option(help="without a workspace: the private file")] = None,
    released: Annotated[Path | None, typer.Option(help="without a workspace: the released file")] = None,
    spec: Annotated[Path | None, typer.Option(help="without a workspace: the spec of both files")] = None,
    attacker: Annotated[
        list[str] | None, typer.Option(help="chat model that labels the release; 'none' for no model")
    ] = None,
    page: Annotated[Path, typer.Option(help="without a workspace: the page")] = Path("audit.html"),
    as_json: Json = False,
) -> None:
    """How well the secret is hidden from the attacks there are, and how useful the text still is."""
    from quantext_graph.audit import auditing
    from quantext_graph.workspace.folder import REPORT

    attackers = None if not attacker else [name for name in attacker if name != "none"]
    say = (lambda _: None) if as_json else (lambda step: terminal.err.print(f"audit: {step}"))
    if workspace is not None:
        report = auditing.audit_workspace(workspace, attackers, say)
        page = workspace / REPORT
    elif private and released and spec:
        report = auditing.audit_files(private, released, load_spec(spec), attackers, say)
        auditing.write_page(report, page)
    else:
        raise QuantextError("audit: name a workspace, or --private FILE --released FILE --spec SPEC")
    if as_json:
        print(json.dumps(report.to_json(), indent=2, allow_nan=False))
        return
    terminal.lines(auditing.told(auditing.verdict(report), page))


@app.command()
def ledger(
    data: Annotated[Path, typer.Argument(help="a private data set")],
    text: Annotated[str | None, typer.Option(help="its text column, where its name does not tell")] = None,
    as_json: Json = False,
) -> None:
    """What has been spent on this private data set over all its releases."""
    from quantext_graph.release.spending import spending

    found = spending(data, text)
    if as_json:
        print(json.dumps(found.to_json(), indent=2))
        return
    terminal.lines(found.lines())


@app.command()
def experiment(
    file: Annotated[Path, typer.Argument(help="the experiment, or a ready one by its name: tweet_stance")],
    simulate: Annotated[
        bool, typer.Option("--simulate", help="a perfect rewriter in place of models: no LLM is asked")
    ] = False,
    rows: Annotated[int | None, typer.Option(min=2, help="private records, instead of the file's")] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="instead of the file's")] = None,
    data: Annotated[Path | None, typer.Option(help="the data set, instead of the file's")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="where results are kept; private")] = None,
) -> None:
    """Compare methods on your own data: methods × budgets × repeats × secrets, tables and figures."""
    from quantext_graph.experiments.plan import load_experiment
    from quantext_graph.experiments.report import run_and_report

    asked = load_experiment(file).reduced(rows, repeats, data)
    folder = out or Path(f"{file.stem}.experiment")
    with terminal.progress_bars() as bars:
        outcome = run_and_report(asked, folder, simulate=simulate, progress=bars)
    for title, columns, lines in outcome.tables:
        terminal.table(title, columns, lines)
    for told in outcome.warnings:
        terminal.warn(told)
    terminal.lines(outcome.lines)
    if outcome.failed:
        raise QuantextError(f"{folder}: not every method gave a result; mend what is said and run it again")


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--folder", help="where the demo works")] = Path("quantext-demo"),
    model: Annotated[str, typer.Option(help="any chat model, as provider:name")] = "",
    min_verified: Annotated[float | None, typer.Option(min=0, max=1, help="instead of the demo's")] = None,
) -> None:
    """Release 24 invented patient messages with the embedded model: the whole path in a few minutes."""
    from quantext_graph.apps.demo import demo_spec
    from quantext_graph.release.run import Run

    spec = demo_spec(folder, model, min_verified)
    fetch_model(spec.models.chat)
    outcome_folder = cli_views.drive(Run.start(spec), yes=True, samples=4)
    if outcome_folder:
        terminal.out.print(f"Look at it: {outcome_folder / 'README.md'}")


app.command()(mcp)
app.command()(chat)
app.add_typer(model_app, name="model")


def _spec_of(workspace: Path) -> Spec:
    from quantext_graph.workspace.folder import Workspace

    with Workspace.open(workspace) as opened:
        return opened.spec


def main() -> None:
    """Entry point: one line for what a user can mend, exit codes as the documentation says."""
    try:
        if app(standalone_mode=False) == 130:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
    except QuantextError as error:
        terminal.fail(str(error))
        sys.exit(error.exit_code)
    except typer.Exit as exit_:
        sys.exit(exit_.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        terminal.fail("stopped; nothing that was done is lost")
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        _usage_or_bug(error)


def _usage_or_bug(error: Exception) -> None:
    """A usage error of the command line in one line; anything else is a fault of the program."""
    if hasattr(error, "format_message"):  # click's, wherever typer keeps it
        terminal.fail(error.format_message())
        sys.exit(2)
    if os.environ.get("QUANTEXT_DEBUG"):
        raise error
    # The message of an unknown exception may hold a record's text: it is not shown.
    terminal.fail(f"a fault of the program ({type(error).__name__}); QUANTEXT_DEBUG=1 shows where")
    sys.exit(1)
