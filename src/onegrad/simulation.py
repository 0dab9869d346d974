"""Monte Carlo: the errors of the network, and of the models it is equivalent to, over many trials."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from onegrad import __version__, _checks, features, memory, network, numerics, trial
from onegrad.errors import AccuracyWarning, InputError, NumericalError
from onegrad.labels import MAX_INDICES, MultiIndexRule
from onegrad.mixture import Mixture
from onegrad.problem import Problem
from onegrad.progress import bar
from onegrad.results import ERRORS
from onegrad.target import target_numbers

EVALUATIONS = ("fresh", "population")
REDRAWN = {
    "all": "both training sets, the test set, F and w",
    "weights": "F, w and the models' own noise; all trials share their data",
}
WEIGHTS, DATA = range(2)  # the two streams of a point

# Largest relative gradient left by a ridge solve that is still believed.
RESIDUAL_TOLERANCE = {"float64": 1e-8, "float32": 1e-3}
TRUNCATION_TOLERANCE = 1e-3  # of the test error, by the moments' series

Progress = bool | Callable[[int, int], None]


@numerics.scoped
def simulate(
    problem: Problem,
    trials: int | range = 20,
    seed: int = 0,
    *,
    models: Sequence[str] | str | None = None,
    degree: int | None = None,
    test_samples: int | None = None,
    redraw: str = "all",
    evaluation: str = "fresh",
    common_random_numbers: bool = False,
    dtype: str = "float64",
    device: str | None = None,
    progress: Progress = False,
) -> xr.Dataset:
    """Errors over (model, trial), with the problem and the settings as attributes.

    The models of a trial share data, F and w, so that their differences are paired. Trial t depends on
    (problem, seed, t) alone: not on how many others run, nor in which order; a range of trials may be given.

    models: any of "network", "hermite", "conditional"; None is all that the evaluation offers.
    degree: of the Hermite model; None is the published one, from β.
    test_samples: None is 5·samples.
    redraw: "all" draws data, F and w anew in each trial, "weights" only F and w.
    evaluation: "fresh" measures the test error on fresh samples; "population" computes it exactly
        from moments (Gaussian mixtures, network and hermite; no misclassification), with the same mean
        and less noise.
    common_random_numbers: problems get independent streams unless this is set; then all see the same
        normals, and differences between nearby problems are less noisy.
    progress: True draws a bar on stderr; a function is called with (done, total).
    """
    plan = _plan(problem, models, test_samples, redraw, evaluation, dtype, device)
    which, chosen_degree = _trials(trials), _degree(problem, degree, plan.recipe.models)
    seed = _checks.integer("seed", seed, at_least=0)
    with numerics.scope(plan.device):
        numbers = trial.Numbers.of(problem, chosen_degree)
        point = stream(problem, seed, common_random_numbers)
        measured = []
        for t in _tracked(which, progress):
            weight_key, data_key = keys(point, t, redraw)
            errors = trial.run(plan.recipe, numbers, weight_key, data_key)
            measured.append(_believed(jax.device_get(errors), t, dtype))
    attributes = {
        "problem": _written(problem),
        "seed": seed,
        "redraw": redraw,
        "redrawn": REDRAWN[redraw],
        "evaluation": evaluation,
        "test_samples": 0 if plan.recipe.population else plan.recipe.test_samples,
        "common_random_numbers": int(common_random_numbers),
        "dtype": dtype,
        "device": describe(plan.device),
        "onegrad_version": __version__,
        "jax_version": jax.__version__,
        "numpy_version": np.__version__,
    }
    if chosen_degree is not None:
        attributes["degree"] = chosen_degree
    return _labelled(measured, which, plan.recipe.models, attributes)


@dataclass(frozen=True)
class TrainedNetwork:
    """One network after its step: ŷ(x) = readoutᵀσ(weights x)/√k. Arrays are NumPy's, float64.

    `initial_weights` and `second_layer` are F and w before training, `gradient` is G, `weights` F̂ = F + ηG,
    `readout` ŵ.
    """

    problem: Problem
    initial_weights: Float[np.ndarray, "width dimension"]
    second_layer: Float[np.ndarray, "width"]
    gradient: Float[np.ndarray, "width dimension"]
    weights: Float[np.ndarray, "width dimension"]
    readout: Float[np.ndarray, "width"]

    @numerics.scoped
    def predict(self, x: Float[Any, "rows dimension"]) -> Float[np.ndarray, "rows"]:
        """ŷ of these inputs."""
        x = np.asarray(x, np.float64)
        dimension = self.problem.mixture.dimension
        if x.ndim != 2 or x.shape[1] != dimension:
            raise InputError(f"x must have shape (rows, {dimension}), got {x.shape}")
        function = self.problem.function
        return np.asarray(network.forward(function, *map(jnp.asarray, (self.weights, self.readout, x))))


@numerics.scoped
def train(problem: Problem, key: int | Array = 0, *, device: str | None = None) -> TrainedNetwork:
    """One trained network: the one that trial 0 of `simulate(problem, seed=key)` measures."""
    plan = _plan(problem, "network", None, "all", "fresh", "float64", device)
    with numerics.scope(plan.device):
        numbers = trial.Numbers.of(problem, None)
        weight_key, data_key = keys(stream(problem, key), 0, "all")
        step, solution = jax.device_get(trial.train(plan.recipe, numbers, weight_key, data_key))
    if not np.isfinite(solution.residual) or solution.residual > RESIDUAL_TOLERANCE["float64"]:
        raise NumericalError(_advice("the network's ridge solve", solution.residual, "float64"))
    return TrainedNetwork(problem, step.initial, step.second, step.gradient, step.weights, solution.weights)


def stream(problem: Problem, seed: int | Array, common_random_numbers: bool = False) -> Array:
    """The random stream of a problem: points of a grid are independent, or share one if asked for."""
    root = numerics.root_key(seed)
    return root if common_random_numbers else jax.random.fold_in(root, problem.stream)


def keys(point: Array, t: int, redraw: str) -> tuple[Array, Array]:
    """Keys of the weights and of the data of trial t. Shared data are those of trial 0."""
    weights = jax.random.fold_in(jax.random.fold_in(point, WEIGHTS), t)
    data = jax.random.fold_in(jax.random.fold_in(point, DATA), t if redraw == "all" else 0)
    return weights, data


def describe(device: jax.Device) -> str:
    """What a run says it ran on."""
    return f"{device.platform}:{device.id} ({device.device_kind})"


@dataclass(frozen=True)
class _Plan:
    recipe: trial.Recipe
    device: jax.Device


def _plan(
    problem: Problem,
    models: Sequence[str] | str | None,
    test_samples: int | None,
    redraw: str,
    evaluation: str,
    dtype: str,
    device: str | None,
) -> _Plan:
    """Everything that can be refused is refused here, before work starts."""
    if not isinstance(problem, Problem):
        raise _checks.refuse("problem", "an og.Problem", problem)
    _checks.choice("redraw", redraw, tuple(REDRAWN))
    _checks.choice("evaluation", evaluation, EVALUATIONS)
    _checks.choice("dtype", dtype, numerics.DTYPES)
    population = evaluation == "population"
    if test_samples is None:
        test_samples = 5 * problem.samples
    test_samples = _checks.integer("test_samples", test_samples)
    chosen = _models(problem, models, population)
    found = numerics.find_device(device)
    recipe = trial.Recipe.of(problem, chosen, test_samples, population, dtype)
    memory.require(recipe, memory.available(found))
    return _Plan(recipe, found)


def _models(problem: Problem, models: Sequence[str] | str | None, population: bool) -> tuple[str, ...]:
    mixture = isinstance(problem.mixture, Mixture)
    if population and not mixture:
        raise _checks.refuse("evaluation", '"fresh" for inputs that are not a Mixture', "population")
    if population and isinstance(problem.target.rule, MultiIndexRule):
        _check_averages(problem)
    offered = [
        model
        for model in features.MODELS
        if (model in features.POPULATION_MODELS or not population)
        and (mixture or model not in features.MIXTURE_MODELS)
        and (model != "conditional" or problem.mixture.dimension > problem.signal_dimension + 1)
    ]
    if models is None:
        return tuple(offered)
    chosen = (models,) if isinstance(models, str) else tuple(models)
    if not chosen or len(set(chosen)) != len(chosen):
        raise _checks.refuse("models", "one or more different models", models)
    for model in chosen:
        _checks.choice("models", model, features.MODELS)
        if model not in offered:
            why = (
                'evaluation="population"'
                if population
                else "a mixture that leaves no bulk dimensions"
                if mixture
                else "inputs that are not a Mixture"
            )
            raise InputError(f"models must be among {', '.join(offered)} with {why}, got {model!r}")
    return chosen


def _check_averages(problem: Problem) -> None:
    count = problem.target.directions_in(problem.mixture).shape[0]
    if count > MAX_INDICES:
        raise _checks.refuse(
            "evaluation",
            f'"fresh" for a target of more than {MAX_INDICES} indices',
            "population",
        )
    mixture = problem.mixture.numbers(problem.signal_dimension)  # pyright: ignore
    rule = problem.target.rule
    assert isinstance(rule, MultiIndexRule)
    rule.warn_if_rough(target_numbers(problem.target, problem.mixture), mixture)


def _trials(trials: int | range) -> range:
    if isinstance(trials, range):
        if len(trials) == 0 or min(trials) < 0:
            raise _checks.refuse("trials", "a count or a non-empty range from 0", trials)
        return trials
    return range(_checks.integer("trials", trials))


def _degree(problem: Problem, degree: int | None, models: tuple[str, ...]) -> int | None:
    if degree is not None:
        _checks.integer("degree", degree)
    if "hermite" not in models:
        return None
    return problem.degree if degree is None else degree


def _tracked(trials: range, report: Progress):
    if report is True:
        yield from bar(trials, "trials")
        return
    for done, t in enumerate(trials, 1):
        yield t
        if callable(report):
            report(done, len(trials))


def _believed(errors: dict[str, trial.Errors], t: int, dtype: str) -> dict[str, trial.Errors]:
    """Refuse a trial whose solve failed; warn of one whose exact error is not so exact."""
    for model, values in errors.items():
        what = f"trial {t}, model {model!r}"
        if not values.residual <= RESIDUAL_TOLERANCE[dtype]:  # NaN too
            raise NumericalError(_advice(what, values.residual, dtype))
        for name, value in zip(values._fields, values, strict=True):
            if value is not None and not np.isfinite(value):
                raise NumericalError(
                    f"{what}: {name} is not finite; lower learning_rate or the strengths if features "
                    'overflow, or use dtype="float64"'
                )
        cut = values.truncation
        if cut is not None and cut > TRUNCATION_TOLERANCE * abs(values.test_error):
            warnings.warn(
                f"trial {t}, model {model!r}: the population test error {values.test_error:.4g} is uncertain "
                f'by about {cut:.1g}, its series converges slowly; use evaluation="fresh"',
                AccuracyWarning,
                stacklevel=2,
            )
    return errors


def _advice(what: str, residual: Any, dtype: str) -> str:
    remedy = "increase ridge" if dtype == "float64" else 'use dtype="float64" or increase ridge'
    return (
        f"{what}: the ridge solve did not reach its optimum (relative gradient {residual:.1e}, allowed "
        f"{RESIDUAL_TOLERANCE[dtype]:.0e}); {remedy}, or lower learning_rate if features overflow"
    )


def _labelled(
    measured: list[dict[str, trial.Errors]],
    trials: range,
    models: tuple[str, ...],
    attributes: dict[str, Any],
) -> xr.Dataset:
    first = measured[0][models[0]]
    variables = {
        name: (
            ("model", "trial"),
            np.asarray([[float(getattr(t[model], name)) for t in measured] for model in models]),
        )
        for name in ERRORS
        if getattr(first, name) is not None
    }
    coordinates = {"model": list(models), "trial": np.asarray(trials)}
    return xr.Dataset(variables, coordinates, attributes)


def _written(problem: Problem) -> str:
    try:
        return problem.to_json()
    except InputError:  # a callable or a pool of images: say what it was, though it cannot be read back
        return repr(problem)
