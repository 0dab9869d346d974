"""The features as a theory sees them: two kernels over positions, and the noise that they leave.

For neuron i and position κ, with t ~ N(0, 1): ν_i(κ) = E_t σ(s_iᵀκ + a_i t), the deterministic part of its
feature, and χ_i(κ) = a_i E_t σ'(s_iᵀκ + a_i t), the size of the part that is linear in its bulk. Their second
moments over positions, E_κ[ν_iν_j] and E_κ[χ_iχ_j], are sums over components of Σ_p c_p(i) c_p(j) r_ij^p:
exact, no position is sampled. What remains of E σ_i² is noise of its own, φ_i.

A kernel is then written in functions ψ_1, ψ_2, … of the position, orthonormal: ν_i = Σ_j W_ij ψ_j, by a
Cholesky factorisation that takes the neurons as pivots in the order of what is left of them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from onegrad import gaussian
from onegrad.activations import Activation
from onegrad.mixture import average, each
from onegrad.theory.positions import Neurons, Parameters, Seen, place, see

NEURON_BLOCK = 64  # neurons whose features at all positions are integrated at a time
LEFT = 1e-13  # relative size of a pivot below which a kernel counts as exhausted


class Factor(NamedTuple):
    """A kernel in orthonormal functions of the position: E_κ[ν_iν_j] = Σ_p neurons_ip neurons_jp.

    `positions` are the functions at the positions, orthonormal under their weights; `label` is E[y ψ_p].
    """

    neurons: Float[Array, "neurons rank"]
    positions: Float[Array, "positions rank"]
    label: Float[Array, "rank"]


class Features(NamedTuple):
    """Signal and bulk of all neurons, the noise left over (its mean, and at each position)."""

    signal: Factor
    bulk: Factor
    noise: Float[Array, "neurons"]
    noise_at: Float[Array, "neurons positions"]
    weights: Float[Array, "positions"]


def features(
    activation: Activation,
    parameters: Parameters,
    neurons: Neurons,
    label: Float[Array, "neurons"],
    white: Float[Array, "positions white"],
    degree: int,
    ranks: tuple[int, int],
) -> Features:
    """`label` is E[yσ_i]; `white` are the standard normals that place the positions of every component."""
    mixture = parameters.mixture
    signal, bulk, power = average(
        mixture, lambda c: _kernels(activation, neurons, see(neurons, mixture, c), degree)
    )
    at = each(mixture, lambda c: place(mixture, c, white)).reshape(-1, parameters.coordinates)
    weights = jnp.repeat(mixture.weights / white.shape[0], white.shape[0])
    nu, chi, noise_at = smooth(activation, neurons, at)
    nothing = jnp.zeros_like(label)
    signal_factor = factorise(signal, nu.T, label, weights, ranks[0])
    bulk_factor = factorise(bulk, chi.T, nothing, weights, ranks[1])
    explained = jnp.sum(signal_factor.neurons**2, axis=1) + jnp.sum(bulk_factor.neurons**2, axis=1)
    noise = jnp.maximum(power - explained, 0)
    # rescaled so that the positions' average is the exact one
    found = noise_at @ weights
    noise_at = noise_at * (noise / jnp.where(found > 0, found, 1.0))[:, None]
    return Features(signal_factor, bulk_factor, noise, noise_at, weights)


def _kernels(
    activation: Activation, neurons: Neurons, seen: Seen, degree: int
) -> tuple[Float[Array, "neurons neurons"], Float[Array, "neurons neurons"], Float[Array, "neurons"]]:
    """E[ν_iν_j], E[χ_iχ_j] and E σ_i² in one component."""
    coefficients = activation.coefficients(seen.mean, seen.sd, degree + 1)
    r = seen.correlation(neurons)
    orders = jnp.arange(1, degree + 2, dtype=r.dtype)
    slopes = coefficients[:, 1:] * jnp.sqrt(orders) * (neurons.bulk / seen.sd)[:, None]
    power = activation.second_moment(seen.mean, seen.sd)
    return gaussian.power_series(r, coefficients[:, :-1]), gaussian.power_series(r, slopes), power


def smooth(
    activation: Activation, neurons: Neurons, at: Float[Array, "positions coordinates"]
) -> tuple[Array, Array, Array]:
    """ν, χ and the noise variance of every neuron at every position, each (neurons, positions)."""
    count = neurons.bulk.size
    size = min(NEURON_BLOCK, count)
    blocks = jax.tree.map(lambda leaf: leaf.reshape(count // size, size, *leaf.shape[1:]), neurons)

    def block(some: Neurons) -> tuple[Array, Array, Array]:
        mean = some.position @ at.T
        sd = jnp.broadcast_to(some.bulk[:, None], mean.shape)
        coefficients = activation.coefficients(mean, sd, 1)
        nu, chi = coefficients[..., 0], coefficients[..., 1]
        left = activation.second_moment(mean, sd) - nu**2 - chi**2
        return nu, chi, jnp.maximum(left, 0)

    return jax.tree.map(lambda leaf: leaf.reshape(count, -1), jax.lax.map(block, blocks))


def factorise(
    gram: Float[Array, "neurons neurons"],
    functions: Float[Array, "positions neurons"],
    label: Float[Array, "neurons"],
    weights: Float[Array, "positions"],
    rank: int,
) -> Factor:
    """Pivoted Cholesky of a kernel, carried along at the positions and for the label.

    Past the kernel's own rank columns are zero. At the positions the functions are made orthonormal, so
    that uniform weights of the samples reproduce the exact averages.
    """
    neurons = gram.shape[0]
    rows = jnp.concatenate([gram, functions, label[None, :]])
    largest = jnp.max(jnp.diagonal(gram))

    def pivot(carry: tuple[Array, Array], column: Array) -> tuple[tuple[Array, Array], None]:
        factor, left = carry
        index = jnp.argmax(jax.lax.stop_gradient(left))
        value = left[index]
        alive = value > LEFT * largest
        new = (rows[:, index] - factor @ factor[index]) / jnp.sqrt(jnp.where(alive, value, 1.0))
        new = jnp.where(alive, new, 0.0)
        left = jnp.maximum(left - new[:neurons] ** 2, 0).at[index].set(0.0)
        return (factor.at[:, column].set(new), left), None

    start = (jnp.zeros((rows.shape[0], rank), gram.dtype), jnp.diagonal(gram))
    (factor, _), _ = jax.lax.scan(pivot, start, jnp.arange(rank))
    at = factor[neurons:-1]
    empty = jnp.sum(factor[:neurons] ** 2, axis=0) == 0
    overlap = at.T @ (weights[:, None] * at) + jnp.diag(empty.astype(at.dtype))
    at = solve_triangular(jnp.linalg.cholesky(overlap), at.T, lower=True).T
    return Factor(factor[:neurons], at, factor[-1])
