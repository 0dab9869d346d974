"""What a theory knows of a problem, and the neurons and positions over which it averages.

A sample's *position* κ is its part in the signal subspace and along one further direction, the noise that
all neurons share after the step; given κ the rest of the sample is isotropic bulk. A neuron is its weights
in position coordinates and the norm of its bulk.
"""

from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import gammaincinv, ndtri
from scipy.stats import qmc

from onegrad.activations import Activation
from onegrad.gaussian import Series
from onegrad.labels import Rule, TargetNumbers
from onegrad.mixture import MixtureNumbers, average


class Parameters(NamedTuple):
    """The numbers of a problem, all traced: a new width or ridge compiles nothing.

    The mixture's `axes` and `variances` are its directions and strengths as given, not orthogonalised:
    everything here needs Σ_c = I + axes diag(variances) axesᵀ alone, and is smooth in the strengths.
    """

    mixture: MixtureNumbers
    target: TargetNumbers
    dimension: Float[Array, ""]
    width: Float[Array, ""]
    samples: Float[Array, ""]
    step_samples: Float[Array, ""]
    learning_rate: Float[Array, ""]
    ridge: Float[Array, ""]

    @property
    def coordinates(self) -> int:
        """D + 1: the signal's and the shared noise direction."""
        return self.mixture.means.shape[1] + 1

    @property
    def trace(self) -> Float[Array, ""]:
        """Σ_c ρ_c tr Σ_c (SPEC §2), for unit directions."""
        return self.dimension + self.mixture.weights @ jnp.sum(self.mixture.variances, axis=1)

    @property
    def bulk_dimension(self) -> Float[Array, ""]:
        return self.dimension - self.mixture.means.shape[1]


class Neurons(NamedTuple):
    """First-layer neurons: weights s in position coordinates, norm a of the bulk."""

    position: Float[Array, "neurons coordinates"]
    bulk: Float[Array, "neurons"]


class Seen(NamedTuple):
    """Neurons as one component sees them: pre-activations N(mean_i, sd_i²), with their signal part's
    covariance."""

    mean: Float[Array, "neurons"]
    sd: Float[Array, "neurons"]
    loadings: Float[Array, "neurons rank"]

    def correlation(self, neurons: Neurons) -> Float[Array, "neurons neurons"]:
        """Of the pre-activations of two neurons with independent bulks, on one sample."""
        covariance = neurons.position @ neurons.position.T + self.loadings @ self.loadings.T
        return covariance / (self.sd[:, None] * self.sd)


@lru_cache(maxsize=32)
def normals(count: int, dimension: int) -> np.ndarray:
    """`count` quasi-random standard normals in R^dimension, with mean 0 and covariance I exactly.

    Most of what is averaged over them depends on them through second moments, and next on their norms: these
    have a coordinate of their own. A power of two keeps Sobol's balance.
    """
    uniform = qmc.Sobol(dimension + 1, rng=np.random.default_rng(0)).random(count)
    direction = ndtri(uniform[:, :-1])
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    drawn = direction * np.sqrt(2 * gammaincinv(dimension / 2, uniform[:, -1:]))
    centred = drawn - drawn.mean(axis=0)
    return np.linalg.solve(np.linalg.cholesky(centred.T @ centred / count), centred.T).T


def see(neurons: Neurons, mixture: MixtureNumbers, component: Int[Array, ""]) -> Seen:
    signal = neurons.position[:, :-1]
    loadings = signal @ mixture.axes[component] * jnp.sqrt(mixture.variances[component])
    variance = jnp.sum(neurons.position**2, axis=1) + jnp.sum(loadings**2, axis=1) + neurons.bulk**2
    return Seen(signal @ mixture.means[component], jnp.sqrt(variance), loadings)


def place(
    mixture: MixtureNumbers, component: Int[Array, ""], white: Float[Array, "positions white"]
) -> Float[Array, "positions coordinates"]:
    """Positions κ of a component from standard normals: the signal's, the shared direction's, the spikes'."""
    coordinates = mixture.means.shape[1] + 1
    spikes = white[:, coordinates:] * jnp.sqrt(mixture.variances[component])
    shift = mixture.means[component] + spikes @ mixture.axes[component].T
    return white[:, :coordinates].at[:, :-1].add(shift)


def correlation(
    function: Activation,
    rule: Rule,
    parameters: Parameters,
    neurons: Neurons,
    seen: Seen,
    component: Int[Array, ""],
    degree: int,
) -> Float[Array, "neurons"]:
    """E[y function(s_iᵀκ + a_i t)], t ~ N(0, 1), in one component."""
    coefficients = function.coefficients(seen.mean, seen.sd, degree)
    # the second moment bounds what the cut leaves out, which is not asked for here
    series = Series(coefficients, jnp.sum(coefficients**2, axis=1), seen.mean, seen.sd)
    signal = neurons.position[:, :-1]
    return rule.correlation(parameters.target, parameters.mixture, component, series, signal)[0]


def label_correlation(
    activation: Activation,
    rule: Rule,
    parameters: Parameters,
    neurons: Neurons,
    degree: int,
) -> Float[Array, "neurons"]:
    """E[y σ(s_iᵀκ + a_i t)] over all components."""

    def within(c: Int[Array, ""]) -> Float[Array, "neurons"]:
        seen = see(neurons, parameters.mixture, c)
        return correlation(activation, rule, parameters, neurons, seen, c, degree)

    return average(parameters.mixture, within)


def label_power(rule: Rule, parameters: Parameters) -> Float[Array, ""]:
    """E[y²], the noise included."""
    mixture, target = parameters.mixture, parameters.target
    return average(mixture, lambda c: rule.second_moment(target, mixture, c)) + target.noise**2
