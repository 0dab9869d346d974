"""What a network has learned, by degree, where the answer is known."""

import json
from functools import partial

import jax
import numpy as np
import pytest

import onegrad as og
from onegrad import activations
from onegrad.theory import asymptotic, step
from onegrad.theory.explain import explained
from problems import general, paper

RESOLUTION = asymptotic.RESOLUTIONS[0]


def shares(problem: og.Problem) -> tuple[np.ndarray, float]:
    """The captured power by degree at the first resolution, and E[y²]."""
    numbers = asymptotic.parameters(problem)
    activation, drawn = activations.rough(problem.function), asymptotic.points(numbers, RESOLUTION)
    found = explained(activation, problem.target.rule, RESOLUTION, numbers, drawn)
    return np.asarray(2 * found.overlap - found.prediction), float(found.label_power)


def test_shares_add_up_to_the_test_error():
    problem = general(1000, width=800, samples=1200)
    found = og.explain(problem)
    _, power = shares(problem)
    assert found.unexplained + found.variance == pytest.approx(
        og.predict(problem).test_error / power, rel=1e-9
    )
    assert 0 < found.variance < found.unexplained + found.variance < 1
    assert found.captured.values[: found.effective_degree + 1].sum() > 0.9 * (1 - found.unexplained)


def test_the_mean_prediction_is_the_one_at_the_positions():
    """Two roads: a combination of neurons, by degree; and the equilibrium's own mean, by quadrature."""
    problem = general(300, width=250, samples=400)
    captured, power = shares(problem)
    numbers = asymptotic.parameters(problem)
    drawn = asymptotic.points(numbers, RESOLUTION)
    activation, rule = activations.rough(problem.function), problem.target.rule

    @jax.jit
    def mean():
        neurons = step.take(activation, rule, numbers, drawn.neurons)
        return asymptotic.trained(activation, rule, RESOLUTION, numbers, neurons, drawn.positions)

    outcome, labels, features = mean()
    missed = float(features.weights @ (labels.square - 2 * labels.mean * outcome.mean + outcome.mean**2))
    assert power - captured.sum() == pytest.approx(missed, rel=0.05)
    # planted: the overlap counted once
    assert abs((power - captured.sum() / 2) / missed - 1) > 0.05


def test_a_linear_network_learns_degree_one_only():
    captured, power = shares(paper(300, activation="identity", on_spikes=True))
    assert captured[1] > 0.3 * power
    np.testing.assert_allclose(captured[2:], 0, atol=1e-12)


def test_higher_degrees_are_learned_as_the_strength_grows():
    make = partial(paper, 1000, alpha=0.0, on_spikes=True)
    second = [captured[2] / power for captured, power in (shares(make(beta=b)) for b in (0.05, 0.5, 0.95))]
    assert second[0] < 0.01 < second[1] < 0.1 < second[2]


def test_an_even_target_is_learned_in_even_degrees():
    direction = np.full(2, 0.5**0.5) / 4
    captured, power = shares(paper(300, alpha=0.0, beta=0.9, target=og.SingleIndex("square", direction)))
    assert captured[2] > 0.5 * power
    assert np.all(np.abs(captured[1:8:2]) < 1e-2 * captured[2])


def test_the_command_line_explains(capsys):
    from onegrad.cli import main

    flags = ["--dimension", "1000", "--activation", "erf"]
    assert main(["explain", *flags, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["degree"] == paper(1000).degree
    assert main(["explain", *flags]) == 0
    assert "effective degree" in capsys.readouterr().out
    assert main(["explain", "--width", "0"]) == 2
