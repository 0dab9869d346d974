"""How accurate predictions are: against simulations of 30 kinds of problems, recorded in simulated.json.

    python benchmarks/accuracy.py [--dimension 1000] [--only NAME] [--json]     compare
    python benchmarks/accuracy.py --simulate [--dimension 1000] [--sem 0.0045]  simulate what is missing

Prints prediction/simulation − 1 and the simulation's relative standard error of every error, then the median
and the worst. "beyond" is what is left of a difference after twice the simulation's standard error. Problems
with a spread of the order of dimension are marked ~. A record belongs to a problem's content hash: a changed
problem is simulated anew.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import numpy as np
from cases import WIDE, cases

import onegrad as og

RECORD = Path(__file__).with_name("simulated.json")
ERRORS = ("test_error", "train_error", "train_objective", "misclassification")
MOST_TRIALS = 400


def load() -> dict:
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def simulate(dimension: int, sem: float, batch: int) -> None:
    """Add what is not recorded yet; saved after every problem, so it can be stopped at any time."""
    record = load()
    for name, problem in cases(dimension).items():
        if problem.content_hash in record:
            continue
        start, data = time.perf_counter(), []
        while True:
            first = sum(part.sizes["trial"] for part in data)
            data.append(og.simulate(problem, range(first, first + batch), models="network"))
            values = np.concatenate([part.test_error.values[0] for part in data])
            relative = values.std(ddof=1) / values.size**0.5 / values.mean()
            if relative < sem or values.size >= MOST_TRIALS:
                break
        measured = {"name": name, "dimension": dimension, "trials": values.size}
        for error in data[0].data_vars:
            values = np.concatenate([part[error].values[0] for part in data])
            measured[str(error)] = [values.mean(), values.std(ddof=1) / values.size**0.5]
        record[problem.content_hash] = measured
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        print(f"{name:30} {values.size:4} trials, {relative:.2%}, {time.perf_counter() - start:.0f} s")


def compare(dimension: int, only: str) -> list[dict]:
    record, rows = load(), []
    for name, problem in cases(dimension).items():
        measured = record.get(problem.content_hash)
        if measured is None or only not in name:
            continue
        found = og.predict(problem)
        row = {"name": name, "error_estimate": found.error_estimate, "neurons": found.resolution.neurons}
        for error in ERRORS:
            if error in measured:
                mean, sem = measured[error]
                value = getattr(found, error)
                row[error] = {"off": value / mean - 1, "sem": sem / mean, "points": value - mean}
        rows.append(row)
        print(line(row), flush=True)
        jax.clear_caches()  # a process has room for some hundred compiled programs
    return rows


def line(row: dict) -> str:
    mark = "~" if row["name"] in WIDE else " "
    cells = [f"{row[e]['off']:+8.2%} ±{row[e]['sem']:.2%}" for e in ERRORS if e in row]
    return f"{mark}{row['name']:30} {row['error_estimate']:.0e} {row['neurons']:5} " + " ".join(cells)


def beyond(cell: dict) -> float:
    return max(0.0, abs(cell["off"]) - 2 * cell["sem"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dimension", type=int, default=1000)
    parser.add_argument("--only", default="")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--sem", type=float, default=0.0045)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.simulate:
        simulate(options.dimension, options.sem, options.batch)
        return
    print(f"dimension {options.dimension}: estimate, neurons, then {', '.join(ERRORS)}")
    rows = compare(options.dimension, options.only)
    for error in ERRORS:
        cells = [row[error] for row in rows if error in row]
        if not cells:
            continue
        worst = max((row for row in rows if error in row), key=lambda row: beyond(row[error]))
        print(
            f"{error:18} {len(cells)} problems, "
            f"median |off| {np.median([abs(c['off']) for c in cells]):.2%}, "
            f"worst beyond two standard errors {beyond(worst[error]):.2%} ({worst['name']})"
        )
    if options.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
