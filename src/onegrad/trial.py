"""One trial: draw, take the gradient step, fit the second layer of every model, measure.

A pure function of a key, compiled once a shape: the problem's numbers are arguments. Samples are walked in
blocks, so that no more than the m×k features of the training set is ever held, whatever the test set.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from onegrad import moments, network, ridge
from onegrad.activations import Activation, hermite_expansion
from onegrad.errors import InputError
from onegrad.features import BUILDERS, Block, FeatureMap, Layer, PopulationMap
from onegrad.gaussian import row_normals
from onegrad.labels import Rule, TargetNumbers
from onegrad.mixture import Inputs, Mixture, MixtureNumbers, sample_rows
from onegrad.problem import MAX_DEGREE, Problem
from onegrad.target import target_numbers

BLOCK = 1024  # rows of a sample block; results do not depend on it, every sample has its own key

# Names of the random streams of a trial; each is fold_in of the trial's key.
FIRST_LAYER, STEP_DATA, TRAIN_DATA, TEST_DATA, MODEL_NOISE = range(5)
TRAIN, TEST = range(2)  # of a model's noise


@dataclass(frozen=True)
class Recipe:
    """What a trial is compiled for: shapes and functions. Everything else is an argument."""

    dimension: int
    width: int
    samples: int
    step_samples: int
    test_samples: int
    signal_dimension: int
    activation: Activation
    rule: Rule
    binary: bool
    models: tuple[str, ...]
    population: bool
    dtype: str
    inputs: Inputs | None  # None: the mixture is among the numbers

    @classmethod
    def of(
        cls,
        problem: Problem,
        models: tuple[str, ...],
        test_samples: int,
        population: bool,
        dtype: str,
    ) -> "Recipe":
        mixture = isinstance(problem.mixture, Mixture)
        return cls(
            dimension=problem.mixture.dimension,
            width=problem.width,
            samples=problem.samples,
            step_samples=problem.step_samples,
            test_samples=test_samples,
            signal_dimension=problem.signal_dimension,
            activation=problem.function,
            rule=problem.target.rule,
            binary=problem.binary,
            models=models,
            population=population,
            dtype=dtype,
            inputs=None if mixture else problem.mixture,
        )


class Numbers(NamedTuple):
    """The numbers of a problem: traced, so that a new value compiles nothing."""

    mixture: MixtureNumbers | None
    target: TargetNumbers
    trace: Float[Array, ""]
    bulk_std: Float[Array, ""]
    learning_rate: Float[Array, ""]
    ridge: Float[Array, ""]
    hermite_coefficients: Float[Array, "terms"]
    hermite_residual: Float[Array, ""]

    @classmethod
    def of(cls, problem: Problem, degree: int | None) -> "Numbers":
        """`degree` None: no Hermite model. Coefficients are padded with zeros to the largest published
        degree, so that a learning rate that changes the degree compiles nothing."""
        inputs = problem.mixture
        mixture = inputs.numbers(problem.signal_dimension) if isinstance(inputs, Mixture) else None
        coefficients, residual = np.zeros(1 + max(MAX_DEGREE, degree or 0)), 0.0
        if degree is not None:
            expansion = hermite_expansion(problem.function, inputs.bulk_std, degree)
            coefficients[: degree + 1], residual = expansion.coefficients, expansion.residual
        return cls(
            mixture,
            target_numbers(problem.target, inputs),
            jnp.asarray(inputs.trace, jnp.float64),
            jnp.asarray(inputs.bulk_std, jnp.float64),
            jnp.asarray(problem.learning_rate),
            jnp.asarray(problem.ridge),
            jnp.asarray(coefficients),
            jnp.asarray(residual),
        )

    def cast(self, dtype: str) -> "Numbers":
        return jax.tree.map(lambda leaf: leaf.astype(dtype), self)


class Errors(NamedTuple):
    """What a trial measures of one model. `residual` certifies the ridge solve."""

    train_error: Float[Array, ""]
    test_error: Float[Array, ""]
    train_objective: Float[Array, ""]
    misclassification: Float[Array, ""] | None
    residual: Float[Array, ""]
    truncation: Float[Array, ""] | None


class Step(NamedTuple):
    """The first layer before and after its step."""

    initial: Float[Array, "width dimension"]
    second: Float[Array, "width"]
    gradient: Float[Array, "width dimension"]
    weights: Float[Array, "width dimension"]


# A block of labelled samples from their indices.
Draw = Callable[[Int[Array, "rows"]], tuple[Float[Array, "rows dimension"], Float[Array, "rows"]]]


@partial(jax.jit, static_argnames=("recipe",))
def run(
    recipe: Recipe, numbers: Numbers, weight_key: Key[Array, ""], data_key: Key[Array, ""]
) -> dict[str, Errors]:
    """One trial. Weights and models' noise come from one key, all data from the other."""
    draws = data_sets(recipe, numbers, data_key)
    exact, numbers = numbers, numbers.cast(recipe.dtype)
    step = take_step(recipe, numbers, draws[STEP_DATA], weight_key)
    maps = feature_maps(recipe, numbers, step)
    keys = {
        model: jax.random.fold_in(jax.random.fold_in(weight_key, MODEL_NOISE), i)
        for i, model in enumerate(BUILDERS)
    }
    solutions, y = _fit(recipe, numbers, step.weights, maps, draws[TRAIN_DATA], keys)
    if recipe.population:
        tested = _population(recipe, exact, step, solutions)
    else:
        tested = _fresh(recipe, step.weights, maps, solutions, draws[TEST_DATA], keys)
    return {
        model: Errors(
            train_error=jnp.mean((y - solution.fitted) ** 2),
            test_error=tested[model][0],
            train_objective=ridge.objective(solution, y, numbers.ridge),
            misclassification=None if recipe.population else tested[model][1],
            residual=solution.residual,
            truncation=tested[model][1] if recipe.population else None,
        )
        for model, solution in solutions.items()
    }


