"""Mixtures: geometry, sampling in signal coordinates against explicit covariances, and refusals."""

import jax.numpy as jnp
import numpy as np
import pytest

import onegrad as og
from agreement import covariance_agrees, mean_agrees
from problems import general

SAMPLES = 20_000


def covariance(mixture: og.Mixture, component: int, d: int) -> np.ndarray:
    """I + Σ θ γγᵀ on the first d coordinates, from the nouns themselves."""
    whole = np.eye(d)
    chosen = mixture.components[component]
    for strength, direction in zip(chosen.strengths, chosen.directions, strict=True):
        padded = np.zeros(d)
        padded[: len(direction)] = direction
        whole += strength * np.outer(padded, padded)
    return whole


def test_samples_have_the_components_moments(seed):
    mixture = general().mixture
    assert isinstance(mixture, og.Mixture)
    x, component = (np.asarray(part) for part in mixture.sample(seed, SAMPLES))
    for c, noun in enumerate(mixture.components):
        own = x[component == c][:, :6]
        assert mean_agrees(component == c, noun.weight)
        mean = np.zeros(6)
        mean[: len(noun.mean or ())] = noun.mean or ()
        expected = covariance(mixture, c, 6)
        assert covariance_agrees(own - mean, expected)
        for i in range(6):
            assert mean_agrees(own[:, i], mean[i])
        if c == 0:
            assert not mean_agrees(own[:, 0], 0.0)
            # planted: a spike dropped, a strength doubled
            assert not covariance_agrees(own - mean, np.eye(6))
            assert not covariance_agrees(own - mean, 2 * expected - np.eye(6))


def test_signal_coordinates_are_a_rotation_of_the_paper(seed):
    """Inner products with random directions of R^n survive the reduction to signal coordinates."""
    n, strengths = 300, [[4.0, 2.0], [3.0]]
    mixture = og.Mixture.spiked(n, strengths, [0.5, 0.5], random_directions=seed)
    directions = [np.asarray(c.directions) for c in mixture.components]
    np.testing.assert_allclose(directions[0] @ directions[0].T, np.eye(2), atol=1e-12)
    assert mixture.signal_dimension == 3
    overlaps = []
    for other in range(400):
        drawn = og.Mixture.spiked(n, [[1.0], [1.0]], [0.5, 0.5], random_directions=seed + other)
        a, b = (np.asarray(c.directions[0]) for c in drawn.components)
        overlaps.append(a @ b)
    # uniform on the sphere: mean 0, variance 1/n
    assert mean_agrees(overlaps, 0.0)
    assert mean_agrees(np.square(overlaps), 1 / n)
    assert not mean_agrees(np.square(overlaps), 2 / n)


def test_aligned_spikes_overlap_and_keep_their_shape():
    for alignment in (-1.0, 0.0, 0.3, 1.0):
        mixture = og.Mixture.spiked(50, [[9.0, 4.0], [9.0, 4.0, 1.0], [2.0]], [0.2, 0.3, 0.5], alignment)
        first, second, third = (np.asarray(c.directions) for c in mixture.components)
        expected = np.zeros((2, 3))
        expected[[0, 1], [0, 1]] = alignment
        np.testing.assert_allclose(first @ second.T, expected, atol=1e-12)
        assert third[0] @ second[0] == pytest.approx(alignment)
        assert mixture.signal_dimension == 6


def test_means_live_beside_the_spikes():
    mixture = og.Mixture.spiked(20, [[4.0], []], [0.5, 0.5], means=[[1, 2], [0, -1]])
    assert mixture.signal_dimension == 3
    assert mixture.components[0].mean == (0.0, 1.0, 2.0)
    assert mixture.components[1].strengths == ()


def test_trace_spread_and_norm():
    mixture = general().mixture
    assert isinstance(mixture, og.Mixture)
    assert mixture.trace == pytest.approx(40 + 0.5 * 13 + 0.3 * 2)
    assert mixture.bulk_std == pytest.approx((40 / mixture.trace) ** 0.5)
    assert mixture.spread == 10.0  # ‖(−3, 0, 1, 0)‖² beats the strongest spike, 9
    average = sum(c.weight * covariance(mixture, i, 4) for i, c in enumerate(mixture.components))
    assert mixture.average_norm == pytest.approx(np.linalg.eigvalsh(average)[-1])


def test_a_sample_does_not_depend_on_how_many_there_are(seed):
    mixture = general().mixture
    few, many = mixture.sample(seed, 5), mixture.sample(seed, 9)
    np.testing.assert_array_equal(few[0], many[0][:5])
    np.testing.assert_array_equal(few[1], many[1][:5])


def test_a_component_of_weight_zero_is_never_drawn(seed):
    mixture = og.Mixture(5, [og.Component(0.0), og.Component(1.0), og.Component(0.0)])
    _, component = mixture.sample(seed, 5000)
    assert set(np.asarray(component)) == {1}


def test_no_array_of_n_squared(seed):
    """n = 200,000 would need 320 GB for one n×n matrix."""
    mixture = og.Mixture.spiked(200_000, [[9.0], [4.0]], [0.5, 0.5], random_directions=seed)
    x, _ = mixture.sample(seed, 3)
    assert x.shape == (3, 200_000)
    assert jnp.all(jnp.isfinite(x))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: og.Mixture.spiked(9, [[1.0], [1.0]], [0.5, 0.4]), "weights must sum to 1, got"),
        (lambda: og.Component(-0.1), r"weight must be in \[0, 1\], got -0.1"),
        (lambda: og.Component(1, None, [-1.0], [[1.0]]), r"strengths\[0\] must be ≥ 0, got -1.0"),
        (lambda: og.Component(1, None, [1.0], [[1.0, 1.0]]), "must be a unit vector"),
        (lambda: og.Component(1, None, [1.0], []), "one unit vector for each of the 1 strengths"),
        (lambda: og.Component(1, [float("nan")]), r"mean\[0\] must be a finite number"),
        (lambda: og.Mixture(9, [og.Component(1, [1, 0], [1.0], [[1.0]])]), "one common length"),
        (lambda: og.Mixture(1, [og.Component(1, [1, 0])]), "at most dimension = 1"),
        (lambda: og.Mixture(0, [og.Component(1)]), "dimension must be an integer ≥ 1, got 0"),
        (lambda: og.Mixture(4, []), "non-empty list of Component"),
        (lambda: og.Mixture(4, 7), "components must be a list of Component"),
        (lambda: og.Mixture.spiked(9, [[1.0]] * 2, [0.5] * 2, 1.2), r"alignment must be in \[-1, 1\]"),
        (lambda: og.Mixture.spiked(9, [[1.0]], [0.5, 0.5]), "one list for each of the 2 weights"),
        (lambda: og.Mixture.spiked(1, [[1.0]] * 2, [0.5] * 2), "dimension must be ≥ 2"),
        (lambda: og.Mixture.spiked(9, [[1.0]], [1.0], means=[[1], [2]]), "means must be 1 vectors"),
        (
            lambda: og.Mixture.spiked(9, [[1.0]] * 2, [0.5] * 2, 0.5, random_directions=1),
            "alignment must be 0 with random_directions",
        ),
    ],
)
def test_bad_mixtures_are_refused(build, message):
    with pytest.raises(og.InputError, match=message):
        build()
