"""The problems on which predictions are measured against simulation: one of each kind a user may bring.

`cases(n)` scales all of them with the dimension, so that the same case can be watched from n = 250 to 2000.
"""

import jax
import jax.numpy as jnp
import numpy as np

import onegrad as og

# Cases with a spread of order n, the hardest of the theory: held to 3 % instead of 2 %.
WIDE = ("wide relu", "wide tanh", "wide sigmoid")

og.register_activation("mish", lambda x: x * jnp.tanh(jax.nn.softplus(x)))


def paper(n: int, alpha: float = 0.5, beta: float = 0.74, on_spikes: bool = False, **changes) -> og.Problem:
    """The paper's two components; `on_spikes` puts ξ along the sum of the spikes."""
    scaling = og.Scaling(n, alpha, beta)
    mixture = og.Mixture.spiked(n, [[scaling.spread], [scaling.spread]], [0.5, 0.5])
    if on_spikes:
        changes["target"] = og.SingleIndex("relu", np.full(2, 0.5**0.5) / mixture.average_norm**0.5)
    settings = {"width": n, "samples": n, "learning_rate": scaling.learning_rate, **changes}
    return og.Problem(mixture, **settings)


def isotropic(n: int, **changes) -> og.Problem:
    return og.Problem(og.Mixture(n, [og.Component(1.0)]), **{"width": n, "samples": n, **changes})


def three(n: int) -> og.Mixture:
    """Three components with means of norm 2 to 3 and spikes of 4 to 25, nothing orthogonal."""
    return og.Mixture(
        n,
        [
            og.Component(0.5, [2, 0, 0, 0.5], [9.0, 4.0], [[0, 1, 0, 0], [0.6, 0.8, 0, 0]]),
            og.Component(0.3, [-3, 0, 1, 0], [25.0], [[0, 0, 0, 1]]),
            og.Component(0.2, [0, 0, 2, 0]),
        ],
    )


def exclusive_or(n: int) -> og.Mixture:
    """Four components at the corners of a square; labels alternate around it."""
    corners = [[2, 2], [-2, 2], [-2, -2], [2, -2]]
    return og.Mixture(n, [og.Component(0.25, corner) for corner in corners])


def opposite(n: int, mean: float, weight: float) -> og.Mixture:
    return og.Mixture(n, [og.Component(weight, [mean]), og.Component(1 - weight, [-mean])])


def ranked(n: int, rank: int, activation: str) -> og.Problem:
    """fig2c: many spikes of random strength."""
    scaling = og.Scaling(n, 0.5, 0.74)
    strengths = scaling.spread * np.random.default_rng(rank).uniform(size=(2, rank))
    strengths[1] *= strengths[0].sum() / strengths[1].sum()
    mixture = og.Mixture.spiked(n, strengths, [0.5, 0.5])
    return og.Problem(mixture, activation=activation, width=n, samples=n, learning_rate=scaling.learning_rate)


