"""Random-matrix theory of the second layer: the resistance of every neuron and the weight of every sample.

With features σ_i/√k, the ridge problem's deterministic equivalent is the minimum of one convex function of
(log g, log p): g_i is neuron i's diagonal entry of the resolvent, p_r = 1/(1 + δ_r) how much of a sample's
residual at position r survives training. For signal factor W (functions ψ), bulk factor V (functions χ), n'
bulk dimensions, K neurons that stand for k and positions of weight ω_r,

    Ψ(g, p) = (k/K) Σ_i [g_i(Σ_r ω_r p_r φ_i(r) + kλ) − log g_i] + m Σ_r ω_r [p_r/s_r − log p_r]
              + log det(I + C_ψ S) + n' log det(I + C_χ T),
    S = (k/K) Wᵀ diag(g) W,  T = (k/K n') Vᵀ diag(g) V,  C_ψ = Σ_r ω_r p_r ψ_r ψ_rᵀ (C_χ likewise).

Stationarity in g is the Marchenko–Pastur equation of the neurons, each with its own noise; in p that of the
samples. The determinants are posynomials of (g, p), so Ψ is convex in the logarithms: one solution, found by
Newton's method. The trained objective is then

    ½ (Σ_r ω_r p_r E[y²|r] − b_pᵀ (S⁻¹ + C_ψ)⁻¹ b_p),     b_p = Σ_r ω_r p_r E[y|r] ψ_r,

and all else is its derivative: ‖ŵ‖² = 2 ∂/∂λ, and the squared test error at position r from the weight s_r of
the samples there (s = 1), since a sample's training residual is p_r times its test error.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float

from onegrad.theory.kernels import Factor, Features

ITERATIONS = 100  # of Newton's method; a dozen are usual
TOLERANCE = 1e-7  # of the Newton decrement before the last step, which squares it
STARTS = 6  # sweeps of the fixed point before Newton's method


class Labels(NamedTuple):
    """E[y|r] and E[y²|r] at the positions; E[y²] exactly."""

    mean: Float[Array, "positions"]
    square: Float[Array, "positions"]
    power: Float[Array, ""]


class Sizes(NamedTuple):
    width: Float[Array, ""]
    samples: Float[Array, ""]
    bulk_dimension: Float[Array, ""]
    ridge: Float[Array, ""]


class Equilibrium(NamedTuple):
    """log g and log p at the minimum, and the norm of what is left of the equations, relative."""

    log_g: Float[Array, "neurons"]
    log_p: Float[Array, "positions"]
    residual: Float[Array, ""]


class Outcome(NamedTuple):
    """What training comes to. `mean` and `error` are E ŷ and E(y − ŷ)² at the positions.

    The mean prediction is Σ_i u_i ν_i(κ) with `shares` u_i = (k/K) g_i W_iᵀ(I + CS)⁻¹ b_p.
    """

    test_error: Float[Array, ""]
    train_error: Float[Array, ""]
    train_objective: Float[Array, ""]
    weight_norm: Float[Array, ""]
    mean: Float[Array, "positions"]
    error: Float[Array, "positions"]
    shares: Float[Array, "neurons"]
    residual: Float[Array, ""]


class _Side(NamedTuple):
    """One kernel at the current weights, C = LLᵀ: neurons WL and functions ψL⁻ᵀ, the factor of I + LᵀSL."""

    neurons: Float[Array, "neurons rank"]
    positions: Float[Array, "positions rank"]
    gram: Float[Array, "rank rank"]
    root: Float[Array, "rank rank"]
    lower: Float[Array, "rank rank"]

    def resisted(self) -> Float[Array, "neurons rank"]:
        """W (C⁻¹ + S)⁻¹ Wᵀ is this times its transpose."""
        return solve_triangular(self.root, self.neurons.T, lower=True).T

    def learned(self) -> Float[Array, "rank rank"]:
        """(I + LᵀSL)⁻¹ LᵀSL: how much of each function is learned."""
        return cho_solve((self.root, True), self.gram)


def _side(factor: Factor, g: Array, p: Array, scale: Array) -> _Side:
    """`scale` is k/K, over n' for the bulk."""
    covariance = factor.positions.T @ (p[:, None] * factor.positions)
    # functions past the kernel's rank are zero and stay so
    empty = jnp.diagonal(covariance) == 0
    lower = jnp.linalg.cholesky(covariance + jnp.diag(empty.astype(g.dtype)))
    neurons = factor.neurons @ lower
    positions = solve_triangular(lower, factor.positions.T, lower=True).T
    gram = scale * (neurons.T * g) @ neurons
    root = jnp.linalg.cholesky(jnp.eye(gram.shape[0], dtype=g.dtype) + gram)
    return _Side(neurons, positions, gram, root, lower)


