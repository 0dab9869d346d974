"""The equivalent conditional Gaussian model (SPEC §8).

Given the position κ = Qᵀx of a sample in the signal subspace (the first D coordinates and the gradient's
direction), the features are Gaussian: φ̂ = ν(κ) + Ψ(κ) z⊥ + Φ(κ)^{1/2} g. Unlike the polynomial they stay
bounded with the activation.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from onegrad import gaussian
from onegrad.activations import Activation
from onegrad.features.interface import Block, Layer
from onegrad.mixture import MixtureNumbers

GRID = 256  # points of the table of a neuron's smoothed activation
BLOCK = 16  # neurons whose tables are integrated at a time
REACH = 9.0  # standard deviations of a neuron's signal part that the tables cover
POWER_ITERATIONS = 16


# ν, E σ' and √Φ of every neuron at its own u_i = s_iᵀκ (rows, width)
Smoothed = Callable[[Array], tuple[Array, Array, Array]]


@dataclass(frozen=True)
class Conditional:
    """Smoothed by its bulk, an activation is a function of one variable a neuron."""

    direction: Float[Array, "bulk"]
    positions: Float[Array, "width coordinates"]
    smoothed: Smoothed

    def __call__(self, block: Block) -> Float[Array, "rows width"]:
        signal = self.positions.shape[1] - 1
        along = block.x[:, signal:] @ self.direction
        position = jnp.concatenate([block.x[:, :signal], along[:, None]], axis=1)
        u = position @ self.positions.T
        mean, slope, spread = (part.astype(u.dtype) for part in self.smoothed(u))
        return mean + slope * (block.preactivation - u) + spread * block.noise()


@dataclass(frozen=True)
class Exact:
    """By closed forms, in float64: Φ is a difference of squares that float32 would lose."""

    activation: Activation
    bulk_norm: Float[Array, "width"]

    def __call__(self, u: Float[Array, "rows width"]) -> tuple[Array, Array, Array]:
        return smooth(self.activation, u.astype(jnp.float64), self.bulk_norm)


@dataclass(frozen=True)
class Tabulated:
    """Cubic interpolation on a grid uniform in asinh(u): activations bend near u = 0 and are flat or
    straight far out, where the grid is coarse.

    Good to 1e-5 of the features' scale for the registry; an activation that bends far out is worse.
    """

    tables: Float[Array, "3 width grid"]
    edge: Float[Array, ""]

    def __call__(self, u: Float[Array, "rows width"]) -> tuple[Array, Array, Array]:
        width, grid = self.tables.shape[1:]
        place = (jnp.arcsinh(u) + self.edge) * ((grid - 1) / (2 * self.edge))
        cell = jnp.clip(jnp.floor(place).astype(jnp.int32), 1, grid - 3)
        t = place - cell
        weights = (  # Lagrange's, of the four points around u
            -t * (t - 1) * (t - 2) / 6,
            (t + 1) * (t - 1) * (t - 2) / 2,
            -(t + 1) * t * (t - 2) / 2,
            (t + 1) * t * (t - 1) / 6,
        )
        first = cell - 1 + grid * jnp.arange(width, dtype=jnp.int32)

        def look_up(table: Array) -> Array:
            flat = table.ravel()
            return sum((w * flat[first + i] for i, w in enumerate(weights)), jnp.zeros_like(u))

        mean, slope, spread = (look_up(table) for table in self.tables)
        return mean, slope, jnp.maximum(spread, 0)


def build(layer: Layer) -> Conditional:
    if layer.mixture is None:
        raise AssertionError("the conditional model is refused earlier for inputs without a mixture")
    signal = layer.signal_dimension
    bulk = layer.weights[:, signal:]
    direction = gradient_direction(layer.gradient[:, signal:], layer.second)
    along = bulk @ direction
    positions = jnp.concatenate([layer.weights[:, :signal], along[:, None]], axis=1)
    bulk_norm = jnp.sqrt(jnp.sum(bulk**2, axis=1) - along**2).astype(jnp.float64)
    activation = layer.activation
    if activation.is_closed:
        return Conditional(direction, positions, Exact(activation, bulk_norm))
    edge = jnp.arcsinh(_largest(positions, layer.mixture))
    tables = _tables(activation, bulk_norm, edge.astype(jnp.float64)).astype(edge.dtype)
    return Conditional(direction, positions, Tabulated(tables, edge))


def _tables(
    activation: Activation, bulk_norm: Float[Array, "width"], edge: Float[Array, ""]
) -> Float[Array, "3 width grid"]:
    u = jnp.sinh(jnp.linspace(-1, 1, GRID) * edge)
    tables = jax.lax.map(lambda norm: jnp.stack(smooth(activation, u, norm)), bulk_norm, batch_size=BLOCK)
    return jnp.moveaxis(tables, 1, 0)


def smooth(
    activation: Activation, u: Float[Array, "*shape"], bulk_norm: Float[Array, "..."]
) -> tuple[Array, Array, Array]:
    """ν = E σ(u + a g), E σ'(u + a g) and √Φ, Φ = Var σ(u + a g) − a²(E σ')², g ~ N(0, 1)."""
    sd = jnp.broadcast_to(bulk_norm, u.shape)
    if activation.is_closed:
        coefficients = activation.coefficients(u, sd, 1)
        mean, tilt = coefficients[..., 0], coefficients[..., 1]
        leftover = activation.second_moment(u, sd) - mean**2 - tilt**2
    else:
        # Φ as the mean square of what a line does not explain: no difference of large numbers
        g, weights = gaussian.rule(u, sd, activation.kinks, activation.order)
        values = activation(u[..., None] + sd[..., None] * g)
        mean, tilt = jnp.sum(weights * values, axis=-1), jnp.sum(weights * g * values, axis=-1)
        line = mean[..., None] + tilt[..., None] * g
        leftover = jnp.sum(weights * (values - line) ** 2, axis=-1)
    return mean, tilt / sd, jnp.sqrt(jnp.maximum(leftover, 0))


def gradient_direction(
    gradient: Float[Array, "width bulk"], second: Float[Array, "width"]
) -> Float[Array, "bulk"]:
    """The top right singular vector, by power iteration from wᵀG, which already leans on it.

    A zero gradient has no direction: 0 is returned, and the model's extra coordinate is empty.
    """

    def unit(vector: Array) -> Array:
        norm = jnp.linalg.norm(vector)
        return vector / jnp.where(norm > 0, norm, 1.0)

    def iterate(_: Array | int, vector: Array) -> Array:
        return unit(gradient.T @ (gradient @ vector))

    return jax.lax.fori_loop(0, POWER_ITERATIONS, iterate, unit(gradient.T @ second))


def _largest(positions: Array, mixture: MixtureNumbers) -> Array:
    """A bound on |s_iᵀκ|: every neuron and component, REACH standard deviations out."""
    signal = positions[:, : positions.shape[1] - 1]
    centre = jnp.abs(signal @ mixture.means.T)
    loadings = jnp.einsum("ks,csd->kcd", signal, mixture.axes)
    variance = jnp.sum(positions**2, axis=1)[:, None] + jnp.sum(loadings**2 * mixture.variances, axis=2)
    return jnp.max(centre + REACH * jnp.sqrt(variance))
