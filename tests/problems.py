"""Small problems that many tests share."""

import numpy as np

import onegrad as og


def paper(
    n: int = 200,
    alpha: float = 0.5,
    beta: float = 0.74,
    activation="relu",
    target=None,
    on_spikes: bool = False,
    **changes,
) -> og.Problem:
    """The paper's two components at n = m = k; `on_spikes` puts ξ along the sum of the spikes."""
    scaling = og.Scaling(n, alpha, beta)
    mixture = og.Mixture.spiked(n, [[scaling.spread], [scaling.spread]], [0.5, 0.5])
    if on_spikes:
        direction = np.full(2, 0.5**0.5) / mixture.average_norm**0.5
        target = og.SingleIndex("relu", direction)
    settings = {"width": n, "samples": n, "learning_rate": scaling.learning_rate, **changes}
    return og.Problem(mixture, target=target or og.SingleIndex("relu"), activation=activation, **settings)


def general(n: int = 40, **changes) -> og.Problem:
    """Three components, means, ranks 0 to 2 with non-orthogonal spikes, noise: nothing symmetric."""
    tilted = [0.6, 0.8, 0.0, 0.0]
    mixture = og.Mixture(
        n,
        [
            og.Component(0.5, [2, 0, 0, 0.5], [9.0, 4.0], [[0, 1, 0, 0], tilted]),
            og.Component(0.3, [-3, 0, 1, 0], [2.0], [[0, 0, 0, 1]]),
            og.Component(0.2),
        ],
    )
    target = og.SingleIndex("tanh", [0.2, 0.3, 0.8, 0.1], noise=0.2)
    settings = {"width": 30, "samples": 50, "learning_rate": 20.0, "ridge": 1e-3, **changes}
    return og.Problem(mixture, **{"target": target, "activation": "erf", **settings})
