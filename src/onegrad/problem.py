"""The one noun everything starts from: data, labels, network and training of an experiment."""

import math
from dataclasses import dataclass, field
from typing import Any

from onegrad import _checks, activations
from onegrad.activations import Activation, Function
from onegrad.document import Document, digest
from onegrad.errors import InputError
from onegrad.mixture import Inputs, Mixture
from onegrad.target import KINDS, SingleIndex, Target, target_from_dict

MAX_DEGREE = 4  # of the published equivalent polynomial, for numerical stability (SPEC §7)


@dataclass(frozen=True)
class Scaling(Document):
    """The paper's scaling (SPEC §6): who gets the strength (alpha), how much there is (beta)."""

    dimension: int
    alpha: float
    beta: float

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "dimension", _checks.integer("dimension", self.dimension))
        set_field(self, "alpha", _checks.within("alpha", self.alpha, 0.0, 1.0))
        set_field(self, "beta", _checks.within("beta", self.beta, 0.0, 1.0))

    @property
    def spread(self) -> float:
        """θ = n^{β(1−α)}, the strength of a spike."""
        return self.dimension ** (self.beta * (1 - self.alpha))

    @property
    def learning_rate(self) -> float:
        """η = n^{βα}."""
        return self.dimension ** (self.beta * self.alpha)


@dataclass(frozen=True)
class Problem(Document):
    """A two-layer network, one gradient step, ridge on the second layer (SPEC §1–5).

    `mixture` may also be anything with the `Inputs` interface (real images): such a problem simulates
    but has no JSON. `gradient_samples=None` means as many as `samples`, drawn independently.
    """

    mixture: Inputs
    target: Target = field(default=SingleIndex("relu"), kw_only=True)
    activation: str | Function | Activation = field(default="relu", kw_only=True)
    width: int = field(kw_only=True)
    samples: int = field(kw_only=True)
    learning_rate: float = field(kw_only=True)
    ridge: float = field(default=1e-4, kw_only=True)
    gradient_samples: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        if not isinstance(self.mixture, Inputs):
            raise _checks.refuse(
                "mixture", "a Mixture (or have dimension, trace, bulk_std, sample)", self.mixture
            )
        if not isinstance(self.mixture, Mixture):
            _check_inputs(self.mixture)
        if not isinstance(self.target, tuple(KINDS.values())):
            raise _checks.refuse("target", "SingleIndex, MultiIndex or ComponentLabels", self.target)
        found = activations.find(self.activation)
        set_field(self, "activation", activations.registered_name(found) or found)
        set_field(self, "width", _checks.integer("width", self.width))
        set_field(self, "samples", _checks.integer("samples", self.samples))
        learning_rate = _checks.non_negative("learning_rate", self.learning_rate)
        set_field(self, "learning_rate", learning_rate)
        set_field(self, "ridge", _checks.positive("ridge", self.ridge))
        if self.gradient_samples is not None:
            count = _checks.integer("gradient_samples", self.gradient_samples)
            set_field(self, "gradient_samples", count)
        self.target.directions_in(self.mixture)  # refuses a target that does not fit

    @classmethod
    def decode(cls, given: dict[str, Any]) -> dict[str, Any]:
        nested = {"mixture": Mixture.from_dict(given["mixture"], "mixture")}
        if "target" in given:
            nested["target"] = target_from_dict(given["target"])  # pyright: ignore[reportArgumentType]
        return {**given, **nested}

    @property
    def function(self) -> Activation:
        """The activation, callable."""
        return activations.find(self.activation)

    @property
    def step_samples(self) -> int:
        """m̃, the samples of the gradient step."""
        return self.samples if self.gradient_samples is None else self.gradient_samples

    @property
    def signal_dimension(self) -> int:
        """D: signal coordinates of the mixture and the target together."""
        mixture = self.mixture.signal_dimension if isinstance(self.mixture, Mixture) else 0
        return max(mixture, self.target.directions_in(self.mixture).shape[1])

    @property
    def binary(self) -> bool:
        """Whether labels are ±1: only then is there a misclassification."""
        return self.target.binary

    @property
    def beta(self) -> float:
        """β = log(η·max(1, θ_max, ‖μ‖²_max))/log n, clipped to [0, 1] (SPEC §7)."""
        spread = getattr(self.mixture, "spread", None)
        if spread is None:
            raise InputError("degree must be given for inputs without a spread: β is not defined for them")
        strength = self.learning_rate * spread
        if strength <= 1 or self.mixture.dimension == 1:
            return 0.0
        # rounded, so that a problem built from a Scaling gives its β back
        return round(min(1.0, math.log(strength) / math.log(self.mixture.dimension)), 9)

    @property
    def degree(self) -> int:
        """ℓ − 1, the degree of the equivalent polynomial, as published (1..4)."""
        return min(MAX_DEGREE, max(1, math.ceil(self.beta / (1 - self.beta + 1e-6))))

    @property
    def stream(self) -> int:
        """Which random stream a simulation uses: 32 bits of the content hash.

        A problem without a hash has a stream all the same, from the names of its unnamed parts.
        """
        plain = self.to_dict(unnamed=lambda name, value: getattr(value, "name", type(value).__name__))
        return int(digest({**plain, "gradient_samples": self.step_samples})[:8], 16)


def _check_inputs(inputs: Inputs) -> None:
    """Refuse inputs other than a mixture whose numbers or identity would fail later."""
    _checks.integer("mixture.dimension", inputs.dimension)
    _checks.positive("mixture.trace", inputs.trace)
    _checks.positive("mixture.bulk_std", inputs.bulk_std)
    try:
        hash(inputs)
    except TypeError:
        raise InputError(
            f"mixture must be hashable, got a {type(inputs).__name__}; use @dataclass(frozen=True, eq=False) "
            "where it holds arrays"
        ) from None