class _Conditions(NamedTuple):
    """1/g and 1/p as the equations want them, given the present ones."""

    resistance: Float[Array, "neurons"]
    dilution: Float[Array, "positions"]
    signal: _Side
    bulk: _Side


def _conditions(features: Features, sizes: Sizes, log_g: Array, log_p: Array) -> _Conditions:
    g, p = jnp.exp(log_g), jnp.exp(log_p)
    weighted = features.weights * p
    stands_for = sizes.width / g.size
    signal = _side(features.signal, g, weighted, stands_for)
    bulk = _side(features.bulk, g, weighted, stands_for / sizes.bulk_dimension)
    noise = features.noise_at @ weighted
    pull = [jnp.sum(side.resisted() ** 2, axis=1) for side in (signal, bulk)]
    resistance = noise + sizes.width * sizes.ridge + pull[0] + pull[1]
    reach = [jnp.sum((side.positions @ side.learned()) * side.positions, axis=1) for side in (signal, bulk)]
    own = stands_for * (g @ features.noise_at)
    delta = (reach[0] + sizes.bulk_dimension * reach[1] + own) / sizes.samples
    return _Conditions(resistance, 1 + delta, signal, bulk)


def _gradient(features: Features, sizes: Sizes, at: _Conditions, log_g: Array, log_p: Array) -> Array:
    """∂Ψ/∂(log g, log p)."""
    stands_for = sizes.width / log_g.size
    neurons = stands_for * (jnp.exp(log_g) * at.resistance - 1)
    positions = sizes.samples * features.weights * (jnp.exp(log_p) * at.dilution - 1)
    return jnp.concatenate([neurons, positions])


def _hessian(features: Features, sizes: Sizes, at: _Conditions, log_g: Array, log_p: Array) -> Array:
    """∂²Ψ/∂(log g, log p)²: squares of the kernels' resolvents, entry by entry."""
    stands_for = sizes.width / log_g.size
    g, p = jnp.exp(log_g), features.weights * jnp.exp(log_p)
    multiplicity = (jnp.ones_like(sizes.width), sizes.bulk_dimension)
    between = features.noise_at * stands_for
    neurons = jnp.zeros((g.size, g.size), g.dtype)
    positions = jnp.zeros((p.size, p.size), g.dtype)
    for side, times in zip((at.signal, at.bulk), multiplicity, strict=True):
        resisted = side.resisted()
        neurons = neurons + times * (stands_for / times) ** 2 * (resisted @ resisted.T) ** 2
        positions = positions + times * (side.positions @ side.learned() @ side.positions.T) ** 2
        crossed = solve_triangular(side.root, side.positions.T, lower=True)
        between = between + stands_for * (resisted @ crossed) ** 2
    neurons = jnp.diag(stands_for * g * at.resistance) - g[:, None] * neurons * g
    positions = jnp.diag(sizes.samples * p * at.dilution) - p[:, None] * positions * p
    between = g[:, None] * between * p
    return jnp.block([[neurons, between], [between.T, positions]])


def _newton_step(
    features: Features, sizes: Sizes, log_g: Array, log_p: Array
) -> tuple[Float[Array, "unknowns"], Float[Array, "unknowns"]]:
    at = _conditions(features, sizes, log_g, log_p)
    gradient = _gradient(features, sizes, at, log_g, log_p)
    factor = jnp.linalg.cholesky(_hessian(features, sizes, at, log_g, log_p))
    return cho_solve((factor, True), -gradient), gradient


