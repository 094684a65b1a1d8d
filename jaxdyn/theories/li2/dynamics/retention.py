r"""What partial data keep, and how many pairs are needed.

Three energies of a node on a random part of the pairs, and gradient ascent on each: do the maxima persist?

.. math:: E(w) = \tfrac12 \|Y^\top B f(w)\|^2, \qquad \nabla E = X^\top \operatorname{diag}(f')\, B Y Y^\top B f

with a symmetric B on functions of the n pairs in the data, whose images have mean zero:

- *cross*: :math:`f = 2 u(h_1) v(h_2)`, B = P. The squares, which full data cancel, are left out, as in the printed proof.
- *plain*: :math:`f = (u + v)^2`, B = P. The energy of ``dynamics/energy.py`` on partial data.
- *whitened*: :math:`f = (u + v)^2`, :math:`B = (P S P + \varepsilon)^{-1} P`: Stage II with the ridge solution on K frozen random
  features of variance 1, :math:`S[i,j] = 4 + 2 t^2` for pairs with t operands in common, :math:`\varepsilon = \eta / K`.

On the pairs :math:`S = 4\,11^\top + 4I + 2R + 2C`, where R and C tell pairs with the same first and second operand. So with
:math:`c = 4 + \varepsilon` and Z the indicators of all rows and columns, :math:`N = cI + 2ZZ^\top` has the inverse

.. math:: N^{-1} f = \tfrac1c (f - Z\theta), \qquad (\tfrac c2 I + Z^\top Z)\, \theta = Z^\top f, \qquad
    B f = N^{-1}(f - \mu 1), \quad 1^\top B f = 0,

a fit of row and column effects shrunk by c/2: one inverse of an M by M matrix (the Schur complement of the columns) for a subset,
and a few products with M by M arrays for a step, in place of an n by n inverse. On all pairs the three energies have the same
maxima. Source: arXiv:2509.21519, theorem 4; whitened: our generalisation. Letters: M elements, D = 2M, S subsets, a node on each.

Number of pairs that Li2 needs: a share :math:`p_c = c \ln M / M` of all M^2, c = 2.7482.

Source: arXiv:2509.21519, Theorem 4 (n of the order of :math:`d^2 M \ln M` keeps the maxima of irreps of degree d) and the constant
of its code's sweeps, where non-Abelian groups have the factor d / 2 with the largest degree d: linear, and one at d = 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxdyn import linalg
from jaxdyn.data.cayley import Group
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.published import CRITICAL

Object = Literal["cross", "plain", "whitened"]
OBJECTS: tuple[Object, ...] = ("cross", "plain", "whitened")
Subsets = Bool[Array, "M M S"] | Float[Array, "M M S"]


class Tables(NamedTuple):
    """A group as arrays, so that groups of one order can share a program: products [h1, h2], and second operands [h, h1]."""

    product: Int[Array, "M M"]
    partner: Int[Array, "M M"]


class Data(NamedTuple):
    """The subsets, prepared for the energies.

    Args:
        mask: the pairs [h1, h2] in the data.
        by_product: the same by product and first operand, [h, h1].
        shares: the share of its subset that is in each class.
        effects: for the whitened energy the a and b of :math:`B f = (f - a(h_1) - b(h_2)) / c` for f that is 0 outside of the data.
        scale: c; 1 for the others.
        squares: the factor of :math:`u^2 + v^2` in f, for each subset: 0 for the cross term alone.
    """

    mask: Subsets
    by_product: Subsets
    shares: Float[Array, "M S"]
    effects: Callable[[Subsets], tuple[Float[Array, "M S"], Float[Array, "M S"]]] | None = None
    scale: float | Float[Array, ""] = 1.0
    squares: float | Float[Array, " S"] = 1.0


class End(NamedTuple):
    """End of the flow: weights, E, and the norm of the gradient along the sphere over that of the whole gradient."""

    w: Float[Array, "D S"]
    energy: Float[Array, " S"]
    gradient: Float[Array, " S"]


def random_order(key: PRNGKeyArray, order: int, count: int) -> Int[Array, "M M S"]:
    """Ranks of all pairs [h1, h2] in ``count`` random orders: the pairs of rank below n are n of them without replacement."""
    ranks = jnp.argsort(jax.random.bits(key, (count, order**2)), 1)  # the inverse of a random order, which is as random
    return jnp.moveaxis(ranks.reshape(count, order, order), 0, 2)


def tables(group: Group) -> Tables:
    """The arrays of a group."""
    return Tables._make((group.table, group.table[group.inverse].T))


def make_data(mask: Subsets, group: Tables, kind: Object, ridge: float | Float[Array, ""] = 0.0) -> Data:
    """Subsets, and B on them.

    Args:
        mask: the pairs in the data.
        group: the group.
        kind: which of the three energies.
        ridge: epsilon, for ``whitened`` alone.
    """
    if kind != "whitened":
        return unwhitened(mask, group, 1.0 if kind == "plain" else 0.0)
    return unwhitened(mask, group, 1.0)._replace(effects=_whitening(mask, 4 + ridge), scale=4 + ridge)


def unwhitened(mask: Subsets, group: Tables, squares: float | Float[Array, " S"]) -> Data:
    """The subsets for the energies without whitening; ``squares`` as in :class:`Data`."""
    by_product = mask[np.arange(len(mask)), group.partner]
    return Data(mask, by_product, jnp.sum(by_product, 1) / jnp.sum(mask, (0, 1)), squares=squares)


def _whitening(mask: Subsets, c: float | Float[Array, ""]) -> Callable[[Subsets], tuple[Float[Array, "M S"], Float[Array, "M S"]]]:
    """The fitted effects of rows and columns, with the constant for which the residual has mean zero."""
    rows, columns = jnp.sum(mask, 1), jnp.sum(mask, 0)
    below = c / 2 + columns
    schur = -jnp.einsum("abs,cbs->sac", mask / below, mask, precision=jax.lax.Precision.HIGHEST)
    inverse = jnp.moveaxis(linalg.inv(schur + (c / 2 + rows.T)[:, :, None] * jnp.eye(len(rows), dtype=schur.dtype)), 0, 2)

    def fitted(f: Subsets) -> tuple[Float[Array, "M S"], Float[Array, "M S"], Float[Array, " S"]]:
        over_rows, over_columns = jnp.sum(f, 1), jnp.sum(f, 0)
        left = over_rows - jnp.sum(mask * (over_columns / below), 1)
        a = jnp.sum(inverse * left[:, None], 0)
        b = (over_columns - jnp.sum(mask * a[:, None], 0)) / below
        return a, b, jnp.sum(over_rows - rows * a, 0) - jnp.sum(columns * b, 0)

    first, second, whole = fitted(mask)

    def effects(f: Float[Array, "M M S"]) -> tuple[Float[Array, "M S"], Float[Array, "M S"]]:
        a, b, total = fitted(f)
        mu = total / whole
        return a + mu * (1 - first), b - mu * second

    return effects


def value_and_gradient(w: Float[Array, "D S"], group: Tables, data: Data) -> tuple[Float[Array, " S"], Float[Array, "D S"]]:
    """E and its gradient, each node on its own subset."""
    u, v = jnp.split(w, 2)
    z = _response(u, v, group, data)
    back = z[group.product]
    if data.effects is None:
        back = back - jnp.sum(data.shares * z, 0)
    else:
        a, b = data.effects(data.mask * back)
        back = (back - a[:, None] - b) / data.scale
    back = 2 * data.mask * back
    by_first, by_second = v + data.squares * u[:, None], u[:, None] + data.squares * v
    return jnp.sum(z * z, 0) / 2, jnp.concatenate([jnp.sum(back * by_first, 1), jnp.sum(back * by_second, 0)])


def _response(u: Float[Array, "M S"], v: Float[Array, "M S"], group: Tables, data: Data) -> Float[Array, "M S"]:
    """Y^T B f."""

    def feature(u: Float[Array, "*first S"], v: Float[Array, "*second S"]) -> Float[Array, "*pairs S"]:
        return 2 * u * v + data.squares * (u * u + v * v)

    f = feature(u, v[group.partner])
    if data.effects is None:
        z = jnp.sum(data.by_product * f, 1)
        return z - data.shares * jnp.sum(z, 0)
    a, b = data.effects(data.mask * feature(u[:, None], v))
    return jnp.sum(data.by_product * (f - a - b[group.partner]), 1) / data.scale


def flow(w: Float[Array, "D S"], group: Tables, data: Data, steps: int, step: float | Float[Array, ""]) -> End:
    r"""The flow :math:`\dot w = (I - ww^\top)\nabla E / \|\nabla E\|` on the sphere for a time ``steps`` times ``step``.

    Explicit Euler steps, none longer than ``step``, so that a node does not jump into another basin.
    """
    w = w / jnp.linalg.norm(w, axis=0)

    def advance(state: tuple[Array, Array, Array], count: Int[Array, ""]) -> tuple[tuple[Array, Array, Array], None]:
        w = state[0]
        energy, g = value_and_gradient(w, group, data)
        moved = w + (step / jnp.maximum(jnp.linalg.norm(g, axis=0), jnp.finfo(g.dtype).tiny)) * g
        return (jnp.where(count < steps, moved / jnp.linalg.norm(moved, axis=0), w), energy, g), None

    # the last round evaluates the end: the gradient is compiled once
    (w, energy, g), _ = jax.lax.scan(advance, (w, w[0], w), jnp.arange(steps + 1))
    along = g - w * jnp.sum(w * g, 0)
    return End(w, energy, jnp.linalg.norm(along, axis=0) / jnp.maximum(jnp.linalg.norm(g, axis=0), jnp.finfo(g.dtype).tiny))


def order_share(order: int) -> float:
    """p_c of an Abelian group of that order, which is at least 2."""
    return CRITICAL * math.log(order) / order


def critical_share(group: Group) -> float:
    """p_c of a group, with the authors' factor for irreps of degree above 2."""
    return order_share(group.order) * (1.0 if group.abelian else max(1.0, int(decompose(group).degrees.max()) / 2))
