"""Activations and links: the function, its derivative, and its averages over a Gaussian.

The theory and every equivalent model need only E[σ(mean + sd·z) He_p(z)/√p!] and E[σ(mean + sd·z)²].
They are closed forms where these exist, else `gaussian.project`, which splits at kinks.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats.norm import cdf, pdf
from jaxtyping import Array, Float

from onegrad import _checks, gaussian
from onegrad.errors import AccuracyWarning, InputError
from onegrad.numerics import scoped

Function = Callable[[Array], Array]
Coefficients = Callable[[Array, Array, int], Array]
Moment = Callable[[Array, Array], Array]

PROMISED_ERROR = 1e-10  # of a Hermite coefficient; worse estimates warn
MAX_ORDER = 1024  # nodes a side beyond which a callable's quadrature is not refined further


@dataclass(frozen=True)
class Activation:
    """A scalar function σ with its Gaussian averages. Call it like the function.

    `kinks` are the points where σ or σ' jumps; `order` is the number of quadrature nodes a side.
    """

    name: str
    function: Function
    derivative: Function
    kinks: tuple[float, ...] = (0.0,)
    order: int = 64
    closed_coefficients: Coefficients | None = None
    closed_second_moment: Moment | None = None

    def __call__(self, x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return self.function(x)

    def coefficients(
        self, mean: Float[Array, "*shape"], sd: Float[Array, "*shape"], degree: int
    ) -> Float[Array, "*shape degree+1"]:
        """c_p = E[σ(mean + sd·z) He_p(z)/√p!], p = 0..degree. By Stein c_0 = E σ and c_1 = sd·E σ'."""
        if self.closed_coefficients is not None:
            return self.closed_coefficients(mean, sd, degree)
        return gaussian.project(self.function, mean, sd, degree, self.kinks, self.order)

    def second_moment(
        self, mean: Float[Array, "*shape"], sd: Float[Array, "*shape"]
    ) -> Float[Array, "*shape"]:
        """E σ(mean + sd·z)²."""
        if self.closed_second_moment is not None:
            return self.closed_second_moment(mean, sd)
        return gaussian.average(lambda x: self.function(x) ** 2, mean, sd, self.kinks, self.order)


class HermiteExpansion(NamedTuple):
    """σ(sd·z) = Σ_p coefficients[p] He_p(z)/√p! + a remainder of standard deviation `residual`."""

    coefficients: np.ndarray
    residual: float
    error_estimate: float


@scoped
def hermite_expansion(
    activation: "str | Function | Activation", sd: float = 1.0, degree: int = 4
) -> HermiteExpansion:
    """SPEC §7: h_p/√p! and h*, with an error estimate (0 for closed forms up to rounding).

    The estimate is the change when the quadrature's nodes double; it warns above 1e-10.
    """
    function = find(activation)
    sd = _checks.positive("sd", sd)
    degree = _checks.integer("degree", degree, at_least=0)
    coefficients, second = _expand(function, sd, degree)
    error = 0.0
    if function.closed_coefficients is None or function.closed_second_moment is None:
        finer = _expand(replace(function, order=2 * function.order), sd, degree)
        error = float(max(np.max(np.abs(finer[0] - coefficients)), abs(finer[1] - second)))
        coefficients, second = finer
        if error > PROMISED_ERROR:
            warnings.warn(
                f"Hermite coefficients of activation {function.name!r} converge slowly: estimated error "
                f"{error:.1e}; if it has kinks, name them: og.activation(function, kinks=(…,))",
                AccuracyWarning,
                stacklevel=3,
            )
    residual = float(np.sqrt(max(second - np.sum(coefficients**2), 0.0)))
    return HermiteExpansion(coefficients, residual, error)


def _expand(function: Activation, sd: float, degree: int) -> tuple[np.ndarray, float]:
    coefficients, second = _centred_averages(function, jnp.asarray(sd), degree)
    return np.asarray(coefficients), float(second)


