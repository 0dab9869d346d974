"""Where the labels come from: y = f(Ξx) + noise, or the component a sample was drawn from.

These are the nouns a user writes. Against a problem's inputs they resolve into the arrays and the rule
of `labels.py`, which compiled code works with.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from onegrad import _checks, activations
from onegrad._checks import Vector, Vectors
from onegrad.activations import Activation, Function
from onegrad.document import Document
from onegrad.errors import InputError
from onegrad.labels import ComponentRule, IndexRule, MultiIndexRule, TargetNumbers
from onegrad.mixture import Inputs, Mixture
from onegrad.numerics import root_key, scoped


@dataclass(frozen=True)
class SingleIndex(Document):
    """y = link(directionᵀx) + noise·ε.

    A given direction is used as given, in signal coordinates, never normalised. Without one the target
    gets a new coordinate, orthogonal to the mixture's, with the norm of SPEC §6: the limit of the
    paper's random direction, of which `SingleIndex.random(link, seed)` draws one.
    """

    kind: ClassVar[str | None] = "single-index"

    link: str | Function | Activation = "relu"
    direction: Vector | None = None
    noise: float = 0.0
    seed: int | None = None

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "link", _named(self.link, "link"))
        set_field(self, "noise", _checks.non_negative("noise", self.noise))
        if self.direction is not None:
            direction = _checks.reals("direction", self.direction)
            if not any(direction):
                raise _checks.refuse("direction", "a non-zero vector", self.direction)
            if self.seed is not None:
                raise InputError("direction and seed exclude each other; give one of them")
            set_field(self, "direction", direction)
        if self.seed is not None:
            set_field(self, "seed", _checks.integer("seed", self.seed, at_least=0))

    @classmethod
    def random(cls, link="relu", seed: int = 0, noise: float = 0.0) -> "SingleIndex":
        """The paper's random direction: uniform on a sphere of R^n, reduced to signal coordinates."""
        return cls(link, None, noise, seed)

    @property
    def function(self) -> Activation:
        return activations.find(self.link, "link")

    @property
    def binary(self) -> bool:
        """Whether labels are ±1, so that misclassification means something."""
        return self.link == "sign" and self.noise == 0

    @property
    def rule(self) -> "IndexRule":
        return IndexRule(self.function)

    def directions_in(self, inputs: Inputs) -> Float[np.ndarray, "1 signal"]:
        """ξ in the signal coordinates of these inputs; refuses what does not fit them."""
        if self.direction is not None:
            return _fitting(np.asarray([self.direction]), "direction", inputs)
        if not isinstance(inputs, Mixture):
            raise InputError(
                "direction must be given when the inputs are not a Mixture: "
                "there are no signal coordinates to be orthogonal to"
            )
        d, n = inputs.signal_dimension, inputs.dimension
        if d >= n:
            raise InputError(
                f"direction must be given: the mixture's {d} signal coordinates fill dimension = {n}, "
                "so none is left for a new one"
            )
        unit = np.eye(d + 1)[d] if self.seed is None else _random_unit(n, d, self.seed)
        return unit[None, :] / inputs.average_norm**0.5


@dataclass(frozen=True)
class MultiIndex(Document):
    """y = function(directions x) + noise·ε; the function maps (…, q) to (…), q = number of directions.

    The function is a callable, or the name it was registered under (`og.register_function`).
    """

    kind: ClassVar[str | None] = "multi-index"

    function: str | Callable[[Array], Array]
    directions: Vectors
    noise: float = 0.0

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        directions = _checks.rows("directions", self.directions)
        if not directions or len({len(row) for row in directions}) != 1:
            raise _checks.refuse("directions", "one or more vectors of one length", self.directions)
        set_field(self, "directions", directions)
        set_field(self, "noise", _checks.non_negative("noise", self.noise))
        if isinstance(self.function, str):
            _checks.choice("function", self.function, tuple(_FUNCTIONS))
        elif callable(self.function):
            for name, known in _FUNCTIONS.items():
                if known is self.function:
                    set_field(self, "function", name)
        else:
            raise _checks.refuse("function", "a name or a callable", self.function)
        _probe(self.callable, len(directions))

    @property
    def callable(self) -> Callable[[Array], Array]:
        return _FUNCTIONS[self.function] if isinstance(self.function, str) else self.function

    @property
    def binary(self) -> bool:
        return False

    @property
    def rule(self) -> "MultiIndexRule":
        return MultiIndexRule(self.callable)

    def directions_in(self, inputs: Inputs) -> Float[np.ndarray, "indices signal"]:
        """Ξ in the signal coordinates of these inputs; refuses what does not fit them."""
        return _fitting(np.asarray(self.directions), "directions", inputs)


