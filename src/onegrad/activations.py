"""Activations and links: the function, its derivative, and its averages over a Gaussian.

The theory and every equivalent model need only E[σ(mean + sd·z) He_p(z)/√p!] and E[σ(mean + sd·z)²].
They are closed forms where these exist; a matrix product over nodes that all Gaussians share where σ is
known to be analytic; else `gaussian.project`, which splits at kinks.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats.norm import cdf, pdf
from jaxtyping import Array, Float

from onegrad import _checks, closed_forms, gaussian
from onegrad.closed_forms import Coefficients, Moment
from onegrad.errors import AccuracyWarning, InputError
from onegrad.numerics import scoped

Function = Callable[[Array], Array]

PROMISED_ERROR = 1e-10  # of a Hermite coefficient; worse estimates warn
MAX_ORDER = 1024  # nodes a side beyond which a callable's quadrature is not refined further


@dataclass(frozen=True)
class Activation:
    """A scalar function σ with its Gaussian averages. Call it like the function.

    `kinks` are the points where σ or σ' jumps; `order` is the number of quadrature nodes a side; `strip`
    is the half-width of the strip about the real axis in which σ is analytic, where that is known, and
    `tolerance` the error that its equal-step quadrature may make.
    """

    name: str
    function: Function
    derivative: Function
    kinks: tuple[float, ...] = (0.0,)
    order: int = 64
    strip: float | None = None
    tolerance: float = gaussian.TRAPEZOID_ERROR
    closed_coefficients: Coefficients | None = None
    closed_second_moment: Moment | None = None

    def __call__(self, x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return self.function(x)

    @property
    def is_closed(self) -> bool:
        """Whether its Gaussian averages are closed forms."""
        return self.closed_coefficients is not None and self.closed_second_moment is not None

    @property
    def jumps(self) -> bool:
        """Whether the function itself, not only its slope, jumps at one of its kinks."""
        points = np.asarray(self.kinks)
        below, above = (np.asarray(self.function(jnp.asarray(points + side))) for side in (-1e-6, 1e-6))
        return bool(np.any(np.abs(above - below) > 1e-3))

    def coefficients(
        self, mean: Float[Array, "*shape"], sd: Float[Array, "*shape"], degree: int
    ) -> Float[Array, "*shape {degree}+1"]:
        """c_p = E[σ(mean + sd·z) He_p(z)/√p!], p = 0..degree. By Stein c_0 = E σ and c_1 = sd·E σ'."""
        if self.closed_coefficients is not None:
            return self.closed_coefficients(mean, sd, degree)
        if self.strip is not None:
            return gaussian.project_analytic(self.function, mean, sd, degree, self.strip, self.tolerance)
        return gaussian.project(self.function, mean, sd, degree, self.kinks, self.order)

    def second_moment(
        self, mean: Float[Array, "*shape"], sd: Float[Array, "*shape"]
    ) -> Float[Array, "*shape"]:
        """E σ(mean + sd·z)²."""
        if self.closed_second_moment is not None:
            return self.closed_second_moment(mean, sd)
        if self.strip is not None:
            squares = gaussian.project_analytic(
                lambda x: self.function(x) ** 2, mean, sd, 0, self.strip, self.tolerance
            )
            return squares[..., 0]
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

    The estimate is the change to a split quadrature with twice the nodes; it warns above 1e-10.
    """
    function = find(activation)
    sd = _checks.positive("sd", sd)
    degree = _checks.integer("degree", degree, at_least=0)
    coefficients, second = _expand(function, sd, degree)
    error = 0.0
    if not function.is_closed:
        finer = _expand(replace(function, order=2 * function.order, strip=None), sd, degree)
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


@lru_cache(maxsize=256)
def slope(function: Activation) -> Activation:
    """σ' as an activation; its coefficients are σ's, by Stein: c'_p = c_{p+1} √(p+1)/sd."""

    def coefficients(mean: Array, sd: Array, degree: int) -> Array:
        orders = jnp.arange(1, degree + 2, dtype=mean.dtype)
        return function.coefficients(mean, sd, degree + 1)[..., 1:] * jnp.sqrt(orders) / sd[..., None]

    return Activation(
        f"{function.name}'",
        function.derivative,
        _elementwise_derivative(function.derivative),
        function.kinks,
        function.order,
        function.strip,
        function.tolerance,
        closed_coefficients=coefficients,
    )


@lru_cache(maxsize=256)
def squared(function: Activation) -> Activation:
    """σ² as an activation."""
    return Activation(
        f"{function.name}²",
        lambda x: function(x) ** 2,
        lambda x: 2 * function(x) * function.derivative(x),
        function.kinks,
        function.order,
        function.strip,
        function.tolerance,
    )


