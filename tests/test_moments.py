"""Population errors against closed forms and against very many fresh samples."""

import jax.numpy as jnp
import numpy as np
import pytest

import onegrad as og
from agreement import mean_agrees
from onegrad import activations, moments
from onegrad.features.hermite import Hermite
from onegrad.features.neural import Neural
from onegrad.target import target_numbers
from problems import general


def isotropic(n: int) -> og.Mixture:
    return og.Mixture(n, [og.Component(1.0)])


def quadratic_form(features, weights, readout, mixture, target) -> float:
    """ŵᵀMŵ: the population error of labels that are 0."""
    found = moments.population_error(
        features,
        jnp.asarray(weights),
        jnp.asarray(readout),
        mixture.numbers(target.directions_in(mixture).shape[1]),
        target.rule,
        target_numbers(target, mixture),
    )
    assert float(found.truncation) < 1e-6
    return float(found.value)


def test_relu_is_the_arc_cosine_kernel(seed):
    """E[relu(u)relu(v)] = s_u s_v (sin φ + (π − φ) cos φ)/2π, with a spike in the covariance."""
    rng = np.random.default_rng(seed)
    weights, readout = rng.normal(size=(20, 8)), rng.normal(size=20)
    mixture = og.Mixture.spiked(8, [[3.0]], [1.0])
    covariance = np.eye(8) + 3 * np.outer(np.eye(8)[0], np.eye(8)[0])
    gram = weights @ covariance @ weights.T
    sd = np.sqrt(np.diag(gram))
    angle = np.arccos(np.clip(gram / np.outer(sd, sd), -1, 1))
    kernel = np.outer(sd, sd) * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    exact = readout @ kernel @ readout / 20
    target = og.ComponentLabels([0.0])
    relu = Neural(activations.find("relu"))
    found = quadratic_form(relu, weights, readout, mixture, target)
    assert found == pytest.approx(exact, rel=1e-6)
    # planted: the spike dropped
    assert quadratic_form(relu, weights, readout, isotropic(8), target) != pytest.approx(exact, rel=1e-2)


def test_identity_is_linear_regression(seed):
    """E(y − aᵀx)² with a = F̂ᵀŵ/√k and y = ξᵀx: (ξ − a)ᵀ(Σ + μμᵀ)(ξ − a), component by component."""
    rng = np.random.default_rng(seed)
    problem = general(activation="identity", target=og.SingleIndex("identity", [1, 0, 2, 1], noise=0.5))
    mixture = problem.mixture
    weights, readout = rng.normal(size=(30, 40)) / 6, rng.normal(size=30)
    a = weights.T @ readout / 30**0.5
    gap = np.append([1.0, 0, 2, 1], np.zeros(36)) - a
    exact = 0.5**2
    for component in mixture.components:
        spikes = np.zeros((40, len(component.strengths)))
        spikes[:4] = component.spike_matrix(4)
        mean = np.append(component.mean or np.zeros(4), np.zeros(36))
        second = np.eye(40) + spikes @ spikes.T + np.outer(mean, mean)
        exact += component.weight * gap @ second @ gap
    found = quadratic_form(Neural(problem.function), weights, readout, mixture, problem.target)
    assert found == pytest.approx(exact, rel=1e-10)


TARGETS = {
    "single": og.SingleIndex("relu", [0.2, 0.3, 0.8, 0.1], noise=0.3),
    "sign": og.SingleIndex("sign", [0.2, 0.3, 0.8, 0.1]),
    "labels": og.ComponentLabels([1, -1, 1]),
    "multi": og.MultiIndex("product", [[0.3, 0.1, 0, 0], [0, 0.2, 0.3, 0.4]], noise=0.1),
    "dependent": og.MultiIndex("mean_square", [[0.3, 0.1, 0, 0], [0.6, 0.2, 0, 0]]),
}


@pytest.mark.parametrize(
    ("target", "activation"),
    [*((name, "relu") for name in TARGETS), ("single", "tanh")],
)
def test_population_and_fresh_errors_agree(target, activation, seed):
    """Paired over trials: same data, F, w; 20,000 fresh samples. The Hermite model goes the same way."""
    problem = general(target=TARGETS[target], activation=activation, learning_rate=5.0)
    settings = {"models": ("network", "hermite"), "degree": 2}
    fresh = og.simulate(problem, 15, seed, test_samples=20_000, **settings)
    exact = og.simulate(problem, 15, seed, evaluation="population", **settings)
    np.testing.assert_allclose(exact.train_error, fresh.train_error, rtol=1e-9)
    assert "misclassification" not in exact
    for model in settings["models"]:
        ratio = (fresh.test_error / exact.test_error).sel(model=model)
        assert mean_agrees(ratio, 1.0)
        assert not mean_agrees(ratio * 1.25, 1.0)


def test_series_of_a_polynomial_is_exact_whatever_the_gaussian(seed):
    rng = np.random.default_rng(seed)
    coefficients = jnp.asarray(rng.normal(size=4))
    cubic = Hermite(coefficients, jnp.asarray(0.3), jnp.asarray(0.8))
    mean, sd = jnp.asarray(rng.normal(size=6)), jnp.asarray(rng.uniform(0.5, 3, size=6))
    series = cubic.series(mean, sd, 3)
    z = jnp.asarray(rng.normal(size=(50, 6)))
    from onegrad.gaussian import hermite

    rebuilt = sum(series.coefficients[:, p] * term for p, term in enumerate(hermite(z, 3)))
    np.testing.assert_allclose(rebuilt, cubic.polynomial(mean + sd * z), rtol=1e-9, atol=1e-9)


def test_truncation_estimate_is_honest():
    """Nearly parallel neurons of a kinked activation: the series is slow, and says how slow."""
    weights = np.asarray([[1.0, 0.0], [0.999, 0.02]])
    readout, mixture, target = np.asarray([1.0, -1.0]), isotropic(2), og.ComponentLabels([0.0])
    found = moments.population_error(
        Neural(activations.find("relu")),
        jnp.asarray(weights),
        jnp.asarray(readout),
        mixture.numbers(),
        target.rule,
        target_numbers(target, mixture),
    )
    gram = weights @ weights.T
    sd = np.sqrt(np.diag(gram))
    angle = np.arccos(np.clip(gram / np.outer(sd, sd), -1, 1))
    kernel = np.outer(sd, sd) * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    error = abs(float(found.value) - readout @ kernel @ readout / 2)
    assert 1e-9 < error < float(found.truncation)


def test_a_slow_series_warns(monkeypatch):
    monkeypatch.setattr(moments, "DEGREE", 3)
    problem = general(activation="relu", width=29)
    with pytest.warns(og.AccuracyWarning, match="its series converges slowly"):
        og.simulate(problem, 1, evaluation="population", models="network")
