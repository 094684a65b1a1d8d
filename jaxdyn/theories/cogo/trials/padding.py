"""Arrays of groups of different order in one array."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Complex, Float, Shaped

__all__ = ["padded", "parts"]


def padded(arrays: Sequence[Shaped[Array, "..."]]) -> Shaped[Array, "group entry"]:
    """Arrays of any shapes, flattened, as the rows of one array; shorter rows end in zeros."""
    longest = max(x.size for x in arrays)
    return jnp.stack([jnp.pad(x.ravel(), (0, longest - x.size)) for x in arrays])


def parts(arrays: Sequence[Complex[Array, "..."]]) -> Float[Array, "2 group entry"]:
    """Real and imaginary parts of complex arrays, each as a row of :func:`padded`."""
    rows = padded(arrays)
    return jnp.stack([rows.real, rows.imag])
