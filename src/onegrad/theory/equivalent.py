"""Theory A: the errors of ridge regression on given features, from their second moments alone.

With M = E[φφᵀ], v = E[yφ] and s = E[y²], the effective ridge τ ≥ λ solves λ = τ(1 − df₁/m), and

    β = (M + τ)⁻¹v,  test = (s − vᵀβ − τ‖β‖²)/(1 − df₂/m),  train = (λ/τ)² test,
    E‖ŵ‖² = ‖β‖² + test·(df₁ − df₂)/(τm),                   objective = ½ train + (λ/2) E‖ŵ‖²,

df₁ = Tr M(M + τ)⁻¹, df₂ = Tr M²(M + τ)⁻². Averages over training sets, for one first layer.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq

from onegrad import _checks
from onegrad.errors import InputError, NumericalError


class Equivalent(NamedTuple):
    """The errors and E‖ŵ‖²; `effective_ridge` is τ."""

    train_error: float
    test_error: float
    train_objective: float
    weight_norm: float
    effective_ridge: float


def equivalent(
    matrix: Float[np.ndarray, "width width"],
    cross: Float[np.ndarray, "width"],
    power: float | Float[np.ndarray, ""],
    samples: int,
    ridge: float,
) -> Equivalent:
    """The errors from M, v and s."""
    samples = _checks.integer("samples", samples)
    ridge = _checks.positive("ridge", ridge)
    if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(cross)) and np.isfinite(power)):
        raise NumericalError("the features' second moments are not finite; lower learning_rate or strengths")
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -1e-8 * abs(values[-1]):
        raise NumericalError("the features' second moments are not a covariance; lower learning_rate")
    values = np.maximum(values, 0)
    along = vectors.T @ cross

    def shrinkage(tau: float) -> Float[np.ndarray, "width"]:
        return values / (values + tau)

    def excess(log_tau: float) -> float:
        tau = np.exp(log_tau)
        return tau * (1 - shrinkage(tau).sum() / samples) / ridge - 1

    # df₁ ≤ Tr M/τ, so τ = λ + Tr M/m is an upper end
    top = np.log(ridge + values.sum() / samples)
    log_tau: Any = brentq(excess, np.log(ridge) - 1e-6, top + 1e-6, xtol=1e-14)
    tau = float(np.exp(log_tau))
    shrunk = shrinkage(tau)
    first, second = shrunk.sum(), np.sum(shrunk**2)
    beta = along / (values + tau)
    unlearned = float(power) - along @ beta - tau * beta @ beta
    test = unlearned / (1 - second / samples)
    if not test > 0:
        raise NumericalError(f"the predicted test error is {test:.2e}, lost in rounding; increase ridge")
    train = (ridge / tau) ** 2 * test
    norm = beta @ beta + test * (first - second) / (tau * samples)
    return Equivalent(float(train), float(test), float((train + ridge * norm) / 2), float(norm), tau)


def equivalent_of_samples(
    features: Float[np.ndarray, "rows width"], y: Float[np.ndarray, "rows"], samples: int, ridge: float
) -> Equivalent:
    """The errors with M, v and s estimated from samples: for data that is no mixture.

    `features` are σ(F̂x)/√k. The rows must be many more than the features, or M has no small eigenvalues left.
    """
    features, y = np.asarray(features, float), np.asarray(y, float)
    if features.ndim != 2 or y.shape != features.shape[:1]:
        raise InputError(f"features and y must be (rows, width) and (rows,), got {features.shape}, {y.shape}")
    rows, width = features.shape
    if rows < 2 * width:
        raise InputError(f"features must have at least 2·width = {2 * width} rows, got {rows}")
    matrix, cross = features.T @ features / rows, features.T @ y / rows
    return equivalent(matrix, cross, float(np.mean(y**2)), samples, ridge)
