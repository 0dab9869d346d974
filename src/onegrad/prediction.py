"""Predict: the errors of a problem from theory, with an estimate of what their computation leaves out."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from onegrad import _checks, activations, numerics
from onegrad.errors import InputError, NumericalError
from onegrad.features.neural import Neural
from onegrad.labels import MAX_INDICES
from onegrad.mixture import Mixture
from onegrad.moments import feature_moments
from onegrad.problem import Problem
from onegrad.results import ERRORS
from onegrad.simulation import train
from onegrad.target import ComponentLabels, MultiIndex, target_numbers
from onegrad.theory import asymptotic
from onegrad.theory.asymptotic import Asymptotic, Parameters, Resolution
from onegrad.theory.equivalent import equivalent

SETTLED = 1e-3  # relative change at which raising the resolution stops
LOST = 0.2  # relative change that is no answer at all
DIGITS = 1e-3  # relative disagreement of the two roads to the objective that is not believed
RESIDUAL_TOLERANCE = 1e-5  # of the equations; its square is what the answer is off by


@dataclass(frozen=True)
class Prediction:
    """Predicted errors (SPEC §5), plain squared errors without ½.

    They are asymptotic predictions, validated by simulation: `error_estimate` is the largest relative change
    of any of them when the resolution was last raised, and covers the computation only; `regime` says what is
    known to make the theory itself less accurate, and is empty where nothing is. `degree` is the paper's, of
    the equivalent polynomial. `weight_norm` is E‖ŵ‖². `sem` is the standard error of each error over drawn
    first layers (method="equivalent", two draws or more).
    """

    problem: Problem
    train_error: float
    test_error: float
    train_objective: float
    misclassification: float | None
    weight_norm: float
    degree: int
    error_estimate: float | None
    status: str
    regime: tuple[str, ...]
    resolution: Resolution | None = None
    sem: dict[str, float] | None = None

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name):.5g}" for name in ERRORS if getattr(self, name) is not None]
        if self.error_estimate is not None:
            shown.append(f"error_estimate={self.error_estimate:.1g}")
        return f"Prediction({', '.join(shown)}, degree={self.degree}, status={self.status!r})"


class Predict:
    """`predict(problem)`, `predict.grid(...)` and `predict.gradient(...)`: the theory's three verbs."""

    @numerics.scoped
    def __call__(
        self,
        problem: Problem,
        *,
        method: str = "asymptotic",
        estimate: bool = True,
        seed: int = 0,
        draws: int = 4,
    ) -> Prediction:
        """The errors of networks trained on this problem, from the problem alone.

        The resolution is raised until no answer moves by more than 0.1 %. `estimate=False` takes the first
        resolution and no estimate: milliseconds, for many predictions of one kind.

        method="equivalent" takes the gradient step for `draws` first layers at the problem's own size and
        averages over second-layer training sets in theory (THEORY A): slower, with a standard error, and no
        misclassification; it does not rest on the limit of many neurons.
        """
        _checks.choice("method", method, ("asymptotic", "equivalent"))
        if method == "equivalent":
            _check_mixture(problem)
            return _equivalent(problem, seed, _checks.integer("draws", draws))
        check(problem)
        if not estimate:
            resolution = _resolutions(problem)[0]
            return _prediction(problem, _evaluate(problem, resolution), None, "not estimated", resolution)
        found, change, resolution = settle(problem)
        status = "settled"
        if change > SETTLED:
            status = f"unsettled: the last raise of the resolution moved an answer by {change:.1%}"
        return _prediction(problem, found, change, status, resolution)

    @numerics.scoped
    def grid(
        self, problem: Problem | Callable[..., Problem], *, estimate: bool = False, **axes: Sequence[Any]
    ) -> xr.Dataset:
        """Predictions over the product of axes, labelled by them.

        With a problem, axes are its fields: `predict.grid(problem, ridge=[…], width=[…])`. With a function,
        its arguments: `predict.grid(lambda alpha: …, alpha=[…])`. New numbers compile nothing; new numbers of
        components or coordinates do. `error_estimate` is among the variables if asked for.
        """
        if not isinstance(problem, Problem) and not callable(problem):
            raise _checks.refuse("problem", "an og.Problem, or a function that makes one", problem)
        if not axes:
            raise InputError("axes must be one or more lists of values, got none")
        listed = {name: _axis(name, values) for name, values in axes.items()}
        make = _field_setter(problem, listed) if isinstance(problem, Problem) else problem
        rows = [
            self(make(**dict(zip(listed, point, strict=True))), estimate=estimate)
            for point in product(*listed.values())
        ]
        if len({row.misclassification is None for row in rows}) > 1:
            raise InputError("axes must not mix ±1 labels with others: only the former are misclassified")
        shape = [len(values) for values in listed.values()]
        shown = [name for name in (*ERRORS, "weight_norm") if getattr(rows[0], name) is not None]
        if estimate:
            shown.append("error_estimate")
        variables = {
            name: (tuple(listed), np.reshape([getattr(row, name) for row in rows], shape)) for name in shown
        }
        return xr.Dataset(variables, listed)

    @numerics.scoped
    def gradient(self, problem: Problem, error: str = "test_error") -> dict[str, Any]:
        """Derivatives of a predicted error with respect to the problem's numbers.

        A dict of `ridge`, `learning_rate`, `width`, `samples` (as real numbers), `noise`, `strengths` and
        `means` (one list a component of positive weight) and `weights`. The target's direction is held as it
        is, also where it was scaled by the mixture, and so are the other numbers; the sum of the weights is
        not held at 1. Exact derivatives of the value at the first resolution: what that leaves out is a share
        of the value, so a derivative that is next to nothing is known to few digits.
        """
        check(problem)
        _checks.choice("error", error, tuple(name for name in ERRORS if _measures(problem, name)))
        resolution = _resolutions(problem)[0]
        numbers = asymptotic.parameters(problem)

        def value(numbers: Parameters) -> jax.Array:
            return getattr(_errors(problem, resolution, numbers), error)

        slope = jax.device_get(jax.grad(value)(numbers))
        mixture = problem.mixture
        assert isinstance(mixture, Mixture)
        kept = asymptotic.present(mixture)
        found = {
            "ridge": float(slope.ridge),
            "learning_rate": float(slope.learning_rate),
            "width": float(slope.width),
            "samples": float(slope.samples + (slope.step_samples if problem.gradient_samples is None else 0)),
            "noise": float(slope.target.noise),
            "strengths": [
                slope.mixture.variances[c, : len(k.strengths)].tolist() for c, k in enumerate(kept)
            ],
            "means": slope.mixture.means.tolist(),
            "weights": slope.mixture.weights.tolist(),
        }
        if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(found)):
            raise NumericalError("the gradient is not finite here; move away from a number that is 0 or tied")
        return found