@partial(jax.jit, static_argnames=("function", "degree"))
def _centred_averages(function: Activation, sd: Array, degree: int) -> tuple[Array, Array]:
    mean = jnp.zeros_like(sd)
    return function.coefficients(mean, sd, degree), function.second_moment(mean, sd)


# --- closed forms ---------------------------------------------------------------------------------
# All follow from c_p = sd^p m^(p)(mean)/√p!, m(mean) = E σ(mean + sd·z).


def _gaussian_derivatives(t: Array, count: int) -> list[Array]:
    """(−1)^p He_p(t)/√p! φ(t) for p = 0..count−1: the derivatives of φ, each over √p!."""
    density = pdf(t)
    return [(-1) ** p * value * density for p, value in enumerate(gaussian.hermite(t, count - 1))]


def _stack(values: list[Array], degree: int) -> Array:
    return jnp.stack([jnp.broadcast_to(v, values[0].shape) for v in values[: degree + 1]], axis=-1)


def _step_coefficients(mean: Array, sd: Array, degree: int) -> list[Array]:
    """Of the unit step 1[x > 0]: Φ(t), then φ^(p−1)(t)/√p!, t = mean/sd."""
    t = mean / sd
    phi = _gaussian_derivatives(t, max(degree, 1))
    return [cdf(t)] + [phi[p - 1] / p**0.5 for p in range(1, degree + 1)]


def _relu_coefficients(mean: Array, sd: Array, degree: int) -> Array:
    """Of max(x, 0) = x·1[x > 0]: mean·Φ + sd·φ, sd·Φ, then sd·φ^(p−2)(t)/√p!."""
    t = mean / sd
    phi = _gaussian_derivatives(t, max(degree - 1, 1))
    values = [mean * cdf(t) + sd * phi[0], sd * cdf(t)]
    values += [sd * phi[p - 2] / (p * (p - 1)) ** 0.5 for p in range(2, degree + 1)]
    return _stack(values, degree)


def _relu_second_moment(mean: Array, sd: Array) -> Array:
    t = mean / sd
    return (mean**2 + sd**2) * cdf(t) + mean * sd * pdf(t)


def _leaky_relu(slope: float) -> tuple[Coefficients, Moment]:
    """slope·x + (1 − slope)·max(x, 0)."""

    def coefficients(mean: Array, sd: Array, degree: int) -> Array:
        line = _polynomial_coefficients(1)(mean, sd, degree)
        return slope * line + (1 - slope) * _relu_coefficients(mean, sd, degree)

    def second_moment(mean: Array, sd: Array) -> Array:
        return slope**2 * (mean**2 + sd**2) + (1 - slope**2) * _relu_second_moment(mean, sd)

    return coefficients, second_moment


def _erf_coefficients(mean: Array, sd: Array, degree: int) -> Array:
    """Of erf(x/√2) = 2Φ(x) − 1: smoothing only widens it, to 2Φ(mean/r) − 1 with r² = 1 + sd²."""
    r = jnp.sqrt(1 + sd**2)
    step = _step_coefficients(mean, r, degree)
    values = [jax.lax.erf(mean / r / 2**0.5)]
    values += [2 * step[p] * (sd / r) ** p for p in range(1, degree + 1)]
    return _stack(values, degree)


def _gelu_coefficients(mean: Array, sd: Array, degree: int) -> Array:
    """Of xΦ(x): m = mean·A + sd²A', A = Φ(mean/r), so m^(p) = mean·A^(p) + pA^(p−1) + sd²A^(p+1)."""
    r = jnp.sqrt(1 + sd**2)
    step = _step_coefficients(mean, r, degree + 1)  # A^(p) r^p/√p!
    ratio = sd / r
    values = []
    for p in range(degree + 1):
        value = mean * step[p] + sd * ratio * (p + 1) ** 0.5 * step[p + 1]
        if p:
            value = value + r * p**0.5 * step[p - 1]
        values.append(value * ratio**p)
    return _stack(values, degree)


