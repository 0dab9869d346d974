"""How much memory a trial takes, said before it starts."""

from dataclasses import replace
from pathlib import Path

import jax
import psutil

from onegrad import gaussian, moments
from onegrad.errors import RefusedError
from onegrad.features import conditional
from onegrad.trial import BLOCK, Recipe

HEADROOM = 0.9  # share of the available memory that a trial may take
GENERATOR = 3  # float64 arrays that drawing a block of normals holds at a time
INPUT_GENERATOR = 5  # the same of a block of inputs, which are coloured too


def estimate(recipe: Recipe) -> int:
    """Peak bytes of one trial: O(m·k + min(m, k)² + n·k), independent of test_samples.

    The features of all models, the Gram matrix and its factor, the first layer before and after its
    step and the gradient, and one block of samples. Checked against the compiler's own count.
    """
    size = 8 if recipe.dtype == "float64" else 4
    n, k, m = recipe.dimension, recipe.width, recipe.samples
    counts = [recipe.step_samples, m] + ([] if recipe.population else [recipe.test_samples])
    rows = min(max(counts), BLOCK)
    models = len(recipe.models)
    layers = 4 * n * k
    features = (models + 1) * m * k
    gram = 3 * min(m, k) ** 2
    block = rows * (n + (2 + models) * k)
    quadrature = 8 * 6 * _quadrature_nodes(recipe)
    generator = 8 * max(INPUT_GENERATOR * rows * n, GENERATOR * rows * k, GENERATOR * n * k)
    pool = 8 * n * sum(counts) if recipe.inputs is not None else 0
    return size * (layers + features + gram + block) + generator + pool + quadrature


def _quadrature_nodes(recipe: Recipe) -> int:
    """Nodes that exist at a time where Gaussian averages have no closed form."""
    function = recipe.activation
    if function.is_closed:
        return 0
    sides = len(function.kinks) + 1
    nodes = 0
    if "conditional" in recipe.models:
        nodes = max(nodes, conditional.BLOCK * conditional.GRID * sides * function.order)
    if recipe.population:
        finest = 2 * round(gaussian.reach(moments.LABEL_DEGREE) / min(gaussian.TRAPEZOID_STEPS)) + 1
        split = sides * (function.order + moments.LABEL_DEGREE)
        neurons = min(recipe.width, moments.SERIES_BLOCK)
        shared = 0 if function.strip is None else (moments.LABEL_DEGREE + 1) * finest
        nodes = max(nodes, neurons * max(split, finest) + shared)
    return nodes


def available(device: jax.Device) -> int:
    """Bytes free: of the accelerator, or of this machine within its container's limit."""
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        if "bytes_limit" in stats:
            return stats["bytes_limit"] - stats.get("bytes_in_use", 0)
    free = psutil.virtual_memory().available
    limit, used = (Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current"))
    try:
        return min(free, int(limit.read_text()) - int(used.read_text()))
    except (OSError, ValueError):  # no such file, or "max": no limit
        return free


def require(recipe: Recipe, free: int) -> None:
    """Refuse a trial that does not fit, with the estimate and the largest width that does."""
    budget = int(HEADROOM * free)
    needed = estimate(recipe)
    if needed <= budget:
        return
    low, high = 0, recipe.width  # low fits (or is 0), high does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if estimate(replace(recipe, width=middle)) <= budget else (low, middle)
    fits = f"the largest width that fits is {low}" if low else "no width fits; lower samples"
    raise RefusedError(
        f"a trial of width {recipe.width}, samples {recipe.samples}, dimension {recipe.dimension} needs "
        f"about {_gigabytes(needed)}, and {_gigabytes(budget)} may be used; {fits}"
    )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB"
