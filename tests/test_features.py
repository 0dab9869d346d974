"""Feature maps: exact cases, interpolation accuracy, and the moments that define the equivalents."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agreement import mean_agrees
from onegrad import activations, features, numerics, simulation, trial
from onegrad.features import conditional
from problems import general, paper


def built(problem, model: str, seed: int):
    """A feature map of a trained layer, with the layer's weights and one block of training samples."""
    recipe = trial.Recipe.of(problem, (model,), 10, False, "float64")
    numbers = trial.Numbers.of(problem, problem.degree)
    weight_key, data_key = simulation.keys(numerics.root_key(seed), 0, "all")
    draws = trial.data_sets(recipe, numbers, data_key)
    step = trial.take_step(recipe, numbers, draws[trial.STEP_DATA], weight_key)
    x, _ = draws[trial.TRAIN_DATA](jnp.arange(problem.samples))
    feature_map = trial.feature_maps(recipe, numbers, step)[model]
    block = features.Block(x, x @ step.weights.T, jnp.arange(x.shape[0]), weight_key)
    return feature_map, block, step


def test_models_are_the_builders():
    assert features.MODELS == ("network", "hermite", "conditional")
    assert set(features.POPULATION_MODELS) | set(features.MIXTURE_MODELS) <= set(features.MODELS)


def test_network_features_are_the_activation(seed):
    feature_map, block, _ = built(general(activation="tanh"), "network", seed)
    np.testing.assert_allclose(feature_map(block), np.tanh(block.preactivation))


def test_a_quadratic_activation_is_its_own_hermite_model(seed):
    problem = general(activation="square")
    feature_map, block, _ = built(problem, "hermite", seed)
    assert problem.degree >= 2
    np.testing.assert_allclose(feature_map(block), np.square(block.preactivation), atol=1e-6)
    # planted: degree 1 is not enough
    low = replace(feature_map, coefficients=feature_map.coefficients[:2])
    assert not np.allclose(low(block), np.square(block.preactivation), atol=1e-2)


def test_hermite_noise_has_the_residuals_variance(seed):
    feature_map, block, _ = built(general(activation="relu"), "hermite", seed)
    noise = feature_map(block) - feature_map.polynomial(block.preactivation)
    assert mean_agrees(noise, 0.0)
    assert mean_agrees(np.square(noise), float(feature_map.residual) ** 2)
    assert not mean_agrees(np.square(noise), float(feature_map.residual))


def test_a_linear_activation_is_its_own_conditional_model(seed):
    feature_map, block, _ = built(general(activation="identity"), "conditional", seed)
    np.testing.assert_allclose(feature_map(block), block.preactivation, atol=1e-6)


@pytest.mark.parametrize("name", ["tanh", "softplus", "erf", "gelu"])
def test_tables_interpolate_the_smoothed_activation(name, seed):
    """To 1e-5 of the features' scale, against the full-order averages at random positions."""
    feature_map, _, step = built(general(activation=name), "conditional", seed)
    signal = feature_map.positions.shape[1] - 1
    rng = np.random.default_rng(seed)
    u = jnp.asarray(rng.normal(size=(50, 30)) * rng.uniform(0, 5, size=(50, 1)))
    along = jnp.outer(feature_map.positions[:, -1], feature_map.direction)
    norms = jnp.linalg.norm(step.weights[:, signal:] - along, axis=1)
    exact = conditional.smooth(activations.find(name), u, norms)
    scale = float(jnp.std(exact[0]))
    for table, (ours, theirs) in enumerate(zip(feature_map.smoothed(u), exact, strict=True)):
        error = float(jnp.max(jnp.abs(ours - theirs)))
        assert error < 1e-5 * scale, (table, error)


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_conditional_model_has_the_networks_conditional_moments(name, seed):
    """At a fixed position in the signal subspace: mean, variance and covariance with the bulk."""
    feature_map, block, step = built(general(activation=name), "conditional", seed)
    signal = feature_map.positions.shape[1] - 1
    draws = 4000
    bulk = jax.random.normal(numerics.root_key(seed), (draws, block.x.shape[1] - signal))
    bulk = bulk - jnp.outer(bulk @ feature_map.direction, feature_map.direction)  # κ_v = 0
    x = jnp.concatenate([jnp.broadcast_to(block.x[0, :signal], (draws, signal)), bulk], axis=1)
    preactivation = x @ step.weights.T
    model = np.asarray(feature_map(features.Block(x, preactivation, jnp.arange(draws), block.key)))
    network = np.asarray(activations.find(name)(preactivation))
    centred = np.asarray(preactivation - preactivation.mean(0))
    for i in range(5):
        difference = model[:, i] - network[:, i]
        assert mean_agrees(difference, 0.0)
        assert mean_agrees(difference * centred[:, i], 0.0)
        spreads = (model[:, i] - model[:, i].mean()) ** 2 - (network[:, i] - network[:, i].mean()) ** 2
        assert mean_agrees(spreads, 0.0)
    # planted: without the leftover variance Φ the spread is too small
    bare = replace(feature_map, smoothed=lambda u: (*feature_map.smoothed(u)[:2], 0 * u))
    model = np.asarray(bare(features.Block(x, preactivation, jnp.arange(draws), block.key)))
    gaps = [
        (model[:, i] - model[:, i].mean()) ** 2 - (network[:, i] - network[:, i].mean()) ** 2
        for i in range(5)
    ]
    assert not all(mean_agrees(gap, 0.0) for gap in gaps)


def test_gradient_direction_is_the_top_singular_vector(seed):
    problem = paper(150)
    feature_map, _, step = built(problem, "conditional", seed)
    signal = problem.signal_dimension
    _, _, vectors = np.linalg.svd(np.asarray(step.gradient[:, signal:]))
    assert abs(float(vectors[0] @ feature_map.direction)) > 1 - 1e-6


def test_no_gradient_no_direction_no_nan(seed):
    problem = general(target=general().target.__class__("tanh", [0.1] * 4), learning_rate=0.0)
    feature_map, block, _ = built(problem, "conditional", seed)
    assert np.all(np.isfinite(feature_map(block)))
    zero = conditional.gradient_direction(jnp.zeros((4, 3)), jnp.ones(4))
    np.testing.assert_array_equal(zero, np.zeros(3))
