"""Draws docs/fig1a.png, the README's picture: the paper's figure 1a with everything redrawn.

python docs/fig1a.py [trials]
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import onegrad as og

RATIOS = (0.1, 0.3, 0.4, 0.5, 0.7, 0.9, 1, 1.1, 1.5, 2, 3, 4, 5)
COLOURS = {"relu": "#c1440e", "tanh": "#1f5f8b", "sigmoid": "#4b7f52"}
MODELS = ("network", "hermite")


def curve(activation: str, trials: int) -> tuple[np.ndarray, np.ndarray]:
    """½·test_error, mean and standard error (model, ratio)."""
    scaling = og.Scaling(1000, alpha=0.5, beta=0.74)
    mixture = og.Mixture.spiked(1000, [[scaling.spread]] * 2, [0.5, 0.5])
    means, errors = [], []
    for ratio in RATIOS:
        problem = og.Problem(
            mixture,
            target=og.SingleIndex("relu"),
            activation=activation,
            width=round(1000 * ratio),
            samples=1000,
            learning_rate=scaling.learning_rate,
        )
        data = og.simulate(problem, trials, models=MODELS, degree=3, progress=True)
        means.append(og.mean(data).test_error.values / 2)
        errors.append(og.sem(data).test_error.values / 2)
    return np.transpose(means), np.transpose(errors)


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for activation, colour in COLOURS.items():
        mean, error = curve(activation, trials)
        axes.errorbar(
            RATIOS, mean[0], error[0], fmt="o", ms=5, color=colour, capsize=2, label=f"{activation}, network"
        )
        axes.plot(RATIOS, mean[1], color=colour, lw=1.3, label=f"{activation}, Hermite")
    axes.set(
        xlabel="width / samples  $k/m$",
        ylabel=r"$\frac{1}{2}\,$ generalization error",
        title=f"Two-layer network after one gradient step and its degree-3 polynomial ({trials} trials)",
    )
    axes.title.set_fontsize(9.5)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    colours = list(COLOURS)
    order = sorted(range(len(labels)), key=lambda i: (colours.index(labels[i].split(",")[0]), labels[i]))
    axes.legend([handles[i] for i in order], [labels[i] for i in order], ncols=3, fontsize=8, frameon=False)
    figure.savefig(Path(__file__).with_name("fig1a.png"), dpi=140)


if __name__ == "__main__":
    main()