@lru_cache(maxsize=256)
def rough(function: Activation) -> Activation:
    """σ with averages good to 1e-8, for where thousands of them are averaged again."""
    return replace(function, order=min(function.order, 32), tolerance=1e-9)


# --- registry -------------------------------------------------------------------------------------


def _registry() -> dict[str, Activation]:
    one, zero = jnp.ones_like, jnp.zeros_like
    slope = 0.01
    leaky_coefficients, leaky_moment = closed_forms.leaky_relu(slope)
    smooth = [
        # poles at ±iπ/2, and at ±iπ for the logistic family
        Activation("tanh", jnp.tanh, lambda x: 1 - jnp.tanh(x) ** 2, strip=np.pi / 2),
        Activation("sigmoid", jax.nn.sigmoid, lambda x: jax.nn.sigmoid(x) * jax.nn.sigmoid(-x), strip=np.pi),
        Activation("softplus", jax.nn.softplus, jax.nn.sigmoid, strip=np.pi),
        Activation(
            "silu",
            jax.nn.silu,
            lambda x: jax.nn.sigmoid(x) * (1 + x * jax.nn.sigmoid(-x)),
            strip=np.pi,
        ),
        Activation(
            "erf",
            lambda x: jax.lax.erf(x / 2**0.5),
            lambda x: 2 * pdf(x),
            strip=np.pi / 2,  # entire, but growing along the imaginary axis: as if it had tanh's poles
            closed_coefficients=closed_forms.erf_coefficients,
        ),
        Activation(
            "gelu",
            lambda x: x * cdf(x),
            lambda x: cdf(x) + x * pdf(x),
            strip=np.pi / 2,
            closed_coefficients=closed_forms.gelu_coefficients,
        ),
        Activation(
            "sin",
            jnp.sin,
            jnp.cos,
            closed_coefficients=closed_forms.sin_coefficients,
            closed_second_moment=closed_forms.sin_second_moment,
        ),
        Activation(
            "identity",
            lambda x: x,
            one,
            closed_coefficients=closed_forms.identity_coefficients,
            closed_second_moment=closed_forms.identity_second_moment,
        ),
        Activation(
            "square",
            lambda x: x**2,
            lambda x: 2 * x,
            closed_coefficients=closed_forms.square_coefficients,
            closed_second_moment=closed_forms.square_second_moment,
        ),
    ]
    kinked = [
        Activation(
            "relu",
            lambda x: jnp.maximum(x, 0),
            lambda x: jnp.where(x > 0, one(x), zero(x)),
            closed_coefficients=closed_forms.relu_coefficients,
            closed_second_moment=closed_forms.relu_second_moment,
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
            closed_coefficients=closed_forms.sign_coefficients,
            closed_second_moment=closed_forms.sign_second_moment,
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
    kinks: Sequence[float] = (),
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


def activation(
    function: Function,
    derivative: Function | None = None,
    kinks: Sequence[float] = (),
) -> Activation:
    """Wrap a JAX-traceable elementwise callable; its derivative is taken by autodiff if not given.

    The same callable gives the same activation, so it compiles once.
    """
    if not callable(function):
        raise _checks.refuse("function", "a callable", function)
    return _wrapped(function, derivative, _checks.reals("kinks", kinks), "activation")


@lru_cache(maxsize=256)
def _wrapped(
    function: Function, derivative: Function | None, kinks: tuple[float, ...], argument: str
) -> Activation:
    name = getattr(function, "__qualname__", repr(function))
    if derivative is None:
        derivative = _elementwise_derivative(function)
    _probe(argument, name, function, derivative)
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
        registered = (known for known in _REGISTERED.values() if known.function is given)
        return next(registered, None) or _wrapped(given, None, (), argument)
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
def _probe(argument: str, name: str, function: Function, derivative: Function) -> None:
    """Refuse a callable that is not elementwise, not traceable, or not finite."""
    points = jnp.linspace(-8.0, 8.0, 35).reshape(5, 7)
    for what, candidate in ((argument, function), (f"{argument}'s derivative", derivative)):
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
    """The smallest order at which doubling moves no average by the promised error (or the cap)."""
    mean, sd = jnp.asarray([0.0, 0.5, 0.0]), jnp.asarray([1.0, 1.0, 4.0])

    @partial(jax.jit, static_argnames=("order",))
    def averages(order: int) -> Array:
        return gaussian.project(function.function, mean, sd, 4, function.kinks, order)

    order = 64
    before = averages(order)
    while order < MAX_ORDER:
        after = averages(2 * order)
        if float(jnp.max(jnp.abs(after - before))) < PROMISED_ERROR / 10:
            break
        order, before = 2 * order, after
    return order
