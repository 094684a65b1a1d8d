r"""How few nodes can solve one pair of frequencies: least squares over blocks of a given order, from many starts.

What a block of nodes at k and -k alone adds to the loss is, as a share of what it adds without any node,

.. math:: |r_{kkk} - 1|^2 + |r_{-kkk}|^2 + |r_{k,-k,k}|^2 + |r_{k,k,-k}|^2 + \Bigl|\sum_p r_{p,k,-k,k}\Bigr|^2
    + \tfrac14 \sum_p \bigl( |r_{p,k,k,k}|^2 + |r_{p,-k,-k,k}|^2 \bigr),

from :func:`spectrum.terms` (for 4k = 0 the last two would be taken together). Where another block carries the bias, the fifth
term is dropped.
Source: derived from arXiv:2410.01779, Theorem 1. Letters: n nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Complex, Float

from jaxdyn import linalg
from jaxdyn.theories.cogo.dynamics import partial

SHRINK, GROW = 3.0, 4.0  # of the damping, after a step that lowers the loss and after one that does not


class Block(NamedTuple):
    """A search: the columns at k at its end; after each step, their share of the loss and Fourier norm squared over k and -k."""

    columns: Complex[Array, "3 n"]
    loss: Float[Array, " step"]
    energy: Float[Array, " step"]


def residual(columns: Complex[Array, "3 n"], bias: float | Float[Array, ""], star: float | Float[Array, ""]) -> Float[Array, "18"]:
    """The nine terms' amplitudes, real and imaginary, whose squares add up to the block's share of the loss.

    Args:
        columns: values of the nodes at k.
        bias: factor of the fifth amplitude: 1, or 0 where another block carries the bias.
        star: factor of the last four amplitudes, 1.
    """
    r = partial.potentials(columns)
    r = jnp.concatenate([r[:1] - 1, r[1:4], bias * (r[4:5] + r[5:6]), star * r[6:] / 2])
    return jnp.concatenate([r.real, r.imag])


def solve(
    start: Complex[Array, "3 n"],
    nodes: Bool[Array, " n"],
    bias: float | Float[Array, ""],
    star: float | Float[Array, ""] = 1.0,
    steps: int = 200,
) -> Block:
    """Levenberg-Marquardt steps over the values of the marked nodes, from one start.

    There are more unknowns than equations, so a step is the damped one of least length, from a system of 18 equations.
    """

    # unknowns and equations
    def columns(v: Float[Array, " m"]) -> Complex[Array, "3 n"]:
        v = v.reshape(2, 3, -1)
        return jnp.where(nodes, v[0] + 1j * v[1], 0)

    def equations(v: Float[Array, " m"]) -> Float[Array, "18"]:
        return residual(columns(v), bias, star)

    # one damped step; it is taken if the residual falls
    def step(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        v, damping = carry
        r, slope = equations(v), jax.jacrev(equations)(v)
        tried = v - slope.T @ linalg.solve(slope @ slope.T + damping * jnp.eye(18, dtype=v.dtype), r)
        lower = jnp.sum(jnp.square(equations(tried))) < jnp.sum(jnp.square(r))
        damping = jnp.clip(jnp.where(lower, damping / SHRINK, damping * GROW), 1e-16, 1e10)
        v = jnp.where(lower, tried, v)
        return (v, damping), (jnp.sum(jnp.square(equations(v))), 2 * jnp.sum(jnp.square(v)))

    # from the start, its unmarked nodes at zero
    first = jnp.stack([start.real, start.imag]).ravel()
    first = jnp.where(jnp.tile(nodes, 6), first, 0)
    (v, _), (loss, energy) = jax.lax.scan(step, (first, jnp.asarray(0.1, first.dtype)), None, length=steps)
    return Block(columns(v), loss, energy)
