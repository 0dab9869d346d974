"""Gaussian mixtures in signal coordinates.

The first layer starts isotropic, so only the geometry of means, spikes and target directions matters.
They are written as vectors of R^D, the first D of the n coordinates; the other n − D are standard
normal. No n×n array exists anywhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int

from onegrad import _checks
from onegrad._checks import Vector, Vectors
from onegrad.document import Document
from onegrad.errors import InputError
from onegrad.gaussian import row_normals
from onegrad.numerics import root_key, scoped

UNIT_TOLERANCE = 1e-8  # how far from 1 the norm of a direction, or the sum of the weights, may be


@runtime_checkable
class Inputs(Protocol):
    """What a problem needs of its inputs; a `Mixture` is one, a pool of real images may be another.

    `trace` is the total variance that scales the first layer (F_ij ~ N(0, 1/trace)) and `bulk_std`
    the standard deviation of a bulk pre-activation. `sample` returns inputs (count, dimension) and
    the component (class, from 0) of each (count,). A trial draws all its samples, of both training sets
    and the test set, in one call: a finite pool can hand out distinct ones. The call is traced by JAX inside
    a compiled trial: it must be a pure function of its key, in jax.numpy, and the object hashable.
    """

    @property
    def dimension(self) -> int: ...
    @property
    def trace(self) -> float: ...
    @property
    def bulk_std(self) -> float: ...
    def sample(self, key: Array, count: int) -> tuple[Array, Array]: ...


@dataclass(frozen=True)
class Component(Document):
    """One component: x ~ N(mean, I + Σ_i strengths[i] directions[i] directions[i]ᵀ), with its weight.

    `mean` defaults to 0. Directions are unit vectors; all vectors of a mixture have one length D.
    """

    weight: float
    mean: Vector | None = None
    strengths: Vector = ()
    directions: Vectors = ()

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "weight", _checks.within("weight", self.weight, 0.0, 1.0))
        if self.mean is not None:
            set_field(self, "mean", _checks.reals("mean", self.mean))
        strengths = _checks.reals("strengths", self.strengths)
        for i, strength in enumerate(strengths):
            _checks.non_negative(f"strengths[{i}]", strength)
        directions = _checks.rows("directions", self.directions)
        if len(directions) != len(strengths):
            raise InputError(
                f"directions must be one unit vector for each of the {len(strengths)} strengths, "
                f"got {len(directions)}"
            )
        for i, direction in enumerate(directions):
            norm = float(np.linalg.norm(direction))
            if abs(norm - 1) > UNIT_TOLERANCE:
                raise _checks.refuse(
                    f"directions[{i}]", "a unit vector", list(direction), f"its norm is {norm:.6g}"
                )
        set_field(self, "strengths", strengths)
        set_field(self, "directions", directions)

    def lengths(self) -> set[int]:
        """The lengths of its vectors: one if the component is consistent."""
        vectors = self.directions if self.mean is None else (self.mean, *self.directions)
        return {len(vector) for vector in vectors}

    def spike_matrix(self, signal_dimension: int) -> Float[np.ndarray, "signal rank"]:
        """A = Γ diag(√θ), so that the covariance is I + AAᵀ; padded with zero coordinates."""
        matrix = np.zeros((signal_dimension, len(self.strengths)))
        for i, (strength, direction) in enumerate(zip(self.strengths, self.directions, strict=True)):
            matrix[: len(direction), i] = np.sqrt(strength) * np.asarray(direction)
        return matrix


class MixtureNumbers(NamedTuple):
    """A mixture as arrays that compiled code takes as arguments: new values compile nothing.

    The covariance of component c is I + axes[c] diag(variances[c]) axes[c]ᵀ with orthonormal axes.
    """

    weights: Float[Array, "components"]
    means: Float[Array, "components signal"]
    axes: Float[Array, "components signal rank"]
    variances: Float[Array, "components rank"]


@dataclass(frozen=True)
class Mixture(Document):
    """A Gaussian mixture on R^dimension, its vectors written in signal coordinates (R^D, D ≤ dimension)."""

    dimension: int
    components: Sequence[Component]

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "dimension", _checks.integer("dimension", self.dimension))
        try:
            components = tuple(self.components)
        except TypeError:
            raise _checks.refuse("components", "a list of Component", self.components) from None
        if not components or not all(isinstance(c, Component) for c in components):
            raise _checks.refuse("components", "a non-empty list of Component", components)
        total = sum(component.weight for component in components)
        if abs(total - 1) > UNIT_TOLERANCE:
            weights = [component.weight for component in components]
            raise InputError(f"weights must sum to 1, got {weights} with sum {total:.6g}")
        lengths = set().union(*(component.lengths() for component in components))
        if len(lengths) > 1:
            raise InputError(
                "means and directions of a mixture must have one common length, "
                f"got lengths {sorted(lengths)}; pad the shorter with zeros"
            )
        if lengths and max(lengths) > self.dimension:
            raise InputError(
                f"signal coordinates must be at most dimension = {self.dimension}, "
                f"got vectors of length {max(lengths)}"
            )
        set_field(self, "components", components)

    @classmethod
    def spiked(
        cls,
        dimension: int,
        strengths: Vectors,
        weights: Vector,
        alignment: float = 0.0,
        means: Vectors | None = None,
        random_directions: int | None = None,
    ) -> "Mixture":
        """Spiked covariances, one list of strengths a component (ranks may differ).

        By default all spikes are orthogonal, except that the i-th spikes of consecutive components
        overlap by `alignment`. `random_directions=seed` draws the paper's instead: for every component
        an independent Haar frame of R^dimension, reduced to signal coordinates. `means` (one vector a
        component) live in coordinates of their own, orthogonal to every spike; for means that lean on
        spikes write `Mixture(dimension, [Component(...), ...])`.
        """
        dimension = _checks.integer("dimension", dimension)
        strengths = _checks.rows("strengths", strengths)
        weights = _checks.reals("weights", weights)
        alignment = _checks.within("alignment", alignment, -1.0, 1.0)
        if len(strengths) != len(weights):
            raise InputError(
                f"strengths must be one list for each of the {len(weights)} weights, got {len(strengths)}"
            )
        if not weights:
            raise _checks.refuse("weights", "one number a component", weights)
        for c, weight in enumerate(weights):
            _checks.within(f"weights[{c}]", weight, 0.0, 1.0)
        ranks = [len(row) for row in strengths]
        if random_directions is None and sum(ranks) > dimension:
            raise InputError(
                f"dimension must be ≥ {sum(ranks)}, the signal coordinates these spikes take, got {dimension}"
            )
        if random_directions is None:
            frames = _aligned_frames(ranks, alignment)
        elif alignment:
            raise _checks.refuse(
                "alignment", "0 with random_directions", alignment, "random frames set the overlaps"
            )
        else:
            frames = _random_frames(dimension, ranks, random_directions)
        spike_coordinates = frames[0].shape[0] if frames else 0
        offsets = _mean_rows(means, len(weights))
        if spike_coordinates + len(offsets[0]) > dimension:
            raise InputError(
                f"dimension must be ≥ {spike_coordinates + len(offsets[0])}, the signal coordinates "
                f"these spikes and means take, got {dimension}"
            )
        padding = (0.0,) * len(offsets[0])
        components = [
            Component(
                weight,
                (0.0,) * spike_coordinates + offset,
                row,
                tuple((*map(float, direction), *padding) for direction in frame.T),
            )
            for weight, row, frame, offset in zip(weights, strengths, frames, offsets, strict=True)
        ]
        return cls(dimension, tuple(components))

    @property
    def signal_dimension(self) -> int:
        """D, the length of the mixture's vectors (0 when it has none)."""
        return max(max(component.lengths(), default=0) for component in self.components)

    @property
    def trace(self) -> float:
        """Σ_c ρ_c tr Σ_c, means excluded (SPEC §2)."""
        return self.dimension + sum(c.weight * sum(c.strengths) for c in self.components)

    @property
    def bulk_std(self) -> float:
        """b = √(n/tr), the standard deviation of a bulk pre-activation."""
        return (self.dimension / self.trace) ** 0.5

    @property
    def spread(self) -> float:
        """max(1, largest strength, largest squared mean): the data's part of β (SPEC §7)."""
        present = [c for c in self.components if c.weight > 0]
        strengths = [strength for c in present for strength in c.strengths]
        means = [sum(value**2 for value in c.mean or ()) for c in present]
        return max(1.0, *strengths, *means)

    @property
    def average_norm(self) -> float:
        """‖Σ_c ρ_c Σ_c‖₂, which scales the paper's target direction (SPEC §6)."""
        d = self.signal_dimension
        spikes = [c.weight**0.5 * c.spike_matrix(d) for c in self.components]
        singular = np.linalg.svd(np.concatenate(spikes, axis=1), compute_uv=False)
        return 1.0 + (float(singular[0]) ** 2 if singular.size else 0.0)

    @scoped
    def numbers(self, signal_dimension: int | None = None) -> MixtureNumbers:
        """The mixture as arrays, padded with zeros to `signal_dimension` ≥ D coordinates."""
        d = self.signal_dimension if signal_dimension is None else signal_dimension
        rank = max(len(component.strengths) for component in self.components)
        count = len(self.components)
        means, axes = np.zeros((count, d)), np.zeros((count, d, rank))
        variances = np.zeros((count, rank))
        for c, component in enumerate(self.components):
            mean = component.mean or ()
            means[c, : len(mean)] = mean
            left, singular, _ = np.linalg.svd(component.spike_matrix(d), full_matrices=False)
            axes[c, :, : len(singular)] = left
            variances[c, : len(singular)] = singular**2
        weights = np.asarray([component.weight for component in self.components])
        return MixtureNumbers(*(jnp.asarray(part) for part in (weights, means, axes, variances)))

    @scoped
    def sample(
        self, key: int | Array, count: int
    ) -> tuple[Float[Array, "count dimension"], Int[Array, "count"]]:
        """`count` inputs and the component of each. Sample i is the same for every `count` > i."""
        count = _checks.integer("count", count)
        x, component, _ = sample_rows(self.numbers(), self.dimension, root_key(key), jnp.arange(count))
        return x, component

    @classmethod
    def decode(cls, given: dict[str, Any]) -> dict[str, Any]:
        tables = given["components"]
        if not isinstance(tables, list):
            raise _checks.refuse("components", "a list of tables", tables)
        components = [Component.from_dict(t, f"components[{i}]") for i, t in enumerate(tables)]
        return {**given, "components": components}


