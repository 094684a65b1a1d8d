"""Numbers that describe an array, for use inside trials (jax.numpy; every dtype stays as it is).

On CPU, XLA's ``jnp.max`` and ``jnp.min`` over an axis silently drop NaN (openxla/xla issue 21461): none is used here to
find out whether something is finite, and neither should they be in a trial (``train.finite_status`` is for that).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.scipy.special import entr
from jaxtyping import Array, Float, Int, PyTree

from jaxdyn import linalg

__all__ = ["entropy", "normalized_correlation", "relative_norm_error", "stable_rank", "top_eigenvalue"]


def entropy(p: Float[Array, " *shape"], axis: int = -1) -> Float[Array, " *rest"]:
    r"""Shannon entropy in nats, :math:`H(p) = -\sum_i p_i \ln p_i` with :math:`0 \ln 0 = 0`.

    ``-inf`` where an entry is negative; ``p`` is not normalised here.
    """
    return jnp.sum(entr(p), axis)


def stable_rank(m: Float[Array, "*rest r c"]) -> Float[Array, " *rest"]:
    r"""Stable rank :math:`\|M\|_F^2 / \|M\|_2^2`, from 1 to the rank; NaN for the zero matrix.

    Source: Rudelson and Vershynin, arXiv:math/0503442, section 1 ("numerical rank").
    """
    s = linalg.singular_values(m)
    return jnp.sum(jnp.square(s / s[..., :1]), -1)


def normalized_correlation(a: Float[Array, " *left"], b: Float[Array, " *right"], axis: int = -1) -> Float[Array, " *rest"]:
    r"""Pearson correlation along ``axis``: :math:`\langle a', b'\rangle / (\|a'\| \|b'\|)`, :math:`x' = x - \bar x`.

    NaN where one of the two is constant. The two broadcast against each other.
    """
    a = a - jnp.mean(a, axis, keepdims=True)
    b = b - jnp.mean(b, axis, keepdims=True)
    return jnp.sum(a * b, axis) / (jnp.linalg.norm(a, axis=axis) * jnp.linalg.norm(b, axis=axis))


def relative_norm_error(a: PyTree, b: PyTree) -> Float[Array, ""]:
    r"""Relative distance :math:`\|a - b\|_2 / \|b\|_2` of two trees, all leaves taken as one vector; ``b`` is the reference."""
    return optax.tree.norm(optax.tree.sub(a, b)) / optax.tree.norm(b)


def top_eigenvalue(
    hvp: Callable[[Any], Any], v0: PyTree, iters: int | Int[Array, ""] = 100, shift: float | Float[Array, ""] = 0.0
) -> Float[Array, ""]:
    r"""Largest eigenvalue of a symmetric operator :math:`H` by power iteration on :math:`H + cI`.

    .. math:: v \leftarrow \frac{(H + cI) v}{\|(H + cI) v\|}, \qquad \lambda = v^\top H v

    The iteration finds the eigenvalue for which :math:`|\lambda + c|` is largest: choose the shift :math:`c` so that this is
    the top one, :math:`c > -(\lambda_{max} + \lambda_{min})/2`. The error falls like
    :math:`\bigl((\lambda_2 + c)/(\lambda_{max} + c)\bigr)^{2\,\text{iters}}`, so no larger a shift than needed.
    Source: Golub and Van Loan, Matrix Computations, section 8.2.1.

    Args:
        hvp: ``v -> H v`` on trees, e.g. ``lambda v: jax.jvp(jax.grad(loss), (params,), (v,))[1]``.
        v0: the start, a tree that is not orthogonal to the eigenvector (random).
        iters: number of iterations; may be traced.
        shift: :math:`c`.
    """

    def unit(v: PyTree) -> PyTree:
        return optax.tree.scale(1 / optax.tree.norm(v), v)

    def iterate(_: Int[Array, ""], v: PyTree) -> PyTree:
        return unit(jax.tree.map(lambda hx, x: hx + shift * x, hvp(v), v))

    v = jax.lax.fori_loop(0, iters, iterate, unit(v0))
    return optax.tree.vdot(v, hvp(v))
