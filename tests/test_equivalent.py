"""Theory A: for given first-layer weights, against training sets drawn for them; and theory B against it."""

import jax.numpy as jnp
import numpy as np
import pytest

import onegrad as og
from agreement import mean_agrees
from onegrad import moments, ridge
from onegrad.features.neural import Neural
from onegrad.target import target_numbers
from onegrad.theory.equivalent import equivalent, equivalent_of_samples
from problems import general, paper


def exact_moments(problem, weights):
    mixture = problem.mixture.numbers(problem.signal_dimension)
    target = target_numbers(problem.target, problem.mixture)
    rule = problem.target.rule
    return moments.feature_moments(Neural(problem.function), jnp.asarray(weights), mixture, rule, target)


def labelled(problem, seed, count):
    x, component = problem.mixture.sample(seed, count)
    target = target_numbers(problem.target, problem.mixture)
    noise = problem.target.noise * np.random.default_rng(seed).normal(size=count)
    return x, problem.target.rule.label(target, x, component) + noise


def test_isotropic_features_have_a_closed_form():
    """M = I, v = e₁: τ from a quadratic, everything else by hand."""
    k, m, lam, power = 60, 100, 0.3, 2.0
    found = equivalent(np.eye(k), np.eye(k)[0], power, m, lam)
    # λ = τ(1 − (k/m)/(1 + τ))
    b = 1 - k / m - lam
    tau = (-b + np.sqrt(b**2 + 4 * lam)) / 2
    test = (power - 1 / (1 + tau) - tau / (1 + tau) ** 2) / (1 - k / m / (1 + tau) ** 2)
    assert found.effective_ridge == pytest.approx(tau, rel=1e-12)
    assert found.test_error == pytest.approx(test, rel=1e-12)
    assert found.train_objective == pytest.approx(lam / tau * (power - 1 / (1 + tau)) / 2, rel=1e-12)


def test_moments_are_the_population_errors():
    problem = general(60, width=40)
    network = og.train(problem, 3)
    found = exact_moments(problem, network.weights)
    readout = network.readout
    quadratic = found.power - 2 * found.cross @ readout + readout @ found.matrix @ readout
    data = og.simulate(problem, 1, 3, models="network", evaluation="population")
    assert float(quadratic) == pytest.approx(float(data.test_error[0, 0]), rel=1e-9)


@pytest.mark.slow
def test_training_sets_average_to_it(seed):
    problem = general(300, width=250, samples=400, activation="tanh")
    network = og.train(problem, seed)
    found = exact_moments(problem, network.weights)
    expected = equivalent(*map(np.asarray, found), samples=problem.samples, ridge=problem.ridge)
    errors = []
    for t in range(40):
        x, y = labelled(problem, 1000 * seed + 77 + t, problem.samples)
        features = jnp.tanh(x @ network.weights.T)
        solution = ridge.solve(features, y, jnp.asarray(problem.ridge))
        w = solution.weights
        test = found.power - 2 * found.cross @ w + w @ found.matrix @ w
        errors.append([test, jnp.mean((y - solution.fitted) ** 2), jnp.sum(w**2)])
    test, train, norm = np.asarray(errors).T
    assert mean_agrees(test, expected.test_error, 0.005)
    assert mean_agrees(train, expected.train_error, 0.005)
    assert mean_agrees(norm, expected.weight_norm, 0.01)
    # planted: the effective ridge forgotten
    naive = equivalent(*map(np.asarray, found), samples=10**9, ridge=problem.ridge)
    assert not mean_agrees(test, naive.test_error, 0.005)


@pytest.mark.slow
def test_both_theories_agree(seed):
    for problem in (paper(500), general(500, width=400, samples=600)):
        drawn = og.predict(problem, method="equivalent", seed=seed, draws=8)
        limit = og.predict(problem)
        for name in ("test_error", "train_objective"):
            bound = 6 * drawn.sem[name] + 0.02 * getattr(limit, name)
            assert abs(getattr(drawn, name) - getattr(limit, name)) < bound


def test_samples_stand_in_for_a_mixture():
    problem = general(40, width=20, samples=60)
    network = og.train(problem)
    x, y = labelled(problem, 5, 60_000)
    features = np.asarray(problem.function(x @ network.weights.T)) / 20**0.5
    found = equivalent_of_samples(features, np.asarray(y), problem.samples, problem.ridge)
    exact = equivalent(
        *map(np.asarray, exact_moments(problem, network.weights)), samples=60, ridge=problem.ridge
    )
    assert found.test_error == pytest.approx(exact.test_error, rel=0.03)
    with pytest.raises(og.InputError, match=r"at least 2·width = 40 rows, got 30"):
        equivalent_of_samples(features[:30], np.asarray(y)[:30], 60, 1e-3)


def test_moments_that_are_none_are_refused():
    with pytest.raises(og.NumericalError, match="not finite"):
        equivalent(np.full((2, 2), np.nan), np.ones(2), 1.0, 5, 0.1)
    nothing = equivalent(np.zeros((2, 2)), np.zeros(2), 1.0, 5, 0.1)
    assert nothing.test_error == pytest.approx(1.0)
    assert equivalent(np.eye(2), np.ones(2), 3.0, 5, 1e20).test_error == pytest.approx(3.0)


def test_methods_are_checked():
    with pytest.raises(og.InputError, match=r'method must be one of .*did you mean "equivalent"'):
        og.predict(paper(50), method="equivalant")
    with pytest.raises(og.InputError, match="draws must be an integer ≥ 1"):
        og.predict(paper(50), method="equivalent", draws=0)
    one = og.predict(paper(50), method="equivalent", draws=1)
    assert one.sem is None
    assert one.test_error > 0
