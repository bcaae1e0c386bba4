"""Estimate the best of k samples without bias, by averaging over all subsets of k of the n stored samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln


def _subset_share(part: ArrayLike, whole: ArrayLike, k: int) -> Any:
    """Return C(part, k) / C(whole, k): of all subsets of k items, the share that has only items of `part`."""
    a, b = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    safe = np.maximum(a, k)
    log_share = gammaln(safe + 1) - gammaln(safe - k + 1) - gammaln(b + 1) + gammaln(b - k + 1)
    # Round, because the last digits of a value that is computed from logarithms are wrong.
    return np.where(a < k, 0.0, np.round(np.exp(log_share), 12))


def _check(n: ArrayLike, k: int) -> None:
    if k < 1 or np.any(np.asarray(n) < k):
        raise ValueError(f"k = {k} samples cannot be drawn from {np.min(n)}")


def pass_at_k(n: ArrayLike, successes: ArrayLike, k: int) -> Any:
    """Return the probability that at least one of k samples succeeds, from c successes of n: 1 - C(n-c, k) / C(n, k).

    Chen et al. 2021 (arXiv 2107.03374), equation 1. The arguments are numbers, or arrays with one value per task.
    """
    _check(n, k)
    value = 1 - _subset_share(np.asarray(n) - np.asarray(successes), n, k)
    return float(value) if value.ndim == 0 else value


def pass_hat_k(n: ArrayLike, successes: ArrayLike, k: int) -> Any:
    """Return the probability that all of k samples succeed (pass^k, consistency): C(c, k) / C(n, k).

    Yao et al. 2024, tau-bench (arXiv 2406.12045), section 3. Arguments are numbers, or arrays with one value per task.
    """
    _check(n, k)
    value = _subset_share(successes, n, k)
    return float(value) if value.ndim == 0 else value


def expected_best_of_k(values: ArrayLike, k: int) -> Any:
    """Return the expected maximum of k of the n samples in the last axis, for each task (for example best progress).

    The i-th smallest value is the maximum of C(i-1, k-1) of the C(n, k) subsets. Tang et al., "Showing Your Work
    Doesn't Always Work", ACL 2020, section 3: unbiased, unlike drawing with replacement. For 0 and 1 it is pass@k.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=-1)
    n = ordered.shape[-1]
    _check(n, k)
    up_to = _subset_share(np.arange(n + 1), n, k)
    best = ordered @ np.diff(up_to)
    return float(best) if np.ndim(best) == 0 else best
