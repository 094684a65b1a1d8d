"""A small decoder with attention that is far from uniform, and texts."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.nn import Transformer
from jaxdyn.nn.transformer import apply
from tests.nn.drawn import weights

SMALL = Transformer(vocabulary=11, width=16, layers=2, heads=4, groups=2, hidden=10, std=0.6, dtype="float64")
apply = jax.jit(apply, static_argnums=0, static_argnames="observe")  # as one program: fewer to compile


def params_of(shape):
    params = weights(shape, 1)
    if "sink" in params["blocks"]:
        params["blocks"]["sink"] = jnp.asarray(np.tile(np.linspace(-1.0, 1.0, shape.heads), (shape.layers, 1)), shape.dtype)
    return params


def text(length=20, seed=0):
    return np.random.default_rng(seed).integers(0, 11, length)
