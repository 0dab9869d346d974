"""How long one trial takes, warm, beside the machine's own matrix product in the same run.

    python benchmarks/trial.py [--size 1000] [--models network,hermite] [--evaluation fresh] [--json]

Default: n = m = k = 1000, one activation, network + Hermite, a fresh test set of 5m, float64.
"Useful" operations are those no implementation can avoid: one product of each data set with the first
layer, the gradient's outer product, half a Gram matrix (it is symmetric) and a Cholesky factor a model.
"""

import argparse
import json
import statistics
import time

import jax
import jax.numpy as jnp

import onegrad as og
from onegrad import numerics


def problem(size: int, activation: str) -> og.Problem:
    scaling = og.Scaling(size, 0.5, 0.74)
    mixture = og.Mixture.spiked(size, [[scaling.spread]] * 2, [0.5, 0.5])
    return og.Problem(
        mixture,
        activation=activation,
        width=size,
        samples=size,
        learning_rate=scaling.learning_rate,
    )


def useful_operations(p: og.Problem, models: int, evaluation: str) -> float:
    n, k, m = p.mixture.dimension, p.width, p.samples
    small, large = min(k, m), max(k, m)
    step = 4 * p.step_samples * n * k
    tested = 2 * 5 * m * n * k if evaluation == "fresh" else k * k * n
    solve = models * (small**2 * large + small**3 / 3)
    return step + 2 * m * n * k + tested + solve


def gemm_rate(size: int, dtype: str) -> float:
    """Operations a second of one product, the best of five."""
    with numerics.scope():
        a = jnp.ones((size, size), dtype)
        product = jax.jit(lambda a: a @ a)
        product(a).block_until_ready()
        times = []
        for _ in range(5):
            start = time.perf_counter()
            product(a).block_until_ready()
            times.append(time.perf_counter() - start)
    return 2 * size**3 / min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--activation", default="relu")
    parser.add_argument("--models", default="network,hermite")
    parser.add_argument("--evaluation", default="fresh")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--trials", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    p, models = problem(options.size, options.activation), options.models.split(",")
    settings = {"models": models, "evaluation": options.evaluation, "dtype": options.dtype}
    start = time.perf_counter()
    og.simulate(p, 1, **settings)
    cold = time.perf_counter() - start
    rate = gemm_rate(options.size, options.dtype)
    times = []
    for t in range(options.trials):
        start = time.perf_counter()
        og.simulate(p, range(t, t + 1), **settings)
        times.append(time.perf_counter() - start)
    operations = useful_operations(p, len(models), options.evaluation)
    report = {
        "size": options.size,
        "activation": options.activation,
        **settings,
        "trials": options.trials,
        "cold_seconds": round(cold, 2),
        "warm_seconds_median": round(statistics.median(times), 3),
        "warm_seconds_best": round(min(times), 3),
        "gemm_gigaflops": round(rate / 1e9, 1),
        "useful_gigaflop": round(operations / 1e9, 1),
        "share_of_gemm_rate": round(operations / statistics.median(times) / rate, 3),
    }
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        for name, value in report.items():
            print(f"{name:22} {value}")


if __name__ == "__main__":
    main()