predict = Predict()


def _axis(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise _checks.refuse(name, "a non-empty list of values", values)
    listed = list(values)
    if not listed:
        raise _checks.refuse(name, "a non-empty list of values", values)
    return listed


def check(problem: Problem) -> None:
    """Refuse what the asymptotic theory does not speak of."""
    _check_mixture(problem)
    if problem.mixture.dimension < problem.signal_dimension + 2:
        raise InputError(
            f"dimension must be ≥ {problem.signal_dimension + 2} to leave a bulk, "
            f"got {problem.mixture.dimension}"
        )
    if problem.function.jumps and problem.learning_rate > 0:
        raise InputError(
            f"activation must not jump for a prediction with learning_rate > 0, got "
            f"{problem.function.name!r}: the step knows nothing of the jump, the theory's Gaussian averages "
            "do; use learning_rate = 0"
        )
    if isinstance(problem.target, ComponentLabels) and not any(problem.target.values):
        raise _checks.refuse("values", "not all 0 for a prediction", problem.target.values)


def _check_mixture(problem: Problem) -> None:
    if not isinstance(problem, Problem):
        raise _checks.refuse("problem", "an og.Problem", problem)
    if not isinstance(problem.mixture, Mixture):
        raise InputError(
            f"mixture must be a Mixture for a prediction, got a {type(problem.mixture).__name__}; simulate it"
        )
    if isinstance(problem.target, MultiIndex) and len(problem.target.directions) > MAX_INDICES:
        raise _checks.refuse(
            "directions", f"at most {MAX_INDICES} for a prediction", len(problem.target.directions)
        )


def _measures(problem: Problem, error: str) -> bool:
    return error != "misclassification" or problem.binary


def _errors(problem: Problem, resolution: Resolution, numbers: Parameters) -> Asymptotic:
    drawn = asymptotic.points(numbers, resolution)
    activation = activations.rough(problem.function)
    return asymptotic.errors(activation, problem.target.rule, problem.binary, resolution, numbers, drawn)


def _evaluate(problem: Problem, resolution: Resolution) -> Asymptotic:
    """Refuses what is not a solution."""
    found = jax.device_get(_errors(problem, resolution, asymptotic.parameters(problem)))
    values = [value for value in found if value is not None]
    if not all(np.isfinite(value) for value in values) or found.residual > RESIDUAL_TOLERANCE:
        raise NumericalError(
            f"the theory's equations were not solved (residual {found.residual:.1e}, allowed "
            f"{RESIDUAL_TOLERANCE:.0e}); increase ridge, or lower strengths or learning_rate"
        )
    # two roads to one number: the objective, and its derivatives
    parts = (found.train_error + problem.ridge * found.weight_norm) / 2
    if min(found.test_error, found.train_error) < 0 or abs(parts / found.train_objective - 1) > DIGITS:
        raise NumericalError(
            f"the theory's equations lost their digits (test_error {found.test_error:.2e}); increase ridge"
        )
    return found


def _resolutions(problem: Problem) -> tuple[Resolution, ...]:
    """Those with points enough for the problem's coordinates, two at least."""
    numbers = asymptotic.parameters(problem)
    fine = tuple(r for r in asymptotic.RESOLUTIONS if asymptotic.suffices(numbers, r))
    if len(fine) < 2:
        raise InputError(
            f"signal coordinates and spikes must be fewer for a prediction, got {problem.signal_dimension} "
            f"coordinates and up to {numbers.mixture.variances.shape[1]} spikes a component; simulate"
        )
    return fine


class Settled(NamedTuple):
    """Errors, their largest relative change at the last raise of the resolution, and that resolution."""

    found: Asymptotic
    change: float
    resolution: Resolution


def settle(problem: Problem) -> Settled:
    """Raise the resolution until it moves no answer by more than SETTLED, or there is none higher."""
    first, *finer = _resolutions(problem)
    before, change = _evaluate(problem, first), math.inf
    for resolution in finer:
        found = _evaluate(problem, resolution)
        change = _change(found, before)
        if change <= SETTLED:
            return Settled(found, change, resolution)
        before = found
    if change > LOST:
        raise NumericalError(
            f"the prediction did not settle: the highest resolution still moved it by {change:.0%}; "
            "simulate, or lower strengths or learning_rate"
        )
    return Settled(before, change, asymptotic.RESOLUTIONS[-1])


def _change(found: Asymptotic, before: Asymptotic) -> float:
    """The largest relative change of an error; of misclassification relative to 1/10 at least."""
    moved = [
        abs(getattr(found, name) - getattr(before, name)) / abs(getattr(found, name))
        for name in ("train_error", "test_error", "train_objective")
    ]
    if found.misclassification is not None and before.misclassification is not None:
        difference = found.misclassification - before.misclassification
        moved.append(abs(difference) / max(found.misclassification, 0.1))
    return float(max(moved))


def _prediction(
    problem: Problem, found: Asymptotic, change: float | None, status: str, resolution: Resolution
) -> Prediction:
    missed = found.misclassification
    return Prediction(
        problem=problem,
        train_error=float(found.train_error),
        test_error=float(found.test_error),
        train_objective=float(found.train_objective),
        misclassification=None if missed is None else float(missed),
        weight_norm=float(found.weight_norm),
        degree=problem.degree,
        error_estimate=change,
        status=status,
        regime=tuple(_regimes(problem)),
        resolution=resolution,
    )


def _equivalent(problem: Problem, seed: int, draws: int) -> Prediction:
    """The mean over first layers that took their step at the problem's own size."""
    assert isinstance(problem.mixture, Mixture)
    mixture = problem.mixture.numbers(problem.signal_dimension)
    target = target_numbers(problem.target, problem.mixture)
    rule, features = problem.target.rule, Neural(problem.function)
    rows = []
    for t in range(draws):
        key = jax.random.fold_in(numerics.root_key(seed), t)
        weights = jnp.asarray(train(problem, key).weights)
        moments = jax.device_get(feature_moments(features, weights, mixture, rule, target))
        rows.append(equivalent(*moments, samples=problem.samples, ridge=problem.ridge))
    table = np.asarray(rows)
    mean = dict(zip(rows[0]._fields, table.mean(axis=0).tolist(), strict=True))
    sem = None
    if draws > 1:
        spread = table.std(axis=0, ddof=1) / draws**0.5
        sem = dict(zip(rows[0]._fields, spread.tolist(), strict=True))
    return Prediction(
        problem=problem,
        train_error=mean["train_error"],
        test_error=mean["test_error"],
        train_objective=mean["train_objective"],
        misclassification=None,
        weight_norm=mean["weight_norm"],
        degree=problem.degree,
        error_estimate=None,
        status=f"mean of {draws} drawn first layer{'s' * (draws > 1)}",
        regime=(),
        sem=sem,
    )


def _regimes(problem: Problem) -> Iterator[str]:
    """What is known to make the theory itself less accurate (docs/theory.md has the numbers)."""
    mixture = problem.mixture
    assert isinstance(mixture, Mixture)
    n, d = mixture.dimension, problem.signal_dimension
    if mixture.spread >= n / 2:
        yield f"spread {mixture.spread:.3g} is of the order of dimension: expect a few percent"
    if problem.learning_rate > 2 * n:
        yield f"learning_rate {problem.learning_rate:.3g} exceeds 2·dimension: expect several percent"
    elif problem.learning_rate >= n / 2:
        yield f"learning_rate {problem.learning_rate:.3g} is of the order of dimension: expect up to 4 %"
    smallest = min(problem.width, problem.samples)
    if smallest < 10 * d:
        yield f"width or samples ({smallest}) below 10 per signal coordinate ({d}): finite-size effects"
    if isinstance(problem.target, ComponentLabels) and problem.learning_rate >= n / 2:
        weights = [component.weight for component in mixture.components]
        if abs(np.dot(weights, problem.target.values)) > 0.3 * np.sqrt(
            np.dot(weights, np.square(problem.target.values))
        ):
            yield "labels are unbalanced at a large step: expect a few percent"


def _field_setter(problem: Problem, axes: dict[str, Any]) -> Callable[..., Problem]:
    numeric = ("width", "samples", "gradient_samples", "learning_rate", "ridge")
    for name in axes:
        if name not in numeric:
            hint = _checks.did_you_mean(name, numeric) or "use a function for anything else"
            raise InputError(f"axes must be fields among {', '.join(numeric)}, got {name!r}; {hint}")

    def make(**values: Any) -> Problem:
        plain = {name: value.item() if hasattr(value, "item") else value for name, value in values.items()}
        return replace(problem, **plain)

    return make
