"""Neurons after the gradient step, in the limit: what one step does to a first-layer neuron.

With e = ηw̃/k, a neuron of position weights s⁰ and bulk norm a₀ moves to

    s  = s⁰ + e E[y σ'(u) κ],          and its shared coordinate by  e c̄ √(E[y²] n'/m̃),
    a² = a₀² (1 + e E[y σ''(u)])² + e² (n'/m̃) (E[y² σ'(u)²] − c̄² E[y²]),        c̄ = E[y² σ'(u)]/E[y²],

u = s⁰ᵀκ + a₀t its pre-activation, t ~ N(0, 1): the mean gradient in the signal; the sampling noise that all
neurons share, a spike of its own; the mean gradient in the bulk (Stein) and the isotropic remainder.
E[yσ'(u)κ] and a₀E[yσ''(u)] are the derivatives of E[yσ(u)] in s⁰ and a₀: one gradient, for every target.
The correction of the residual by the network's own output is O(1/k) and dropped.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from onegrad import activations
from onegrad.activations import Activation
from onegrad.labels import Rule
from onegrad.mixture import average
from onegrad.theory.positions import (
    Neurons,
    Parameters,
    correlation,
    label_correlation,
    label_power,
    see,
)

DEGREE = 24  # of the series of labels against slopes


def initial(parameters: Parameters, normals: Float[Array, "neurons white"]) -> Neurons:
    """Before the step: s⁰ ~ N(0, I/tr), a₀² = n'/tr."""
    trace = parameters.trace
    position = normals[:, : parameters.coordinates] / jnp.sqrt(trace)
    bulk = jnp.sqrt(parameters.bulk_dimension / trace)
    return Neurons(position, jnp.broadcast_to(bulk, position.shape[:1]))


def take(
    activation: Activation,
    rule: Rule,
    parameters: Parameters,
    normals: Float[Array, "neurons white"],
) -> Neurons:
    """The neurons after the step; the last normal of each is its second-layer weight w̃."""
    before = initial(parameters, normals)
    move = parameters.learning_rate * normals[:, parameters.coordinates] / parameters.width

    def total(neurons: Neurons) -> Float[Array, ""]:
        return jnp.sum(label_correlation(activation, rule, parameters, neurons, DEGREE))

    pull = jax.grad(total)(before)
    power = label_power(rule, parameters)
    first, second = _noise_correlations(activation, rule, parameters, before)
    share = first / power
    noise = parameters.bulk_dimension / parameters.step_samples
    position = before.position + move[:, None] * pull.position
    position = position.at[:, -1].add(move * share * jnp.sqrt(power * noise))
    drift = 1 + move * pull.bulk / before.bulk
    remainder = jnp.maximum(second - share**2 * power, 0)
    return Neurons(position, jnp.sqrt((before.bulk * drift) ** 2 + move**2 * noise * remainder))


def _noise_correlations(
    activation: Activation, rule: Rule, parameters: Parameters, neurons: Neurons
) -> tuple[Float[Array, "neurons"], Float[Array, "neurons"]]:
    """E[y² σ'(u)] and E[y² σ'(u)²]; y² = f² + noise²."""
    mixture, target = parameters.mixture, parameters.target
    slope = activations.slope(activation)

    def within(c: Int[Array, ""]) -> tuple[Array, ...]:
        seen = see(neurons, mixture, c)
        return tuple(
            correlation(function, rule.squared(), parameters, neurons, seen, c, DEGREE)
            + target.noise**2 * function.coefficients(seen.mean, seen.sd, 0)[..., 0]
            for function in (slope, activations.squared(slope))
        )

    return average(mixture, within)
