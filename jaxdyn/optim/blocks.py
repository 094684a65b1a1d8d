r"""Optimizer states in one byte per number: in blocks of 256, each number is the nearest of 256 codes times the largest.

The codes are spaced by magnitude: :math:`10^{i-6}` times the midpoints of :math:`2^i` equal cells of [0.1, 1], i = 0…6, of either
sign, and 0 and 1; codes for numbers that are never negative have :math:`2^{i+1}` cells. No code is left for what is not a number:
one NaN or infinity makes its whole block NaN.
Source: arXiv:2110.02861 (8-bit optimizers), section 2 and its released code ("dynamic" data type).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import serialization
from jaxtyping import Array, Float, UInt8

__all__ = ["BLOCK", "SMALL", "STORED", "Blocks", "codes", "decode", "encode", "stored_as"]

BLOCK = 256
FIRST = (127 - 24) << 8  # the leading bits of 2^-24 in float32: exponent and 8 bits of the mantissa
SMALL = 4096  # arrays with fewer numbers are not encoded
STORED = ("parameter", "float32", "8bit")  # how states are stored: in the dtype of the parameter, in float32, in blocks


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
    """An encoded array: one byte per number (uint8), and the largest absolute value of every block (float32)."""

    code: Any
    largest: Any
    shape: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    signed: bool = dataclasses.field(metadata={"static": True})


def _restored(target: Blocks, state: dict[str, Any]) -> Blocks:
    """Stored blocks of an array like the target."""
    return dataclasses.replace(target, code=state["code"], largest=state["largest"])


serialization.register_serialization_state(Blocks, lambda x: {"code": x.code, "largest": x.largest}, _restored)


def encode(x: Float[Array, "..."], signed: bool = True, small: int = SMALL) -> Blocks | Float[Array, "..."]:
    """The array in blocks; one with fewer than ``small`` numbers as float32. A block with a number that is not finite is NaN."""
    x = x.astype(jnp.float32)
    if x.size < small:
        return x
    blocks = jnp.pad(x.ravel(), (0, -x.size % BLOCK)).reshape(-1, BLOCK)
    # of the bits, whose order is that of the numbers: XLA's maximum passes over NaN on CPUs (JAX 0.10, openxla/xla#21461)
    bits = jnp.max(jax.lax.bitcast_convert_type(jnp.abs(blocks), jnp.int32), 1)
    largest = jax.lax.bitcast_convert_type(bits, jnp.float32)
    relative = blocks / jnp.where(largest > 0, largest, 1)[:, None]
    largest = jnp.where(jnp.isfinite(largest), largest, jnp.nan)
    return Blocks(_nearest(relative.ravel()[: x.size], signed), largest, x.shape, signed)


@functools.cache
def _buckets(signed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Borders between neighbouring codes, and how many lie below each bucket: numbers of one sign with 9 leading bits in common.

    No bucket holds two borders, so that one comparison tells the code. Buckets begin at 2^-24, below the smallest border.
    """
    table = codes(signed)
    borders = np.append((table[1:] + table[:-1]) / 2, np.inf).astype(np.float32)
    ends = ((np.arange(24 * 256 + 2) + FIRST) << 15).astype(np.uint32).view(np.float32)
    ends[0] = 0
    below = np.searchsorted(borders, ends[:-1], "left")
    below_negative = np.searchsorted(borders, -ends[1:], "right")
    return borders, np.concatenate([below, below_negative]).astype(np.int32)


def _nearest(x: Float[Array, " size"], signed: bool) -> UInt8[Array, " size"]:
    """The nearest code of numbers between -1 and 1."""
    borders, below = (jnp.asarray(part) for part in _buckets(signed))
    half = below.size // 2
    bits = jax.lax.bitcast_convert_type(jnp.abs(x), jnp.int32) >> 15
    bucket = jnp.clip(bits - FIRST, 0, half - 1) + jnp.where(x < 0, half, 0)
    index = below[bucket]
    return (index + (borders[index] < x)).astype(jnp.uint8)


def decode(x: Blocks | Float[Array, "..."]) -> Float[Array, "..."]:
    """The array of its blocks; any other array as it is."""
    if not isinstance(x, Blocks):
        return x
    size = math.prod(x.shape)
    values = jnp.asarray(codes(x.signed))[x.code]
    return (jnp.pad(values, (0, -size % BLOCK)).reshape(-1, BLOCK) * x.largest[:, None]).ravel()[:size].reshape(x.shape)


def stored_as(stored: str, x: Float[Array, "..."], dtype: Any, signed: bool = True) -> Blocks | Float[Array, "..."]:
    """A state as it is stored: in blocks if ``stored`` is "8bit", else in this dtype."""
    return encode(x, signed) if stored == "8bit" else x.astype(dtype)
