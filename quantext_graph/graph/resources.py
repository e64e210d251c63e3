"""What the stages of a run share: models, public data and the kit made of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Unpack

from platformdirs import user_cache_path
from typing_extensions import TypedDict

from quantext_graph.data.auxiliary import Auxiliary, read_auxiliary
from quantext_graph.graph.progress import Listener
from quantext_graph.models.chat_model import ChatModel, ModelError, chat_model
from quantext_graph.spec.models import Spec
from quantext_graph.steps.context import Kit, prepare

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models.chat_models import BaseChatModel

Role = Literal["chat", "verify"]


class OwnModels(TypedDict, total=False):
    """Models that an app made itself, in place of those that the spec names.

    `chat` writes, and judges where there is no `verify`; `embedding` helps to label. Any LangChain
    `BaseChatModel` and `Embeddings` serve. `remote` says whether text leaves this machine by them:
    without it a `ChatOpenAI` at a loopback address is held to it, and any other model is refused, unless
    the spec says `allow_remote: true`. They are their owner's to close, and live in this process alone.
    """

    chat: BaseChatModel | ChatModel | None
    verify: BaseChatModel | ChatModel | None
    embedding: Embeddings | None
    remote: bool | None


class Resources:
    """Models, auxiliary set and kit of a spec: made when first needed, shared by all stages.

    Only public data goes in. An app's own models (`OwnModels`) take the place of the spec's.

    Raises:
        ModelError: for what is no such model.
        RemoteModelRefused: where text would leave the machine by one and the spec does not allow it.
    """

    def __init__(self, spec: Spec, **own: Unpack[OwnModels]) -> None:
        self.spec = spec
        self._guard = threading.RLock()
        self._given: dict[str, ChatModel] = {}
        self._embedding: Embeddings | None = None
        self._take(own)
        self._opened: dict[str, ChatModel] = {}
        self._kept: dict[str, Any] = {}
        self._kit: Kit | None = None

    @classmethod
    def held(cls, spec: Spec, resources: Resources | None, own: OwnModels) -> Resources:
        """`resources`, or new ones with an app's own models.

        Raises:
            ModelError: both, since the models would not be used.
        """
        if resources is not None and own:
            raise ModelError(
                f"{', '.join(own)}: given beside `resources`; give models to `Resources(spec, ...)` itself"
            )
        return resources or cls(spec, **own)

    @cached_property
    def auxiliary(self) -> Auxiliary:
        """Texts and (N, m) codes of the auxiliary set; empty where the spec has none."""
        return read_auxiliary(self.spec)

    def chat(self) -> ChatModel:
        return self._model("chat")

    def verify(self) -> ChatModel:
        return self._model("verify")

    def kit(self, emit: Listener) -> Kit:
        with self._guard:
            if self._kit is None:
                texts, codes = self.auxiliary

                def progress(step: str, done: int, total: int) -> None:
                    emit({"stage": step, "done": done, "total": total})

                rows = list(zip(texts, map(tuple, codes.tolist()), strict=True))
                cache = user_cache_path("quantext-graph") / "openings"
                self._kit = prepare(
                    self.spec,
                    rows,
                    self.chat(),
                    self.verify(),
                    embedding=self._embedding,
                    cache=cache,
                    progress=progress,
                )
            return self._kit

    @property
    def given(self) -> bool:
        """Whether a model came from outside, and so lives in this process alone."""
        return bool(self._given) or self._embedding is not None

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` gives the first time, kept under `name` and closed with the rest."""
        with self._guard:
            if name not in self._kept:
                self._kept[name] = make()
            return self._kept[name]

    def halt(self, halting: bool) -> None:
        """Whether calls of the models opened here give up on a server that does not answer. Models that
        came from outside are their owner's."""
        for model in list(self._opened.values()):
            model.halt(halting)

    def close(self) -> None:
        for kept in [*self._kept.values(), *self._opened.values()]:
            kept.close()
        self._kept.clear()
        self._opened.clear()
        self._kit = None

    def _take(self, own: OwnModels) -> None:
        if not any(model is not None for name, model in own.items() if name != "remote"):
            return
        # Costs the import of LangChain's clients, which a spec alone may not need.
        from quantext_graph.models.instances import own_chat_model, own_embedding

        models, limits, remote = self.spec.models, self.spec.limits, own.get("remote")
        roles: tuple[Role, ...] = ("chat", "verify")
        for role in roles:
            if (model := own.get(role)) is not None:
                self._given[role] = own_chat_model(role, model, models, limits, remote)
        if (embedding := own.get("embedding")) is not None:
            self._embedding = own_embedding(embedding, models, remote)

    def _model(self, role: Role) -> ChatModel:
        with self._guard:
            given = self._given.get(role) or self._given.get("chat" if role == "verify" else role)
            if given is not None:
                return given
            models = self.spec.models
            reference = (models.verify if role == "verify" else None) or models.chat
            if role == "verify" and reference == models.chat:
                return self._model("chat")
            if role not in self._opened:
                self._opened[role] = chat_model(reference, models, self.spec.limits)
            return self._opened[role]
