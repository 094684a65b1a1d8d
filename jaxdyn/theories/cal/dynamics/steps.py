r"""Finite step sizes: the leading error of gradient descent, its modified flow, the drift of conserved quantities.

Letters: f(x) = :math:`-\nabla L` the field of gradient flow, J its Jacobian (:math:`-H`); :math:`\eta` the step size; t = n eta.
With :math:`H\nabla L = J f` every correction is one Jacobian-vector product, and no Hessian is formed.
Sources: Hairer, Nørsett, Wanner, Solving Ordinary Differential Equations I, section II.8 (leading error of Euler's method);
arXiv:2009.11162 (modified loss), arXiv:2101.12176 (the same for shuffled SGD); arXiv:1806.00900 (conservation).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from jaxdyn.theories.cal.model import Linear, Scalar

Field = Callable[[PyTree], PyTree]


class Flows(NamedTuple):
    """State of the joint solve: gradient flow, leading error, modified flow, integral of the drift of the balance."""

    flow: PyTree
    lead: PyTree
    modified: PyTree
    drift: Float[Array, "h h"]


class FlowsArgs(NamedTuple):
    """What the joint field depends on: target, step size, weight decay."""

    m: Float[Array, "o i"]
    eta: Scalar
    decay: Scalar


def linear_field(m: Float[Array, "o i"], decay: Scalar = 0.0) -> Callable[[Linear], Linear]:
    r"""Gradient flow of a two-layer linear net: :math:`\dot W_1 = W_2^\top E - \lambda W_1,\ \dot W_2 = E W_1^\top - \lambda W_2`.

    Here :math:`E = \Sigma - W_2 W_1`. Source: arXiv:1312.6120, whitened inputs.
    """

    def field(p: Linear) -> Linear:
        e = m - p.w2 @ p.w1
        return Linear(p.w2.T @ e - decay * p.w1, e @ p.w1.T - decay * p.w2)

    return field


def regression_field(xx: Float[Array, "i i"], yx: Float[Array, "o i"]) -> Callable[[Linear], Linear]:
    r"""The same for data with the moments :math:`XX = \langle x x^\top\rangle,\ YX = \langle y x^\top\rangle`.

    .. math:: \dot W_1 = W_2^\top E, \qquad \dot W_2 = E W_1^\top, \qquad E = YX - W_2W_1 XX
    """

    def field(p: Linear) -> Linear:
        e = yx - p.w2 @ p.w1 @ xx
        return Linear(p.w2.T @ e, e @ p.w1.T)

    return field


def _axpy(a: Scalar, x: PyTree, y: PyTree) -> PyTree:
    return jax.tree.map(lambda p, q: a * p + q, x, y)


def modified_field(field: Field, eta: Scalar) -> Field:
    r"""Field of the modified loss :math:`\tilde L = L + \tfrac\eta4\|\nabla L\|^2`: :math:`\tilde f = f - \tfrac\eta2\,Jf`.

    Source: arXiv:2009.11162.
    """

    def modified(x: PyTree) -> PyTree:
        f, jf = jax.jvp(field, (x,), (field(x),))
        return _axpy(-eta / 2, jf, f)

    return modified


def shuffled_field(xx: Float[Array, "m i i"], yx: Float[Array, "m o i"], eta: Scalar) -> Callable[[Linear], Linear]:
    r"""Field that the mean of SGD over shuffled epochs follows: of :math:`\tilde L = L + \tfrac{\eta}{4m}\sum_i\|\nabla L_i\|^2`.

    Args:
        xx: second moments of the inputs of the m batches, as in :func:`regression_field`.
        yx: moments of outputs with inputs.
        eta: step size; time is t = n eta over single batches, L the mean of the batch losses.

    Source: arXiv:2101.12176.
    """
    mean = regression_field(jnp.mean(xx, 0), jnp.mean(yx, 0))

    def bend(x: Linear, xx_i: Float[Array, "i i"], yx_i: Float[Array, "o i"]) -> Linear:
        own = regression_field(xx_i, yx_i)
        return jax.jvp(own, (x,), (own(x),))[1]

    def shuffled(x: Linear) -> Linear:
        bends = jax.vmap(bend, (None, 0, 0))(x, xx, yx)
        return jax.tree.map(lambda f, b: f - eta / 2 * jnp.mean(b, 0), mean(x), bends)

    return shuffled


def balance(p: Linear) -> Float[Array, "h h"]:
    r"""The quantity :math:`W_1W_1^\top - W_2^\top W_2`, conserved by gradient flow without weight decay."""
    return p.w1 @ p.w1.T - p.w2.T @ p.w2


def balance_rate(p: Linear, m: Float[Array, "o i"]) -> Float[Array, "h h"]:
    r"""Change of the balance in one step of gradient descent, over :math:`\eta^2`: :math:`AA^\top - B^\top B`.

    :math:`A = W_2^\top E,\ B = E W_1^\top,\ E = \Sigma - W_2W_1`; exact, since the terms of order :math:`\eta` cancel.
    """
    a, b = linear_field(m)(p)
    return a @ a.T - b.T @ b


def flows_field(t: Scalar, state: Flows, args: FlowsArgs) -> Flows:
    r"""Joint field of gradient flow x, leading error e, modified flow y, and the integral d of the drift of the balance.

    .. math:: \dot x = f, \qquad \dot e = J\,(e - \tfrac12 f), \qquad \dot y = \tilde f(y), \qquad \dot d = AA^\top - B^\top B

    so that gradient descent is :math:`x + \eta e + O(\eta^2)`, and its balance moves by :math:`\eta d + O(\eta^2)`.
    """
    field = linear_field(args.m, args.decay)
    f = field(state.flow)
    bend = jax.jvp(field, (state.flow,), (_axpy(-0.5, f, state.lead),))[1]
    modified = modified_field(field, args.eta)(state.modified)
    return Flows(f, bend, modified, balance_rate(state.flow, args.m))
