"""Optimizers that optax lacks, or that a paper's code runs in a way of its own, as optax transformations.

``galore(3e-3, rank=128)`` and its like are used as ``optax.adamw(3e-3)`` is. What they are made of is in the modules:
:mod:`jaxdyn.optim.projection` takes any inner transformation, :mod:`jaxdyn.optim.methods` sweeps over methods.
"""

from jaxdyn.optim.adam import adam_direction
from jaxdyn.optim.aliases import NothingSaved, apollo, apollo_mini, fira, galore, golore, lora, q_galore, relora
from jaxdyn.optim.axes import HEADS_IN, HEADS_OUT, Matrix, hidden_matrices, matching
from jaxdyn.optim.layerwise import Layers, layerwise
from jaxdyn.optim.memory import MemoryLayout, estimate, listing
from jaxdyn.optim.methods import METHODS, Options, method
from jaxdyn.optim.subspace import Subspace

__all__ = [
    "HEADS_IN",
    "HEADS_OUT",
    "METHODS",
    "Layers",
    "Matrix",
    "MemoryLayout",
    "NothingSaved",
    "Options",
    "Subspace",
    "adam_direction",
    "apollo",
    "apollo_mini",
    "estimate",
    "fira",
    "galore",
    "golore",
    "hidden_matrices",
    "layerwise",
    "listing",
    "lora",
    "matching",
    "method",
    "q_galore",
    "relora",
]
