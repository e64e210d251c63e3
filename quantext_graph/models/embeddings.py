"""Embedding models for the audit and the classifier: texts in, vectors out."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from quantext_graph.models.errors import ModelError
from quantext_graph.models.model_files import MINILM, MINILM_TOKENIZER
from quantext_graph.models.privacy import is_loopback, logging_as_it_is, refuse_remote
from quantext_graph.spec.models import Models, ModelSpec

_MINILM_TOKENS = 256
_MINILM_BATCH = 64


def text_embedding(reference: str, models: Models) -> Embeddings:
    """The embedding model that `reference` names: `wordllama`, `minilm`,
    `sentence-transformers:NAME`, `ollama:NAME`, or another provider of LangChain's, past the privacy guard.

    Raises:
        RemoteModelRefused: where texts would leave the machine and the spec does not allow it.
        ModelError: for an unknown provider or a missing package.
    """
    model = ModelSpec(model=reference)
    if model.provider == "wordllama":
        return WordLlamaEmbeddings()
    if reference == MINILM.name:
        return MiniLMEmbeddings()
    if model.provider == "sentence-transformers":
        return SentenceTransformerEmbeddings(model.name)
    if model.provider == "ollama":
        return _ollama(model.name)
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
    with logging_as_it_is():
        import wordllama

    # The package looks for its own tokenizer in a folder of another name, then in `cache_dir`.
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(disable_download=True, cache_dir=folder)


class MiniLMEmbeddings(Embeddings):
    """all-MiniLM-L6-v2 (384 dimensions) as int8 ONNX (extra `minilm`, fetched by `quantext model pull`).

    As its authors use it: up to 256 tokens, the mean over their vectors, norm 1.
    """

    def __init__(self) -> None:
        try:
            from onnxruntime import InferenceSession, SessionOptions
            from tokenizers import Tokenizer
        except ImportError:
            raise ModelError(
                "minilm: its packages are not installed; "
                "install them with `pip install 'quantext-graph[minilm]'`"
            ) from None
        if not (MINILM.here and MINILM_TOKENIZER.here):
            raise ModelError("minilm: not on this machine; `quantext model pull minilm` fetches it (23 MB)")
        options = SessionOptions()
        options.log_severity_level = 3
        try:
            self._tokenizer: Any = Tokenizer.from_file(str(MINILM_TOKENIZER.path))
            self._session: Any = InferenceSession(
                str(MINILM.path), sess_options=options, providers=["CPUExecutionProvider"]
            )
        except Exception:  # either library has its own exceptions for a file that is none of its own
            raise ModelError(
                f"minilm: {MINILM.path} cannot be loaded; remove it and `quantext model pull minilm` again"
            ) from None
        self._tokenizer.enable_truncation(max_length=_MINILM_TOKENS)
        self._tokenizer.enable_padding()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        # Texts of like length share a batch, so that little of it is padding.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        vectors = np.empty((len(texts), 384), dtype=np.float32)
        for start in range(0, len(order), _MINILM_BATCH):
            rows = order[start : start + _MINILM_BATCH]
            vectors[rows] = self._encode([texts[row] for row in rows])
        found: list[list[float]] = vectors.tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    def _encode(self, texts: list[str]) -> Any:
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([each.ids for each in encoded], dtype=np.int64)
        mask = np.array([each.attention_mask for each in encoded], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = self._session.run(["last_hidden_state"], given)
        means = (states * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return means / np.linalg.norm(means, axis=1, keepdims=True)


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
            self._model: Any = SentenceTransformer(name)
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


def _ollama(name: str) -> Embeddings:
    from langchain_ollama import OllamaEmbeddings

    from quantext_graph.models.http_clients import ollama_client_options
    from quantext_graph.models.resolve import OLLAMA_ADDRESS

    local = is_loopback(OLLAMA_ADDRESS)
    return OllamaEmbeddings(
        model=name,
        base_url=OLLAMA_ADDRESS,
        **ollama_client_options(loopback=local, timeout=600.0),
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
            f"{reference}: cannot be made ({type(error).__name__}); use wordllama, minilm, "
            "sentence-transformers:NAME, ollama:NAME or a provider of LangChain's"
        ) from None
    if not isinstance(found, Embeddings):
        raise ModelError(
            f"{reference}: not an embedding model; use wordllama, minilm or sentence-transformers:NAME"
        )
    return found
