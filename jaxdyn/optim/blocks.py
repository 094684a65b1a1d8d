r"""Optimizer states in one byte a number: in blocks of 256, each number is the nearest of 256 codes times the largest.

The codes are spaced by magnitude: :math:`10^{i-6}` times the midpoints of :math:`2^i` equal cells of [0.1, 1], i = 0…6, of either
sign, and 0 and 1; codes for numbers that are never negative have :math:`2^{i+1}` cells.
Source: arXiv:2110.02861 (8-bit optimizers), section 2 and its released code ("dynamic" data type).
"""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

__all__ = ["BLOCK", "SMALL", "Blocks", "codes", "decode", "encode"]

BLOCK = 256
SMALL = 4096  # arrays with fewer numbers are not encoded


@functools.cache
def codes(signed: bool) -> np.ndarray:
    """The 256 codes in ascending order, float32."""
    positive = []
    for i in range(7):
        edges = np.linspace(0.1, 1, 2 ** (i if signed else i + 1) + 1)
        positive.append(10.0 ** (i - 6) * (edges[1:] + edges[:-1]) / 2)
    values = np.concatenate(positive)
    return np.sort(np.concatenate([-values, values, [0, 1]] if signed else [values, [0, 1]])).astype(np.float32)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Blocks:
    """An encoded array: a byte a number, and the largest absolute value of every block."""

    code: UInt8[Array, " size"]
    largest: Float[Array, " blocks"]
    shape: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    signed: bool = dataclasses.field(metadata={"static": True})


def encode(x: Float[Array, "..."], signed: bool = True) -> Blocks | Float[Array, "..."]:
    """The array in blocks; one with fewer than :data:`SMALL` numbers as float32."""
    x = x.astype(jnp.float32)
    if x.size < SMALL:
        return x
    blocks = jnp.pad(x.ravel(), (0, -x.size % BLOCK)).reshape(-1, BLOCK)
    largest = jnp.max(jnp.abs(blocks), 1)
    table = codes(signed)
    relative = blocks / jnp.where(largest > 0, largest, 1)[:, None]
    index = jnp.searchsorted(jnp.asarray((table[1:] + table[:-1]) / 2), relative.ravel()[: x.size])
    return Blocks(index.astype(jnp.uint8), largest, x.shape, signed)


def decode(x: Blocks | Float[Array, "..."]) -> Float[Array, "..."]:
    """The array of its blocks; any other array as it is."""
    if not isinstance(x, Blocks):
        return x
    size = math.prod(x.shape)
    values = jnp.asarray(codes(x.signed))[x.code]
    return (jnp.pad(values, (0, -size % BLOCK)).reshape(-1, BLOCK) * x.largest[:, None]).ravel()[:size].reshape(x.shape)
