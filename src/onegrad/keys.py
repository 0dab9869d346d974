"""The keys a problem is written in, the same as TOML, as flags and as JSON.

Flat keys describe the paper's mixtures (defaults: its two components at n = m = k = 1000); a [mixture] table,
with components in signal coordinates, replaces them and describes any.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from onegrad import _checks
from onegrad.errors import InputError

MIXTURE_DEFAULTS: dict[str, Any] = {
    "dimension": 1000,
    "alpha": 0.5,
    "beta": 0.74,
    "strengths": None,
    "weights": (0.5, 0.5),
    "alignment": 0.0,
    "rank": 1,
}
TRAINING_DEFAULTS: dict[str, Any] = {
    "target": "relu",
    "noise": 0.0,
    "activation": "relu",
    "width": 1000,
    "samples": 1000,
    "gradient_samples": None,
    "learning_rate": None,
    "ridge": 1e-4,
    "degree": None,
}
KNOWN = (*MIXTURE_DEFAULTS, *TRAINING_DEFAULTS, "mixture")


class Written(NamedTuple):
    """A problem as written, and the degree of the Hermite model if the writer chose one."""

    problem: Any  # a Problem; its module imports jax, which reading flags must not
    degree: int | None


def read_problem(path: str | Path) -> Written:
    """The problem in a TOML file, or in a JSON file written by `Problem.to_json`."""
    return from_keys(read_keys(path))


def read_keys(path: str | Path) -> dict[str, Any]:
    """The keys of a file, not yet checked."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"cannot read {path}: {reason}") from None
    try:
        keys = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise InputError(f"{path} is not valid {kind}: {error}") from None
    if not isinstance(keys, dict):
        raise InputError(f"{path} must hold a table of keys, got {type(keys).__name__}")
    return keys


def from_keys(given: Mapping[str, Any]) -> Written:
    """Build the problem; unknown keys, and keys that exclude each other, are refused."""
    from onegrad.problem import Problem

    _checks.known_keys("the problem", given, KNOWN)
    given = {key: value for key, value in given.items() if value is not None}
    values = {**TRAINING_DEFAULTS, **given}
    if "mixture" in given:
        mixture, learning_rate = _written_mixture(given)
    else:
        mixture, learning_rate = _spiked_mixture(given)
    problem = Problem(
        mixture,
        target=_target(values, "noise" in given, len(mixture.components)),
        activation=_text("activation", values["activation"]),
        width=values["width"],
        samples=values["samples"],
        learning_rate=learning_rate,
        ridge=values["ridge"],
        gradient_samples=values["gradient_samples"],
    )
    degree = values["degree"]
    return Written(problem, None if degree is None else _checks.integer("degree", degree))


def _written_mixture(given: Mapping[str, Any]):
    from onegrad.mixture import Mixture

    for key in MIXTURE_DEFAULTS:
        if key in given:
            raise InputError(f'key "{key}" and a [mixture] table exclude each other; drop one')
    if "learning_rate" not in given:
        raise InputError('a [mixture] table needs the key "learning_rate" beside it')
    return Mixture.from_dict(given["mixture"], "mixture"), given["learning_rate"]


def _spiked_mixture(given: Mapping[str, Any]):
    """The paper's mixture: strengths and learning rate given, or both from (alpha, beta)."""
    from onegrad.mixture import Mixture
    from onegrad.problem import Scaling

    values = {**MIXTURE_DEFAULTS, **given}
    weights = _checks.reals("weights", values["weights"])
    plain = [key for key in ("learning_rate", "strengths") if key in given]
    scaled = [key for key in ("alpha", "beta") if key in given]
    if plain and scaled:
        raise InputError(
            f'keys "{scaled[0]}" and "{plain[0]}" exclude each other; '
            "give alpha and beta, or learning_rate and strengths"
        )
    if len(plain) == 1:
        other = "strengths" if plain[0] == "learning_rate" else "learning_rate"
        raise InputError(f'key "{plain[0]}" needs the key "{other}" beside it')
    if plain:
        if "rank" in given:
            raise InputError('keys "rank" and "strengths" exclude each other; drop rank')
        strengths, learning_rate = values["strengths"], values["learning_rate"]
        if not isinstance(strengths, list | tuple):
            raise _checks.refuse("strengths", "a list of numbers, or one list a component", strengths)
        # one flat list is every component's
        if not any(isinstance(row, list | tuple) for row in strengths):
            strengths = [strengths] * len(weights)
    else:
        scaling = Scaling(values["dimension"], values["alpha"], values["beta"])
        rank = _checks.integer("rank", values["rank"], at_least=0)
        strengths = [[scaling.spread] * rank] * len(weights)
        learning_rate = scaling.learning_rate
    mixture = Mixture.spiked(values["dimension"], strengths, weights, values["alignment"])
    return mixture, learning_rate


def _target(values: Mapping[str, Any], noise_given: bool, components: int):
    from onegrad import activations
    from onegrad.target import ComponentLabels, SingleIndex, target_from_dict

    written = values["target"]
    if isinstance(written, Mapping):
        if noise_given:
            raise InputError('key "noise" belongs inside the [target] table; move it there')
        return target_from_dict(written)
    if written != "labels":
        _checks.choice("target", _text("target", written), ("labels", *activations.names()))
        return SingleIndex(written, noise=values["noise"])
    if noise_given and values["noise"] != 0:
        raise _checks.refuse("noise", "0 with target = labels", values["noise"])
    if components != 2:
        raise InputError(
            f'target "labels" means +1 and -1 for two components, got {components}; '
            'write a [target] table with kind = "component-labels" and values'
        )
    return ComponentLabels((1.0, -1.0))


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _checks.refuse(name, "a name", value)
    return value
