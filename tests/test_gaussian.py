"""The quadrature rule and the normalised Hermite polynomials, against closed forms."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import eval_hermitenorm, factorial

from onegrad import gaussian, numerics


def test_hermite_polynomials_are_scipys_over_root_factorial():
    z = jnp.linspace(-3, 3, 13)
    for p, value in enumerate(gaussian.hermite(z, 12)):
        np.testing.assert_allclose(value, eval_hermitenorm(p, z) / factorial(p) ** 0.5, atol=1e-12)


def test_high_degrees_stay_orthonormal():
    """He_40 itself is of the size 1e24 here: the normalised recurrence does not lose digits."""
    z, weights = gaussian.rule(jnp.asarray(0.0), jnp.asarray(1.0), (), 200, gaussian.reach(40))
    values = np.stack(gaussian.hermite(z, 40))
    np.testing.assert_allclose((values * np.asarray(weights)) @ values.T, np.eye(41), atol=1e-11)


@pytest.mark.parametrize("sd", [1e-3, 0.3, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("mean", [-40.0, -0.2, 0.0, 3.0])
def test_moments_of_any_gaussian(mean, sd):
    # z = (x − mean)/sd loses log10(|mean|/sd) digits, whatever the rule
    tolerance = 1e-13 * (1 + abs(mean) / sd)
    mean, sd = jnp.asarray(mean), jnp.asarray(sd)
    assert float(gaussian.average(jnp.ones_like, mean, sd)) == pytest.approx(1.0, abs=tolerance)
    second = float(gaussian.average(lambda x: x**2, mean, sd))
    assert second == pytest.approx(float(mean**2 + sd**2), rel=1e-12)


def test_a_kink_is_exact_when_split_and_rough_when_not():
    mean, sd = jnp.asarray(0.0), jnp.asarray(1.0)
    exact = np.exp(-(0.7**2) / 2) / np.sqrt(2 * np.pi) - 0.7 * 0.24196365222307298
    split = gaussian.average(lambda x: jnp.maximum(x - 0.7, 0), mean, sd, (0.7,), 64)
    rough = gaussian.average(lambda x: jnp.maximum(x - 0.7, 0), mean, sd, (), 64)
    assert abs(float(split) - exact) < 1e-14
    assert abs(float(rough) - exact) > 1e-7


@pytest.mark.parametrize("sd", [0.3, 5.0, 100.0])
def test_shared_nodes_are_exact_or_not_used(sd):
    """tanh has poles at ±iπ/2: a coarse step resolves sd = 0.3, finer ones 5, none 100, where
    `project` takes over."""
    mean, sd = jnp.asarray([0.0, 0.7, -3.0]), jnp.asarray([sd, sd, sd / 2])
    split = gaussian.project(jnp.tanh, mean, sd, 40, order=256)
    shared = gaussian.project_analytic(jnp.tanh, mean, sd, 40, np.pi / 2)
    np.testing.assert_allclose(shared, split, atol=1e-12)
    # planted: a strip that is claimed and not there
    wrong = gaussian.project_analytic(jnp.tanh, mean, sd, 40, 1e3)
    assert (np.max(np.abs(wrong - split)) > 1e-4) == bool(sd[0] > 1)


def test_tensor_rule_integrates_polynomials_exactly():
    nodes, weights = gaussian.tensor_rule(3, 4)
    assert weights.sum() == pytest.approx(1.0)
    value = np.sum(weights * nodes[:, 0] ** 4 * nodes[:, 1] ** 2 * nodes[:, 2] ** 6)
    assert value == pytest.approx(3 * 1 * 15)
    too_high = np.sum(weights * nodes[:, 0] ** 8)
    assert too_high != pytest.approx(105)


def test_rows_have_keys_of_their_own(seed):
    """Any block, any order, any larger set: row i is row i. A longer row starts with the shorter."""
    key = numerics.root_key(seed)
    whole = gaussian.row_normals(key, jnp.arange(7), 5)
    np.testing.assert_array_equal(
        gaussian.row_normals(key, jnp.asarray([6, 2]), 5), np.asarray(whole)[[6, 2]]
    )
    np.testing.assert_array_equal(gaussian.row_normals(key, jnp.arange(7), 3), whole[:, :3])
