"""Optimizers and schedules by name, as optax transformations, with those that optax lacks or that a paper's code runs otherwise.

``method("adamw", schedule("cosine", 3e-3, 1000, warmup=100), Options(weight_decay=0.1)).tx`` is any of them
(:mod:`jaxdyn.optim.methods`, :mod:`jaxdyn.optim.schedules`); ``galore(3e-3, rank=128)`` and its like are used as
``optax.adamw(3e-3)`` is. What they are made of is in the modules: :mod:`jaxdyn.optim.projection` takes any inner transformation.
"""

from jaxdyn.optim.adam import adam_direction
from jaxdyn.optim.aliases import NothingSaved, apollo, apollo_mini, fira, galore, golore, lora, q_galore, relora
from jaxdyn.optim.axes import HEADS_IN, HEADS_OUT, Matrix, hidden_matrices, matching
from jaxdyn.optim.layerwise import Layers, layerwise
from jaxdyn.optim.memory import MemoryLayout, estimate, listing
from jaxdyn.optim.methods import METHODS, Options, method
from jaxdyn.optim.momentum import momentum_direction, sign_direction
from jaxdyn.optim.muon import muon_direction
from jaxdyn.optim.schedules import SCHEDULES, schedule
from jaxdyn.optim.subspace import Subspace

__all__ = [
    "HEADS_IN",
    "HEADS_OUT",
    "METHODS",
    "SCHEDULES",
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
    "momentum_direction",
    "muon_direction",
    "q_galore",
    "relora",
    "schedule",
    "sign_direction",
]
