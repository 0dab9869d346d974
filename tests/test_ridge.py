"""Ridge readouts whose solution is known, and invariances that every solver must keep."""

import jax.numpy as jnp
import numpy as np
import pytest

from onegrad import ridge

SHAPES = [(40, 15), (15, 40), (20, 20)]


def constructed(samples: int, width: int, seed: int):
    """Φ = U S Vᵀ and y = U c: the ridge solution is V (s c / (s² + λkm)) √k."""
    rng = np.random.default_rng(seed)
    rank = min(samples, width)
    left = np.linalg.qr(rng.normal(size=(samples, rank)))[0]
    right = np.linalg.qr(rng.normal(size=(width, rank)))[0]
    singular = np.geomspace(10, 0.1, rank)
    coordinates = rng.normal(size=rank)
    return left, singular, right, coordinates


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("strength", [1e-8, 1e-3, 10.0])
def test_solution_is_the_constructed_one(shape, strength, seed):
    left, singular, right, coordinates = constructed(*shape, seed)
    shift = strength * shape[0] * shape[1]
    exact = right @ (singular * coordinates / (singular**2 + shift)) * shape[1] ** 0.5
    features = jnp.asarray(left * singular @ right.T)
    found = ridge.solve(features, jnp.asarray(left @ coordinates), jnp.asarray(strength))
    np.testing.assert_allclose(found.weights, exact, rtol=1e-7, atol=1e-9)
    assert float(found.residual) < 1e-12
    # planted: λ without its factor k
    wrong = right @ (singular * coordinates / (singular**2 + shift / shape[1])) * shape[1] ** 0.5
    assert strength < 1e-6 or not np.allclose(found.weights, wrong, rtol=1e-2)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_primal_and_dual_agree(shape, seed):
    """Columns of zeros turn a primal problem into a dual one and change nothing."""
    rng = np.random.default_rng(seed)
    samples, width = shape
    features, y = rng.normal(size=shape), jnp.asarray(rng.normal(size=samples))
    extra = samples + width
    padded = np.concatenate([features, np.zeros((samples, extra))], axis=1)
    strength = 1e-2
    found = ridge.solve(jnp.asarray(features), y, jnp.asarray(strength))
    # λ multiplies k: keep λk as the width grows
    other = ridge.solve(jnp.asarray(padded), y, jnp.asarray(strength * width / (width + extra)))
    np.testing.assert_allclose(other.fitted, found.fitted, rtol=1e-9, atol=1e-11)
    scale = (width / (width + extra)) ** 0.5
    np.testing.assert_allclose(other.weights[:width] * scale, found.weights, rtol=1e-8, atol=1e-11)


def test_the_objective_is_minimal(seed):
    rng = np.random.default_rng(seed)
    features, y = jnp.asarray(rng.normal(size=(30, 12))), jnp.asarray(rng.normal(size=30))
    strength = jnp.asarray(0.1)
    solution = ridge.solve(features, y, strength)
    best = float(ridge.objective(solution, y, strength))
    direct = float(jnp.mean((y - features @ solution.weights / 12**0.5) ** 2) / 2)
    assert best == pytest.approx(direct + 0.05 * float(jnp.sum(solution.weights**2)))
    for step in np.eye(12):
        moved = solution.weights + 1e-3 * step
        fitted = features @ moved / 12**0.5
        other = solution._replace(weights=moved, fitted=fitted)
        assert float(ridge.objective(other, y, strength)) > best


def test_repeated_samples_change_nothing(seed):
    rng = np.random.default_rng(seed)
    features, y = jnp.asarray(rng.normal(size=(10, 25))), jnp.asarray(rng.normal(size=10))
    once = ridge.solve(features, y, jnp.asarray(1e-3))
    thrice = ridge.solve(jnp.tile(features, (3, 1)), jnp.tile(y, 3), jnp.asarray(1e-3))
    np.testing.assert_allclose(thrice.weights, once.weights, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("shape", SHAPES[:2], ids=str)
def test_limits_of_the_strength(shape, seed):
    """λ → 0 is the minimum-norm least-squares fit, λ → ∞ is no fit."""
    rng = np.random.default_rng(seed)
    features, y = rng.normal(size=shape), rng.normal(size=shape[0])
    tiny = ridge.solve(jnp.asarray(features), jnp.asarray(y), jnp.asarray(1e-14))
    least = np.linalg.pinv(features) @ y * shape[1] ** 0.5
    np.testing.assert_allclose(tiny.weights, least, rtol=1e-5, atol=1e-7)
    huge = ridge.solve(jnp.asarray(features), jnp.asarray(y), jnp.asarray(1e12))
    assert float(jnp.max(jnp.abs(huge.weights))) < 1e-9


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_path_is_its_points(shape, seed):
    rng = np.random.default_rng(seed)
    features, y = jnp.asarray(rng.normal(size=shape)), jnp.asarray(rng.normal(size=shape[0]))
    strengths = jnp.asarray([1e-4, 1e-2, 1.0])
    walked = ridge.path(features, y, strengths)
    for i, strength in enumerate(strengths):
        point = ridge.solve(features, y, strength)
        np.testing.assert_allclose(walked.weights[i], point.weights, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(walked.fitted[i], point.fitted, rtol=1e-6, atol=1e-9)


def test_no_labels_no_weights_no_nan():
    solution = ridge.solve(jnp.ones((3, 2)), jnp.zeros(3), jnp.asarray(1.0))
    assert float(solution.residual) == 0.0
    assert np.all(np.asarray(solution.weights) == 0)


def test_the_certificate_sees_a_failed_factorisation():
    """Features of 1e200 overflow the Gram matrix: the residual is not a small number."""
    solution = ridge.solve(1e200 * jnp.ones((4, 3)), jnp.ones(4), jnp.asarray(1e-4))
    assert not float(solution.residual) < 1e-3
