"""Predictions against what is known exactly, against simulation, and against themselves."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

import onegrad as og
from agreement import mean_agrees
from onegrad import activations
from onegrad.prediction import _errors
from onegrad.theory import asymptotic
from onegrad.theory.asymptotic import RESOLUTIONS
from problems import general, paper


def isotropic(n: float, width: int, samples: int, ridge: float, activation: str, noise=0.3) -> og.Problem:
    mixture = og.Mixture(n, [og.Component(1.0)])
    target = og.SingleIndex("tanh", [1.3], noise)
    return og.Problem(
        mixture,
        target=target,
        activation=activation,
        width=width,
        samples=samples,
        learning_rate=0.0,
        ridge=ridge,
    )


def classical(problem: og.Problem) -> tuple[float, float]:
    """Test and train error of random features on isotropic Gaussians, for an odd activation.

    Features are μ₁Fx + μ⋆z, the target is linear plus noise: a Gaussian linear model whose covariance
    (μ₁²FFᵀ + μ⋆²)/k has the Marchenko–Pastur spectrum. Its ridge errors are the standard formula.
    """
    n, k, m = problem.mixture.dimension, problem.width, problem.samples
    expansion = og.hermite_expansion(problem.activation, 1.0, 1)
    linear, rest = expansion.coefficients[1] ** 2, expansion.residual**2
    link = og.hermite_expansion("tanh", 1.3, 1)
    signal, power = link.coefficients[1] ** 2, link.coefficients[1] ** 2 + link.residual**2 + 0.3**2
    ratio = n / k  # FFᵀ = (k/n) × Wishart of n... its non-zero part lives in min(n, k) dimensions
    low, high = (1 - ratio**0.5) ** 2, (1 + ratio**0.5) ** 2

    def spectral(function) -> float:
        """(1/n) Tr over the n eigenvalues of FᵀF·n/k, zeros included."""

        def integrand(angle):
            x = (low + high) / 2 + (high - low) / 2 * np.sin(angle)
            root = (high - low) / 2 * np.cos(angle)
            return function(x) * root**2 / (2 * np.pi * ratio * x)

        inside = quad(integrand, -np.pi / 2, np.pi / 2, epsabs=1e-13, epsrel=1e-11, limit=200)[0]
        return inside + max(0.0, 1 - 1 / ratio) * function(0.0)

    def degrees(tau: float) -> tuple[float, float, float, float]:
        # an eigenvalue x of FᵀF·n/k is one of M of linear·x/n + rest/k; k − n of M are rest/k alone
        def eigenvalue(x):
            return linear * x / n + rest / k

        alone = (k - n) * np.asarray([(rest / k) / (rest / k + tau), ((rest / k) / (rest / k + tau)) ** 2])
        first = n * spectral(lambda x: eigenvalue(x) / (eigenvalue(x) + tau)) + alone[0]
        second = n * spectral(lambda x: (eigenvalue(x) / (eigenvalue(x) + tau)) ** 2) + alone[1]
        explained = signal * spectral(lambda x: (linear * x / n) / (eigenvalue(x) + tau))
        kept = tau * signal * spectral(lambda x: (linear * x / n) / (eigenvalue(x) + tau) ** 2)
        return first, second, explained, kept

    tau = np.exp(
        brentq(
            lambda t: np.exp(t) * (1 - degrees(np.exp(t))[0] / m) - problem.ridge,
            np.log(problem.ridge),
            np.log(problem.ridge + 10),
            xtol=1e-14,
        )
    )
    _, second, explained, kept = degrees(tau)
    test = (power - explained - kept) / (1 - second / m)
    return test, (problem.ridge / tau) ** 2 * test


@pytest.mark.parametrize(
    ("activation", "width", "samples", "ridge"),
    [
        ("erf", 3, 2, 1e-2),
        ("erf", 1, 2, 1e-3),
        ("identity", 2, 1, 1e-1),
        ("erf", 300, 2, 1e-2),  # the kernel limit
    ],
)
def test_random_features_on_isotropic_data_are_the_classical_formula(activation, width, samples, ridge):
    n = 10**7  # costs nothing here, and leaves no finite-size difference
    problem = isotropic(n, width * n, samples * n, ridge, activation)
    found = og.predict(problem)
    test, train = classical(problem)
    assert found.test_error == pytest.approx(test, rel=2e-4)
    assert found.train_error == pytest.approx(train, rel=2e-4)
    # planted: the other half of the residual power
    assert abs(found.test_error / (1.05 * test) - 1) > 2e-4


def test_many_neurons_are_a_kernel():
    """k → ∞: linear ridge in n dimensions whose ridge grew by the rest of the kernel's diagonal."""
    n = 10**6
    errors = [
        og.predict(isotropic(n, width * n, 2 * n, 1e-2, "erf")).test_error for width in (10, 100, 1000, 10**6)
    ]
    steps = np.abs(np.diff(errors))
    assert steps[0] > 5 * steps[1] > 25 * steps[2]
    expansion = og.hermite_expansion("erf", 1.0, 1)
    link = og.hermite_expansion("tanh", 1.3, 1)
    signal, power = link.coefficients[1] ** 2, link.coefficients[1] ** 2 + link.residual**2 + 0.3**2
    eigenvalue, m = expansion.coefficients[1] ** 2 / n, 2 * n
    ridge = 1e-2 + expansion.residual**2 / m
    tau = brentq(lambda t: t - n / m * eigenvalue * t / (eigenvalue + t) - ridge, ridge, 1.0, xtol=1e-18)
    share = eigenvalue / (eigenvalue + tau)
    expected = (power - signal * (1 - (1 - share) ** 2)) / (1 - share**2 * n / m)
    assert errors[-1] == pytest.approx(expected, rel=2e-4)


