r"""The flow of both layers, written out: the hidden layer is driven by the signal that the top layer sends back.

.. math:: \dot W = X^\top\bigl(\sigma'(XW) \circ G_F\bigr) - \lambda W, \qquad
    \dot V = \tilde F^\top(\tilde Y - \tilde F V) - \eta V, \qquad G_F = (\tilde Y - \tilde F V) V^\top

for :math:`\sigma = x^2`; X is never built. Source: arXiv:2509.21519, section 3.
Letters: n samples, K hidden nodes, M elements, D = 2M.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ridge


class Problem(NamedTuple):
    """Pairs, one-hot labels, the weight decay of V (eta) and of W, and the rate of V: 1, or 0 where the top layer is frozen."""

    samples: Int[Array, "n 2"]
    y: Float[Array, "n M"]
    eta: Float[Array, ""]
    decay: Float[Array, ""]
    rate: Float[Array, ""]


def field(_: Any, p: model.Params, given: Problem) -> model.Params:
    """The velocities of W and V."""
    a = model.preactivations(p.w, given.samples)
    f = model.centred(jnp.square(a))
    residual = model.centred(given.y) - f @ p.v
    change = 2 * a * ridge.backward(f, given.y, p.v)
    left, right = given.samples[:, 0], p.w.shape[0] // 2 + given.samples[:, 1]
    pull = jnp.zeros_like(p.w).at[left].add(change).at[right].add(change)
    return model.Params(pull - given.decay * p.w, given.rate * (f.T @ residual - given.eta * p.v))
