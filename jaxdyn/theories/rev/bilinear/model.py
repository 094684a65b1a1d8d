r"""The bilinear model: tokens are vectors, and the logit of y after x is :math:`x^\top \Theta\, y`.

.. math:: p(y|x) = \frac{e^{x^\top\Theta y}}{\sum_{y' \in V} e^{x^\top\Theta y'}}, \qquad
          L = -\frac1n \sum_i \ln p(y_i|x_i), \qquad L_\text{rev} = -\frac1n \sum_i \ln p(x_i|y_i)

Source: arXiv:2405.04669, section 3. Letters: V (m, d) tokens as rows, W = V Theta V^T (m, m) the effective weights, G = V V^T
(m, m) their Gram matrix, n pairs. The tokens are exchangeable, so that the pairs are x_i = i, y_i = n + i. Losses depend on
Theta through the rows x_i and y_i of W alone, the first r = 2n, and these obey a flow of their own (:func:`field`), with 2nm
components where Theta has d^2.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from jaxdyn import linalg
from jaxdyn.engine.claims.code_field import Code

KINDS = ("gaussian", "orthonormal")


class Flow(NamedTuple):
    """Parameters of the flow: Gram matrix, weight of the reverse loss, and whether Theta stays symmetric (0 or 1)."""

    gram: Float[Array, "m m"]
    reverse: Float[Array, ""]
    symmetric: Float[Array, ""]


def sample_tokens(key: PRNGKeyArray, kind: Code, m: int, d: Float[Array, ""], columns: int) -> Float[Array, "m columns"]:
    r"""Tokens in d dimensions, padded with zeros to a number of columns, so that runs of any d share one program.

    Gaussian: rows from :math:`N(0, I_d/d)`. Orthonormal: rows of a random orthogonal m by m matrix, cut to the first d columns,
    hence orthonormal if and only if d >= m.
    """
    normal = jax.random.normal(key, (m, columns), jnp.float64)
    frame = linalg.qr(normal[:, :m] if columns >= m else jnp.pad(normal, ((0, 0), (0, m - columns))))[0]
    frame = jnp.pad(frame, ((0, 0), (0, max(0, columns - m))))[:, :columns]
    return jnp.where(jnp.arange(columns) < d, jnp.where(kind == "gaussian", normal / jnp.sqrt(d), frame), 0.0)


def effective(theta: Float[Array, "d d"], v: Float[Array, "m d"], n: int) -> Float[Array, "r m"]:
    """Logits of every token after the tokens of the pairs, the first 2n rows of W = V Theta V^T."""
    return v[: 2 * n] @ theta @ v.T


def loss(w: Float[Array, "r m"], n: int) -> Float[Array, ""]:
    """L: mean cross-entropy of y_i after x_i."""
    place = jnp.arange(n)
    return -jnp.mean(jax.nn.log_softmax(w[:n])[place, n + place])


def reverse_loss(w: Float[Array, "r m"], n: int) -> Float[Array, ""]:
    """L_rev: mean cross-entropy of x_i after y_i."""
    place = jnp.arange(n)
    return -jnp.mean(jax.nn.log_softmax(w[n : 2 * n])[place, place])


def objective(w: Float[Array, "r m"], n: int, reverse: float | Float[Array, ""]) -> Float[Array, ""]:
    """The training loss: L, plus the reverse loss where it has a weight."""
    return loss(w, n) + reverse * reverse_loss(w, n)


def field(w: Float[Array, "r m"], flow: Flow, n: int) -> Float[Array, "r m"]:
    r"""Gradient flow of Theta in the rows of its effective weights that losses read, :math:`\dot W = -G\,\nabla_W L\,G`.

    With a symmetric parametrisation :math:`\Theta = (A + A^\top)/2` the gradient of A is the symmetric part of that of Theta.
    """
    g, near = jax.grad(objective)(w, n, flow.reverse), flow.gram[: 2 * n]
    there, back = near[:, : 2 * n] @ (g @ flow.gram), (near @ g.T) @ near
    return -(there + flow.symmetric * (back - there) / 2)
