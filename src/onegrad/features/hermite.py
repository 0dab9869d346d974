"""The equivalent Hermite model (SPEC §7): σ replaced by its polynomial plus independent noise.

σ̂(x) = Σ_{j≤degree} h_j H_j(x/b)/j! + h* z, z ~ N(0, 1) fresh for every neuron and sample.
"""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from onegrad import gaussian
from onegrad.features.interface import Block, Layer
from onegrad.gaussian import Series


@dataclass(frozen=True)
class Hermite:
    """`coefficients` are h_j/√j!, those of the normalised polynomials."""

    coefficients: Float[Array, "terms"]
    residual: Float[Array, ""]
    bulk_std: Float[Array, ""]

    @property
    def noise_variance(self) -> Float[Array, ""]:
        return self.residual**2

    def polynomial(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        terms = gaussian.hermite(preactivation / self.bulk_std, self.coefficients.size - 1)
        pairs = zip(self.coefficients, terms, strict=True)
        return sum((c * term for c, term in pairs), jnp.zeros_like(preactivation))

    def __call__(self, block: Block) -> Float[Array, "rows width"]:
        return self.polynomial(block.preactivation) + self.residual * block.noise()

    def series(self, mean: Array, sd: Array, degree: int) -> Series:
        """The polynomial re-expanded at each neuron's own mean and sd: exact, whatever `degree`."""
        top = self.coefficients.size - 1
        nodes, weights = (jnp.asarray(a, mean.dtype) for a in gaussian.tensor_rule(1, top + 1))
        values = self.polynomial(mean[:, None] + sd[:, None] * nodes[:, 0])
        basis = jnp.stack(gaussian.hermite(nodes[:, 0], top), axis=-1)
        coefficients = values @ (basis * weights[:, None])
        return Series(coefficients, jnp.sum(coefficients**2, axis=1), mean, sd)


def build(layer: Layer) -> Hermite:
    return Hermite(layer.hermite_coefficients, layer.hermite_residual, layer.bulk_std)
