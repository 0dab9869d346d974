"""Population moments of features under a Gaussian mixture: the test error without a test set.

With φ = features/√k, M = E[φφᵀ], v = E[yφ], s = E[y²], a readout ŵ has test error s − 2vᵀŵ + ŵᵀMŵ.
In a component two pre-activations are bivariate normal, so with each neuron's own Hermite coefficients
E[σ(u_i)σ(u_j)] = Σ_p c_p(i) c_p(j) r_ij^p: a few terms off the diagonal, and the diagonal is exact.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from onegrad import gaussian
from onegrad.features import PopulationMap
from onegrad.gaussian import Series
from onegrad.labels import Rule, TargetNumbers
from onegrad.mixture import MixtureNumbers, average

DEGREE = 63  # of the series off the diagonal: k² elementwise operations each
LABEL_DEGREE = 127  # of the series of labels against features: k operations each
BLOCK = 512  # rows of the k×k moments that exist at a time
SERIES_BLOCK = 128  # neurons whose series are integrated at a time


class PopulationError(NamedTuple):
    """The exact test error, and an estimate of what cutting the series off the diagonal leaves out."""

    value: Float[Array, ""]
    truncation: Float[Array, ""]


def neuron_series(
    features: PopulationMap,
    weights: Float[Array, "width dimension"],
    mixture: MixtureNumbers,
    component: Int[Array, ""],
) -> tuple[Series, Float[Array, "width rank"]]:
    """Every neuron's series in a component, and its loadings √variance·(F̂_iᵀ axis)."""
    signal = weights[:, : mixture.means.shape[1]]
    mean = signal @ mixture.means[component]
    variances = mixture.variances[component]
    loadings = signal @ mixture.axes[component] * jnp.sqrt(variances)
    sd = jnp.sqrt(jnp.sum(weights**2, axis=1) + jnp.sum(loadings**2, axis=1))
    return _series_in_blocks(features, mean, sd), loadings


