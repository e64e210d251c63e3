"""QuanText (Alg. 1) with the paper's selection rule and with ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from quantext_graph.audit.inputs import Draw
from quantext_graph.core.quantize import Quantization, quantize
from quantext_graph.core.rules import MechanismParameters
from quantext_graph.experiments.baselines.method import Guarantee, Method, Released, Task
from quantext_graph.mechanism.guarantees import levels, public_codes, release_tree
from quantext_graph.spec.errors import QuantextError


class PerComponent(Method):
    """The paper's rule: of γ candidates a component, the k nearest are kept. `ratio` is γ/k."""

    name: ClassVar[str] = "per_component"
    title: ClassVar[str] = "QuanText, per component"
    budgets: ClassVar = (frozenset({"ratio"}), frozenset({"gamma", "k"}), frozenset({"nats"}))

    gamma: int = Field(120, ge=1)
    k: int | None = Field(None, ge=1)
    ratio: float | None = Field(None, ge=1)
    nats: float | None = Field(None, ge=0)
    alpha: float = Field(1.0, gt=0)
    pool: Literal["dirichlet", "public"] = "dirichlet"
    pool_size: int | None = None
    spread: float | None = Field(None, ge=0, le=1)
    targets: Literal["iid", "quota"] = "iid"

    @model_validator(mode="after")
    def _whole(self) -> PerComponent:
        if self.ratio is not None and self.k is None and self.gamma % self.ratio:
            raise ValueError(f"gamma = {self.gamma} is no multiple of the ratio {self.ratio:g}")
        return self

    @property
    def depends_on_secrets(self) -> bool:
        return self.spread is not None

    def release(self, task: Task) -> Released:
        k = self.k
        if k is None:
            k = 30 if self.ratio is None else int(self.gamma // self.ratio)
        settings = self.model_dump(include={"gamma", "alpha", "pool", "pool_size", "spread", "targets"})
        return _release(task, {"selection": "per_component", "k": k, "budget_nats": self.nats, **settings})


class Joint(Method):
    """Our rule: one draw among the nearest of M candidates for the whole joint. `nats` is log(M/K)."""

    name: ClassVar[str] = "joint"
    title: ClassVar[str] = "QuanText, joint"
    budgets: ClassVar = (frozenset({"nats"}),)

    nats: float = Field(1.0, ge=0)
    pool: Literal["dirichlet", "public"] = "public"
    pool_size: int | None = None
    spread: float | None = Field(0.3, ge=0, le=1)
    targets: Literal["iid", "quota"] = "quota"
    blind: bool = False
    keep: float = Field(1.0, gt=0, le=1)

    @property
    def depends_on_secrets(self) -> bool:
        return self.spread is not None or self.blind

    def release(self, task: Task) -> Released:
        settings = self.model_dump(include={"pool", "pool_size", "spread", "targets", "blind", "keep"})
        return _release(task, {"selection": "joint", "budget_nats": self.nats, **settings})


def _release(task: Task, mechanism: Mapping[str, Any]) -> Released:
    spec, private = task.spec, task.private
    auxiliary = public_codes(spec, task.auxiliary.codes)
    secrets = [spec.secret_codes(secret) for secret in spec.secrets]
    try:
        drawn = quantize(
            private.codes,
            spec.sizes,
            auxiliary=auxiliary,
            tree=release_tree(spec, auxiliary),
            weights=spec.weights,
            secrets=secrets,
            levels=levels(spec, len(private)),
            rng=task.rng,
            **mechanism,
        )
    except ValueError as error:
        raise QuantextError(f"{mechanism['selection']}: {error}") from None
    used = drawn.used.tolist()
    texts = [private.texts[record] for record in used]
    written = task.writer.rewrite(texts, private.codes[drawn.used], drawn.assigned, step="rewrite")
    titles = [secret.title for secret in spec.secrets]
    leakage = dict(zip(titles, drawn.leakages, strict=False))
    return Released(
        texts=written.texts,
        guarantee=_guarantee(drawn, leakage),
        label_source="the drawn distribution",
        targets=drawn.assigned,
        realised=written.realised,
        sources=used,
        draw=Draw(MechanismParameters(**mechanism), drawn.rule, drawn.choice, leakage, seeded=True),
        detail={
            "cost": drawn.cost,
            "shares": {
                title: drawn.released.share(event) for title, event in zip(titles, secrets, strict=True)
            },
        },
    )


def _guarantee(drawn: Quantization, leakage: Mapping[str, Any]) -> Guarantee:
    nats = drawn.leakage.mechanism_nats
    words = f"at most {nats:.3g} nats about a proportion" + (
        ", vacuous: more than there is to know" if drawn.leakage.vacuous else ""
    )
    bounds = {title: each.bound_nats for title, each in leakage.items()}
    return Guarantee(words, bounds, mechanism_nats=nats)