def solve(features: Features, sizes: Sizes) -> Equilibrium:
    """The minimum of Ψ, by Newton's method from a few sweeps of the fixed point. Not differentiated."""
    features, sizes = jax.lax.stop_gradient((features, sizes))
    scale = sizes.width * sizes.ridge
    log_g = -jnp.log(features.noise / 2 + jnp.mean(features.noise) / 2 + scale)
    log_p = jnp.full_like(features.weights, -jnp.log(2.0))

    def sweep(_: Array | int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        at = _conditions(features, sizes, *state)
        return (state[0] - jnp.log(at.resistance)) / 2, (state[1] - jnp.log(at.dilution)) / 2

    log_g, log_p = jax.lax.fori_loop(0, STARTS, sweep, (log_g, log_p))

    def unfinished(state: tuple[Array, Array, Array, Array]) -> Array:
        return (state[2] < ITERATIONS) & (state[3] > TOLERANCE)

    def iterate(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        log_g, log_p, count, _ = state
        step, gradient = _newton_step(features, sizes, log_g, log_p)
        decrement = jnp.sqrt(jnp.maximum(-step @ gradient, 0) / (sizes.width + sizes.samples))
        # a logarithm moves by at most 1 at a time: Ψ's exponentials are trusted no further
        step = step / jnp.maximum(1.0, jnp.max(jnp.abs(step)))
        return log_g + step[: log_g.size], log_p + step[log_g.size :], count + 1, decrement

    start = (log_g, log_p, jnp.asarray(0), jnp.asarray(jnp.inf, log_g.dtype))
    log_g, log_p, _, decrement = jax.lax.while_loop(unfinished, iterate, start)
    return Equilibrium(log_g, log_p, decrement)


def _objective(
    features: Features, labels: Labels, sizes: Sizes, log_g: Array, log_p: Array
) -> Float[Array, ""]:
    """The trained objective at any (g, p)."""
    weighted = features.weights * jnp.exp(log_p)
    side = _side(features.signal, jnp.exp(log_g), weighted, sizes.width / log_g.size)
    source = _source(features, labels, side, weighted)
    return (_label_power(features, labels, weighted) - source @ side.learned() @ source) / 2


def _source(features: Features, labels: Labels, side: _Side, weighted: Array) -> Float[Array, "rank"]:
    """L⁻¹b_p. The positions' average is the exact one when all samples weigh the same."""
    functions, exact = features.signal.positions, features.signal.label
    missed = exact - functions.T @ (features.weights * labels.mean)
    source = functions.T @ (weighted * labels.mean) + jnp.sum(weighted) * missed
    return solve_triangular(side.lower, source, lower=True)


def _label_power(features: Features, labels: Labels, weighted: Array) -> Float[Array, ""]:
    missed = labels.power - features.weights @ labels.square
    return weighted @ labels.square + jnp.sum(weighted) * missed


def outcome(features: Features, labels: Labels, sizes: Sizes) -> Outcome:
    """All errors from one adjoint solve; differentiable in everything that comes in.

    A Newton step from the solution, its matrix held fixed, adds nothing to the value and carries the
    derivative of the solution (implicit function theorem).
    """
    found = solve(features, sizes)
    count = found.log_g.size
    fixed = jax.lax.stop_gradient((features, sizes))
    at = _conditions(*fixed, found.log_g, found.log_p)
    factor = jnp.linalg.cholesky(_hessian(*fixed, at, found.log_g, found.log_p))
    live = _conditions(features, sizes, found.log_g, found.log_p)
    step = cho_solve((factor, True), -_gradient(features, sizes, live, found.log_g, found.log_p))
    log_g, log_p = found.log_g + step[:count], found.log_p + step[count:]

    objective, slope = jax.value_and_grad(
        lambda unknowns: _objective(features, labels, sizes, unknowns[:count], unknowns[count:])
    )(jnp.concatenate([log_g, log_p]))
    at = _conditions(features, sizes, log_g, log_p)
    # the adjoint likewise: solved with the fixed matrix, refined once with the live one
    adjoint = jax.lax.stop_gradient(cho_solve((factor, True), slope))
    left = slope - _hessian(features, sizes, at, log_g, log_p) @ adjoint
    adjoint = adjoint + cho_solve((factor, True), left)
    g, p = jnp.exp(log_g), jnp.exp(log_p)
    norm = -2 * sizes.width**2 / count * (adjoint[:count] @ g)
    error = 2 * sizes.samples * adjoint[count:] / p
    weighted = features.weights * p
    source = _source(features, labels, at.signal, weighted)
    return Outcome(
        test_error=features.weights @ error,
        train_error=features.weights @ (p**2 * error),
        train_objective=objective,
        weight_norm=norm,
        mean=at.signal.positions @ at.signal.learned() @ source,
        error=error,
        # W L (I + LᵀSL)⁻¹ L⁻¹b_p
        shares=sizes.width / count * g * (at.signal.neurons @ cho_solve((at.signal.root, True), source)),
        residual=found.residual,
    )
