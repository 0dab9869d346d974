"""Feature maps: what the second layer sees of a sample. One file a map, all built from one trained layer.

`network` is the network itself; `hermite` and `conditional` are the models it is equivalent to. To add a
map: a file with a `build(layer)`, and its line in `BUILDERS`.
"""

from onegrad.features import conditional, hermite, neural
from onegrad.features.interface import Block, FeatureMap, Layer, PopulationMap

BUILDERS = {
    "network": neural.build,
    "hermite": hermite.build,
    "conditional": conditional.build,
}
MODELS = tuple(BUILDERS)
# maps whose second moments are known exactly, see moments.py
POPULATION_MODELS = ("network", "hermite")
# maps that need to know where the signal lives
MIXTURE_MODELS = ("conditional",)

__all__ = [
    "BUILDERS",
    "MIXTURE_MODELS",
    "MODELS",
    "POPULATION_MODELS",
    "Block",
    "FeatureMap",
    "Layer",
    "PopulationMap",
]
