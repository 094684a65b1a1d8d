"""A small decoder with attention that is far from uniform, and texts."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.nn.decoder import Decoder, init

SMALL = Decoder(vocabulary=11, width=16, layers=2, heads=4, groups=2, hidden=10, std=0.6, dtype="float64")


def params_of(shape):
    params = init(shape, jax.random.key(1))
    if "sink" in params["blocks"]:
        params["blocks"]["sink"] = params["blocks"]["sink"] + jnp.linspace(-1.0, 1.0, shape.heads, dtype=shape.dtype)
    return params


def text(length=20, seed=0):
    return jnp.asarray(np.random.default_rng(seed).integers(0, 11, length))
