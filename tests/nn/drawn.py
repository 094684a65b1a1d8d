"""Weights of a decoder from NumPy: the program of ``init`` takes half a second to compile, for every shape anew."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.nn.transformer import init


def weights(shape, seed=0):
    """Weights N(0, std²) and gains one, as ``init`` has them."""
    rng = np.random.default_rng(seed)

    def drawn(path, like):
        x = np.ones(like.shape) if "norm" in path[-1].key else float(shape.std) * rng.normal(size=like.shape)
        return jnp.asarray(x, like.dtype)

    return jax.tree_util.tree_map_with_path(drawn, jax.eval_shape(lambda: init(shape, jax.random.key(0))))