def test_train_error_and_norm_make_the_objective():
    """Two roads: the objective, and its derivatives in the samples' weights and in the ridge."""
    for problem in (paper(), general(), paper(target=og.ComponentLabels([1, -1]))):
        found = og.predict(problem, estimate=False)
        parts = (found.train_error + problem.ridge * found.weight_norm) / 2
        assert found.train_objective == pytest.approx(parts, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "allowance"),
    [
        (paper(500), 0.015),
        (paper(500, target=og.ComponentLabels([1, -1]), width=250), 0.015),
        (general(500, width=400, samples=600), 0.015),
    ],
    ids=["paper", "labels", "general"],
)
def test_predictions_are_what_simulations_find(problem, allowance, seed):
    data = og.simulate(problem, 40, seed, models="network")
    found = og.predict(problem, estimate=False)
    names = ["test_error", "train_objective"] + ["misclassification"] * problem.binary
    for name in names:
        assert mean_agrees(data[name].values, getattr(found, name), allowance), name
    # planted: half of the samples
    fewer = og.predict(dataclasses.replace(problem, samples=problem.samples // 2), estimate=False)
    assert not mean_agrees(data["test_error"].values, fewer.test_error, allowance)


def test_names_of_components_and_coordinates_do_not_matter():
    problem = general(400, width=300, samples=500)
    base = og.predict(problem, estimate=False)
    parts = problem.mixture.components

    def errors(components, direction=None) -> list[float]:
        changed = dataclasses.replace(problem, mixture=og.Mixture(400, components))
        if direction is not None:
            target = dataclasses.replace(problem.target, direction=direction)
            changed = dataclasses.replace(changed, target=target)
        found = og.predict(changed, estimate=False)
        return [found.test_error, found.train_error, found.train_objective]

    expected = [base.test_error, base.train_error, base.train_objective]
    np.testing.assert_allclose(errors(parts[::-1]), expected, rtol=1e-9)
    half = dataclasses.replace(parts[0], weight=parts[0].weight / 2)
    np.testing.assert_allclose(errors((half, half, *parts[1:])), expected, rtol=1e-9)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    turned = [
        og.Component(
            c.weight,
            None if c.mean is None else turn @ c.mean,
            c.strengths,
            [turn @ np.asarray(d) for d in c.directions],
        )
        for c in parts
    ]
    moved = errors(turned, turn @ np.asarray(problem.target.direction))
    np.testing.assert_allclose(moved, expected, rtol=3e-3)  # the first resolution's own error
    # a component that never occurs changes nothing
    absent = og.Component(0.0, [9, 9, 9, 9])
    extended = og.Mixture(400, (*parts, absent))
    found = og.predict(dataclasses.replace(problem, mixture=extended), estimate=False)
    assert found.test_error == pytest.approx(base.test_error, rel=1e-10)


def test_gradients_are_finite_differences():
    """At a symmetric mixture, whose kernel has repeated eigenvalues."""
    problem = paper(400, on_spikes=True, activation="erf")
    slope = og.predict.gradient(problem)
    resolution = RESOLUTIONS[0]  # that of the gradient
    base = asymptotic.parameters(problem)

    def value(numbers) -> float:
        return float(_errors(problem, resolution, numbers).test_error)

    def difference(change) -> float:
        h = 1e-4
        return (value(change(1 + h)) - value(change(1 - h))) / (2 * h)

    for name in ("ridge", "learning_rate", "width"):
        found = difference(lambda f, name=name: base._replace(**{name: getattr(base, name) * f}))
        assert slope[name] * getattr(problem, name) == pytest.approx(found, rel=1e-4, abs=1e-9), name

    def stronger(factor):
        variances = base.mixture.variances.at[0, 0].multiply(factor)
        return base._replace(mixture=base.mixture._replace(variances=variances))

    strength = problem.mixture.components[0].strengths[0]
    assert slope["strengths"][0][0] * strength == pytest.approx(difference(stronger), rel=1e-4)
    assert not jax.config.jax_enable_x64 or jnp.ones(1).dtype == jnp.float64


@pytest.mark.parametrize("ratio", [0.01, 0.1, 0.8, 1.25, 10.0, 100.0])
@pytest.mark.parametrize("ridge", [1e-4, 1e-10])
def test_extreme_ratios_and_no_ridge_stay_finite(ratio, ridge):
    found = og.predict(paper(1000, width=round(1000 * ratio), ridge=ridge), estimate=False)
    assert 0 < found.train_error < found.test_error < 10
    if ratio > 1 and ridge < 1e-8:
        assert found.train_error < 1e-6  # interpolates
        less = og.predict(paper(1000, width=round(1000 * ratio), ridge=ridge / 100), estimate=False)
        assert less.test_error == pytest.approx(found.test_error, rel=1e-3)


def test_the_estimate_covers_what_a_higher_resolution_changes():
    problem = general(1000, width=800, samples=1200)
    found = og.predict(problem)
    assert found.resolution == RESOLUTIONS[1]
    best = _errors(problem, RESOLUTIONS[2], asymptotic.parameters(problem))
    assert abs(float(best.test_error) / found.test_error - 1) <= 2 * max(found.error_estimate, 2e-4)


def test_new_numbers_compile_nothing():
    og.predict(paper(300), estimate=False)
    compiled = asymptotic.errors._cache_size()
    og.predict(paper(500, alpha=0.2, width=77, ridge=0.3), estimate=False)
    og.predict(paper(300, target=og.SingleIndex("relu", noise=0.4), gradient_samples=20), estimate=False)
    assert asymptotic.errors._cache_size() == compiled


def test_grid_is_labelled_and_the_same():
    problem = paper(300)
    grid = og.predict.grid(problem, ridge=[1e-3, 1e-2], width=[100, 300, 900])
    assert grid.test_error.dims == ("ridge", "width")
    one = og.predict(paper(300, ridge=1e-2, width=100), estimate=False)
    assert float(grid.test_error.sel(ridge=1e-2, width=100)) == one.test_error
    made = og.predict.grid(lambda alpha: paper(300, alpha=alpha), alpha=np.linspace(0, 1, 3))
    assert made.sizes == {"alpha": 3}
    with pytest.raises(og.InputError, match='did you mean "ridge"'):
        og.predict.grid(problem, rigde=[1.0])
    with pytest.raises(og.InputError, match="ridge must be a non-empty list"):
        og.predict.grid(problem, ridge=[])
    with pytest.raises(og.InputError, match="ridge must be > 0"):
        og.predict.grid(problem, ridge=[-1.0])
    with pytest.raises(og.InputError, match=r"ridge must be a non-empty list of values, got 0\.1"):
        og.predict.grid(problem, ridge=0.1)
    with pytest.raises(og.InputError, match=r"must be an og\.Problem, or a function"):
        og.predict.grid("paper", ridge=[0.1])


def test_callables_and_several_indices():
    swish = activations.activation(lambda x: x / (1 + jnp.exp(-x)))
    named = og.predict(paper(300, activation="silu"), estimate=False)
    found = og.predict(paper(300, activation=swish), estimate=False)
    assert found.test_error == pytest.approx(named.test_error, rel=1e-6)
    # one index, written as several
    direction = np.asarray([0.1, 0.1, 0.7])
    single = paper(300, target=og.SingleIndex("square", direction))
    multiple = paper(300, target=og.MultiIndex("product", [direction, direction]))
    assert og.predict(multiple, estimate=False).test_error == pytest.approx(
        og.predict(single, estimate=False).test_error, rel=1e-5
    )


def test_what_cannot_be_predicted_is_refused():
    with pytest.raises(og.InputError, match="problem must be an og\\.Problem"):
        og.predict("paper")
    full = og.Mixture(3, [og.Component(1.0, [1.0, 0, 0])])
    tiny = og.Problem(full, target=og.SingleIndex("relu", [1, 0, 0]), width=5, samples=5, learning_rate=1.0)
    silent = paper(300, target=og.ComponentLabels([0, 0]))
    with pytest.raises(og.InputError, match="values must be not all 0"):
        og.predict(silent)
    with pytest.raises(og.InputError, match="dimension must be ≥ 5 to leave a bulk, got 3"):
        og.predict(tiny)
    many = paper(300, target=og.MultiIndex("product", np.eye(4)))
    with pytest.raises(og.InputError, match="at most 3 for a prediction, got 4"):
        og.predict(many)


def test_a_jump_is_refused_where_there_is_a_step():
    """sign's written derivative is 0 and the step does nothing; Gaussian averages would see its jump."""
    with pytest.raises(og.InputError, match=r"must not jump .* learning_rate > 0, got 'sign'"):
        og.predict(paper(300, activation="sign"))
    assert og.predict(paper(300, activation="sign", learning_rate=0.0), estimate=False).test_error > 0


def test_many_coordinates_start_finer_and_too_many_are_refused():
    many = og.Mixture.spiked(400, [[3.0] * 20] * 2, [0.5, 0.5])
    problem = og.Problem(many, width=300, samples=300, learning_rate=5.0)
    assert og.predict(problem, estimate=False).resolution == RESOLUTIONS[1]
    excessive = og.Mixture.spiked(400, [[3.0] * 150], [1.0])
    with pytest.raises(og.InputError, match="signal coordinates and spikes must be fewer"):
        og.predict(og.Problem(excessive, width=300, samples=300, learning_rate=5.0))


def test_regimes_are_named():
    assert og.predict(paper(300), estimate=False).regime == ()
    wide = og.predict(paper(300, alpha=0.0, beta=1.0), estimate=False)
    assert "spread" in wide.regime[0]
    large = og.predict(paper(300, learning_rate=700.0), estimate=False)
    assert "exceeds 2·dimension" in large.regime[0]


def test_the_command_line_predicts(capsys):
    from onegrad.cli import main

    flags = ["--dimension", "1000", "--activation", "erf"]
    assert main(["predict", *flags, "--json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    problem = og.Problem.from_json(json.dumps(document["problem"]))
    assert document["test_error"] == og.predict(problem).test_error
    assert document["error_estimate"] < 3e-3
    assert main(["predict", *flags]) == 0
    assert "prediction, " in capsys.readouterr().out
    assert main(["predict", "--ridge", "0"]) == 2
