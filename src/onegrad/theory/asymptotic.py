"""Theory B: the errors of a problem from the problem alone. Its cost knows no dimension, width or samples."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int

from onegrad.activations import Activation
from onegrad.labels import Rule
from onegrad.mixture import Component, Mixture, MixtureNumbers, each
from onegrad.problem import Problem
from onegrad.target import target_numbers
from onegrad.theory import bulk, kernels, step
from onegrad.theory.positions import (
    Neurons,
    Parameters,
    label_correlation,
    label_power,
    normals,
    place,
)


@dataclass(frozen=True)
class Resolution:
    """How finely the averages are taken. `positions` counts those of one component; ranks cut the kernels."""

    neurons: int
    positions: int
    degree: int
    signal_rank: int
    bulk_rank: int


# From coarse to fine. The first is good to 0.1 % at spreads up to √n and few signal coordinates.
RESOLUTIONS = (
    Resolution(128, 64, 16, 64, 24),
    Resolution(256, 128, 24, 128, 32),
    Resolution(512, 256, 32, 192, 48),
    Resolution(1024, 512, 64, 256, 64),
)


class Asymptotic(NamedTuple):
    """The four errors, the squared norm ‖ŵ‖², and the residual of the equations."""

    train_error: Float[Array, ""]
    test_error: Float[Array, ""]
    train_objective: Float[Array, ""]
    misclassification: Float[Array, ""] | None
    weight_norm: Float[Array, ""]
    residual: Float[Array, ""]


def present(mixture: Mixture) -> list[Component]:
    """The components that occur."""
    return [component for component in mixture.components if component.weight > 0]


def parameters(problem: Problem) -> Parameters:
    """The problem's numbers; components of weight 0 are dropped, strengths and directions kept as given."""
    mixture = problem.mixture
    assert isinstance(mixture, Mixture)
    kept = [c for c, component in enumerate(mixture.components) if component.weight > 0]
    components = present(mixture)
    d = problem.signal_dimension
    rank = max(len(component.strengths) for component in components)
    means, axes = np.zeros((len(kept), d)), np.zeros((len(kept), d, rank))
    variances = np.zeros((len(kept), rank))
    for c, component in enumerate(components):
        mean = component.mean or ()
        means[c, : len(mean)] = mean
        for i, direction in enumerate(component.directions):
            axes[c, : len(direction), i] = direction
        variances[c, : len(component.strengths)] = component.strengths
    weights = np.asarray([component.weight for component in components])
    target = target_numbers(problem.target, mixture)
    if target.values.size:
        target = target._replace(values=target.values[np.asarray(kept)])
    numbers = (
        mixture.dimension,
        problem.width,
        problem.samples,
        problem.step_samples,
        problem.learning_rate,
        problem.ridge,
    )
    return Parameters(
        MixtureNumbers(*(jnp.asarray(part) for part in (weights, means, axes, variances))),
        target,
        *(jnp.asarray(number, jnp.float64) for number in numbers),
    )


class Points(NamedTuple):
    """Standard normals of the neurons (s⁰·√tr, w̃) and of one component's positions."""

    neurons: Float[Array, "neurons white"]
    positions: Float[Array, "positions spread"]


def points(numbers: Parameters, resolution: Resolution) -> Points:
    coordinates, (components, rank) = numbers.coordinates, numbers.mixture.variances.shape
    # a single component takes the positions of two: they must outnumber the functions that they weigh
    positions = resolution.positions * (2 if components == 1 else 1)
    return Points(
        jnp.asarray(normals(resolution.neurons, coordinates + 1)),
        jnp.asarray(normals(positions, coordinates + rank)),
    )


def suffices(numbers: Parameters, resolution: Resolution) -> bool:
    """Whether there are twice as many positions as coordinates that place one, and neurons likewise."""
    spread = numbers.coordinates + numbers.mixture.variances.shape[1]
    return 2 * spread <= resolution.positions and 2 * (numbers.coordinates + 1) <= resolution.neurons


@partial(jax.jit, static_argnames=("activation", "rule", "binary", "resolution"))
def errors(
    activation: Activation,
    rule: Rule,
    binary: bool,
    resolution: Resolution,
    numbers: Parameters,
    drawn: Points,
) -> Asymptotic:
    """The errors of trained networks of these numbers; differentiable in all of them."""
    neurons = step.take(activation, rule, numbers, drawn.neurons)
    found, labels, features = trained(activation, rule, resolution, numbers, neurons, drawn.positions)
    missed = None
    if binary:
        variance = found.error - (labels.square - 2 * labels.mean * found.mean + found.mean**2)
        margin = labels.mean * found.mean / jnp.sqrt(jnp.maximum(variance, 1e-300))
        missed = features.weights @ norm.cdf(-margin)
    return Asymptotic(
        found.train_error,
        found.test_error,
        found.train_objective,
        missed,
        found.weight_norm,
        found.residual,
    )


def trained(
    activation: Activation,
    rule: Rule,
    resolution: Resolution,
    numbers: Parameters,
    neurons: Neurons,
    positions_at: Float[Array, "positions spread"],
) -> tuple[bulk.Outcome, bulk.Labels, kernels.Features]:
    """Train the second layer on the features of these neurons."""
    label = label_correlation(activation, rule, numbers, neurons, resolution.degree)
    ranks = (resolution.signal_rank, resolution.bulk_rank)
    features = kernels.features(activation, numbers, neurons, label, positions_at, resolution.degree, ranks)
    labels = position_labels(rule, numbers, positions_at)
    sizes = bulk.Sizes(numbers.width, numbers.samples, numbers.bulk_dimension, numbers.ridge)
    return bulk.outcome(features, labels, sizes), labels, features


def position_labels(
    rule: Rule, numbers: Parameters, positions_at: Float[Array, "positions spread"]
) -> bulk.Labels:
    """E[y|κ] and E[y²|κ] at the positions of all components."""

    def within(c: Int[Array, ""]) -> Float[Array, "positions"]:
        at = place(numbers.mixture, c, positions_at)
        return rule.label(numbers.target, at, jnp.full(at.shape[:1], c))

    mean = each(numbers.mixture, within).ravel()
    square = mean**2 + numbers.target.noise**2
    return bulk.Labels(mean, square, label_power(rule, numbers))