def _sin_coefficients(mean: Array, sd: Array, degree: int) -> Array:
    """sd^p e^(−sd²/2) sin(mean + pπ/2)/√p!."""
    damping = jnp.exp(-(sd**2) / 2)
    values = [damping * jnp.sin(mean)]
    for p in range(1, degree + 1):
        damping = damping * sd / p**0.5
        values.append(damping * jnp.sin(mean + p * np.pi / 2))
    return _stack(values, degree)


def _sin_second_moment(mean: Array, sd: Array) -> Array:
    return (1 - jnp.exp(-2 * sd**2) * jnp.cos(2 * mean)) / 2


def _sign_coefficients(mean: Array, sd: Array, degree: int) -> Array:
    step = _step_coefficients(mean, sd, degree)
    return _stack([jax.lax.erf(mean / sd / 2**0.5)] + [2 * value for value in step[1:]], degree)


def _polynomial_coefficients(power: int) -> Coefficients:
    """Of x (power 1) and x² (power 2)."""

    def coefficients(mean: Array, sd: Array, degree: int) -> Array:
        square = [mean**2 + sd**2, 2 * mean * sd, 2**0.5 * sd**2]
        values = [mean, sd] if power == 1 else square
        return _stack(values + [jnp.zeros_like(mean)] * degree, degree)

    return coefficients


def _square_second_moment(mean: Array, sd: Array) -> Array:
    return mean**4 + 6 * mean**2 * sd**2 + 3 * sd**4


# --- registry -------------------------------------------------------------------------------------


def _registry() -> dict[str, Activation]:
    one, zero = jnp.ones_like, jnp.zeros_like
    slope = 0.01
    leaky_coefficients, leaky_moment = _leaky_relu(slope)
    smooth = [
        Activation("tanh", jnp.tanh, lambda x: 1 - jnp.tanh(x) ** 2),
        Activation("sigmoid", jax.nn.sigmoid, lambda x: jax.nn.sigmoid(x) * jax.nn.sigmoid(-x)),
        Activation("softplus", jax.nn.softplus, jax.nn.sigmoid),
        Activation(
            "silu",
            jax.nn.silu,
            lambda x: jax.nn.sigmoid(x) * (1 + x * jax.nn.sigmoid(-x)),
        ),
        Activation(
            "erf",
            lambda x: jax.lax.erf(x / 2**0.5),
            lambda x: 2 * pdf(x),
            closed_coefficients=_erf_coefficients,
        ),
        Activation(
            "gelu",
            lambda x: x * cdf(x),
            lambda x: cdf(x) + x * pdf(x),
            closed_coefficients=_gelu_coefficients,
        ),
        Activation(
            "sin",
            jnp.sin,
            jnp.cos,
            closed_coefficients=_sin_coefficients,
            closed_second_moment=_sin_second_moment,
        ),
        Activation(
            "identity",
            lambda x: x,
            one,
            closed_coefficients=_polynomial_coefficients(1),
            closed_second_moment=lambda mean, sd: mean**2 + sd**2,
        ),
        Activation(
            "square",
            lambda x: x**2,
            lambda x: 2 * x,
            closed_coefficients=_polynomial_coefficients(2),
            closed_second_moment=_square_second_moment,
        ),
    ]
    kinked = [
        Activation(
            "relu",
            lambda x: jnp.maximum(x, 0),
            lambda x: jnp.where(x > 0, one(x), zero(x)),
            closed_coefficients=_relu_coefficients,
            closed_second_moment=_relu_second_moment,
        ),
        Activation(
            "leaky_relu",
            lambda x: jnp.where(x > 0, x, slope * x),
            lambda x: jnp.where(x > 0, one(x), slope * one(x)),
            closed_coefficients=leaky_coefficients,
            closed_second_moment=leaky_moment,
        ),
        # A link (a perceptron's labels) rather than an activation: its derivative is 0.
        Activation(
            "sign",
            lambda x: jnp.where(x >= 0, one(x), -one(x)),
            zero,
            closed_coefficients=_sign_coefficients,
            closed_second_moment=lambda mean, sd: jnp.ones_like(mean),
        ),
    ]
    return {entry.name: entry for entry in smooth + kinked}


