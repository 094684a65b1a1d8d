r"""The loss over some of the pairs for quadratic activation in the code's scale, with its gradient written out.

With :math:`s = w_a[g_1] + w_b[g_2]`, the centred :math:`\tilde c` and, on the n pairs that count,
:math:`R = \frac2n (s^2 \tilde c^\top - e_{g_1 + g_2} + \frac1d)`, 0 on the others,

.. math:: \nabla_c = P R^\top s^2, \qquad \nabla_a = \sum_{g_2} 2 s \circ (R \tilde c), \qquad
    \nabla_b = \sum_{g_1} 2 s \circ (R \tilde c).

Three products in all; an automatic gradient compiles twice as long. Source: derived; equal to that of :func:`model.loss`.
Letters: d elements, q nodes.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxdyn.data.abelian import Abelian
from jaxdyn.theories.cogo import model


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def loss(w: Float[Array, "3 d q"], group: Abelian, used: Bool[Array, "d d"]) -> Float[Array, ""]:
    """L over the pairs marked in ``used``, equal to :func:`model.loss`."""
    return model.loss(w, group, "code", used)


def gradient(w: Float[Array, "3 d q"], group: Abelian, used: Bool[Array, "d d"]) -> Float[Array, "3 d q"]:
    """The derivative of :func:`loss`."""
    d, q = w.shape[1:]
    a, b, c = model.centred(w)
    s = a[:, None] + b
    square = jnp.square(s).reshape(d * d, q)
    aim = jnp.asarray(np.eye(d)[group.add] - 1 / d, w.dtype)
    weight = jnp.where(used, 2 / jnp.sum(used).astype(w.dtype), 0)
    r = (((square @ c.T).reshape(d, d, d) - aim) * weight[..., None]).reshape(d * d, d)
    hidden = 2 * s * (r @ c).reshape(d, d, q)
    top = r.T @ square
    return jnp.stack([jnp.sum(hidden, 1), jnp.sum(hidden, 0), top - jnp.mean(top, 0)])


def _forward(w: Float[Array, "3 d q"], group: Abelian, used: Bool[Array, "d d"]) -> tuple[Array, Array]:
    return loss(w, group, used), gradient(w, group, used)


def _backward(group: Abelian, saved: Float[Array, "3 d q"], change: Float[Array, ""]) -> tuple[Array, None]:
    return change * saved, None


loss.defvjp(_forward, _backward)
