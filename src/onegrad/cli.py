"""The command line: parse, call, print. Results go to stdout, everything else to stderr."""

import os
import platform
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter, Token

import onegrad
from onegrad import keys
from onegrad.errors import InputError, OnegradError, RefusedError

INTERRUPTED = 130

app = App(
    name="onegrad",
    help="Predict, simulate and explain a two-layer network after one gradient step.",
    version=onegrad.__version__,
    help_on_error=False,
    suppress_keyboard_interrupt=False,
)


def _integer(_: type, tokens: Sequence[Token]) -> int:
    """Integers only: 3.5 and 1e3 are refused, not rounded."""
    (token,) = tokens
    try:
        return int(token.value)
    except ValueError:
        raise ValueError(f"must be an integer, got {token.value!r}") from None


def _flag(text: str) -> Parameter:
    return Parameter(help=text)


def _whole(text: str) -> Parameter:
    return Parameter(help=text, converter=_integer)


def _switch(text: str) -> Parameter:
    return Parameter(help=text, negative=())


@Parameter(name="*")
@dataclass(frozen=True)
class ProblemFlags:
    """The keys of a problem file as flags; a flag overrides the file."""

    dimension: Annotated[int | None, _whole("Input dimension n [1000].")] = None
    alpha: Annotated[float | None, _flag("Who gets the strength: 0 data, 1 step [0.5].")] = None
    beta: Annotated[float | None, _flag("How much strength there is [0.74].")] = None
    learning_rate: Annotated[float | None, _flag("η, instead of alpha and beta.")] = None
    strengths: Annotated[str | None, _flag("Spikes θ, instead of alpha and beta: '9,4' or '9,4;2'.")] = None
    weights: Annotated[str | None, _flag("Component weights: '0.5,0.5'.")] = None
    alignment: Annotated[float | None, _flag("Overlap of consecutive components' spikes [0].")] = None
    rank: Annotated[int | None, _whole("Spikes a component, with alpha and beta [1].")] = None
    target: Annotated[str | None, _flag("A link such as relu, or labels (±1 by component) [relu].")] = None
    noise: Annotated[float | None, _flag("Standard deviation of label noise [0].")] = None
    activation: Annotated[str | None, _flag("Activation of the network [relu].")] = None
    width: Annotated[int | None, _whole("Hidden neurons k [1000].")] = None
    samples: Annotated[int | None, _whole("Training samples m of the ridge [1000].")] = None
    gradient_samples: Annotated[int | None, _whole("Samples m̃ of the gradient step [samples].")] = None
    ridge: Annotated[float | None, _flag("Ridge strength λ [1e-4].")] = None
    degree: Annotated[int | None, _whole("Degree of the Hermite model [from beta].")] = None

    def keys(self) -> dict[str, Any]:
        """The flags that were given, as keys."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        given = {name: value for name, value in given.items() if value is not None}
        if "weights" in given:
            given["weights"] = _numbers("weights", given["weights"])
        if "strengths" in given:
            rows = [_numbers("strengths", row) for row in given["strengths"].split(";")]
            given["strengths"] = rows if len(rows) > 1 else rows[0]
        return given


# What --quick sets where nothing else does: a few seconds on two cores.
QUICK = {"dimension": 300, "width": 300, "samples": 300}
QUICK_TRIALS = 8


@app.command
def simulate(
    file: Annotated[Path | None, _flag("A problem in TOML, or in JSON by to_json.")] = None,
    /,
    *,
    problem: ProblemFlags = ProblemFlags(),
    trials: Annotated[int | None, _whole("Independent trials [20].")] = None,
    seed: Annotated[int, _whole("Root of every random number.")] = 0,
    models: Annotated[str | None, _flag("Comma list of network, hermite, conditional [all].")] = None,
    test_samples: Annotated[int | None, _whole("Fresh test samples [5·samples].")] = None,
    redraw: Annotated[str, _flag("'all', or 'weights' to keep the data.")] = "all",
    evaluation: Annotated[str, _flag("'fresh' test samples, or 'population': exact moments.")] = "fresh",
    dtype: Annotated[str, _flag("float64 or float32.")] = "float64",
    device: Annotated[str | None, _flag("cpu or gpu [JAX's choice].")] = None,
    quick: Annotated[bool, _switch("Small: n = m = k = 300, 8 trials, unless given.")] = False,
    json: Annotated[bool, _switch("One JSON object on stdout.")] = False,
    out: Annotated[Path | None, _flag("Also write all trials to this netCDF file.")] = None,
) -> int:
    """Measure the errors of the network and of its equivalent models over random trials."""
    written = _problem(file, problem, **(QUICK if quick else {}))
    if trials is None:
        trials = QUICK_TRIALS if quick else 20
    _check_out(out)
    # jax is imported from here on: help and bad flags answer at once
    from onegrad import numerics, simulation, tables

    found = numerics.find_device(device)
    _say(f"device: {simulation.describe(found)}, {dtype}")
    data = simulation.simulate(
        written.problem,
        trials,
        seed,
        models=_models(models),
        degree=written.degree,
        test_samples=test_samples,
        redraw=redraw,
        evaluation=evaluation,
        dtype=dtype,
        device=device,
        progress=True,
    )
    # first what a full disk cannot take away
    print(tables.as_json(data) if json else tables.as_text(data), flush=True)
    if out is not None:
        try:
            data.to_netcdf(out, engine="h5netcdf")
        except OSError as error:
            raise RefusedError(f"cannot write {out}: {error}") from None
        _say(f"wrote {out}")
    return 0


@app.command
def predict(
    file: Annotated[Path | None, _flag("A problem in TOML, or in JSON by to_json.")] = None,
    /,
    *,
    problem: ProblemFlags = ProblemFlags(),
    json: Annotated[bool, _switch("One JSON object on stdout.")] = False,
) -> int:
    """Predict the errors from theory, without sampling a network."""
    given = _theory_problem(file, problem)
    from onegrad import prediction, tables

    found = prediction.predict(given)
    print(tables.prediction_as_json(found) if json else tables.prediction_as_text(found), flush=True)
    return 0


@app.command
def explain(
    file: Annotated[Path | None, _flag("A problem in TOML, or in JSON by to_json.")] = None,
    /,
    *,
    problem: ProblemFlags = ProblemFlags(),
    json: Annotated[bool, _switch("One JSON object on stdout.")] = False,
) -> int:
    """Say which polynomial of the data the trained network has become."""
    given = _theory_problem(file, problem)
    from onegrad import explanation, tables

    found = explanation.explain(given)
    print(found.to_json() if json else tables.explanation_as_text(found), flush=True)
    return 0


@app.command
def doctor(
    *,
    json: Annotated[bool, _switch("One JSON object on stdout.")] = False,
) -> int:
    """Say what onegrad runs on here, and check that its numbers are right on it."""
    from onegrad import doctor as checks

    report = checks.examine()
    print(checks.as_json(report) if json else checks.as_text(report))
    return 0 if report.healthy else 3


def main(arguments: list[str] | None = None) -> int:
    """Entry point: every expected failure is one line on stderr and an exit code (errors.py)."""
    warnings.showwarning = _show_warning
    _remember_compilations()
    try:
        return app(arguments, exit_on_error=False, print_error=False, result_action="return_value") or 0
    except CycloptsError as error:
        _say(f"onegrad: {error}")
        return InputError.exit_code
    except OnegradError as error:
        _say(f"onegrad: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        _say("onegrad: interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of stdout has left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _remember_compilations() -> None:
    """Keep what JAX compiles for this machine in the user's cache: the next command starts at once.

    Read by JAX when it is imported; JAX_COMPILATION_CACHE_DIR, also empty, has the last word.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "onegrad" / f"{platform.node()}-{platform.machine()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written: compile every time
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")


