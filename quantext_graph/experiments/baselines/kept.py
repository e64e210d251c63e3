"""What was expensive, kept as it comes: one JSON line a result, found again after a stop or a crash."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any


class Kept:
    """Results by key in an append-only file (mode 0600), or in memory alone. Safe for threads.

    A line that a crash cut short is passed over, and so made anew.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._guard = path, threading.Lock()
        self._values: dict[str, Any] = {}
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))
        lines = path.read_text(encoding="utf-8").split("\n")
        if lines[-1]:
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")
        for line in lines:
            try:
                key, value = json.loads(line)
            except ValueError:
                continue
            self._values[key] = value

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str) -> Any:
        return self._values.get(key)

    def put(self, key: str, value: Any) -> None:
        with self._guard:
            self._values[key] = value
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, value], ensure_ascii=False) + "\n")
