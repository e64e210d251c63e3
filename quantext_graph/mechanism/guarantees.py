"""What a release leaks at most about each secret of a spec.

All of it is public: it depends on the spec, the auxiliary set and the number of records alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from quantext_graph.core.arrays import Codes, as_codes
from quantext_graph.core.chow_liu import Tree
from quantext_graph.core.leakage import Leakage, secret_levels
from quantext_graph.core.public_pool import missing_categories
from quantext_graph.core.quantize import public_dependency_tree
from quantext_graph.core.rules import MechanismParameters, build_rule
from quantext_graph.core.selection import JointRule, PerComponentRule, Rule
from quantext_graph.core.targets import released_count
from quantext_graph.mechanism.label_errors import HeldOut, what_errors_cost
from quantext_graph.mechanism.public_draw import Parameter
from quantext_graph.spec.errors import SpecError
from quantext_graph.spec.models import Spec

ANY_SECRET = "any proportion of the records"  # noqa: S105
"""Title of the bound where the spec names no secret."""


@dataclass(frozen=True)
class Guarantees:
    """The bound of a release before it is made.

    `components` is C of the tree; `mechanism` the parameters in use, M and K or γ and k among them;
    `notes` what a reader of the numbers should know of the auxiliary set, `label_errors` what wrong labels
    would tell.
    """

    secrets: dict[str, Leakage]
    components: int
    mechanism: dict[str, Parameter]
    notes: tuple[str, ...]
    label_errors: str

    @property
    def worst(self) -> Leakage:
        """The leakage about the secret with the largest bound."""
        return max(self.secrets.values(), key=lambda leakage: leakage.bound_nats)


def guarantees(
    spec: Spec, n: int, auxiliary: ArrayLike | None, held_out: HeldOut | None = None
) -> Guarantees:
    """What a release of n records by this spec leaks at most about each secret.

    Args:
        auxiliary: public category codes (N, m); none or no rows where the spec has no auxiliary set.
        held_out: how well the spec's classifier labels public texts, where one does.

    Raises:
        SpecError: no way to a tree, or mechanism parameters that contradict each other.
    """
    codes = public_codes(spec, auxiliary)
    try:
        tree = release_tree(spec, codes)
        rule = release_rule(spec, n, codes, pool_seed=0, tree=tree)
        return rule_guarantees(spec, n, codes, tree, rule, held_out)
    except ValueError as error:
        raise SpecError(f"mechanism: {error}") from None


def release_rule(
    spec: Spec, n: int, auxiliary: Codes | None, *, pool_seed: int, tree: Tree | None = None
) -> Rule:
    """The selection rule of a release, from public inputs: with the `pool_seed` of a release, its very pool.

    Args:
        tree: `release_tree`, where the caller has it already.

    Raises:
        ValueError: as `core.rules.build_rule`, or no way to a tree.
    """
    return build_rule(
        MechanismParameters(**mechanism_parameters(spec)),
        tree=tree or release_tree(spec, auxiliary),
        sizes=spec.sizes,
        n=n,
        auxiliary=auxiliary,
        secrets=[spec.secret_codes(secret) for secret in spec.secrets],
        pool_seed=pool_seed,
    )


def release_tree(spec: Spec, auxiliary: Codes | None) -> Tree:
    """The spec's own tree, or the one learned from the auxiliary labels (N, m).

    Raises:
        ValueError: neither is there, or the spec's is no tree.
    """
    if spec.mechanism.tree is None:
        return public_dependency_tree(auxiliary, spec.sizes)
    names = [attribute.name for attribute in spec.attributes]
    parent_of = {names.index(child): names.index(parent) for child, parent in spec.mechanism.tree.items()}
    return Tree.from_parents(parent_of, len(names))


def mechanism_parameters(spec: Spec) -> dict[str, Any]:
    """The spec's mechanism as fields of `core.rules.MechanismParameters`."""
    filled = not spec.rewriting.needs_model
    return {**spec.mechanism.model_dump(exclude={"tree", "seed"}), "filled": filled}


def public_codes(spec: Spec, auxiliary: ArrayLike | None) -> Codes | None:
    """Auxiliary codes (N, m), checked; None where there is no row."""
    if auxiliary is None:
        return None
    codes = as_codes(auxiliary, spec.sizes)
    return codes if len(codes) else None


def levels(spec: Spec, n: int) -> list[int]:
    """|G| of each secret of the spec, or of any share of n records where it names none."""
    return [secret_levels(n, secret.precision) for secret in spec.secrets] or [secret_levels(n)]


def rule_guarantees(
    spec: Spec, n: int, auxiliary: Codes | None, tree: Tree, rule: Rule, held_out: HeldOut | None = None
) -> Guarantees:
    """`guarantees` of a tree and a rule that are there already."""
    titles: list[str] = []
    for title in [secret.title for secret in spec.secrets] or [ANY_SECRET]:
        titles.append(title if title not in titles else f"{title} ({len(titles) + 1})")
    found = {
        title: rule.leakage(secret_levels=size, log_l=spec.mechanism.log_l)
        for title, size in zip(titles, levels(spec, n), strict=True)
    }
    nats = max(leakage.bound_nats for leakage in found.values())
    released = released_count(n, spec.mechanism.keep)
    return Guarantees(
        secrets=found,
        components=1 + sum(tree.parent_sizes(spec.sizes)),
        mechanism=_in_use(spec, rule),
        notes=tuple(_notes(spec, auxiliary)),
        label_errors=what_errors_cost(spec, released, nats, auxiliary, held_out),
    )


def _in_use(spec: Spec, rule: Rule) -> dict[str, Parameter]:
    mechanism = spec.mechanism
    common: dict[str, Parameter] = {
        "selection": mechanism.selection,
        "pool": mechanism.pool,
        "targets": mechanism.targets,
    }
    if mechanism.keep < 1:
        common["keep"] = mechanism.keep
    if not spec.rewriting.needs_model:
        common["filled"] = True
    if mechanism.pool == "dirichlet":
        common["alpha"] = mechanism.alpha
    else:
        common["spread"] = mechanism.spread
    if isinstance(rule, JointRule):
        size: dict[str, Parameter] = {"pool_size": rule.pool.size, "kept": rule.selection_size}
        if mechanism.blind:
            size["blind"] = True
        return {**common, "budget_nats": mechanism.budget_nats, **size}
    assert isinstance(rule, PerComponentRule)
    kept = sorted(set(rule.selection_sizes))
    k = kept[0] if len(kept) == 1 else list(rule.selection_sizes)
    return {**common, "budget_nats": mechanism.budget_nats, "gamma": rule.gamma, "k": k}


def _notes(spec: Spec, auxiliary: Codes | None) -> list[str]:
    if auxiliary is None:
        return []
    missing = missing_categories(auxiliary, spec.sizes)
    return [
        f"the auxiliary set has no record of {spec.attributes[r].name} = "
        f"{spec.attributes[r].category_names[category]}; it counts as rare there, and the candidates hold "
        "little of it"
        for r, category in missing
    ]
