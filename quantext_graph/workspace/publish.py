"""The release folder: the data, a card for people and the same for machines.

What stands in it depends on the private data through the texts, n and the drawn distribution
alone. The order is a fresh random permutation and the ids are new.
"""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quantext_graph.data.records import write_table
from quantext_graph.mechanism.public_draw import PublicDraw
from quantext_graph.workspace.card import card, facts
from quantext_graph.workspace.disk import WorkspaceError, one_line
from quantext_graph.workspace.folder import Workspace
from quantext_graph.workspace.reports import Report


def publish(workspace: Workspace, folder: Path) -> Path:
    """Write the release folder of a finished run, whole or not at all, and return it.

    Raises:
        WorkspaceError: where the run has not come to the gate, or the folder holds something already.
    """
    store, spec = workspace.store, workspace.spec
    draw, report = store.draw(), store.report()
    if draw is None or report is None:
        raise WorkspaceError(
            f"{workspace.folder}: not finished, so not published; "
            f"`quantext resume {workspace.folder}` goes on"
        )
    with one_line(folder):
        if folder.exists() and any(folder.iterdir()):
            raise WorkspaceError(f"{folder}: holds something already; remove it, or name another with --out")
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            _write(workspace, draw, report, draft)
            draft.chmod(0o755)
            if folder.exists():
                folder.rmdir()
            draft.rename(folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    store.set_meta("stage", "published")
    store.set_meta("published", str(folder))
    store.commit()
    return Path(spec.output.path) if folder == spec.output.path else folder


def _write(workspace: Workspace, draw: PublicDraw, report: Report, folder: Path) -> None:
    spec, store = workspace.spec, workspace.store
    attributes = spec.attributes if spec.output.attributes else ()
    columns = ["id", "text", *(attribute.name for attribute in attributes)]
    order = store.used()
    secrets.SystemRandom().shuffle(order)

    def rows() -> Iterator[list[Any]]:
        for number, (text, target) in enumerate(store.released(order), start=1):
            names = [a.category_names[code] for a, code in zip(attributes, target, strict=False)]
            yield [number, text, *names]

    name = f"data.{spec.output.format}"
    write_table(folder / name, columns, rows(), format=spec.output.format)
    known = facts(spec, draw, report, columns)
    said = json.dumps(known.model_dump(), indent=2, ensure_ascii=False)
    (folder / "release.json").write_text(said + "\n", encoding="utf-8")
    (folder / "README.md").write_text(card(known, name), encoding="utf-8")
