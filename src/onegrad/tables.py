"""Simulated and predicted errors as a table for people and as JSON for machines."""

import io
import json

import xarray as xr
from rich import box
from rich.console import Console
from rich.table import Table

from onegrad.explanation import Explanation
from onegrad.prediction import Prediction
from onegrad.results import ERRORS, summary


def as_text(data: xr.Dataset) -> str:
    """Mean ± standard error of every error and model, with what the numbers mean."""
    statistics = summary(data)
    measured = [name for name in ERRORS if name in data]
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("model")
    for name in measured:
        table.add_column(name, justify="right")
    for model in data["model"].values:
        table.add_row(str(model), *(_cell(statistics[name].sel(model=model)) for name in measured))
    count = data.sizes["trial"]
    notes = [
        f"{count} trial{'s' * (count > 1)}, mean ± standard error; redrawn: {data.attrs['redrawn']}",
        "errors are plain squared errors (no ½); train_objective has its ½ and its ridge term",
    ]
    if "degree" in data.attrs:
        notes.append(f"hermite: degree {data.attrs['degree']}")
    return "\n".join([_render(table), *notes])


def as_json(data: xr.Dataset) -> str:
    """{"problem": …, "settings": {…}, "trials": n, "models": {model: {error: {"mean", "sem"}}}}.

    `sem` is null for a single trial. `problem` is a string when it has no JSON of its own.
    """
    statistics = summary(data)
    models = {
        str(model): {name: _pair(statistics[name].sel(model=model)) for name in ERRORS if name in data}
        for model in data["model"].values
    }
    settings = {
        key: value if isinstance(value, str) else int(value)
        for key, value in data.attrs.items()
        if key != "problem"
    }
    written = data.attrs["problem"]
    problem = json.loads(written) if written.startswith("{") else written
    whole = {
        "problem": problem,
        "settings": settings,
        "trials": data.sizes["trial"],
        "models": models,
    }
    return json.dumps(whole, indent=2, allow_nan=False)


def prediction_as_text(found: Prediction) -> str:
    """One row of errors, how sure they are, and where the theory is known to be weaker."""
    measured = [name for name in ERRORS if getattr(found, name) is not None]
    table = Table(box=box.SIMPLE_HEAD)
    for name in measured:
        table.add_column(name, justify="right")
    table.add_row(*(f"{getattr(found, name):.5g}" for name in measured))
    notes = [
        f"prediction, {found.status}"
        + ("" if found.error_estimate is None else f"; computed to {found.error_estimate:.1g} relative"),
        "errors are plain squared errors (no ½); train_objective has its ½ and its ridge term",
        f"equivalent polynomial: degree {found.degree}",
        *(f"regime: {note}" for note in found.regime),
    ]
    return "\n".join([_render(table), *notes])


def prediction_as_json(found: Prediction) -> str:
    """{"problem": …, the errors, "weight_norm", "degree", "error_estimate", "status", "regime"}."""
    names = [name for name in ERRORS if getattr(found, name) is not None]
    names += ["weight_norm", "degree", "error_estimate", "status", "regime"]
    whole = {"problem": found.problem.to_dict(), **{name: getattr(found, name) for name in names}}
    return json.dumps(whole, indent=2, allow_nan=False)


def explanation_as_text(found: Explanation) -> str:
    """The captured share of the label's mean square by degree, with a bar each."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("degree", justify="right")
    table.add_column("captured", justify="right")
    table.add_column("")
    shares = found.captured.values
    shown = max(found.effective_degree, found.degree) + 1
    for degree, share in enumerate(shares[: shown + 1]):
        table.add_row(str(degree), f"{share:.4%}", "█" * round(40 * max(share, 0.0)))
    table.add_row("higher", f"{shares[shown + 1 :].sum():.4%}", "")
    notes = [
        f"of the label's mean square, by the mean prediction; not captured: {found.unexplained:.4%}, "
        f"variance of one network adds {found.variance:.4%}",
        f"effective degree {found.effective_degree} (99 % of what is captured); "
        f"the paper's degree from beta: {found.degree}",
    ]
    return "\n".join([_render(table), *notes])


def _pair(statistic: xr.DataArray) -> dict[str, float | None]:
    values = {str(k): float(statistic.sel(statistic=k)) for k in statistic["statistic"].values}
    return {"mean": values["mean"], "sem": values.get("sem")}


def _cell(statistic: xr.DataArray) -> str:
    pair = _pair(statistic)
    spread = "" if pair["sem"] is None else f" ± {pair['sem']:.2g}"
    return f"{pair['mean']:.5g}{spread}"


def _render(table: Table) -> str:
    # wide enough that nothing wraps: a table in a pipe must not depend on a terminal
    console = Console(file=io.StringIO(), width=160)
    console.print(table)
    lines = console.file.getvalue().splitlines()  # pyright: ignore[reportAttributeAccessIssue]
    return "\n".join(line.rstrip() for line in lines if line.strip())
