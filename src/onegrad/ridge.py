"""The second layer: ŵ = argmin (1/2m) Σ(y_i − wᵀφ_i/√k)² + (λ/2)‖w‖² (SPEC §4), with a certificate."""

from typing import NamedTuple

import jax.numpy as jnp
import jax.scipy.linalg as linalg
from jaxtyping import Array, Float


class Solution(NamedTuple):
    """ŵ, the fitted values ŷ on the training rows, and how well the optimum's equation holds.

    `residual` is ‖∇objective(ŵ)‖ over ‖∇objective(0)‖, computed from the features themselves: it
    would show a failed factorisation, and is NaN or large when rounding has eaten the answer.
    """

    weights: Float[Array, "width"]
    fitted: Float[Array, "samples"]
    residual: Float[Array, ""]


def solve(
    features: Float[Array, "samples width"],
    y: Float[Array, "samples"],
    ridge: Float[Array, ""],
) -> Solution:
    """Cholesky of the smaller of the k×k and the m×m system.

    k ≤ m: (ΦᵀΦ + λkm I)(ŵ/√k) = Φᵀy;  k > m: ŵ/√k = Φᵀ(ΦΦᵀ + λkm I)⁻¹y.
    """
    samples, width = features.shape
    shift = ridge * (samples * width)
    if width <= samples:
        scaled = _solve_shifted(features.T @ features, shift, features.T @ y)
    else:
        scaled = features.T @ _solve_shifted(features @ features.T, shift, y)
    return _certified(features, y, shift, scaled)


def path(
    features: Float[Array, "samples width"],
    y: Float[Array, "samples"],
    ridges: Float[Array, "ridges"],
) -> Solution:
    """`solve` for many ridges from one eigendecomposition; every field gains a leading axis."""
    samples, width = features.shape
    if width <= samples:
        values, vectors = jnp.linalg.eigh(features.T @ features)
        right = vectors.T @ (features.T @ y)
    else:
        values, vectors = jnp.linalg.eigh(features @ features.T)
        right = vectors.T @ y
        vectors = features.T @ vectors
    solutions = []
    for shift in ridges * (samples * width):
        scaled = vectors @ (right / (jnp.maximum(values, 0) + shift))
        solutions.append(_certified(features, y, shift, scaled))
    return Solution(*(jnp.stack(parts) for parts in zip(*solutions, strict=True)))


def objective(solution: Solution, y: Float[Array, "samples"], ridge: Float[Array, ""]) -> Float[Array, ""]:
    """The minimised objective, with its ½ and its ridge term."""
    misfit = jnp.mean((y - solution.fitted) ** 2)
    return (misfit + ridge * jnp.sum(solution.weights**2)) / 2


def _solve_shifted(gram: Array, shift: Array, right: Array) -> Array:
    diagonal = jnp.arange(gram.shape[0])
    factor = linalg.cho_factor(gram.at[diagonal, diagonal].add(shift), lower=True)
    return linalg.cho_solve(factor, right)


def _certified(features: Array, y: Array, shift: Array, scaled: Array) -> Solution:
    """From ŵ/√k: the weights, the fitted values and the relative gradient left."""
    fitted = features @ scaled
    slope = features.T @ (y - fitted) - shift * scaled
    start = jnp.linalg.norm(features.T @ y)
    # y = 0 has the exact answer ŵ = 0: a residual of 0, not 0/0
    residual = jnp.linalg.norm(slope) / jnp.where(start > 0, start, 1.0)
    return Solution(scaled * features.shape[1] ** 0.5, fitted, residual)
