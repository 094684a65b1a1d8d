r"""Two views of points of the Boolean hypercube: relevant bits kept, all others scaled by a random factor.

.. math:: \bar x \sim U(\{-1, 1\}^D), \qquad x = (\bar x_{1:k},\ \tau \odot \bar x_{k+1:D}), \qquad \tau \sim U((0, 1])

The factor is one number a view, or one number a coordinate of a view. Signs survive, so that views of different points never
coincide: the augmentation makes the irrelevant bits less convenient, it does not remove them.
Source: arXiv:2202.14037. Letters: n points, D coordinates, k relevant ones, w label draws.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from jaxdyn.errors import number, whole
from jaxdyn.sampling import wide

__all__ = ["labels", "pair", "points", "view"]


def points(key: PRNGKeyArray, count: int, dims: int, dtype: Any = "float32") -> Float[Array, "n D"]:
    """Uniform points of the cube.

    Raises:
        UsageError: if a number is no whole one of at least 1.
    """
    count, dims = whole("count", count, least=1), whole("dims", dims, least=1)
    return jnp.where(jax.random.bernoulli(key, shape=(count, dims)), 1, -1).astype(dtype)


def view(key: PRNGKeyArray, x: Float[Array, "n D"], relevant: Any, scalar: Any) -> Float[Array, "n D"]:
    """One view of every point; ``scalar`` (bool, may be traced) draws one factor a view instead of one a coordinate.

    Raises:
        UsageError: if ``relevant``, unless it is traced, is none of 0 to D.
    """
    number("relevant", relevant, least=0, most=x.shape[1], traced=True)
    factor = (1 - jax.random.uniform(key, x.shape, wide(x.dtype))).astype(x.dtype)  # in (0, 1]
    factor = jnp.where(scalar, factor[:, :1], factor)
    return jnp.where(jnp.arange(x.shape[1]) < relevant, x, factor * x)


def pair(key: PRNGKeyArray, count: int, dims: int, relevant: Any, scalar: Any, dtype: Any = "float32") -> Float[Array, "views n D"]:
    """Both views of ``count`` new points."""
    k_points, k_first, k_second = jax.random.split(key, 3)
    x = points(k_points, count, dims, dtype)
    return jnp.stack([view(k_first, x, relevant, scalar), view(k_second, x, relevant, scalar)])


def labels(key: PRNGKeyArray, x: Float[Array, "n D"], relevant: Any, tasks: int) -> Bool[Array, "w n"]:
    r"""Downstream labels :math:`w \cdot \bar x_{1:k} > 0` of so many tasks, :math:`w \sim N(0, I_k)`.

    Raises:
        UsageError: if ``tasks`` is no whole number of at least 1, or ``relevant``, unless it is traced, none of 0 to D.
    """
    tasks = whole("tasks", tasks, least=1)
    number("relevant", relevant, least=0, most=x.shape[1], traced=True)
    w = jax.random.normal(key, (tasks, x.shape[1]), wide(x.dtype))
    return jnp.where(jnp.arange(x.shape[1]) < relevant, w, 0) @ x.T > 0