@dataclass(frozen=True)
class ComponentLabels(Document):
    """y = values[c] for a sample of component c."""

    kind: ClassVar[str | None] = "component-labels"

    values: Vector

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _checks.reals("values", self.values))
        if not self.values:
            raise _checks.refuse("values", "one number a component", self.values)

    @property
    def binary(self) -> bool:
        return all(value in (1.0, -1.0) for value in self.values)

    @property
    def rule(self) -> "ComponentRule":
        return ComponentRule()

    def directions_in(self, inputs: Inputs) -> Float[np.ndarray, "0 signal"]:
        """No directions; refuses inputs with another number of components."""
        if isinstance(inputs, Mixture) and len(self.values) != len(inputs.components):
            raise InputError(
                f"values must be one number for each of the {len(inputs.components)} components, "
                f"got {len(self.values)}"
            )
        signal = inputs.signal_dimension if isinstance(inputs, Mixture) else 0
        return np.zeros((0, signal))


Target = SingleIndex | MultiIndex | ComponentLabels
KINDS: dict[str, type[Target]] = {str(c.kind): c for c in (SingleIndex, MultiIndex, ComponentLabels)}


def target_from_dict(mapping: Mapping[str, Any]) -> Target:
    """A target from a table whose `kind` says which."""
    if not isinstance(mapping, Mapping) or "kind" not in mapping:
        raise _checks.refuse("target", f'a table with "kind", one of {", ".join(KINDS)}', mapping)
    return KINDS[_checks.choice("kind", mapping["kind"], tuple(KINDS))].from_dict(mapping, "target")


# --- named multi-index functions -------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "product": lambda u: jnp.prod(u, axis=-1),
    "mean_square": lambda u: jnp.mean(u**2, axis=-1),
}


def register_function(name: str, function: Callable[[Array], Array]) -> None:
    """Give a multi-index function a name, so that problems that use it have JSON and a hash."""
    if not isinstance(name, str) or not name.isidentifier():
        raise _checks.refuse("name", "an identifier such as 'parity'", name)
    if name in _FUNCTIONS:
        raise InputError(f"name {name!r} is already registered; choose another name")
    _FUNCTIONS[name] = function


@scoped
def target_numbers(target: Target, inputs: Inputs) -> TargetNumbers:
    """A target against its inputs, as arrays."""
    return TargetNumbers(
        jnp.asarray(target.directions_in(inputs)),
        jnp.asarray(getattr(target, "values", ()), jnp.float64),
        jnp.asarray(getattr(target, "noise", 0.0)),
    )


def _named(link: str | Function | Activation, argument: str) -> str | Activation:
    """A registered name where there is one, else the wrapped callable."""
    found = activations.find(link, argument)
    return activations.registered_name(found) or found


@lru_cache(maxsize=256)
@scoped
def _probe(function: Callable[[Array], Array], indices: int) -> None:
    points = jnp.asarray(np.random.default_rng(0).normal(size=(5, 7, indices)))
    try:
        values = jax.jit(function)(points)
    except Exception as error:  # whatever the user's code raises is the user's to read
        raise InputError(
            f"function must be JAX-traceable and map (…, {indices}) to (…); calling it on an array raised "
            f"{type(error).__name__}: {error}"
        ) from error
    if getattr(values, "shape", None) != points.shape[:-1]:
        raise InputError(
            f"function must map an array (…, {indices}) to (…): {points.shape} gave "
            f"{getattr(values, 'shape', None)}, not {points.shape[:-1]}"
        )
    if not bool(jnp.all(jnp.isfinite(values))):
        raise InputError("function must be finite, got NaN or infinity on standard normal points")


def _fitting(directions: np.ndarray, name: str, inputs: Inputs) -> np.ndarray:
    """Refuse target directions that do not fit the inputs; longer than the mixture's vectors is fine."""
    length = directions.shape[1]
    signal = inputs.signal_dimension if isinstance(inputs, Mixture) else 0
    if length < signal or length > inputs.dimension:
        raise InputError(
            f"{name} must have between {signal} (the mixture's signal coordinates) and "
            f"{inputs.dimension} (dimension) entries, got {length}"
        )
    return directions


@scoped
def _random_unit(dimension: int, signal: int, seed: int) -> Float[np.ndarray, "signal+1"]:
    """A uniform unit vector of R^n: its signal coordinates and the norm of the rest."""
    draw = np.asarray(jax.random.normal(root_key(seed), (dimension,), jnp.float64))
    draw = draw / np.linalg.norm(draw)
    return np.append(draw[:signal], np.linalg.norm(draw[signal:]))
