"""Targets: labels, their resolution against a mixture, and refusals."""

import jax.numpy as jnp
import numpy as np
import pytest

import onegrad as og
from agreement import mean_agrees
from onegrad.target import target_numbers
from problems import general


def spiked(n: int = 30) -> og.Mixture:
    return og.Mixture.spiked(n, [[8.0], [3.0]], [0.25, 0.75])


def test_default_direction_is_new_orthogonal_and_scaled():
    mixture = spiked()
    (direction,) = og.SingleIndex("relu").directions_in(mixture)
    assert direction.tolist() == [0, 0, direction[2]]
    assert direction[2] == pytest.approx((1 + 0.75 * 3.0) ** -0.5)
    assert general(target=og.SingleIndex()).signal_dimension == 5


def test_random_direction_is_uniform_on_the_papers_sphere(seed):
    mixture = spiked(50)
    norm = mixture.average_norm**-0.5
    drawn = np.asarray(
        [og.SingleIndex.random("relu", seed + s).directions_in(mixture)[0] for s in range(400)]
    )
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), norm)
    assert mean_agrees((drawn[:, 0] / norm) ** 2, 1 / 50)
    assert not mean_agrees((drawn[:, 0] / norm) ** 2, 2 / 50)
    again = og.SingleIndex.random("relu", seed).directions_in(mixture)[0]
    np.testing.assert_array_equal(again, drawn[0])


def test_a_given_direction_is_used_as_given():
    target = og.SingleIndex("tanh", [0.0, 3.0, 4.0, 5.0])
    assert target.directions_in(spiked()).tolist() == [[0.0, 3.0, 4.0, 5.0]]


def test_labels_are_what_the_formulas_say():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(6, 30)))
    component = jnp.asarray([0, 1, 1, 0, 1, 0])
    single = og.SingleIndex("tanh", [0.1, 0.2, 0.3])
    found = single.rule.label(target_numbers(single, spiked()), x, component)
    np.testing.assert_allclose(found, np.tanh(x[:, :3] @ np.asarray([0.1, 0.2, 0.3])))
    multi = og.MultiIndex("product", [[1, 0, 0], [0, 2, 1]])
    found = multi.rule.label(target_numbers(multi, spiked()), x, component)
    np.testing.assert_allclose(found, x[:, 0] * (2 * x[:, 1] + x[:, 2]))
    labels = og.ComponentLabels([1, -1])
    found = labels.rule.label(target_numbers(labels, spiked()), x, component)
    np.testing.assert_array_equal(found, [1, -1, -1, 1, -1, 1])


@pytest.mark.parametrize(
    ("target", "binary"),
    [
        (og.ComponentLabels([1, -1]), True),
        (og.ComponentLabels([1, 2]), False),
        (og.SingleIndex("sign"), True),
        (og.SingleIndex("sign", noise=0.1), False),
        (og.SingleIndex("relu"), False),
    ],
    ids=str,
)
def test_misclassification_is_for_signs_only(target, binary):
    assert target.binary is binary


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: og.SingleIndex("rellu"), 'did you mean "relu"'),
        (lambda: og.SingleIndex("relu", [0, 0]), "direction must be a non-zero vector"),
        (lambda: og.SingleIndex("relu", noise=-1), "noise must be ≥ 0, got -1"),
        (lambda: og.SingleIndex("relu", [1.0], seed=3), "exclude each other"),
        (lambda: og.SingleIndex("relu", [1.0]).directions_in(spiked()), "between 2 .* entries, got 1"),
        (lambda: og.SingleIndex("relu", [1.0] * 31).directions_in(spiked()), "and 30 .*got 31"),
        (lambda: og.ComponentLabels([]), "values must be one number a component"),
        (lambda: og.ComponentLabels([1.0]).directions_in(spiked()), "each of the 2 components"),
        (lambda: og.MultiIndex("produkt", [[1.0]]), 'did you mean "product"'),
        (lambda: og.MultiIndex("product", [[1.0], [1.0, 2.0]]), "vectors of one length"),
        (lambda: og.MultiIndex(lambda u: u, [[1.0, 0.0]]), "must map an array"),
        (lambda: og.MultiIndex(lambda u: jnp.log(u[..., 0]), [[1.0]]), "must be finite"),
        (lambda: og.MultiIndex(lambda u: float(u), [[1.0]]), "JAX-traceable"),
        (lambda: og.MultiIndex(3, [[1.0]]), "a name or a callable"),
    ],
)
def test_bad_targets_are_refused(build, message):
    with pytest.raises(og.InputError, match=message):
        build()


def test_a_mixture_that_fills_the_space_leaves_no_new_direction():
    full = og.Mixture(2, [og.Component(1.0, [1.0, 2.0])])
    with pytest.raises(og.InputError, match="direction must be given"):
        og.SingleIndex("relu").directions_in(full)
