"""Explain: what the trained network has learned of the label, by polynomial degree."""

import json
from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr

from onegrad import activations, numerics
from onegrad.errors import NumericalError
from onegrad.prediction import check, settle
from onegrad.problem import Problem
from onegrad.theory import asymptotic
from onegrad.theory.explain import explained


@dataclass(frozen=True)
class Explanation:
    """How much of the label's mean square the network explains by functions of each degree.

    `captured` (degree) is 2⟨y_p, m_p⟩ − ⟨m_p, m_p⟩ over E[y²], m the mean prediction of trained networks.
    Its entries sum to 1 − `unexplained`, which the mean prediction misses (label noise included); `variance`
    is what a single network's deviation from the mean adds to the test error. `effective_degree` is the
    lowest degree up to which 99 % of the captured share lies; `degree` the paper's ℓ − 1 from β.
    """

    problem: Problem
    captured: xr.DataArray
    unexplained: float
    variance: float
    effective_degree: int
    degree: int

    def to_json(self) -> str:
        whole = {
            "problem": self.problem.to_dict(),
            "captured": self.captured.values.tolist(),
            "unexplained": self.unexplained,
            "variance": self.variance,
            "effective_degree": self.effective_degree,
            "degree": self.degree,
        }
        return json.dumps(whole, indent=2, allow_nan=False)


SHARE = 0.99  # of what is captured, that the effective degree must reach


@numerics.scoped
def explain(problem: Problem) -> Explanation:
    """Split what a trained network knows of its labels by polynomial degree, from theory."""
    check(problem)
    resolution = settle(problem).resolution
    numbers = asymptotic.parameters(problem)
    found = jax.device_get(
        explained(
            activations.rough(problem.function),
            problem.target.rule,
            resolution,
            numbers,
            asymptotic.points(numbers, resolution),
        )
    )
    captured = (2 * found.overlap - found.prediction) / found.label_power
    if not np.all(np.isfinite(captured)):
        raise NumericalError("the explanation is not finite; increase ridge or lower strengths")
    unexplained = 1 - float(captured.sum())
    variance = float(found.test_error / found.label_power) - unexplained
    reached = np.cumsum(np.maximum(captured, 0))
    effective = int(np.searchsorted(reached, SHARE * reached[-1]))
    array = xr.DataArray(captured, {"degree": np.arange(captured.size)}, name="captured")
    return Explanation(problem, array, unexplained, variance, effective, problem.degree)
