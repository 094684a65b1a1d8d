"""The two norms of the decoders, in float32 at least. Letters: d the width."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["layer_norm", "rms_norm"]


def rms_norm(x: Float[Array, "*rest d"], gain: Float[Array, " d"], epsilon: float | Float[Array, ""]) -> Float[Array, "*rest d"]:
    """The root-mean-square norm. Source: arXiv:1910.07467, equation 4."""
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    return (wide * jax.lax.rsqrt(jnp.mean(jnp.square(wide), -1, keepdims=True) + epsilon)).astype(x.dtype) * gain


def layer_norm(
    x: Float[Array, "*rest d"], gain: Float[Array, " d"], bias: Float[Array, " d"], epsilon: float | Float[Array, ""]
) -> Float[Array, "*rest d"]:
    """LayerNorm. Source: arXiv:1607.06450, equation 4."""
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    centred = wide - jnp.mean(wide, -1, keepdims=True)
    return (centred * jax.lax.rsqrt(jnp.mean(jnp.square(centred), -1, keepdims=True) + epsilon)).astype(x.dtype) * gain + bias
