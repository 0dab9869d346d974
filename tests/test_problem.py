"""The problem: JSON, hashes that mean the same everywhere, exponents, refusals."""

import dataclasses
import os
import subprocess
import sys

import jax.numpy as jnp
import pytest

import onegrad as og
from problems import general, paper

NOUNS = [
    og.Scaling(1000, 0.5, 0.74),
    og.Component(0.3, [1, 2], [4.0], [[0, 1]]),
    og.Mixture.spiked(100, [[3.0, 2.0], [1.0]], [0.5, 0.5], alignment=0.2, means=[[1.0], [-1.0]]),
    og.SingleIndex("tanh", [0.1, 0.2], noise=0.3),
    og.SingleIndex.random("relu", 7),
    og.MultiIndex("product", [[1, 0], [0, 1]]),
    og.ComponentLabels([1, -1]),
    general(),
    paper(target=og.ComponentLabels([1, -1]), gradient_samples=77),
]


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: type(noun).__name__)
def test_every_noun_survives_json_and_is_hashable(noun):
    again = type(noun).from_json(noun.to_json())
    assert again == noun
    assert hash(again) == hash(noun)
    assert again.content_hash == noun.content_hash
    with pytest.raises(dataclasses.FrozenInstanceError):
        noun.anything = 1


def test_the_hash_is_the_same_in_every_process():
    """Recorded once: another process, with another hash seed, must find it again."""
    recorded = "cbc31b8b4cfe739e92bc5f50301da702cde443a1ab7c7eecbcdb7031d06a5907"
    assert general().content_hash == recorded
    code = "from problems import general; print(general().content_hash)"
    environment = {**os.environ, "PYTHONHASHSEED": "5", "PYTHONPATH": os.path.dirname(__file__)}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == recorded


def test_the_hash_sees_every_number():
    base = general()
    changes = [
        {"width": 31},
        {"samples": 51},
        {"learning_rate": 20.5},
        {"ridge": 2e-3},
        {"gradient_samples": 51},
        {"activation": "tanh"},
        {"target": og.ComponentLabels([1, 2, 3])},
    ]
    hashes = {dataclasses.replace(base, **change).content_hash for change in changes}
    assert len(hashes | {base.content_hash}) == len(changes) + 1


def test_writing_out_a_default_does_not_change_the_stream():
    base = general()
    assert dataclasses.replace(base, gradient_samples=50).stream == base.stream
    assert dataclasses.replace(base, gradient_samples=51).stream != base.stream


def test_a_callable_has_no_json_until_it_has_a_name():
    def softsign(x):
        return x / (1 + jnp.abs(x))

    problem = general(activation=softsign)
    assert problem == general(activation=softsign)
    with pytest.raises(
        og.InputError, match=r"activation is a Activation without a name, .* register it under a name"
    ):
        problem.to_json()
    with pytest.raises(og.InputError, match="no JSON and no hash"):
        _ = problem.content_hash
    assert isinstance(problem.stream, int)
    og.register_activation("test_softsign", softsign, kinks=[0.0])
    named = general(activation=softsign)
    assert named.activation == "test_softsign"
    assert og.Problem.from_json(named.to_json()) == named


def test_beta_and_degree_are_the_published_ones():
    """fig1c's axis: β is given back to 1e-9, degrees are 1 1 1 1 1 2 2 4 4 4."""
    degrees = []
    for i in range(10):
        for alpha in (0.0, 0.5, 1.0):
            problem = paper(1000, alpha, i / 9)
            assert problem.beta == pytest.approx(i / 9, abs=2e-9)
        degrees.append(problem.degree)
    assert degrees == [1, 1, 1, 1, 1, 2, 2, 4, 4, 4]
    assert paper(1000, beta=0.74).degree == 3
    assert paper(learning_rate=0.0).beta == 0.0


def test_scaling():
    scaling = og.Scaling(1000, alpha=0.25, beta=0.8)
    assert scaling.spread == pytest.approx(1000**0.6)
    assert scaling.learning_rate == pytest.approx(1000**0.2)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: og.Scaling(10, 1.2, 0.5), r"alpha must be in \[0, 1\], got 1.2"),
        (lambda: og.Scaling(10, 0.5, -0.1), r"beta must be in \[0, 1\], got -0.1"),
        (lambda: general(width=0), "width must be an integer ≥ 1, got 0"),
        (lambda: general(width=3.0), "width must be an integer ≥ 1, got 3.0"),
        (lambda: general(width=True), "width must be an integer ≥ 1, got True"),
        (lambda: general(samples=-1), "samples must be an integer ≥ 1, got -1"),
        (lambda: general(gradient_samples=0), "gradient_samples must be an integer ≥ 1"),
        (lambda: general(ridge=0.0), "ridge must be > 0, got 0.0"),
        (lambda: general(ridge=-1.0), "ridge must be > 0, got -1.0"),
        (lambda: general(ridge=float("nan")), "ridge must be > 0, got nan"),
        (lambda: general(ridge="a"), "ridge must be > 0, got 'a'"),
        (lambda: general(learning_rate=-1), "learning_rate must be ≥ 0"),
        (lambda: general(activation="thanh"), 'did you mean "tanh"'),
        (lambda: general(activation=3), "activation must be a name or a callable, got 3"),
        (lambda: general(target="relu"), "target must be SingleIndex, MultiIndex or ComponentLabels"),
        (
            lambda: og.Problem(3, width=1, samples=1, learning_rate=1),
            "mixture must be a Mixture .*got 3",
        ),
        (lambda: og.Problem.from_json("{"), "text must be JSON"),
        (lambda: og.Problem.from_json("{}"), 'Problem needs the key "mixture"'),
        (lambda: og.Scaling.from_json('{"alpa": 1}'), 'unknown key "alpa" .*did you mean "alpha"'),
        (lambda: og.Scaling.from_json("[]"), "Scaling must be a table of keys"),
    ],
)
def test_bad_problems_are_refused(build, message):
    with pytest.raises(og.InputError, match=message):
        build()