def _models(text: str | None) -> list[str] | None:
    return None if text is None else text.split(",")


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{name} must be numbers separated by commas, got {text!r}") from None


def _problem(file: Path | None, flags: ProblemFlags, **defaults: Any) -> keys.Written:
    """The file's keys under the flags', over defaults where there is no [mixture]."""
    given = {**(keys.read_keys(file) if file else {}), **flags.keys()}
    return keys.from_keys({**({} if "mixture" in given else defaults), **given})


def _theory_problem(file: Path | None, flags: ProblemFlags) -> Any:
    """The problem of a theory command, which has no model to give a degree and no device to choose."""
    written = _problem(file, flags)
    from onegrad import numerics, simulation

    _say(f"device: {simulation.describe(numerics.find_device(None))}, float64")
    if written.degree is not None:
        _say("onegrad: note: degree is a setting of simulate's Hermite model; the theory has none")
    return written.problem


def _check_out(out: Path | None) -> None:
    if out is None:
        return
    if out.suffix != ".nc" or out.is_dir():
        raise InputError(f"out must be a file that ends in .nc (netCDF), got {str(out)!r}")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InputError(f"out must lie in an existing folder that can be written, got {str(out)!r}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    _say(f"onegrad: warning: {message}")


if __name__ == "__main__":
    sys.exit(main())
