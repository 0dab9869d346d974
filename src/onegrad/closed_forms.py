"""Gaussian averages of activations in closed form.

All coefficients follow from c_p = E[σ(mean + sd·z) He_p(z)/√p!] = sd^p m^(p)(mean)/√p!, with
m(mean) = E σ(mean + sd·z).
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax.lax import erf
from jax.scipy.stats.norm import cdf, pdf
from jaxtyping import Array, Float

from onegrad.gaussian import density_derivatives

Coefficients = Callable[[Array, Array, int], Array]
Moment = Callable[[Array, Array], Array]


def _orders(like: Array, first: int, last: int) -> Float[Array, "orders"]:
    return jnp.arange(first, last + 1, dtype=like.dtype)


def _join(head: list[Array], tail: Array, degree: int) -> Array:
    """Coefficients given one by one, then the rest; cut at the degree."""
    return jnp.concatenate([jnp.stack(head, axis=-1), tail], axis=-1)[..., : degree + 1]


def step_coefficients(mean: Array, sd: Array, degree: int) -> Array:
    """Of the unit step 1[x > 0]: Φ(t), then φ^(p−1)(t)/√p!, t = mean/sd."""
    t = mean / sd
    p = _orders(t, 1, max(degree, 1))
    signs = (-1) ** (p - 1)
    return _join([cdf(t)], signs * density_derivatives(t, p.size) / jnp.sqrt(p), degree)


def sign_coefficients(mean: Array, sd: Array, degree: int) -> Array:
    """Twice the step's, less 1; the mean by erf, which keeps its digits near 0."""
    step = step_coefficients(mean, sd, degree)
    return _join([erf(mean / sd / 2**0.5)], 2 * step[..., 1:], degree)


def sign_second_moment(mean: Array, sd: Array) -> Array:
    return jnp.ones_like(mean)


def relu_coefficients(mean: Array, sd: Array, degree: int) -> Array:
    """Of max(x, 0): mean·Φ(t) + sd·φ(t), sd·Φ(t), then sd·φ^(p−2)(t)/√p!."""
    t = mean / sd
    p = _orders(t, 2, max(degree, 2))
    tail = (-1) ** p * density_derivatives(t, p.size) / jnp.sqrt(p * (p - 1))
    return _join([mean * cdf(t) + sd * pdf(t), sd * cdf(t)], sd[..., None] * tail, degree)


def relu_second_moment(mean: Array, sd: Array) -> Array:
    t = mean / sd
    return (mean**2 + sd**2) * cdf(t) + mean * sd * pdf(t)


def leaky_relu(slope: float) -> tuple[Coefficients, Moment]:
    """slope·x + (1 − slope)·max(x, 0)."""

    def coefficients(mean: Array, sd: Array, degree: int) -> Array:
        line = identity_coefficients(mean, sd, degree)
        return slope * line + (1 - slope) * relu_coefficients(mean, sd, degree)

    def second_moment(mean: Array, sd: Array) -> Array:
        line = identity_second_moment(mean, sd)
        return slope**2 * line + (1 - slope**2) * relu_second_moment(mean, sd)

    return coefficients, second_moment


def erf_coefficients(mean: Array, sd: Array, degree: int) -> Array:
    """Of erf(x/√2) = sign smoothed by a unit Gaussian: sign's at r = √(1 + sd²), times (sd/r)^p."""
    r = jnp.sqrt(1 + sd**2)
    ratio = (sd / r)[..., None]
    return sign_coefficients(mean, r, degree) * ratio ** _orders(mean, 0, degree)


def gelu_coefficients(mean: Array, sd: Array, degree: int) -> Array:
    """Of xΦ(x): m = mean·A + sd²A', A = Φ(mean/r), so m^(p) = mean·A^(p) + pA^(p−1) + sd²A^(p+1)."""
    r = jnp.sqrt(1 + sd**2)[..., None]
    ratio = sd[..., None] / r
    p = _orders(mean, 0, degree)
    step = step_coefficients(mean, r[..., 0], degree + 1)  # A^(p) r^p/√p!
    below = jnp.concatenate([jnp.zeros_like(step[..., :1]), step[..., :degree]], axis=-1)
    here, above = step[..., : degree + 1], step[..., 1:]
    value = mean[..., None] * here + r * jnp.sqrt(p) * below
    return (value + sd[..., None] * ratio * jnp.sqrt(p + 1) * above) * ratio**p


def sin_coefficients(mean: Array, sd: Array, degree: int) -> Array:
    """sd^p e^(−sd²/2) sin(mean + pπ/2)/√p!."""
    p = _orders(mean, 0, degree)
    factors = jnp.where(p > 0, sd[..., None] / jnp.sqrt(jnp.maximum(p, 1)), 1.0)
    damping = jnp.exp(-(sd**2) / 2)[..., None] * jnp.cumprod(factors, axis=-1)
    return damping * jnp.sin(mean[..., None] + p * np.pi / 2)


def sin_second_moment(mean: Array, sd: Array) -> Array:
    return (1 - jnp.exp(-2 * sd**2) * jnp.cos(2 * mean)) / 2


def identity_coefficients(mean: Array, sd: Array, degree: int) -> Array:
    return _join([mean, sd], jnp.zeros((*mean.shape, degree), mean.dtype), degree)


def identity_second_moment(mean: Array, sd: Array) -> Array:
    return mean**2 + sd**2


def square_coefficients(mean: Array, sd: Array, degree: int) -> Array:
    head = [mean**2 + sd**2, 2 * mean * sd, 2**0.5 * sd**2]
    return _join(head, jnp.zeros((*mean.shape, degree), mean.dtype), degree)


def square_second_moment(mean: Array, sd: Array) -> Array:
    return mean**4 + 6 * mean**2 * sd**2 + 3 * sd**4
