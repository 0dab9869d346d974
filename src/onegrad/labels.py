"""Labels as compiled code sees them: the rule that makes them, and its correlations with features."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from onegrad import gaussian
from onegrad.activations import Activation, squared
from onegrad.errors import AccuracyWarning, InputError
from onegrad.gaussian import Series
from onegrad.mixture import MixtureNumbers

MAX_INDICES = 3  # a product quadrature over more label indices is not feasible
TENSOR_ORDER = {1: 192, 2: 64, 3: 28}  # nodes an index of that quadrature
ROUGH = 1e-6  # relative error of E[y²] above which that quadrature warns


class TargetNumbers(NamedTuple):
    """A target as arrays. Unused parts are empty."""

    directions: Float[Array, "indices signal"]
    values: Float[Array, "components"]
    noise: Float[Array, ""]


@runtime_checkable
class Rule(Protocol):
    """The noiseless label as compiled code sees it; hashable, holds no numbers of the problem."""

    def label(
        self,
        numbers: TargetNumbers,
        x: Float[Array, "rows dimension"],
        component: Int[Array, "rows"],
    ) -> Float[Array, "rows"]: ...

    def second_moment(
        self, numbers: TargetNumbers, mixture: MixtureNumbers, component: Int[Array, ""]
    ) -> Float[Array, ""]:
        """E[f²] in a component."""
        ...

    def squared(self) -> "Rule":
        """The rule of f²."""
        ...

    def correlation(
        self,
        numbers: TargetNumbers,
        mixture: MixtureNumbers,
        component: Int[Array, ""],
        series: Series,
        signal_weights: Float[Array, "width signal"],
    ) -> tuple[Float[Array, "width"], Float[Array, "width"]]:
        """E[f·feature_i] in a component, and a bound on what the cut of the series leaves out."""
        ...


class _Index(NamedTuple):
    """Label indices u = Ξx in a component: u = mean + root g, g ~ N(0, I_q)."""

    mean: Float[Array, "indices"]
    root: Float[Array, "indices indices"]
    covariance_with: Callable[[Array], Array]  # neurons' signal weights (k, D) → Cov(F̂_iᵀx, u) (k, q)


def _index(numbers: TargetNumbers, mixture: MixtureNumbers, component: Int[Array, ""]) -> _Index:
    directions = numbers.directions
    loadings = directions @ mixture.axes[component]  # (q, rank)
    variances = mixture.variances[component]
    covariance = directions @ directions.T + (loadings * variances) @ loadings.T
    values, vectors = jnp.linalg.eigh(covariance)
    root = (vectors * jnp.sqrt(jnp.maximum(values, 0))) @ vectors.T

    def covariance_with(weights: Array) -> Array:
        along = weights @ mixture.axes[component]
        return weights @ directions.T + (along * variances) @ loadings.T

    return _Index(directions @ mixture.means[component], root, covariance_with)


@dataclass(frozen=True)
class IndexRule:
    """y = link(ξᵀx). Everything is one-dimensional: E[fσ_i] = Σ_p c_p(i) y_p r_i^p."""

    link: Activation

    def squared(self) -> "IndexRule":
        return IndexRule(squared(self.link))

    def label(self, numbers: TargetNumbers, x: Array, component: Array) -> Array:
        direction = numbers.directions[0]
        return self.link(x[:, : direction.size] @ direction)

    def second_moment(
        self, numbers: TargetNumbers, mixture: MixtureNumbers, component: Int[Array, ""]
    ) -> Array:
        index = _index(numbers, mixture, component)
        return self.link.second_moment(index.mean[0], index.root[0, 0])

    def correlation(
        self,
        numbers: TargetNumbers,
        mixture: MixtureNumbers,
        component: Int[Array, ""],
        series: Series,
        signal_weights: Array,
    ) -> tuple[Array, Array]:
        index = _index(numbers, mixture, component)
        sd = index.root[0, 0]
        r = index.covariance_with(signal_weights)[:, 0] / (sd * series.sd)
        terms = series.coefficients.shape[1]
        label = self.link.coefficients(index.mean[0], sd, terms - 1)
        missing = self.link.second_moment(index.mean[0], sd) - jnp.sum(label**2)
        value = jnp.sum(series.coefficients * label * powers(r, terms), axis=1)
        return value, _tail(series, missing, r)


@dataclass(frozen=True)
class MultiIndexRule:
    """y = f(Ξx), averaged over the q indices by a Gauss–Hermite product rule (q ≤ 3)."""

    function: Callable[[Array], Array]

    def squared(self) -> "MultiIndexRule":
        return MultiIndexRule(_square_of(self.function))

    def label(self, numbers: TargetNumbers, x: Array, component: Array) -> Array:
        directions = numbers.directions
        return self.function(x[:, : directions.shape[1]] @ directions.T)

    def second_moment(
        self, numbers: TargetNumbers, mixture: MixtureNumbers, component: Int[Array, ""]
    ) -> Array:
        _, values, weights = self._nodes(_index(numbers, mixture, component))
        return jnp.sum(weights * values**2)

    def correlation(
        self,
        numbers: TargetNumbers,
        mixture: MixtureNumbers,
        component: Int[Array, ""],
        series: Series,
        signal_weights: Array,
    ) -> tuple[Array, Array]:
        """Σ_p c_p(i) r_i^p E[f(g) He_p(b̂_iᵀg)/√p!]: the part of z_i along the indices is r_i b̂_iᵀg."""
        index = _index(numbers, mixture, component)
        nodes, values, weights = self._nodes(index)
        covariance = index.covariance_with(signal_weights) / series.sd[:, None]
        loading = covariance @ jnp.linalg.pinv(index.root, hermitian=True)  # (k, q), norm r_i
        r = jnp.linalg.norm(loading, axis=1)
        unit = loading / jnp.where(r > 0, r, 1.0)[:, None]
        terms = series.coefficients.shape[1]
        scaled = series.coefficients * powers(r, terms)

        def one(neuron: tuple[Array, Array]) -> Array:
            direction, coefficients = neuron
            return jnp.sum(weights * values * gaussian.evaluate(coefficients, nodes @ direction))

        return jax.lax.map(one, (unit, scaled)), _tail(series, jnp.sum(weights * values**2), r)

    def _nodes(self, index: _Index, order: int | None = None) -> tuple[Array, Array, Array]:
        q = index.mean.size
        if q > MAX_INDICES:
            raise InputError(
                f"directions must be at most {MAX_INDICES} for exact population averages, got {q}; "
                'use evaluation="fresh"'
            )
        rule = gaussian.tensor_rule(q, order or TENSOR_ORDER[q])
        nodes, weights = (jnp.asarray(array, index.mean.dtype) for array in rule)
        return nodes, self.function(index.mean + nodes @ index.root.T), weights

    def warn_if_rough(self, numbers: TargetNumbers, mixture: MixtureNumbers) -> None:
        """Warn when the product rule has not settled: a kink in f, or a fast oscillation."""
        for component in range(len(mixture.weights)):
            index = _index(numbers, mixture, jnp.asarray(component))
            _, values, weights = self._nodes(index)
            full = jnp.sum(weights * values**2)
            _, values, weights = self._nodes(index, 3 * TENSOR_ORDER[index.mean.size] // 4)
            error = abs(float(jnp.sum(weights * values**2) / full - 1)) if full else 0.0
            if error > ROUGH:
                warnings.warn(
                    f"averages of the multi-index target converge slowly: relative error of E[y²] about "
                    f'{error:.1e}; evaluation="fresh" does not use them',
                    AccuracyWarning,
                    stacklevel=4,
                )
                return


@dataclass(frozen=True)
class ComponentRule:
    """y = v_c^power: E[fσ_i | c] = v_c^power E[σ_i | c]."""

    power: int = 1

    def squared(self) -> "ComponentRule":
        return ComponentRule(2 * self.power)

    def label(self, numbers: TargetNumbers, x: Array, component: Array) -> Array:
        return numbers.values[component] ** self.power

    def second_moment(
        self, numbers: TargetNumbers, mixture: MixtureNumbers, component: Int[Array, ""]
    ) -> Array:
        return numbers.values[component] ** (2 * self.power)

    def correlation(
        self,
        numbers: TargetNumbers,
        mixture: MixtureNumbers,
        component: Int[Array, ""],
        series: Series,
        signal_weights: Array,
    ) -> tuple[Array, Array]:
        value = numbers.values[component] ** self.power * series.coefficients[:, 0]
        return value, jnp.zeros_like(value)


@lru_cache(maxsize=256)
def _square_of(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda indices: function(indices) ** 2


def _tail(series: Series, label_missing: Array, r: Float[Array, "width"]) -> Array:
    """|Σ_{p≥terms} c_p y_p r^p| ≤ |r|^terms √(Σ c_p² Σ y_p²), by Cauchy–Schwarz over what is missing."""
    missing = series.missing() * jnp.maximum(label_missing, 0)
    return jnp.sqrt(missing) * jnp.abs(r) ** series.coefficients.shape[1]


def powers(r: Float[Array, "width"], terms: int) -> Float[Array, "width terms"]:
    """r^0 … r^(terms−1)."""
    steps = jnp.broadcast_to(r[:, None], (r.size, terms - 1))
    return jnp.concatenate([jnp.ones((r.size, 1), r.dtype), jnp.cumprod(steps, axis=1)], axis=1)
