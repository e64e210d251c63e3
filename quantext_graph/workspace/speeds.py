"""How long a call of each model took, for the next estimate; beside the ledger."""

from __future__ import annotations

import contextlib
import json

from quantext_graph.workspace.ledger import ledger_path

_FEWEST_CALLS = 50  # after which a speed is worth remembering


def remember_speed(model: str, calls: int, seconds: float) -> None:
    """Keep the wall seconds that a call of `model` took in a pass, for the next estimate; beside the
    ledger. It costs nothing but the estimate where that cannot be written."""
    if calls < _FEWEST_CALLS or seconds <= 0:
        return
    place = ledger_path().with_name("speeds.json")
    with contextlib.suppress(OSError):
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = place.with_name(".speeds.new")
        draft.write_text(json.dumps({**remembered(), model: seconds / calls}), encoding="utf-8")
        draft.replace(place)


def remembered() -> dict[str, float]:
    try:
        found = json.loads(ledger_path().with_name("speeds.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(model): float(s) for model, s in found.items() if isinstance(s, int | float) and s > 0}
