"""What a network has learned, by degree, where the answer is known."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import onegrad as og
from onegrad import activations
from onegrad.theory import asymptotic, step
from problems import general, paper


def test_shares_add_up_to_the_test_error():
    for problem in (paper(300), general(300, width=250, samples=400)):
        found = og.explain(problem)
        numbers = asymptotic.parameters(problem)
        power = float(asymptotic.label_power(problem.target.rule, numbers))
        predicted = og.predict(problem).test_error
        assert found.unexplained + found.variance == pytest.approx(predicted / power, rel=1e-9)
        assert 0 < found.variance < found.unexplained + found.variance < 1
        assert found.captured.values[: found.effective_degree + 1].sum() > 0.9 * (1 - found.unexplained)


def test_the_mean_prediction_is_the_one_at_the_positions():
    """Two roads: a combination of neurons, by degree; and the equilibrium's own mean, by quadrature."""
    problem = general(300, width=250, samples=400)
    found = og.explain(problem)
    numbers = asymptotic.parameters(problem)
    resolution = asymptotic.RESOLUTIONS[2]
    drawn = asymptotic.points(numbers, resolution)
    activation, rule = activations.rough(problem.function), problem.target.rule
    neurons = step.take(activation, rule, numbers, drawn.neurons)
    outcome, labels, features = asymptotic.trained(
        activation, rule, resolution, numbers, neurons, drawn.positions
    )
    missed = float(features.weights @ (labels.square - 2 * labels.mean * outcome.mean + outcome.mean**2))
    assert found.unexplained * float(labels.power) == pytest.approx(missed, rel=0.03)


def test_a_linear_network_learns_degree_one_only():
    found = og.explain(paper(300, activation="identity", on_spikes=True))
    assert found.captured.values[1] > 0.3
    np.testing.assert_allclose(found.captured.values[2:], 0, atol=1e-12)


def test_the_degree_grows_with_the_strength():
    degrees = [
        og.explain(paper(1000, alpha=0.0, beta=beta, on_spikes=True)).effective_degree
        for beta in (0.05, 0.5, 0.95)
    ]
    assert degrees[0] < degrees[2]
    assert degrees[0] <= degrees[1] <= degrees[2]


def test_an_even_target_is_learned_in_even_degrees():
    direction = np.full(2, 0.5**0.5) / 4
    problem = paper(300, alpha=0.0, beta=0.9, target=og.SingleIndex("square", direction))
    shares = og.explain(problem).captured.values
    assert shares[2] > 0.05
    assert np.all(np.abs(shares[1:8:2]) < 1e-3 * shares[2])
    assert jnp.ones(1).dtype == jnp.float64


def test_the_command_line_explains(capsys):
    from onegrad.cli import main

    assert main(["explain", "--dimension", "300", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["degree"] == paper(300).degree
    assert main(["explain", "--dimension", "300"]) == 0
    assert "effective degree" in capsys.readouterr().out
    assert main(["explain", "--width", "0"]) == 2
