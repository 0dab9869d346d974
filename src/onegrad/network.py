"""The two-layer network ŷ(x) = wᵀσ(Fx)/√k and its one gradient step on the first layer (SPEC §2, §3)."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from onegrad.activations import Activation
from onegrad.gaussian import row_normals


def initialise(
    key: Array, width: int, dimension: int, trace: Float[Array, ""]
) -> tuple[Float[Array, "width dimension"], Float[Array, "width"]]:
    """First layer F_ij ~ N(0, 1/tr), second layer w_i ~ N(0, 1/k).

    Every neuron has a key of its own: a wider network contains the narrower one's neurons.
    """

    normals = row_normals(key, jnp.arange(width), dimension + 1)
    return normals[:, :dimension] / jnp.sqrt(trace), normals[:, dimension] / width**0.5


def forward(
    activation: Activation,
    first: Float[Array, "width dimension"],
    second: Float[Array, "width"],
    x: Float[Array, "rows dimension"],
) -> Float[Array, "rows"]:
    """ŷ = wᵀσ(Fx)/√k."""
    return activation(x @ first.T) @ second / second.size**0.5


def descent(
    activation: Activation,
    first: Float[Array, "width dimension"],
    second: Float[Array, "width"],
    x: Float[Array, "rows dimension"],
    y: Float[Array, "rows"],
) -> Float[Array, "width dimension"]:
    """m̃·G of these rows: [(w/√k)(y − wᵀσ(Fx)/√k) ∘ σ'(Fx)] xᵀ, minus the gradient of ½Σ(y − ŷ)².

    Rows add up, so a large training set is walked in blocks; divide the sum by m̃.
    """
    preactivation = x @ first.T
    scale = second.size**0.5
    residual = y - activation(preactivation) @ second / scale
    back = residual[:, None] * (second / scale) * activation.derivative(preactivation)
    return back.T @ x
