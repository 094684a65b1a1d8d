r"""The form of the gradient of a reversible network's weights.

.. math:: -\nabla_{W_l} L = \frac1N \sum_i \bigl(J^\top y - J^\top J W_l f_{l-1}\bigr) f_{l-1}^\top \ (\ell_2), \qquad
   \frac1N \sum_i \bigl(J^\top P y - \tfrac\gamma K J^\top P J W_l f_{l-1}\bigr) f_{l-1}^\top \ (\text{softmax, small logits})

J: the map from layer l's product to the output with all gates as they are; :math:`P = I - 11^\top/K`.
Source: arXiv:2403.03507, theorem 3.2 and lemma 3.3. Letters: w (L, d, d), x, y (N, d), gates (N, L, d, d): K_l at each point.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def _gate(z: Float[Array, " d"], kind: Int[Array, ""] | int) -> Float[Array, "d d"]:
    """K(z) with K(z) z the layer's output, for the kinds of ``model.LAYERS`` (bias: that of the ReLU)."""
    d = z.shape[0]
    eye, ones = jnp.eye(d, dtype=z.dtype), jnp.full((d, d), 1 / d, z.dtype)
    branches = (
        lambda z: jnp.diag(jnp.where(z > 0, 1.0, 0.0)),
        lambda z: jnp.diag(jnp.where(z > 0, 1.0, 0.1)),
        lambda z: jnp.diag(jnp.where(z > 0, 1.0, 0.0)),
        lambda z: (eye - ones) * jax.lax.rsqrt(jnp.var(z) + 1e-6),
        lambda z: jnp.diag(d * jax.nn.softmax(z)),
    )
    return jax.lax.switch(kind, branches, z)


def gates(
    w: Float[Array, "L d d"], x: Float[Array, " d"], kind: Int[Array, ""] | int, shift: Float[Array, "L d"]
) -> tuple[Float[Array, "L d d"], Float[Array, "L d"]]:
    """Gates of all layers at one point (the last is the identity) and the inputs of all layers."""
    found, inputs = [], []
    for i in range(w.shape[0]):
        inputs.append(x)
        z = w[i] @ x + shift[i]
        k = _gate(z, kind) if i < w.shape[0] - 1 else jnp.eye(w.shape[1], dtype=w.dtype)
        found.append(k)
        x = k @ z
    return jnp.stack(found), jnp.stack(inputs)


def _maps(w: Float[Array, "L d d"], k: Float[Array, "L d d"]) -> Float[Array, "L d d"]:
    """J of every layer, by the product of what comes after it."""
    j, maps = k[-1], [k[-1]]
    for i in range(w.shape[0] - 2, -1, -1):
        j = j @ w[i + 1] @ k[i]
        maps.append(j)
    return jnp.stack(maps[::-1])


def squared_parts(
    w: Float[Array, "L d d"], x: Float[Array, "N d"], y: Float[Array, "N d"], kind: Int[Array, ""], shift: Float[Array, "L d"]
) -> tuple[Float[Array, "L d d"], Float[Array, "L d d"]]:
    r"""The terms :math:`A = \overline{J^\top y f^\top}` and :math:`\overline{J^\top J W f f^\top}` for squared errors."""

    def one(x: Array, y: Array) -> tuple[Array, Array]:
        k, f = gates(w, x, kind, shift)
        j = _maps(w, k)
        return jnp.einsum("lom,o,ln->lmn", j, y, f), jnp.einsum("lom,lok,lkp,lp,ln->lmn", j, j, w, f, f)

    a, b = jax.vmap(one)(x, y)
    return jnp.mean(a, 0), jnp.mean(b, 0)


def softmax_parts(
    w: Float[Array, "L d d"], x: Float[Array, "N d"], y: Float[Array, "N d"]
) -> tuple[Float[Array, "L d d"], Float[Array, "L d d"]]:
    r"""The two terms of the form for a ReLU chain's cross-entropy with :math:`\gamma = 1`."""
    size = y.shape[-1]
    shift = jnp.zeros(w.shape[:2], w.dtype)

    def one(x: Array, y: Array) -> tuple[Array, Array]:
        k, f = gates(w, x, 0, shift)
        j = _maps(w, k)
        centred = j - jnp.mean(j, 1, keepdims=True)
        return jnp.einsum("lom,o,ln->lmn", centred, y, f), jnp.einsum("lom,lok,lkp,lp,ln->lmn", centred, j, w, f, f) / size

    a, b = jax.vmap(one)(x, y)
    return jnp.mean(a, 0), jnp.mean(b, 0)
