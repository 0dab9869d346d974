"""The memory estimate against the compiler's own count, and the refusal."""

import warnings
from dataclasses import replace

import pytest

import onegrad as og
from onegrad import memory, numerics, trial
from problems import paper


def hinge(x):
    return abs(x - 0.3)


def recipe(
    n=200,
    k=200,
    m=200,
    models=("network", "hermite"),
    population=False,
    dtype="float64",
    activation="relu",
):
    problem = paper(n, width=k, samples=m, activation=activation)
    return problem, trial.Recipe.of(problem, models, 5 * m, population, dtype)


@pytest.mark.parametrize(
    "settings",
    [
        {"n": 1000, "k": 1000, "m": 1000},
        {"n": 300, "k": 3000, "m": 300},
        {"n": 300, "k": 300, "m": 3000, "dtype": "float32"},
        {"n": 600, "k": 600, "m": 600, "models": ("network",), "population": True},
        {"n": 600, "k": 600, "m": 600, "models": ("network", "hermite", "conditional")},
        {"n": 3000, "k": 100, "m": 100, "models": ("network",)},
        {"n": 300, "k": 3000, "m": 300, "population": True, "activation": "tanh"},
        {"n": 600, "k": 60, "m": 60, "models": ("conditional",), "activation": "tanh"},
        {"n": 100, "k": 3000, "m": 100, "population": True, "activation": hinge},
    ],
    ids=lambda settings: "-".join(str(getattr(value, "__name__", value)) for value in settings.values()),
)
def test_estimate_covers_what_the_compiler_allocates(settings):
    problem, chosen = recipe(**settings)
    key = numerics.root_key(0)
    with warnings.catch_warnings():  # the hinge's kink has no name: slow convergence is its own
        warnings.simplefilter("ignore", og.AccuracyWarning)
        numbers = trial.Numbers.of(problem, 3)
    compiled = trial.run.lower(chosen, numbers, key, key).compile()
    allocated = compiled.memory_analysis().temp_size_in_bytes
    assert allocated <= memory.estimate(chosen) <= 3 * allocated


def test_estimate_does_not_grow_with_the_test_set():
    _, small = recipe(m=2000)
    large = replace(small, test_samples=100 * 2000)
    assert memory.estimate(large) == memory.estimate(small)


def test_a_trial_that_does_not_fit_is_refused_with_what_would():
    _, chosen = recipe(n=1000, k=100_000, m=1000)
    with pytest.raises(
        og.RefusedError, match=r"needs about .* GB.* largest width that fits is (\d+)"
    ) as caught:
        memory.require(chosen, free=2 * 10**9)
    width = int(str(caught.value).rsplit(" ", 1)[1])
    memory.require(replace(chosen, width=width), free=2 * 10**9)
    with pytest.raises(og.RefusedError):
        memory.require(replace(chosen, width=width + 1), free=2 * 10**9)
    with pytest.raises(og.RefusedError, match="no width fits"):
        memory.require(chosen, free=10**6)


def test_simulate_refuses_before_work_starts():
    with pytest.raises(og.RefusedError, match="largest width that fits"):
        og.simulate(paper(2000, width=10**7), 1)
