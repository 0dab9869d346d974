"""The interface of the feature maps."""

from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Array, Float, Int, Key

from onegrad.activations import Activation
from onegrad.gaussian import Series, row_normals
from onegrad.mixture import MixtureNumbers


class Layer(NamedTuple):
    """A first layer after its step, with what the equivalent models need to know of it."""

    activation: Activation
    weights: Float[Array, "width dimension"]
    gradient: Float[Array, "width dimension"]
    second: Float[Array, "width"]
    bulk_std: Float[Array, ""]
    hermite_coefficients: Float[Array, "terms"]
    hermite_residual: Float[Array, ""]
    signal_dimension: int
    mixture: MixtureNumbers | None


class Block(NamedTuple):
    """A block of samples: inputs, pre-activations F̂x, their indices and the key of a model's own noise."""

    x: Float[Array, "rows dimension"]
    preactivation: Float[Array, "rows width"]
    rows: Int[Array, "rows"]
    key: Key[Array, ""]

    def noise(self) -> Float[Array, "rows width"]:
        """Standard normals, fresh for every neuron and sample."""
        draw = row_normals(self.key, self.rows, self.preactivation.shape[1])
        return draw.astype(self.preactivation.dtype)


@runtime_checkable
class FeatureMap(Protocol):
    """Maps a block of samples to features φ (without the 1/√k)."""

    def __call__(self, block: Block) -> Float[Array, "rows width"]: ...


@runtime_checkable
class PopulationMap(FeatureMap, Protocol):
    """A map whose features are functions of their own pre-activation plus independent noise."""

    @property
    def noise_variance(self) -> float | Float[Array, ""]: ...

    def series(self, mean: Float[Array, "width"], sd: Float[Array, "width"], degree: int) -> Series:
        """The features as Hermite series when neuron i's pre-activation is N(mean_i, sd_i²)."""
        ...
