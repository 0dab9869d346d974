"""Gaussian averages against 25-digit integration, for every activation of the registry."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

import onegrad as og
from onegrad import activations

# name → the same function in mpmath: the table of exact answers
EXACT = {
    "relu": lambda x: max(x, mp.mpf(0)),
    "tanh": mp.tanh,
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "erf": lambda x: mp.erf(x / mp.sqrt(2)),
    "softplus": lambda x: mp.log1p(mp.exp(-abs(x))) + max(x, mp.mpf(0)),
    "gelu": lambda x: x * mp.ncdf(x),
    "silu": lambda x: x / (1 + mp.exp(-x)),
    "leaky_relu": lambda x: x if x > 0 else x / 100,
    "sin": mp.sin,
    "identity": lambda x: x,
    "square": lambda x: x * x,
    "sign": lambda x: mp.mpf(1) if x >= 0 else mp.mpf(-1),
}
# centred and narrow, off-centre, off-centre and wide (a kink or a bend inside a broad Gaussian)
GAUSSIANS = [(0.0, 0.98), (0.7, 1.3), (1.5, 12.0)]
DEGREES = (0, 1, 2, 4, 7)


def integrate(integrand, mean: float, sd: float) -> float:
    """∫ integrand(x, z) dN(z), x = mean + sd·z, with breakpoints at x = 0 and where activations bend."""
    centre = -mean / sd
    near = [centre + offset / sd for offset in (-6, -2, 0, 2, 6)]
    points = sorted({*(-14, -7, -3, 0, 3, 7, 14), *(p for p in near if abs(p) < 14)})
    with mp.workdps(18):
        value = mp.quad(lambda z: integrand(mean + sd * z, z) * mp.exp(-z * z / 2), points, maxdegree=6)
        return float(value / mp.sqrt(2 * mp.pi))


def he(p: int, z) -> mp.mpf:
    """He_p(z)/√p!."""
    before, here = mp.mpf(0), mp.mpf(1)
    for q in range(p):
        before, here = here, z * here - q * before
    return here / mp.sqrt(mp.factorial(p))


def test_the_table_covers_the_registry():
    assert set(EXACT) <= set(activations.names())
    built_in = set(activations.names()) - set(EXACT)
    assert not [name for name in built_in if not name.startswith("test_")]


@pytest.mark.parametrize("mean_sd", GAUSSIANS, ids=str)
@pytest.mark.parametrize("name", EXACT)
def test_averages_are_exact(name, mean_sd):
    mean, sd = mean_sd
    activation, exact = activations.find(name), EXACT[name]
    found = np.asarray(activation.coefficients(jnp.asarray(mean), jnp.asarray(sd), max(DEGREES)))
    for p in DEGREES:
        expected = integrate(lambda x, z, p=p: exact(x) * he(p, z), mean, sd)
        assert abs(found[p] - expected) < 1e-11, (p, found[p], expected)
    second = float(activation.second_moment(jnp.asarray(mean), jnp.asarray(sd)))
    expected = integrate(lambda x, z: exact(x) ** 2, mean, sd)
    assert abs(second / expected - 1) < 1e-12


@pytest.mark.parametrize("name", EXACT)
def test_derivatives_match_autodiff(name):
    activation = activations.find(name)
    points = jnp.asarray([-3.1, -0.4, 0.3, 2.2])
    expected = jax.vmap(jax.grad(activation.function))(points)
    np.testing.assert_allclose(activation.derivative(points), expected, rtol=1e-12)


def test_relu_derivative_at_the_kink_is_zero():
    assert float(activations.find("relu").derivative(jnp.asarray(0.0))) == 0.0


def test_published_rule_would_be_rejected():
    """The 100-node Gauss–Hermite rule misses E[relu] by 1.6e-3: the tolerance above sees it."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    rough = np.sum(weights / weights.sum() * np.maximum(nodes, 0))
    exact = 1 / np.sqrt(2 * np.pi)
    assert abs(rough - exact) > 1e-3
    assert abs(og.hermite_expansion("relu", 1.0, 0).coefficients[0] - exact) < 1e-15


@pytest.mark.parametrize("name", ["tanh", "gelu", "relu"])
def test_expansion_spends_the_second_moment(name):
    """Parseval: Σ c_p² + residual² = E σ², with a residual that shrinks with the degree."""
    activation = activations.find(name)
    second = float(activation.second_moment(jnp.asarray(0.0), jnp.asarray(0.9)))
    residuals = []
    for degree in (1, 3, 8):
        expansion = og.hermite_expansion(name, 0.9, degree)
        total = np.sum(expansion.coefficients**2) + expansion.residual**2
        assert total == pytest.approx(second, rel=1e-13)
        residuals.append(expansion.residual)
    assert residuals[0] > residuals[1] > residuals[2] > 0


def test_callable_matches_the_registry():
    ours = og.hermite_expansion("tanh", 1.1, 6)
    theirs = og.hermite_expansion(lambda x: jnp.tanh(x), 1.1, 6)
    np.testing.assert_allclose(theirs.coefficients, ours.coefficients, atol=1e-13)
    assert theirs.error_estimate < 1e-12


def test_a_kink_that_is_named_costs_nothing():
    def hinge(x):
        return jnp.maximum(x - 0.7, 0.0)

    expansion = og.hermite_expansion(og.activation(hinge, kinks=[0.7]), 1.0, 4)
    for p in range(5):
        expected = integrate(lambda x, z, p=p: max(x, mp.mpf(0)) * he(p, z), -0.7, 1.0)
        assert abs(expansion.coefficients[p] - expected) < 1e-11


def test_a_kink_that_is_not_named_warns_with_an_honest_estimate():
    def hinge(x):
        return jnp.maximum(x - 0.7, 0.0)

    exact = og.hermite_expansion(og.activation(hinge, kinks=[0.7]), 1.0, 4)
    with pytest.warns(og.AccuracyWarning, match="converge slowly"):
        rough = og.hermite_expansion(hinge, 1.0, 4)
    error = np.max(np.abs(rough.coefficients - exact.coefficients))
    assert 0 < error < 3 * rough.error_estimate


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: jnp.sum(x), "input's shape"),
        (lambda x: jnp.log(x), "must be finite"),
        (lambda x: float(x), "JAX-traceable"),
        (lambda x: x > 0, "real numbers"),
    ],
)
def test_bad_callables_are_refused(function, message):
    with pytest.raises(og.InputError, match=message):
        og.activation(function)


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(og.InputError, match=r'activation must be one of .* did you mean "relu"'):
        activations.find("rellu")


def test_registering_gives_a_name_once():
    def swish2(x):
        return x * jax.nn.sigmoid(2 * x)

    registered = og.register_activation("test_swish2", swish2)
    assert activations.registered_name(activations.find(swish2)) == "test_swish2"
    assert activations.find("test_swish2") is registered
    with pytest.raises(og.InputError, match="already registered"):
        og.register_activation("test_swish2", swish2)
