"""Compute the interval of the standard deviation between the rates of several conditions, such as perturbations."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import chndtr

from evalharness.stats.intervals import Interval
from evalharness.stats.root import find_root

_TAIL = 0.025


def spread_interval(values: NDArray[np.float64]) -> Interval:
    """Return the 95 % interval of the population standard deviation of the conditions' true rates.

    `values`: tasks x conditions. The variance between the measured rates is a quadratic form of nearly normal means, so
    its distribution is approximately a scaled noncentral chi-square. Scale and degrees of freedom follow from the
    sampling error of the rates (Satterthwaite's moments; Box, Annals of Mathematical Statistics 25 (1954) 290-302,
    theorem 3.1). The noncentrality stands for the true variance. Sampling error makes the measured deviation too large
    on average, so the interval may lie below it. Return (0, 0) if no task differs between conditions.
    """
    n, conditions = values.shape
    deviations = values - values.mean(axis=1, keepdims=True)
    error = np.atleast_2d(np.cov(deviations, rowvar=False)) / n
    trace, squares = float(np.trace(error)), float((error**2).sum())
    if trace <= 0:
        return 0.0, 0.0
    scale, freedom = squares / trace, trace**2 / squares
    measured = float((deviations.mean(axis=0) ** 2).sum()) / scale

    def noncentrality(below: float) -> float:
        """Return the noncentrality that gives the measured value as quantile `below`; 0 if no noncentrality does."""

        def missing(value: float) -> float:
            return float(chndtr(measured, freedom, value)) - below

        if missing(1e-9) <= 0:
            return 0.0
        return float(find_root(missing, 1e-9, 10 * (measured + freedom) + 100))

    low, high = (sqrt(scale * noncentrality(below) / conditions) for below in (1 - _TAIL, _TAIL))
    return low, high
