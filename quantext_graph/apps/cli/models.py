"""`quantext model`: the models that run in-process."""

from __future__ import annotations

import typer

from quantext_graph.apps.cli import terminal
from quantext_graph.spec.models import ModelSpec

model_app = typer.Typer(no_args_is_help=True, help="Models that need no server.")


@model_app.command("list")
def model_list() -> None:
    """The models that run in-process, and whether they are here."""
    from quantext_graph.models.model_files import KNOWN_MODELS, MINILM

    rows = [
        (model.name, kind, f"{model.size / 1e6:,.0f} MB", "here" if model.here else "not fetched")
        for kind, models in (("chat", KNOWN_MODELS.values()), ("embedding", [MINILM]))
        for model in models
    ]
    terminal.table("models that run in-process", ("name", "for", "size", "state"), rows)


@model_app.command("pull")
def model_pull(name: str) -> None:
    """Fetch a model and check its sha256."""
    from quantext_graph.models.downloads import pull

    with terminal.progress_bars() as bars:
        path = pull(name, lambda done, total: bars({"stage": "pull", "done": done, "total": total}))
    terminal.out.print(f"{name}: {path}")


def fetch_model(model: ModelSpec) -> None:
    """Fetch a known embedded model where it is not here yet."""
    from quantext_graph.models.model_files import KNOWN_MODELS

    if model.embedded and model.name in KNOWN_MODELS:
        model_pull(model.name)
