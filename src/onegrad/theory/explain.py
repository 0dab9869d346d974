"""Which function of the data the trained network has become: its mean prediction, by polynomial degree.

The mean prediction at position κ is a combination of neurons, m(κ) = Σ_i u_i ν_i(κ) with

    u_i = (k/K) g_i W_iᵀ(I + C_ψS)⁻¹ b_p

from the equilibrium of `bulk.py`. In a component, He_p of each neuron's own pre-activation carries its degree
p, so that the part of degree p has, summed over components with their weights,

    ⟨m_p, m_p⟩ = Σ_ij u_i u_j c_p(i) c_p(j) r_ij^p,    ⟨y_p, m_p⟩ = Σ_i u_i E[y c_p(i) He_p(z_i)/√p!],

and 2⟨y_p, m_p⟩ − ⟨m_p, m_p⟩ of E[y²] is what the network explains by functions of degree p.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from onegrad.activations import Activation
from onegrad.gaussian import Series
from onegrad.labels import Rule
from onegrad.mixture import average
from onegrad.theory import asymptotic, step
from onegrad.theory.asymptotic import Points, Resolution
from onegrad.theory.positions import Parameters, label_power, see


class Explained(NamedTuple):
    """By degree: the power of the mean prediction, its overlap with the label; E[y²] and the test error."""

    prediction: Float[Array, "degrees"]
    overlap: Float[Array, "degrees"]
    label_power: Float[Array, ""]
    test_error: Float[Array, ""]


@partial(jax.jit, static_argnames=("activation", "rule", "resolution"))
def explained(
    activation: Activation,
    rule: Rule,
    resolution: Resolution,
    numbers: Parameters,
    drawn: Points,
) -> Explained:
    neurons = step.take(activation, rule, numbers, drawn.neurons)
    found, _, _ = asymptotic.trained(activation, rule, resolution, numbers, neurons, drawn.positions)

    def within(c: Int[Array, ""]) -> tuple[Array, Array]:
        seen = see(neurons, numbers.mixture, c)
        coefficients = activation.coefficients(seen.mean, seen.sd, resolution.degree)
        r = seen.correlation(neurons)
        signal = neurons.position[:, :-1]

        def degree(power: Array, p: Array) -> tuple[Array, tuple[Array, Array]]:
            # power is r^p
            weighted = found.shares * coefficients[:, p]
            # the correlation of the label with this degree alone
            only = jnp.where(jnp.arange(coefficients.shape[1]) == p, coefficients, 0.0)
            series = Series(only, jnp.sum(only**2, axis=1), seen.mean, seen.sd)
            cross = rule.correlation(numbers.target, numbers.mixture, c, series, signal)[0]
            return power * r, (weighted @ power @ weighted, found.shares @ cross)

        degrees = jnp.arange(coefficients.shape[1])
        return jax.lax.scan(degree, jnp.ones_like(r), degrees)[1]

    prediction, overlap = average(numbers.mixture, within)
    return Explained(prediction, overlap, label_power(rule, numbers), found.test_error)
