"""onegrad: what a two-layer network becomes after one gradient step on structured data.

    Problem ──► predict | simulate ──► labelled results

The public names, in the order of the pipeline. Each is imported when it is first used. No module
has the name of a public function (`simulation`, `simulate`): importing it would hide the function.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from onegrad.activations import activation as activation
    from onegrad.activations import hermite_expansion as hermite_expansion
    from onegrad.activations import register_activation as register_activation
    from onegrad.errors import AccuracyWarning as AccuracyWarning
    from onegrad.errors import InputError as InputError
    from onegrad.errors import NumericalError as NumericalError
    from onegrad.errors import OnegradError as OnegradError
    from onegrad.errors import RefusedError as RefusedError
    from onegrad.explanation import Explanation as Explanation
    from onegrad.explanation import explain as explain
    from onegrad.keys import read_problem as read_problem
    from onegrad.mixture import Component as Component
    from onegrad.mixture import Inputs as Inputs
    from onegrad.mixture import Mixture as Mixture
    from onegrad.prediction import Prediction as Prediction
    from onegrad.prediction import predict as predict
    from onegrad.problem import Problem as Problem
    from onegrad.problem import Scaling as Scaling
    from onegrad.results import mean as mean
    from onegrad.results import paired_difference as paired_difference
    from onegrad.results import sem as sem
    from onegrad.results import summary as summary
    from onegrad.simulation import TrainedNetwork as TrainedNetwork
    from onegrad.simulation import simulate as simulate
    from onegrad.simulation import train as train
    from onegrad.target import ComponentLabels as ComponentLabels
    from onegrad.target import MultiIndex as MultiIndex
    from onegrad.target import SingleIndex as SingleIndex
    from onegrad.target import register_function as register_function

# public name → (module, name there)
_PUBLIC = {
    "Component": ("mixture", "Component"),
    "Mixture": ("mixture", "Mixture"),
    "Inputs": ("mixture", "Inputs"),
    "SingleIndex": ("target", "SingleIndex"),
    "MultiIndex": ("target", "MultiIndex"),
    "ComponentLabels": ("target", "ComponentLabels"),
    "Scaling": ("problem", "Scaling"),
    "Problem": ("problem", "Problem"),
    "read_problem": ("keys", "read_problem"),
    "predict": ("prediction", "predict"),
    "Prediction": ("prediction", "Prediction"),
    "explain": ("explanation", "explain"),
    "Explanation": ("explanation", "Explanation"),
    "simulate": ("simulation", "simulate"),
    "train": ("simulation", "train"),
    "TrainedNetwork": ("simulation", "TrainedNetwork"),
    "mean": ("results", "mean"),
    "sem": ("results", "sem"),
    "summary": ("results", "summary"),
    "paired_difference": ("results", "paired_difference"),
    "activation": ("activations", "activation"),
    "register_activation": ("activations", "register_activation"),
    "register_function": ("target", "register_function"),
    "hermite_expansion": ("activations", "hermite_expansion"),
    "OnegradError": ("errors", "OnegradError"),
    "InputError": ("errors", "InputError"),
    "NumericalError": ("errors", "NumericalError"),
    "RefusedError": ("errors", "RefusedError"),
    "AccuracyWarning": ("errors", "AccuracyWarning"),
}
__all__ = list(_PUBLIC)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    if name not in _PUBLIC:
        raise AttributeError(f"module 'onegrad' has no attribute {name!r}")
    module, attribute = _PUBLIC[name]
    value = getattr(import_module(f"onegrad.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
