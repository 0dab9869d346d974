"""The gradient step against autodiff, the initialisation against its law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agreement import mean_agrees
from onegrad import activations, network, numerics

N, K, M = 12, 9, 20


def data(seed: int):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=(M, N))), jnp.asarray(rng.normal(size=M))


@pytest.mark.parametrize("name", activations.names()[:12])
def test_descent_is_minus_the_gradient_of_half_the_error(name, seed):
    activation = activations.find(name)
    x, y = data(seed)
    first, second = network.initialise(numerics.root_key(seed), K, N, jnp.asarray(float(N)))

    def half_error(weights):
        return jnp.mean((y - network.forward(activation, weights, second, x)) ** 2) / 2

    expected = -jax.grad(half_error)(first)
    found = network.descent(activation, first, second, x, y) / M
    np.testing.assert_allclose(found, expected, atol=1e-15, rtol=1e-10)
    if name != "sign":
        # planted: the residual's correction dropped, the ½ of the error forgotten
        dropped = network.descent(activation, first, 0 * second, x, y) / M
        assert not np.allclose(dropped, expected, rtol=1e-3)
        assert not np.allclose(2 * found, expected, rtol=1e-3)


def test_descent_adds_over_blocks(seed):
    activation = activations.find("tanh")
    x, y = data(seed)
    first, second = network.initialise(numerics.root_key(seed), K, N, jnp.asarray(float(N)))
    whole = network.descent(activation, first, second, x, y)
    parts = [network.descent(activation, first, second, x[s], y[s]) for s in (slice(7), slice(7, M))]
    np.testing.assert_allclose(parts[0] + parts[1], whole, rtol=1e-12)


def test_initialisation_has_the_published_variances(seed):
    first, second = network.initialise(numerics.root_key(seed), 400, 60, jnp.asarray(75.0))
    assert mean_agrees(first, 0.0)
    assert mean_agrees(np.square(first), 1 / 75)
    assert mean_agrees(np.square(second), 1 / 400)
    assert not mean_agrees(np.square(first), 1 / 60)


def test_a_wider_network_contains_the_narrower(seed):
    key = numerics.root_key(seed)
    narrow, wide = (network.initialise(key, k, N, jnp.asarray(1.0)) for k in (4, 7))
    np.testing.assert_array_equal(narrow[0], wide[0][:4])
    np.testing.assert_allclose(narrow[1] * 2, wide[1][:4] * 7**0.5)
