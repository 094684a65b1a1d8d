r"""Rotary rates that are rescaled, so that a network can read longer texts than it was first trained on.

.. math:: \omega_j \to \omega_j / c_j, \qquad
   c_j = \Bigl(\frac{1 - s_j}{c} + s_j\Bigr)^{-1}, \quad
   s_j = \min\Bigl(1, \max\Bigl(0, \frac{L \omega_j / 2\pi - l}{h - l}\Bigr)\Bigr)

The second formula is "llama3": fast pairs keep their rates, slow ones are c times slower, those between are interpolated. "linear"
divides all by c, "table" each by a number of its own.

Source: arXiv:2306.15595, equation 4 (linear); the released code of Llama 3.1 (llama3; there in wavelengths, 2π/ω).
Letters: ω the rate of a pair, c the factor, L the first length, l and h turns within it: below l a pair is slow, above h fast.
"""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.errors import UsageError, number, require, whole

__all__ = ["SCALINGS", "Scaling", "slowed"]

SCALINGS = ("linear", "llama3", "table")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scaling:
    """How rates are rescaled; hashable.

    Args:
        kind: one of :data:`SCALINGS`.
        factor: c, of "linear" and "llama3".
        low: l, for "llama3".
        high: h, for "llama3".
        length: L, for "llama3".
        table: a divisor for every pair, for "table".
    """

    kind: str
    factor: float = 1.0
    low: float = 1.0
    high: float = 4.0
    length: int = 8192
    table: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        require(self, self.kind in SCALINGS, f"kind of rotary scaling is one of {', '.join(SCALINGS)}", "kind")
        for name in ("factor", "low", "high"):
            object.__setattr__(self, name, number(name, getattr(self, name), above=0))
        object.__setattr__(self, "length", whole("length", self.length, least=1))
        require(self, self.low < self.high, "low is below high", "low", "high")
        object.__setattr__(self, "table", tuple(number("table", value, above=0) for value in self.table))
        table = (self.kind == "table") == bool(self.table)
        require(self, table, "divisors go with the kind table, and with no other", "kind", "table")


def slowed(rates: Float[Array, " half"], scaling: Scaling | None) -> Float[Array, " half"]:
    """The rates after rescaling; None leaves them as they are.

    Raises:
        UsageError: for a table of another number of pairs.
    """
    if scaling is None:
        return rates
    if scaling.kind == "linear":
        return rates / scaling.factor
    if scaling.kind == "table":
        if len(scaling.table) != rates.size:
            pairs = f"it has {len(scaling.table)} divisors for {rates.size} pairs"
            raise UsageError(f"this table of rotary scaling is not allowed: {pairs}")
        return rates / jnp.asarray(scaling.table, rates.dtype)
    turns = scaling.length * rates / (2 * math.pi)
    share = jnp.clip((turns - scaling.low) / (scaling.high - scaling.low), 0, 1)
    return rates * ((1 - share) / scaling.factor + share)
