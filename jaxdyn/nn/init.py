r"""How weights are drawn at the start.

``encoder``: the published word-level language model: embedding and read-out uniform in :math:`\pm 0.1`, packed queries, keys and
values Xavier-uniform (bound :math:`\sqrt{6/(3d + d)}`), other matrices uniform in :math:`\pm 1/\sqrt{\text{fan in}}` with biases
alike, attention biases and the read-out's zero. ``gpt2``: Gaussian with standard deviation 0.02, divided by :math:`\sqrt{2L}` for
the two matrices that write into the residual, biases zero (Radford et al. 2019, section 2.3). ``fan_in``: embedding
:math:`N(0, 1)`, everything else uniform in :math:`\pm 1/\sqrt{\text{fan in}}`.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxdyn.nn.config import Shape

__all__ = ["rules"]

Initializer = Callable[..., jax.Array]


def uniform(bound: float) -> Initializer:
    """Uniform in (-bound, bound)."""

    def draw(key: jax.Array, shape: tuple[int, ...], dtype: str) -> jax.Array:
        return jax.random.uniform(key, shape, dtype, -bound, bound)

    return draw


def zeros(key: jax.Array, shape: tuple[int, ...], dtype: str) -> jax.Array:
    """All zero."""
    return jnp.zeros(shape, dtype)


def rules(s: Shape) -> dict[str, Initializer]:
    """The rule of every group: embed, position, qkv(_bias), out(_bias), inner(_bias), outer(_bias), head(_bias), sink."""
    normal = jax.nn.initializers.normal
    wide, narrow = s.width**-0.5, s.hidden**-0.5
    if s.start == "gpt2":
        write = 0.02 / (2 * s.layers) ** 0.5
        matrices = dict.fromkeys(("embed", "position", "qkv", "inner", "head"), normal(0.02)) | dict.fromkeys(
            ("out", "outer"), normal(write)
        )
        return matrices | dict.fromkeys(("qkv_bias", "out_bias", "inner_bias", "outer_bias", "head_bias", "sink"), zeros)
    fan_in = {name: uniform(wide) for name in ("qkv", "qkv_bias", "out", "out_bias", "inner", "inner_bias", "head", "head_bias")}
    fan_in |= {
        "outer": uniform(narrow),
        "outer_bias": uniform(narrow),
        "embed": normal(1.0),
        "position": normal(1.0),
        "sink": zeros,
    }
    if s.start == "fan_in":
        return fan_in
    table, xavier = uniform(0.1), uniform((6 / (4 * s.width)) ** 0.5)
    return fan_in | {
        "embed": table,
        "position": table,
        "head": table,
        "head_bias": zeros,
        "qkv": xavier,
        "qkv_bias": zeros,
        "out_bias": zeros,
    }
