"""How sure a share is that was counted in so many trials."""

from __future__ import annotations

import math
from statistics import NormalDist

from arcwise.errors import ConfigError


def wilson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a share: it holds the true share in about `confidence` of all cases, also near 0 and 1.

    E. B. Wilson 1927, Probable inference, the law of succession, and statistical inference.
    """
    if not (trials > 0 and 0 <= successes <= trials):
        raise ConfigError(f"an interval needs 0 … n successes in n ≥ 1 trials; got {successes} in {trials}.")
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence must lie between 0 and 1; got {confidence}. 0.95 is usual.")
    n, p = trials, successes / trials
    # 1 − confidence is exact where confidence is near 1; 1 + confidence would be rounded to 2.
    z = -NormalDist().inv_cdf((1 - confidence) / 2)
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == trials else min(1.0, middle + half)
    return low, high
