"""Models that an app made itself: LangChain instances in place of names in the spec.

The spec's rule holds for them too: where text may leave this machine by one, it is refused. An instance
says little of where it goes: `ChatOpenAI` at a loopback address can be held to it, and all else counts as
remote, until its owner says.
"""

from __future__ import annotations

from functools import lru_cache

from langchain_core.embeddings import Embeddings
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_openai import ChatOpenAI

from quantext_graph.models.chat_model import ChatModel
from quantext_graph.models.embeddings import (
    MiniLMEmbeddings,
    SentenceTransformerEmbeddings,
    WordLlamaEmbeddings,
)
from quantext_graph.models.endpoints import LangChainEndpoint
from quantext_graph.models.errors import ModelError
from quantext_graph.models.http_clients import openai_http_client
from quantext_graph.models.privacy import is_loopback, keep_bodies_out_of_logs, refuse_remote
from quantext_graph.spec.models import Limits, Models

_TOKEN_LIMITS = ("max_tokens", "max_output_tokens", "num_predict")
_DETOURS = ("openai_proxy", "http_client")
_OWN_EMBEDDINGS = (WordLlamaEmbeddings, MiniLMEmbeddings, SentenceTransformerEmbeddings)
_LOCAL_SECONDS = 600.0  # that a reply may take from this machine


def own_chat_model(
    role: str, model: ChatModel | BaseChatModel, models: Models, limits: Limits, remote: bool | None
) -> ChatModel:
    """A chat model of an app's own as one of ours.

    Args:
        role: "chat" or "verify", for what is said of it.
        models: `allow_remote` is looked at.
        remote: whether text leaves the machine by it; None looks, and takes for remote what it cannot
            hold to this machine.

    Raises:
        ModelError: for anything but a chat model.
        RemoteModelRefused: where text would leave the machine and the spec does not allow it.
    """
    if isinstance(model, ChatModel):
        _refuse(role, model.name, model.remote, models)
        return model
    if not isinstance(model, BaseChatModel):
        raise ModelError(
            f"{role}: a {type(model).__name__} is no chat model; give an instance of LangChain's "
            "`BaseChatModel`, as `ChatOpenAI(...)` is, or name a model in the spec"
        )
    name = _name(model)
    kept = _kept_here(model) if remote is None else None
    away = kept is None if remote is None else remote
    _refuse(role, name, away, models)
    return from_langchain(kept or model, name=name, remote=away, limits=limits)


def own_embedding(model: Embeddings, models: Models, remote: bool | None) -> Embeddings:
    """An app's own embeddings, past the privacy guard; arguments and errors as `own_chat_model`."""
    if not isinstance(model, Embeddings):
        raise ModelError(
            f"embedding: a {type(model).__name__} is no embedding model; give an instance of LangChain's "
            "`Embeddings`, or name one in the spec"
        )
    away = not isinstance(model, _OWN_EMBEDDINGS) if remote is None else remote
    _refuse("embedding", _name(model), away, models)
    return model


def from_langchain(
    model: BaseChatModel, *, name: str = "custom", remote: bool, limits: Limits | None = None
) -> ChatModel:
    """A `ChatModel` over any LangChain chat model; the caller says whether text leaves the machine.

    A temperature and a token limit that the model was made with hold; else what the call says, where the
    model knows such a setting by one of its usual names.
    """
    keep_bodies_out_of_logs()

    @lru_cache(maxsize=16)
    def client(temperature: float | None, max_tokens: int) -> BaseChatModel:
        wanted = {"temperature": temperature, **dict.fromkeys(_TOKEN_LIMITS, max_tokens)}
        made = {
            key: value
            for key, value in wanted.items()
            if key in type(model).model_fields and getattr(model, key) is None and value is not None
        }
        return model.model_copy(update=made) if made else model

    return ChatModel(name, [LangChainEndpoint(client, address=name)], remote=remote, limits=limits)


def _refuse(role: str, name: str, remote: bool, models: Models) -> None:
    where = "wherever it is served; say `remote=False` where that is this machine"
    if remote:
        refuse_remote(f"{role} {name}", where, allow_remote=models.allow_remote)


def _name(model: BaseChatModel | Embeddings) -> str:
    said = (getattr(model, name, None) for name in ("model_name", "model"))
    own = next((name for name in said if isinstance(name, str) and name), None)
    kind = type(model).__name__
    return kind if own is None else f"{kind}:{own}"


def _kept_here(model: BaseChatModel) -> BaseChatModel | None:
    """An OpenAI client of a loopback address, over a transport that takes no proxy and follows no redirect,
    so that the address looked at is the one that text goes to; None for any other model."""
    if type(model) is not ChatOpenAI or any(getattr(model, name) for name in _DETOURS):
        return None
    if model.root_client is None or not is_loopback(str(model.root_client.base_url)):
        return None
    ours = openai_http_client(loopback=True, timeout=_LOCAL_SECONDS)
    root = model.root_client.with_options(http_client=ours)
    return model.model_copy(update={"root_client": root, "client": root.chat.completions})
