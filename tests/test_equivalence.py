"""The paper's claim: the polynomial of degree ℓ − 1 and the conditional Gaussian model are the network.

The bound is 3 paired standard errors + 1 %. The 1 % is worth two to four further standard errors, so the
false-alarm level of a comparison is below 1e-4.
"""

import numpy as np
import pytest

import onegrad as og
from agreement import within_standard_errors
from problems import paper

pytestmark = pytest.mark.slow


def errors(data, model: str) -> np.ndarray:
    return data.test_error.sel(model=model).values


@pytest.mark.parametrize(("activation", "beta"), [("tanh", 0.4), ("relu", 0.74)])
def test_three_models_one_error(activation, beta, seed):
    data = og.simulate(paper(500, beta=beta, activation=activation), 30, seed)
    for first, second in (("hermite", "network"), ("conditional", "network"), ("conditional", "hermite")):
        assert within_standard_errors(errors(data, first), errors(data, second), 3, 0.01)
    # planted: an error of 15 %
    assert not within_standard_errors(1.15 * errors(data, "hermite"), errors(data, "network"), 3, 0.01)


def test_the_wrong_degree_is_rejected_where_it_matters(seed):
    """β = 0.74, α = 0, ξ on the spikes: degree 3 is right, degree 1 is off by a factor."""
    problem = paper(500, alpha=0.0, beta=0.74, on_spikes=True)
    assert problem.degree == 3
    right = og.simulate(problem, 20, seed, models=("network", "hermite"))
    wrong = og.simulate(problem, 20, seed, models=("network", "hermite"), degree=1)
    assert within_standard_errors(errors(right, "hermite"), errors(right, "network"), 3, 0.01)
    assert not within_standard_errors(errors(wrong, "hermite"), errors(wrong, "network"), 3, 0.01)
    assert errors(wrong, "hermite").mean() > 2 * errors(wrong, "network").mean()


def test_at_full_strength_only_the_conditional_model_holds(seed):
    """β = 1, α = 0, relu: conditional within a few percent, the degree-4 polynomial far off."""
    problem = paper(600, alpha=0.0, beta=1.0, on_spikes=True)
    data = og.simulate(problem, 20, seed)
    assert problem.degree == 4
    assert within_standard_errors(errors(data, "conditional"), errors(data, "network"), 3, 0.04)
    assert errors(data, "hermite").mean() > 1.25 * errors(data, "network").mean()
    assert not within_standard_errors(errors(data, "hermite"), errors(data, "network"), 3, 0.04)