def cases(n: int) -> dict[str, og.Problem]:
    direction = [0.2, 0.3, 0.8, 0.1]
    labels = og.ComponentLabels((1, -1))
    leaning = og.Mixture(
        n,
        [
            og.Component(0.6, None, [n**0.5, 3.0], [[1, 0, 0], [0, 1, 0]]),
            og.Component(0.4, [0, 0, 1], [n**0.5], [[0.5, 0.75**0.5, 0]]),
        ],
    )
    return {
        "paper relu": paper(n),
        "paper tanh, narrow": paper(n, activation="tanh", width=n // 2),
        "paper sigmoid, wide net": paper(n, activation="sigmoid", width=2 * n),
        "k = 5m": paper(n, samples=int(0.6 * n), width=3 * n),
        "k = m/5, erf": paper(n, activation="erf", samples=2 * n, width=int(0.4 * n)),
        "large step, tanh": isotropic(n, activation="tanh", learning_rate=float(n)),
        "large step, relu, noise": isotropic(
            n, learning_rate=float(n), target=og.SingleIndex("tanh", [1.0], noise=0.3)
        ),
        "random features": isotropic(n, learning_rate=0.0, width=2 * n),
        "no step, spikes √n, softplus": paper(
            n, 0.0, 0.5, activation="softplus", width=int(1.5 * n), on_spikes=True
        ),
        "leaning spikes, mish": og.Problem(
            leaning,
            target=og.SingleIndex("relu", [0.1, 0.1, 0.7]),
            activation="mish",
            width=n,
            samples=int(1.5 * n),
            learning_rate=n**0.5,
        ),
        "three components, noisy": og.Problem(
            three(n),
            target=og.SingleIndex("tanh", direction, noise=0.2),
            activation="erf",
            width=n,
            samples=2 * n,
            learning_rate=20.0,
            ridge=1e-3,
        ),
        "three components, labels": og.Problem(
            three(n),
            target=og.ComponentLabels((1, -1, 1)),
            width=n,
            samples=2 * n,
            learning_rate=20.0,
            ridge=1e-3,
        ),
        "exclusive or": og.Problem(
            exclusive_or(n),
            target=og.ComponentLabels((1, -1, 1, -1)),
            activation="tanh",
            width=2 * n,
            samples=n,
            learning_rate=n**0.5,
            ridge=1e-3,
        ),
        "unbalanced, large step, relu": og.Problem(
            opposite(n, 1.5, 0.8), target=labels, width=n, samples=n, learning_rate=float(n), ridge=1e-2
        ),
        "balanced, tanh": og.Problem(
            opposite(n, 1.0, 0.5),
            target=labels,
            activation="tanh",
            width=n // 2,
            samples=n,
            learning_rate=n / 2,
            ridge=1e-3,
        ),
        "labels by covariance": paper(n, target=labels),
        "spread n^¾, relu": paper(n, 0.0, 0.75, on_spikes=True),
        "spread n^¾, tanh": paper(n, 0.0, 0.75, on_spikes=True, activation="tanh"),
        "wide relu": paper(n, 0.0, 1.0, on_spikes=True),
        "wide tanh": paper(n, 0.0, 1.0, on_spikes=True, activation="tanh", width=2 * n),
        "wide sigmoid": paper(n, 0.0, 1.0, activation="sigmoid"),
        "few gradient samples": isotropic(
            n, learning_rate=n / 2, gradient_samples=int(0.3 * n), target=og.SingleIndex("tanh", [1.0])
        ),
        "many gradient samples": paper(
            n,
            0.6,
            0.9,
            activation="sigmoid",
            gradient_samples=4 * n,
            target=og.SingleIndex("relu", noise=0.5),
        ),
        "two indices": og.Problem(
            og.Mixture.spiked(n, [[5.0], []], [0.5, 0.5], means=[[0.0], [1.0]]),
            target=og.MultiIndex("product", [[0.3, 0.5, 0.0], [0.0, 0.5, 0.6]], noise=0.1),
            width=n,
            samples=2 * n,
            learning_rate=n**0.5,
            ridge=1e-3,
        ),
        "large step, mish": isotropic(
            n,
            activation="mish",
            learning_rate=float(n),
            width=int(0.7 * n),
            target=og.SingleIndex("softplus", [1.0]),
        ),
        "rank 10": ranked(n, 10, "relu"),
        "perceptron, leaky relu": og.Problem(
            og.Mixture(n, [og.Component(1.0, [1.0, 0.5], [5.0], [[0, 1]])]),
            target=og.SingleIndex("sign", [1.0, 0.3]),
            activation="leaky_relu",
            width=n,
            samples=int(1.5 * n),
            learning_rate=n**0.5,
            ridge=1e-2,
        ),
        "sin, step 0.3 n": isotropic(n, activation="sin", learning_rate=0.3 * n, width=2 * n),
        "unequal weights, gelu": og.Problem(
            og.Mixture.spiked(n, [[n**0.5], [4.0], []], [0.6, 0.3, 0.1]),
            activation="gelu",
            width=int(0.6 * n),
            samples=n,
            learning_rate=n**0.4,
            ridge=1e-2,
        ),
        "step n/4, silu": paper(n, 0.9, 0.9, activation="silu", ridge=1e-3),
    }
