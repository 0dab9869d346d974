"""Averages over a Gaussian: normalised Hermite polynomials and a rule that survives kinks.

Everywhere in onegrad Hermite polynomials are the probabilists' He_p divided by √p!, so that they are
orthonormal under N(0, 1) and high degrees neither overflow nor lose digits.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

# Half-width, in standard deviations, beyond which a Gaussian average is cut: e^(-81/2) = 3e-18.
REACH = 9.0
# Steps of the trapezoidal rule for analytic functions, and the error that it may make unless told otherwise.
TRAPEZOID_STEPS = (1 / 3, 1 / 4, 1 / 10, 1 / 36)
TRAPEZOID_ERROR = 1e-16


class Series(NamedTuple):
    """Neurons as Hermite series in their own standardised pre-activation, under one Gaussian.

    feature_i = Σ_p coefficients[i, p] He_p(z_i)/√p!, z_i = (F̂_iᵀx − mean_i)/sd_i, of which the series
    is cut at some degree; second_moment is exact.
    """

    coefficients: Float[Array, "width terms"]
    second_moment: Float[Array, "width"]
    mean: Float[Array, "width"]
    sd: Float[Array, "width"]

    def missing(self) -> Float[Array, "width"]:
        """Σ of the squared coefficients beyond the cut."""
        return jnp.maximum(self.second_moment - jnp.sum(self.coefficients**2, axis=-1), 0)

    def cut(self, terms: int) -> "Series":
        """The first `terms` terms."""
        return self._replace(coefficients=self.coefficients[..., :terms])


def hermite(z: Float[Array | np.ndarray, "*shape"], degree: int) -> list[Float[Array | np.ndarray, "*shape"]]:
    """He_p(z)/√p! for p = 0..degree, by the three-term recurrence √(p+1) h_{p+1} = z h_p − √p h_{p−1}."""
    values = [0 * z + 1, z]
    for p in range(1, degree):
        values.append((z * values[p] - p**0.5 * values[p - 1]) / (p + 1) ** 0.5)
    return values[: degree + 1]


def density(z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """φ(z) of N(0, 1)."""
    return jnp.exp(-(z**2) / 2) / (2 * np.pi) ** 0.5


def reach(degree: int) -> float:
    """Where E[f(z) He_p(z)/√p!] may be cut: past the polynomial's last turning point 2√p."""
    return max(REACH, 2.0 * degree**0.5 + 6.5)


def rule(
    mean: Float[Array, "*shape"],
    sd: Float[Array, "*shape"],
    kinks: Sequence[float] = (0.0,),
    order: int = 64,
    half_width: float = REACH,
) -> tuple[Float[Array, "*shape nodes"], Float[Array, "*shape nodes"]]:
    """Nodes z and weights with Σ weight·f(mean + sd·z) ≈ E f(mean + sd·z), z ~ N(0, 1).

    Gauss–Legendre in v = asinh(x), x = mean + sd·z, on each side of every kink. The map puts nodes
    where an activation bends (|x| ~ 1) however wide the Gaussian is, and is harmless where the
    Gaussian is narrow; a plain Gauss–Hermite rule misses E[relu] by 1.6e-3 with 100 nodes.
    """
    low, high = mean - half_width * sd, mean + half_width * sd
    inner = [jnp.clip(jnp.asarray(kink, mean.dtype), low, high) for kink in sorted(kinks)]
    ends = jnp.arcsinh(jnp.stack([low, *inner, high], axis=-1))
    unit, unit_weights = (jnp.asarray(a, mean.dtype) for a in np.polynomial.legendre.leggauss(order))
    centre = (ends[..., 1:] + ends[..., :-1]) / 2
    half = (ends[..., 1:] - ends[..., :-1]) / 2
    v = centre[..., None] + half[..., None] * unit
    v_weights = half[..., None] * unit_weights
    flat = (*mean.shape, -1)
    z = ((jnp.sinh(v) - mean[..., None, None]) / sd[..., None, None]).reshape(flat)
    jacobian = (jnp.cosh(v) / sd[..., None, None] * v_weights).reshape(flat)
    return z, jacobian * density(z)


def average(
    function: Callable[[Array], Array],
    mean: Float[Array, "*shape"],
    sd: Float[Array, "*shape"],
    kinks: Sequence[float] = (0.0,),
    order: int = 64,
) -> Float[Array, "*shape"]:
    """E f(mean + sd·z)."""
    z, weights = rule(mean, sd, kinks, order)
    return jnp.sum(weights * function(mean[..., None] + sd[..., None] * z), axis=-1)


def project(
    function: Callable[[Array], Array],
    mean: Float[Array, "*shape"],
    sd: Float[Array, "*shape"],
    degree: int,
    kinks: Sequence[float] = (0.0,),
    order: int = 64,
) -> Float[Array, "*shape {degree}+1"]:
    """Hermite coefficients E[f(mean + sd·z) He_p(z)/√p!] for p = 0..degree, by quadrature.

    The polynomials are walked by a scan, so memory does not grow with the degree.
    """
    z, weights = rule(mean, sd, kinks, order + degree, reach(degree))
    weighted = weights * function(mean[..., None] + sd[..., None] * z)

    _, coefficients = jax.lax.scan(
        lambda pair, p: (_next(z, pair, p), jnp.sum(weighted * pair[1], axis=-1)),
        _first(z),
        jnp.arange(degree + 1, dtype=z.dtype),
    )
    return jnp.moveaxis(coefficients, 0, -1)


