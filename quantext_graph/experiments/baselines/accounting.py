"""(ε, δ) of differential privacy for one record, by Google's dp_accounting.

T histograms to which a record adds one vote each, with Gaussian noise σ, are together one Gaussian
mechanism of noise σ/√T, whose (ε, δ) is known exactly (Balle and Wang 2018).
"""

from __future__ import annotations

import math


def usual_delta(n: int) -> float:
    """δ = 1/(n ln n), the value that Private Evolution is reported with."""
    return 1 / (n * math.log(n)) if n > 1 else 0.5


def gaussian_epsilon(sigma: float, queries: int, delta: float) -> float:
    """ε of `queries` Gaussian answers of sensitivity 1 with noise `sigma` each."""
    from dp_accounting import get_epsilon_gaussian

    return float(get_epsilon_gaussian(sigma / math.sqrt(queries), delta))


def gaussian_sigma(epsilon: float, queries: int, delta: float) -> float:
    """The noise of each of `queries` Gaussian answers of sensitivity 1 that together cost ε."""
    from dp_accounting import get_sigma_gaussian

    return float(get_sigma_gaussian(epsilon, delta) * math.sqrt(queries))