@partial(jax.jit, static_argnames=("recipe",))
def train(
    recipe: Recipe, numbers: Numbers, weight_key: Key[Array, ""], data_key: Key[Array, ""]
) -> tuple[Step, ridge.Solution]:
    """The network of a trial itself: what `run` measures when the models are ("network",)."""
    draws = data_sets(recipe, numbers, data_key)
    numbers = numbers.cast(recipe.dtype)
    step = take_step(recipe, numbers, draws[STEP_DATA], weight_key)
    maps = feature_maps(recipe, numbers, step)
    keys = {"network": weight_key}
    solutions, _ = _fit(recipe, numbers, step.weights, maps, draws[TRAIN_DATA], keys)
    return step, solutions["network"]


def feature_maps(recipe: Recipe, numbers: Numbers, step: Step) -> dict[str, FeatureMap]:
    layer = Layer(
        recipe.activation,
        step.weights,
        step.gradient,
        step.second,
        numbers.bulk_std,
        numbers.hermite_coefficients,
        numbers.hermite_residual,
        recipe.signal_dimension,
        numbers.mixture,
    )
    return {model: BUILDERS[model](layer) for model in recipe.models}


def data_sets(recipe: Recipe, numbers: Numbers, key: Array) -> dict[int, Draw]:
    """The independent data sets as functions of sample indices, in the recipe's dtype."""
    counts = {STEP_DATA: recipe.step_samples, TRAIN_DATA: recipe.samples}
    if not recipe.population:
        counts[TEST_DATA] = recipe.test_samples

    def labelled(inputs: Callable) -> Draw:
        def draw(rows: Array) -> tuple[Array, Array]:
            x, component, normal = inputs(rows)
            y = recipe.rule.label(numbers.target, x, component) + numbers.target.noise * normal
            return x.astype(recipe.dtype), y.astype(recipe.dtype)

        return draw

    if numbers.mixture is not None:
        inputs = _mixture_inputs(numbers.mixture, recipe.dimension, tuple(counts), key)
    else:
        inputs = _pool_inputs(recipe.inputs, counts, key)
    return {name: labelled(inputs[name]) for name in counts}


def _mixture_inputs(
    mixture: MixtureNumbers, dimension: int, names: tuple[int, ...], key: Array
) -> dict[int, Callable]:
    """A mixture has no end: every data set is a stream of its own."""
    streams = {name: jax.random.fold_in(key, name) for name in names}
    return {name: partial(sample_rows, mixture, dimension, stream) for name, stream in streams.items()}


def _pool_inputs(source: Inputs | None, counts: dict[int, int], key: Array) -> dict[int, Callable]:
    """Other inputs are drawn in one call, so that a finite pool can hand out distinct samples."""
    assert source is not None
    count = sum(counts.values())
    try:
        x, component = source.sample(key, count)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        raise InputError(
            f"mixture.sample must be traceable by JAX, jax.numpy on its key alone; it raised "
            f"{type(error).__name__}"
        ) from error
    # out-of-range rows would silently be copies of the last one
    if x.shape != (count, source.dimension) or component.shape != (count,):
        raise InputError(
            f"mixture.sample(key, {count}) must return inputs {(count, source.dimension)} and components "
            f"{(count,)}, got {x.shape} and {component.shape}; a pool that is too small needs fewer samples, "
            "gradient_samples or test_samples"
        )

    def part(first: int, noise_key: Array) -> Callable:
        def inputs(rows: Array) -> tuple[Array, Array, Array]:
            normal = row_normals(noise_key, rows, 1)[:, 0]
            return x[first + rows], component[first + rows], normal

        return inputs

    firsts = dict(zip(counts, accumulate([0, *counts.values()]), strict=False))
    return {name: part(first, jax.random.fold_in(key, name)) for name, first in firsts.items()}