def project_analytic(
    function: Callable[[Array], Array],
    mean: Float[Array, "*shape"],
    sd: Float[Array, "*shape"],
    degree: int,
    strip: float,
    error: float = TRAPEZOID_ERROR,
) -> Float[Array, "*shape {degree}+1"]:
    """`project` for a function analytic in |Im x| < strip: many neurons are one matrix product.

    The trapezoidal rule with step h in z errs by e^(−2π·strip/(h·sd)), and its nodes are the same for every
    Gaussian: the coarsest step that suffices for all. Where one is too wide for any, `project` is used.
    """

    def trapezoid(step: float) -> Callable[[Array, Array], Array]:
        z, basis = (jnp.asarray(array, mean.dtype) for array in _trapezoid(degree, step))
        return lambda mean, sd: function(mean[..., None] + sd[..., None] * z) @ basis

    widest = 2 * np.pi * strip / (np.asarray(TRAPEZOID_STEPS) * np.log(1 / error))
    return jax.lax.switch(
        jnp.sum(jnp.max(sd) > widest),
        [*map(trapezoid, TRAPEZOID_STEPS), lambda mean, sd: project(function, mean, sd, degree)],
        mean,
        sd,
    )


@lru_cache(maxsize=64)
def _trapezoid(degree: int, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes z and He_p(z)/√p!·φ(z)·step: constants, which a compiler should not be given to unroll."""
    half = round(reach(degree) / step)
    z = step * np.arange(-half, half + 1)
    basis = np.stack(hermite(z, degree), axis=-1)
    return z, basis * (step * np.exp(-(z**2) / 2) / (2 * np.pi) ** 0.5)[:, None]


def evaluate(coefficients: Float[Array, "terms"], z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Σ_p coefficients[p] He_p(z)/√p!, by a scan: for series too long to unroll."""
    orders = jnp.arange(coefficients.size, dtype=z.dtype)

    def step(carry, term):
        total, pair = carry
        p, coefficient = term
        return (total + coefficient * pair[1], _next(z, pair, p)), None

    (total, _), _ = jax.lax.scan(step, (jnp.zeros_like(z), _first(z)), (orders, coefficients))
    return total


def power_series(
    r: Float[Array, "neurons neurons"], coefficients: Float[Array, "neurons terms"]
) -> Float[Array, "neurons neurons"]:
    """Σ_p c_p(i) c_p(j) r_ij^p by Horner's rule: E[f_i f_j] for Hermite series c of correlation r."""

    def horner(value: Array, column: Array) -> tuple[Array, None]:
        return value * r + column[:, None] * column, None

    return jax.lax.scan(horner, jnp.zeros_like(r), coefficients.T, reverse=True)[0]


def density_derivatives(t: Float[Array, "*shape"], count: int) -> Float[Array, "*shape {count}"]:
    """(−1)^p φ^(p)(t)/√p! = He_p(t)φ(t)/√p! for p = 0..count−1.

    The recurrence is started at φ(t), so that far out nothing overflows before the density vanishes.
    """
    start = (jnp.zeros_like(t), density(t))
    _, values = jax.lax.scan(
        lambda pair, p: (_next(t, pair, p), pair[1]), start, jnp.arange(count, dtype=t.dtype)
    )
    return jnp.moveaxis(values, 0, -1)


def _first(z: Array) -> tuple[Array, Array]:
    return jnp.zeros_like(z), jnp.ones_like(z)


def _next(z: Array, pair: tuple[Array, Array], p: Array) -> tuple[Array, Array]:
    """The recurrence of `hermite`, one step: (h_{p−1}, h_p) → (h_p, h_{p+1})."""
    before, here = pair
    return here, (z * here - jnp.sqrt(p) * before) / jnp.sqrt(p + 1)


def row_normals(key: Key[Array, ""], rows: Int[Array, "rows"], count: int) -> Float[Array, "rows count"]:
    """`count` standard normals for each of these rows, every row from a key of its own.

    So a row's numbers depend on (key, row) alone, whatever block it is drawn in, and the first rows of a
    larger set are the smaller set. Always float64; cast afterwards.
    """
    return jax.vmap(lambda row: jax.random.normal(jax.random.fold_in(key, row), (count,), jnp.float64))(rows)


def tensor_rule(dimension: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Hermite product rule on R^dimension: nodes (order^dimension, dimension) and weights."""
    points, weights = np.polynomial.hermite_e.hermegauss(order)
    weights = weights / weights.sum()
    grids = np.meshgrid(*[points] * dimension, indexing="ij")
    products = np.meshgrid(*[weights] * dimension, indexing="ij")
    nodes = np.stack([grid.ravel() for grid in grids], axis=-1)
    return nodes, np.prod([product.ravel() for product in products], axis=0)
