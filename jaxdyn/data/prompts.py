r"""Prompts of in-context linear regression: examples of one linear map, and a query.

.. math:: w \sim N(0, \Omega), \quad x_i, x_q \sim N(0, \Lambda), \quad y_i = w \cdot x_i + \sigma\epsilon_i; \qquad
          \text{target } w \cdot x_q

Source: arXiv:2306.09927, section 2. Letters: d inputs, N examples, n prompts; R a root of :math:`\Lambda = RR^\top`, W one of
:math:`\Omega`; :math:`\sigma` the noise.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from jaxdyn.errors import UsageError, number, whole
from jaxdyn.sampling import wide

__all__ = ["Prompts", "draw"]

Scalar = float | int | Float[Array, ""]


class Prompts(NamedTuple):
    """Examples (x, y), queries and targets of n prompts."""

    tokens: Float[Array, "n N d1"]
    query: Float[Array, "n d"]
    target: Float[Array, " n"]


def draw(
    key: PRNGKeyArray,
    count: int,
    length: int,
    root: Float[Array, "d d"],
    *,
    task: Float[Array, "d d"] | None = None,
    noise: Scalar = 0.0,
    tails: Scalar = 0.0,
) -> Prompts:
    r"""Prompts of Gaussian inputs, all from one draw.

    Args:
        key: of the draw.
        count: n.
        length: N.
        root: R.
        task: W; None: the identity.
        noise: :math:`\sigma`, on the examples' labels alone.
        tails: t from 0 to 1: an input is multiplied by :math:`\sqrt{1 \pm t}`, either sign alike. Covariances stay, fourth moments
            grow by :math:`1 + t^2`.

    Raises:
        UsageError: if a number that is not traced is out of its range, or a root is not square.
    """
    count, length = whole("count", count, least=1), whole("length", length, least=1)
    number("noise", noise, least=0, traced=True)
    number("tails", tails, least=0, most=1, traced=True)
    if root.ndim != 2 or len({*root.shape, *(() if task is None else task.shape)}) > 1:
        raise UsageError("the roots of the covariances are not allowed: they are square, and of one size")
    d, (k_draw, k_sign) = root.shape[0], jax.random.split(key)
    z = jax.random.normal(k_draw, (count, (length + 2) * d + length), wide(root.dtype))
    x, w = z[:, : (length + 1) * d].reshape(count, length + 1, d) @ root.T, z[:, (length + 1) * d : (length + 2) * d]
    sign = jax.random.rademacher(k_sign, (count, length + 1, 1), root.dtype)
    x = x * jnp.sqrt(1 + tails * sign)
    w = w if task is None else w @ task.T
    y = jnp.einsum("nid,nd->ni", x, w)
    labels = y[:, :length] + noise * z[:, (length + 2) * d :]
    prompts = Prompts(jnp.concatenate([x[:, :length], labels[..., None]], -1), x[:, length], y[:, length])
    narrow = jnp.finfo(root.dtype).bits < 32
    return jax.tree.map(lambda part: part.astype(root.dtype), prompts) if narrow else prompts
