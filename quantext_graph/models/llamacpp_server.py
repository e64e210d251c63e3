"""The model that needs no server: llama.cpp in this process, on a loopback port with a random key.

It speaks the OpenAI API and is reached like any other server. One server per model file is shared
by everything in the process that asks for it.
"""

from __future__ import annotations

import atexit
import os
import secrets
import threading
import time
from pathlib import Path
from typing import Any

from quantext_graph.models.downloads import pull
from quantext_graph.models.model_files import KNOWN_MODELS, ModelFileError, cache_folder, locate

__all__ = [
    "DEFAULT_SLOTS",
    "KNOWN_MODELS",
    "EmbeddedServer",
    "ModelFileError",
    "cache_folder",
    "locate",
    "pull",
]

DEFAULT_SLOTS = 4
DEFAULT_CONTEXT = 4096
_PROMPT_CACHE_MIB = 512
_SETTLING_SECONDS = 1.0


class EmbeddedServer:
    """A running llama.cpp server. `address` is its loopback URL, `key` what opens it, `slots` how many
    requests it works on at a time, each with a window of `context` tokens.

    Raises:
        ModelFileError: where the model is not there or llama.cpp cannot load it.
    """

    _shared: dict[tuple[Path, int, int], EmbeddedServer] = {}  # noqa: RUF012
    _lock = threading.RLock()

    def __init__(self, path: Path, *, context: int = DEFAULT_CONTEXT, slots: int = DEFAULT_SLOTS) -> None:
        self.path, self.context, self.slots = path, context, slots
        self.key = secrets.token_urlsafe(24)
        self._users = 1
        self._server: Any = _start(path, context=context, slots=slots, key=self.key)
        self.address: str = self._server.listening_address
        self._started = time.monotonic()

    @classmethod
    def shared(
        cls, name_or_path: str, *, context: int | None = None, slots: int = DEFAULT_SLOTS
    ) -> EmbeddedServer:
        """The process's server for a model, started at the first call; `release` gives it back."""
        path = locate(name_or_path)
        if context is None:
            known = KNOWN_MODELS.get(name_or_path)
            context = known.context if known else DEFAULT_CONTEXT
        key = (path, context, slots)
        with cls._lock:
            server = cls._shared.get(key)
            if server is None:
                server = cls._shared[key] = cls(path, context=context, slots=slots)
            else:
                server._users += 1
            return server

    def release(self) -> None:
        """Give a shared server back; the last one out stops it."""
        with self._lock:
            self._users -= 1
            if self._users <= 0:
                self.stop()

    def stop(self) -> None:
        """Stop serving and free the model's memory. Stopping twice is no mistake."""
        with self._lock:
            for key in [key for key, server in self._shared.items() if server is self]:
                del self._shared[key]
            if self._server is not None:
                # Told to end before its loop has begun, llama.cpp waits for ever.
                time.sleep(max(0.0, self._started + _SETTLING_SECONDS - time.monotonic()))
            self._server = None

    def __repr__(self) -> str:
        return f"EmbeddedServer({self.path.name}, {self.address}, slots={self.slots})"


def _start(path: Path, *, context: int, slots: int, key: str) -> Any:
    # Read when llama.cpp's OpenMP is loaded: spinning workers starve everything else on a busy machine.
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {path.name}
    params.n_ctx = context * slots  # llama.cpp divides it over the slots
    params.n_parallel = slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _cores()
    params.n_threads_http = 2 * slots + 2
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.api_keys = [key]  # without one, every page in a browser could ask
    params.verbosity = 0  # llama.cpp's own log can quote prompts
    params.endpoint_slots = False
    params.ui = False
    try:
        return xllamacpp.Server(params)
    except (RuntimeError, ValueError, OSError):
        raise ModelFileError(
            f"{path}: llama.cpp cannot load this file; it is not a GGUF model, or memory is short"
        ) from None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@atexit.register
def _stop_all() -> None:
    for server in list(EmbeddedServer._shared.values()):
        server.stop()
