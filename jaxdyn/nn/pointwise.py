"""Functions of single numbers, by name: the activations of an MLP."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.nn import choices

__all__ = ["ACTIVATIONS", "activated"]

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "silu": jax.nn.silu,
    "relu": jax.nn.relu,
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": functools.partial(jax.nn.gelu, approximate=True),
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "linear": lambda x: x,
    "quadratic": jnp.square,
}


def activated(x: Float[Array, "*shape"], kind: Any) -> Float[Array, "*shape"]:
    """Every number after an activation: one of :data:`ACTIVATIONS`, a switch between them, or a function of one's own."""
    return choices.applied("activation", kind, ACTIVATIONS, x)
