"""How long predictions take, warm, beside the machine's own matrix product in the same run.

    python benchmarks/prediction.py [--json]

"value" is `estimate=False`, "settled" raises the resolution until no answer moves by 0.1 %. `fig1` is the 129
predictions of figures 1a, 1b and 1c: 13 + 20 + 10 points for three activations.
"""

import argparse
import json
import time

import numpy as np
from cases import paper, ranked
from trial import gemm_rate

import onegrad as og


def milliseconds(work, repeats: int = 5) -> float:
    """The median of a few runs after one that compiles."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def figure1(activation: str) -> None:
    ratios = [0.1, 0.3, 0.4, 0.5, 0.7, 0.9, 1, 1.1, 1.5, 2, 3, 4, 5]
    og.predict.grid(paper(1000, activation=activation), width=[round(1000 * ratio) for ratio in ratios])
    og.predict.grid(
        lambda alpha: paper(1000, alpha, activation=activation), alpha=np.linspace(0, 1, 20).tolist()
    )
    og.predict.grid(
        lambda beta: paper(1000, beta=beta, activation=activation), beta=np.linspace(0, 1, 10).tolist()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report: dict[str, float] = {"gemm_gigaflops": gemm_rate(1000, "float64") / 1e9}
    activations = ("relu", "tanh", "sigmoid")
    for activation in activations:
        problem = paper(1000, activation=activation)
        report[f"value, {activation}, ms"] = milliseconds(
            lambda problem=problem: og.predict(problem, estimate=False)
        )
    report["settled, tanh, ms"] = milliseconds(lambda: og.predict(paper(1000, activation="tanh")))
    report["value, 22 signal coordinates, ms"] = milliseconds(
        lambda: og.predict(ranked(1000, 10, "relu"), estimate=False)
    )
    report["settled, 22 signal coordinates, ms"] = milliseconds(
        lambda: og.predict(ranked(1000, 10, "relu")), 2
    )
    report["fig1, 129 predictions, ms"] = milliseconds(lambda: [figure1(a) for a in activations], 3)
    rounded = {name: round(value, 1) for name, value in report.items()}
    print(json.dumps(rounded) if options.json else "\n".join(f"{v:10} {k}" for k, v in rounded.items()))


if __name__ == "__main__":
    main()