def _series_in_blocks(
    features: PopulationMap, mean: Float[Array, "width"], sd: Float[Array, "width"]
) -> Series:
    """Block by block: quadrature takes hundreds of nodes a neuron."""
    blocks = -(-mean.size // SERIES_BLOCK)
    rows = -(-mean.size // blocks)
    # the last block may reach past the width: it repeats the last neuron
    index = jnp.minimum(jnp.arange(blocks * rows).reshape(blocks, rows), mean.size - 1)
    series = jax.lax.map(lambda i: features.series(mean[i], sd[i], LABEL_DEGREE), index)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[: mean.size], series)


def population_error(
    features: PopulationMap,
    weights: Float[Array, "width dimension"],
    readout: Float[Array, "width"],
    mixture: MixtureNumbers,
    rule: Rule,
    target: TargetNumbers,
) -> PopulationError:
    """s − 2vᵀŵ + ŵᵀMŵ, summed over the components."""
    scaled = readout / readout.size**0.5
    signal = weights[:, : mixture.means.shape[1]]

    def component(c: Int[Array, ""]) -> tuple[Series, Array, Array, Array]:
        series, loadings = neuron_series(features, weights, mixture, c)
        cross, left_out = rule.correlation(target, mixture, c, series, signal)
        linear = rule.second_moment(target, mixture, c) - 2 * cross @ scaled
        return series.cut(DEGREE + 1), loadings, linear, 2 * left_out @ jnp.abs(scaled)

    shares = mixture.weights
    series, loadings, linear, left_out = jax.lax.map(component, jnp.arange(shares.size))
    quadratic, tail = _quadratic(shares, series, loadings, weights, scaled)
    independent = target.noise**2 + features.noise_variance * jnp.sum(scaled**2)
    value = jnp.sum(shares * linear) + quadratic + independent
    return PopulationError(value, jnp.abs(tail) + jnp.sum(shares * left_out))


class FeatureMoments(NamedTuple):
    """M = E[φφᵀ], v = E[yφ] and s = E[y²], φ = features/√k."""

    matrix: Float[Array, "width width"]
    cross: Float[Array, "width"]
    power: Float[Array, ""]


@partial(jax.jit, static_argnames=("features", "rule"))
def feature_moments(
    features: PopulationMap,
    weights: Float[Array, "width dimension"],
    mixture: MixtureNumbers,
    rule: Rule,
    target: TargetNumbers,
) -> FeatureMoments:
    """The moments themselves, for theory A; the test error alone needs no k×k array."""
    gram = weights @ weights.T
    signal = weights[:, : mixture.means.shape[1]]

    def component(c: Int[Array, ""]) -> tuple[Array, Array, Array]:
        series, loadings = neuron_series(features, weights, mixture, c)
        r = jnp.clip((gram + loadings @ loadings.T) / (series.sd[:, None] * series.sd), -1, 1)
        pairs = gaussian.power_series(r, series.cut(DEGREE + 1).coefficients)
        diagonal = jnp.arange(series.sd.size)
        pairs = pairs.at[diagonal, diagonal].set(series.second_moment)
        cross, _ = rule.correlation(target, mixture, c, series, signal)
        return pairs, cross, rule.second_moment(target, mixture, c)

    matrix, cross, power = average(mixture, component)
    width = cross.size
    matrix = (matrix + features.noise_variance * jnp.eye(width)) / width
    return FeatureMoments(matrix, cross / width**0.5, power + target.noise**2)


def _quadratic(
    shares: Float[Array, "components"],
    series: Series,
    loadings: Float[Array, "components width rank"],
    weights: Float[Array, "width dimension"],
    scaled: Float[Array, "width"],
) -> tuple[Array, Array]:
    """ŵᵀMŵ, and the same sum with the series' missing mass put on its first missing power.

    Walks M by blocks of rows, so that k×k moments never exist at once. The fields of `series` carry a
    leading axis of components.
    """
    width = scaled.size
    blocks = -(-width // BLOCK)
    rows = -(-width // blocks)

    def block(start: Int[Array, ""]) -> tuple[Array, Array]:
        index = jnp.minimum(start + jnp.arange(rows), width - 1)
        # the last block may reach past the width: those rows repeat a neuron and count nothing
        left = scaled[index] * (start + jnp.arange(rows) < width)
        gram = weights[index] @ weights.T

        def component(parts: tuple[Series, Array]) -> tuple[Array, Array]:
            own, along = parts
            covariance = gram + along[index] @ along.T
            r = jnp.clip(covariance / (own.sd[index][:, None] * own.sd), -1, 1)
            pairs = _series_sum(
                r,
                left[:, None] * own.coefficients[index],
                scaled[:, None] * own.coefficients,
            )
            # on the diagonal the series is cut but the second moment is known
            root = jnp.sqrt(own.missing())
            diagonal = jnp.sum(left * (scaled * root**2)[index])
            terms = own.coefficients.shape[1]
            cut = jnp.sum((left * root[index])[:, None] * r**terms * (scaled * root))
            return pairs + diagonal, cut - diagonal

        totals, tails = jax.lax.map(component, (series, loadings))
        return jnp.sum(shares * totals), jnp.sum(shares * tails)

    totals, tails = jax.lax.map(block, jnp.arange(blocks) * rows)
    return jnp.sum(totals), jnp.sum(tails)


def _series_sum(
    r: Float[Array, "rows width"],
    left: Float[Array, "rows terms"],
    right: Float[Array, "width terms"],
) -> Float[Array, ""]:
    """Σ_ij Σ_p left_ip right_jp r_ij^p, elementwise by Horner's rule."""

    def horner(value: Array, term: tuple[Array, Array]) -> tuple[Array, None]:
        row, column = term
        return value * r + row[:, None] * column, None

    value, _ = jax.lax.scan(horner, jnp.zeros_like(r), (left.T, right.T), reverse=True, unroll=8)
    return jnp.sum(value)
