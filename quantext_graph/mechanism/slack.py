"""What slack is for: first that few texts must change a label, then that doubtful labels stay out."""

from __future__ import annotations

from numpy.typing import ArrayLike

from quantext_graph.mechanism.tradeoff import expected_changes
from quantext_graph.spec.models import Spec

MOST_CHANGES = 0.05
"""Share of the released texts that may be expected to change a label before slack is spent on doubt. With the
worst writer real tweets told no more than the bound allows at 4 in 100, and more at 6."""

_SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)


def share_for_doubt(spec: Spec, auxiliary_codes: ArrayLike) -> float:
    """The share of all records that may stay out because their labels are in doubt: the more slack `keep`
    leaves beyond what few changes take, the more. Made of the spec and public labels (N, m) alone; 0 where
    every record is released.

    Raises:
        SpecError: as `expected_changes`.
    """
    keep = spec.mechanism.keep
    keeps = {share: keep / (1 - share) for share in _SHARES if keep / (1 - share) <= 1}
    if not keeps:
        return 0.0
    changes = expected_changes(spec, auxiliary_codes, keeps=tuple(keeps.values()))
    fit = [share for share, at in keeps.items() if changes.get(at, 1.0) <= MOST_CHANGES]
    return max(fit, default=0.0)
