"""The network's own features: φ = σ(F̂x)."""

from dataclasses import dataclass

from jaxtyping import Array, Float

from onegrad.activations import Activation
from onegrad.features.interface import Block, Layer
from onegrad.gaussian import Series


@dataclass(frozen=True)
class Neural:
    activation: Activation
    noise_variance: float = 0.0

    def __call__(self, block: Block) -> Float[Array, "rows width"]:
        return self.activation(block.preactivation)

    def series(self, mean: Array, sd: Array, degree: int) -> Series:
        coefficients = self.activation.coefficients(mean, sd, degree)
        return Series(coefficients, self.activation.second_moment(mean, sd), mean, sd)


def build(layer: Layer) -> Neural:
    return Neural(layer.activation)
