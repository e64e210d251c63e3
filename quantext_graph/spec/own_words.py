"""What a spec must be to publish texts as they are (`rewriting.recipe: none`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quantext_graph.spec.models import Spec

MOST_LABEL_ERROR = 0.02
"""Wrong labels from which on texts as they are give the share away: measured on posts, an attacker who reads
better than the labeller is right 85 % of the time at 2 % wrong labels where 82 % are allowed."""


def check_own_words(spec: Spec) -> None:
    """Refuse a spec whose texts would tell more than its bound.

    Raises:
        ValueError: labels that are not known to be right, no public set to cap by, or a shortage that public
            texts cannot fill by the mechanism asked for.
    """
    rewriting = spec.rewriting
    if spec.auxiliary is None:
        raise ValueError(
            "rewriting.recipe none: how many texts of a combination go out as they are is set by public "
            "shares; add `auxiliary`, a public labelled set of the same kind"
        )
    if rewriting.label_error is not None and rewriting.label_error >= MOST_LABEL_ERROR:
        raise ValueError(
            f"rewriting.label_error: at {rewriting.label_error:.1%} wrong labels texts as they are give the "
            f"share away; get it below {MOST_LABEL_ERROR:.0%}, or use recipe: notes"
        )
    guessed = [attribute.name for attribute in spec.attributes if not attribute.by_column]
    if guessed and not rewriting.needs_model:
        raise ValueError(
            f"rewriting.shortage public: no model is opened, so {guessed[0]!r} needs a column of labels; "
            "name it (`column:`), or say shortage: notes"
        )
    if guessed and rewriting.label_error is None:
        raise ValueError(
            f"rewriting.recipe none: {guessed[0]!r} has no column of labels, and a text told as it is says "
            "its true one: at 5 % wrong labels an attacker who reads better than the labeller is right 94 % "
            "of the time where 82 % are allowed; name a `column:`, state a measured label_error below "
            f"{MOST_LABEL_ERROR:.0%}, or use recipe: notes"
        )
    if not rewriting.needs_model and spec.mechanism.targets != "quota":
        raise ValueError(
            "rewriting.shortage public: counts must be fixed for public texts; set targets: quota"
        )
