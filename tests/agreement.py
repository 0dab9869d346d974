"""What "agrees within noise" means here.

Every comparison states its false-alarm level: the probability, for correct code, that a random seed fails.
ALARM is that of one comparison; with a few hundred of them a suite fails wrongly once in a thousand runs.
A test that uses one of these functions also plants an error that the same function must reject.
"""

import numpy as np
from scipy.stats import chi2, t

ALARM = 1e-6


def mean_agrees(sample, expected: float, allowance: float = 0.0, alarm: float = ALARM) -> bool:
    """|mean − expected| ≤ t-quantile · standard error + allowance · |expected|."""
    sample = np.asarray(sample, float).ravel()
    sem = sample.std(ddof=1) / sample.size**0.5
    bound = t.isf(alarm / 2, sample.size - 1) * sem + allowance * abs(expected)
    return bool(abs(sample.mean() - expected) <= bound)


def means_agree(first, second, allowance: float = 0.0, alarm: float = ALARM) -> bool:
    """Paired samples: the mean difference is 0 within its standard error + allowance · mean."""
    difference = np.asarray(first, float) - np.asarray(second, float)
    sem = difference.std(ddof=1) / difference.size**0.5
    bound = t.isf(alarm / 2, difference.size - 1) * sem + allowance * abs(np.mean(second))
    return bool(abs(difference.mean()) <= bound)


def within_standard_errors(first, second, errors: float, allowance: float) -> bool:
    """Paired: |mean difference| ≤ `errors` standard errors + allowance · mean of the second."""
    difference = np.asarray(first, float) - np.asarray(second, float)
    sem = difference.std(ddof=1) / difference.size**0.5
    return bool(abs(difference.mean()) <= errors * sem + allowance * abs(np.mean(second)))


def covariance_agrees(x, expected, alarm: float = ALARM) -> bool:
    """Gaussian rows x (rows, d) have covariance `expected`: diagonal of the whitened sample by χ²."""
    rows, dimension = x.shape
    white = np.linalg.solve(np.linalg.cholesky(expected), x.T)
    squares = np.sum(white**2, axis=1)
    low, high = chi2.ppf([alarm / 2 / dimension, 1 - alarm / 2 / dimension], rows)
    cross = white @ white.T / rows**0.5
    off = np.abs(cross - np.diag(np.diag(cross))).max() if dimension > 1 else 0.0
    # an off-diagonal entry is asymptotically N(0, 1)
    return bool(np.all((squares > low) & (squares < high)) and off < 6.5)