def take_step(recipe: Recipe, numbers: Numbers, draw: Draw, key: Array) -> Step:
    """F, w, G and F̂ = F + ηG."""
    first, second = network.initialise(
        jax.random.fold_in(key, FIRST_LAYER), recipe.width, recipe.dimension, numbers.trace
    )
    first, second = first.astype(recipe.dtype), second.astype(recipe.dtype)

    def add(total: Array, rows: Array, active: Array) -> Array:
        x, y = draw(rows)
        x = x * active[:, None]  # the rows past the end contribute an outer product with 0
        return total + network.descent(recipe.activation, first, second, x, y)

    gradient = _over_blocks(recipe.step_samples, add, jnp.zeros_like(first)) / recipe.step_samples
    return Step(first, second, gradient, first + numbers.learning_rate * gradient)


def _fit(
    recipe: Recipe,
    numbers: Numbers,
    weights: Array,
    maps: dict[str, FeatureMap],
    draw: Draw,
    keys: dict[str, Array],
) -> tuple[dict[str, ridge.Solution], Float[Array, "samples"]]:
    """Features of the training set and the second layer, model by model."""
    starts, size = blocks(recipe.samples)

    def block(start: Array) -> tuple[dict[str, Array], Array]:
        rows = start + jnp.arange(size)
        x, y = draw(rows)
        return _features(maps, weights, x, rows, keys, TRAIN), y

    features, y = jax.lax.map(block, starts)
    y = y.reshape(-1)[: recipe.samples]
    solutions = {
        model: ridge.solve(stacked.reshape(-1, recipe.width)[: recipe.samples], y, numbers.ridge)
        for model, stacked in features.items()
    }
    return solutions, y


def _fresh(
    recipe: Recipe,
    weights: Array,
    maps: dict[str, FeatureMap],
    solutions: dict[str, ridge.Solution],
    draw: Draw,
    keys: dict[str, Array],
) -> dict[str, tuple[Array, Array | None]]:
    """Squared error and misclassification on a fresh test set, block by block."""
    scale = recipe.width**0.5
    start = {model: (jnp.zeros((), weights.dtype),) * 2 for model in maps}

    def add(totals: dict, rows: Array, active: Array) -> dict:
        x, y = draw(rows)
        features = _features(maps, weights, x, rows, keys, TEST)
        new = {}
        for model, (squares, wrong) in totals.items():
            predicted = features[model] @ solutions[model].weights / scale
            # y·ŷ ≤ 0, not sign(ŷ) ≠ y, so that ŷ = 0 counts as wrong for both labels
            missed = jnp.sum(active * (y * predicted <= 0))
            new[model] = (squares + jnp.sum(active * (y - predicted) ** 2), wrong + missed)
        return new

    totals = _over_blocks(recipe.test_samples, add, start)
    count = recipe.test_samples
    return {
        model: (squares / count, wrong / count if recipe.binary else None)
        for model, (squares, wrong) in totals.items()
    }


def _population(
    recipe: Recipe,
    numbers: Numbers,
    step: Step,
    solutions: dict[str, ridge.Solution],
) -> dict[str, tuple[Array, Array]]:
    """The exact test error, with the estimate of its series' truncation. In float64 whatever the recipe's
    dtype: high Hermite degrees overflow float32."""
    assert numbers.mixture is not None
    step, solutions = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), (step, solutions))
    maps = feature_maps(recipe, numbers, step)
    return {
        model: moments.population_error(
            cast(PopulationMap, maps[model]),
            step.weights,
            solutions[model].weights,
            numbers.mixture,
            recipe.rule,
            numbers.target,
        )
        for model in maps
    }


def _features(
    maps: dict[str, FeatureMap],
    weights: Array,
    x: Array,
    rows: Array,
    keys: dict[str, Array],
    purpose: int,
) -> dict[str, Float[Array, "rows width"]]:
    """Every model's features of a block, from one product F̂x."""
    preactivation = x @ weights.T
    features = {}
    for model, feature_map in maps.items():
        key = jax.random.fold_in(keys[model], purpose)
        features[model] = feature_map(Block(x, preactivation, rows, key))
    return features


def blocks(count: int) -> tuple[Int[Array, "blocks"], int]:
    """First rows of equal blocks that cover `count`, and their size (≤ BLOCK)."""
    number = -(-count // BLOCK)
    size = -(-count // number)
    return jnp.arange(number) * size, size


def _over_blocks(count: int, add: Callable, start):
    """Fold `add(total, rows, active)` over blocks; `active` is 0 for rows past the end."""
    starts, size = blocks(count)

    def body(total, first):
        rows = first + jnp.arange(size)
        return add(total, rows, (rows < count).astype(jnp.float32)), None

    return jax.lax.scan(body, start, starts)[0]