def each(mixture: MixtureNumbers, within: Callable[[Array], Any]) -> Any:
    """within(c) of every component c, stacked."""
    return jax.lax.map(within, jnp.arange(mixture.weights.size))


def average(mixture: MixtureNumbers, within: Callable[[Array], Any]) -> Any:
    """Σ_c ρ_c within(c), leaf by leaf."""
    return jax.tree.map(lambda leaf: jnp.tensordot(mixture.weights, leaf, 1), each(mixture, within))


def sample_rows(
    numbers: MixtureNumbers, dimension: int, key: Array, rows: Int[Array, "rows"]
) -> tuple[Float[Array, "rows dimension"], Int[Array, "rows"], Float[Array, "rows"]]:
    """The samples with these indices: inputs, components, and a standard normal each for the label.

    A row is n + 2 normals: the inputs before colouring, one that picks the component, the label's.
    """
    signal = numbers.means.shape[1]
    normals = row_normals(key, rows, dimension + 2)
    edges = jnp.cumsum(numbers.weights)
    component = jnp.searchsorted(edges / edges[-1], norm.cdf(normals[:, dimension]), side="right")
    component = jnp.minimum(component, edges.size - 1)
    x = normals[:, :dimension]
    x = x.at[:, :signal].set(colour(numbers, x[:, :signal], component))
    return x, component, normals[:, dimension + 1]