_REGISTERED: dict[str, Activation] = _registry()


def names() -> tuple[str, ...]:
    """The names a problem may use for its activation or link."""
    return tuple(_REGISTERED)


def register_activation(
    name: str,
    function: Function,
    derivative: Function | None = None,
    kinks: tuple[float, ...] = (),
) -> Activation:
    """Give a callable a name, so that problems that use it have JSON and a hash.

    The hash knows the name, not the code: register the same function in every process.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise _checks.refuse("name", "an identifier such as 'swish2'", name)
    if name in _REGISTERED:
        raise InputError(f"name {name!r} is already registered; choose another name")
    _REGISTERED[name] = replace(activation(function, derivative, kinks), name=name)
    return _REGISTERED[name]


@lru_cache(maxsize=256)
def activation(
    function: Function,
    derivative: Function | None = None,
    kinks: tuple[float, ...] = (),
) -> Activation:
    """Wrap a JAX-traceable elementwise callable; its derivative is taken by autodiff if not given.

    Cached, so that the same callable is the same activation and compiles once.
    """
    name = getattr(function, "__qualname__", repr(function))
    if derivative is None:
        derivative = _elementwise_derivative(function)
    kinks = _checks.reals("kinks", kinks)
    _probe(name, function, derivative)
    wrapped = Activation(name, function, derivative, kinks=kinks)
    return replace(wrapped, order=_settled_order(wrapped))


def find(given: "str | Function | Activation", argument: str = "activation") -> Activation:
    """The activation of that name, or a callable wrapped; unknown names are refused with the nearest."""
    if isinstance(given, Activation):
        return given
    if isinstance(given, str):
        _checks.choice(argument, given, names())
        return _REGISTERED[given]
    if callable(given):
        return activation(given)
    raise _checks.refuse(argument, "a name or a callable", given)


def registered_name(given: "str | Activation") -> str | None:
    """The name under which this activation is registered, or None."""
    if isinstance(given, str):
        return given
    return given.name if _REGISTERED.get(given.name) == given else None


def _elementwise_derivative(function: Function) -> Function:
    def derivative(x: Array) -> Array:
        return jax.jvp(function, (x,), (jnp.ones_like(x),))[1]

    return derivative


@scoped
def _probe(name: str, function: Function, derivative: Function) -> None:
    """Refuse a callable that is not elementwise, not traceable, or not finite."""
    points = jnp.linspace(-8.0, 8.0, 35).reshape(5, 7)
    for what, candidate in (("activation", function), ("derivative", derivative)):
        try:
            values = jax.jit(candidate)(points)
        except Exception as error:  # whatever the user's code raises is the user's to read
            raise InputError(
                f"{what} {name!r} must be a JAX-traceable elementwise function; calling it on an array "
                f"raised {type(error).__name__}: {error}"
            ) from error
        shape = getattr(values, "shape", None)
        if shape != points.shape:
            raise InputError(
                f"{what} {name!r} must return an array of its input's shape {points.shape}, got {shape}"
            )
        if not jnp.issubdtype(values.dtype, jnp.floating):
            raise InputError(f"{what} {name!r} must return real numbers, got dtype {values.dtype}")
        if not bool(jnp.all(jnp.isfinite(values))):
            raise InputError(f"{what} {name!r} must be finite on [-8, 8], got NaN or infinity")


@scoped
def _settled_order(function: Activation) -> int:
    """The smallest order at which doubling moves no coefficient by the promised error (or the cap)."""
    mean, sd = jnp.asarray([0.0, 0.5, 0.0]), jnp.asarray([1.0, 1.0, 4.0])
    order = 64
    before = gaussian.project(function.function, mean, sd, 4, function.kinks, order)
    while order < MAX_ORDER:
        after = gaussian.project(function.function, mean, sd, 4, function.kinks, 2 * order)
        if float(jnp.max(jnp.abs(after - before))) < PROMISED_ERROR / 10:
            break
        order, before = 2 * order, after
    return order
