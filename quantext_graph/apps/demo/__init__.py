"""Invented messages whose share of diabetes is the secret, and a spec to release them."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.loading import load_spec
from quantext_graph.spec.models import Models, ModelSpec, Spec


def demo_spec(folder: Path, model: str = "", min_verified: float | None = None) -> Spec:
    """Copy the demo's files into `folder`, and load its spec with another model or bar where one is named.

    Raises:
        QuantextError: where a demo has run in the folder.
    """
    if (folder / "release.work").exists():
        raise QuantextError(
            f"{folder}: a demo has run here; remove the folder, or name another with --folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("spec.yaml", "messages.csv", "public_messages.csv"):
        with (
            (files("quantext_graph.apps.demo") / name).open("rb") as source,
            (folder / name).open("wb") as copy,
        ):
            shutil.copyfileobj(source, copy)
    spec = load_spec(folder / "spec.yaml")
    if model:
        spec = spec.model_copy(update={"models": Models(chat=ModelSpec(model=model))})
    if min_verified is not None:
        limits = spec.limits.model_copy(update={"min_verified": min_verified})
        spec = spec.model_copy(update={"limits": limits})
    return spec