def colour(
    numbers: MixtureNumbers, white: Float[Array, "rows signal"], component: Int[Array, "rows"]
) -> Float[Array, "rows signal"]:
    """mean_c + (I + axes_c (√(1+variances_c) − 1) axes_cᵀ) white: the symmetric root of the covariance."""
    gains = jnp.sqrt(1 + numbers.variances) - 1
    along = jnp.einsum("rs,csd->rcd", white, numbers.axes) * gains
    shifted = numbers.means + jnp.einsum("rcd,csd->rcs", along, numbers.axes)
    picked = jnp.take_along_axis(shifted, component[:, None, None], axis=1)[:, 0]
    return white + picked


def _aligned_frames(ranks: list[int], alignment: float) -> list[np.ndarray]:
    """Signal coordinates of orthogonal spikes; the i-th of a component leans on the i-th before it.

    A coordinate is spent on every spike, also at alignment ±1, so that a sweep keeps one shape.
    """
    total = sum(ranks)
    frames: list[np.ndarray] = []
    first = 0
    for c, rank in enumerate(ranks):
        frame = np.zeros((total, rank))
        frame[first : first + rank, :] = np.eye(rank)
        shared = min(rank, ranks[c - 1]) if c else 0
        if shared:
            frame[:, :shared] *= (1 - alignment**2) ** 0.5
            frame[:, :shared] += alignment * frames[c - 1][:, :shared]
        frames.append(frame)
        first += rank
    return frames


@scoped
def _random_frames(dimension: int, ranks: list[int], seed: int) -> list[np.ndarray]:
    """Independent Haar frames of R^dimension (each n × rank), in coordinates of their joint span."""
    if max(ranks) > dimension:
        raise InputError(f"strengths must be at most dimension = {dimension} a component, got {max(ranks)}")
    key = root_key(seed)
    frames = []
    for c, rank in enumerate(ranks):
        draw = jax.random.normal(jax.random.fold_in(key, c), (dimension, rank), jnp.float64)
        frame, upper = np.linalg.qr(np.asarray(draw))
        frames.append(frame * np.sign(np.diagonal(upper)))  # the sign makes the frame Haar
    coordinates = np.linalg.qr(np.concatenate(frames, axis=1), mode="r")
    coordinates = coordinates / np.linalg.norm(coordinates, axis=0)
    return np.split(coordinates, np.cumsum(ranks)[:-1], axis=1)


def _mean_rows(means, count: int) -> list[tuple[float, ...]]:
    if means is None:
        return [()] * count
    rows = list(_checks.rows("means", means))
    if len(rows) != count or len({len(row) for row in rows}) != 1:
        raise InputError(f"means must be {count} vectors of one length, one a component, got {rows}")
    return rows
