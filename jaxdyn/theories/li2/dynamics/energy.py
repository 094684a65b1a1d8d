r"""The energy of a node, and the shapes of its maxima.

The energy of a single hidden node, which feature learning climbs, and its maxima on any finite group.

.. math:: E(w) = \tfrac12 \|\tilde Y^\top \sigma(Xw)\|^2, \qquad \dot w = \nabla E(w) = X^\top \operatorname{diag}(\sigma'(Xw))\,
    \tilde Y \tilde Y^\top \sigma(Xw)

A node is w = [u; v at inverses], so that its value at the pair (h1, h2) is :math:`\sigma(u(h_1) + v(h_2^{-1}))`; K nodes are the
columns of a (2M, K) array. On all M^2 pairs :math:`\tilde Y^\top\sigma = z - \bar z` with the class sums z(h) over the pairs of
product h, and for :math:`\sigma = x^2` the irreps part:

.. math:: E = \sum_{k \ne 0} E_k, \qquad E_k = \tfrac12 \|\Pi_k z\|^2 = \frac{M}{2 d_k} \|2\, \hat u_k \hat v_k^*\|_F^2.

On the sphere :math:`\|w\| = 1` the local maxima lie in one irrep (with its conjugate) and have :math:`\|u\|^2 = \|v\|^2 = \frac12`,
:math:`\hat u_k = a r^*`, :math:`\hat v_k = b r^*` with free directions a, b and a common one r; for quaternionic type the real part
of that, which has two equal singular values. Their energies and dimensions are in :class:`Peak`.
Source: arXiv:2509.21519, theorems 1, 2 and 7. Departure: Frobenius norm and factor 2 in the energy of an irrep, its maxima and
their values, all derived here, correct the printed ones. Letters: M elements, D = 2M, K nodes, c irreps, d degrees.

Fourier blocks of a node's halves: the shares of irreps, the shape of the block in one irrep, members of the largest one.

At a maximum the blocks of u and v in the irrep have rank one, of quaternionic type two equal singular values, and share their right
singular vectors (theorem 2). A member is any u in an irrep, with v = u: its energy is a sum of fourth powers of singular values.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Inexact, Int, PRNGKeyArray

from jaxdyn import linalg
from jaxdyn.data import irreps as fourier
from jaxdyn.data.cayley import Group
from jaxdyn.data.irreps import Irreps
from jaxdyn.theories.li2.model import AnyActivation, activate

_EXACT = jax.lax.Precision.HIGHEST


Kind = Literal["real", "complex", "quaternionic"]
KINDS: dict[int, Kind] = {1: "real", 0: "complex", -1: "quaternionic"}  # of an irrep, by its indicator


class Peak(NamedTuple):
    """The maxima in one irrep (or conjugate pair); d is its degree.

    Args:
        irreps: its number, or the two numbers of a pair.
        kind: the irrep's type.
        degree: d.
        energy: M/2d for real type, else M/4d.
        dimension: of the set of maxima on the sphere, 3(d-1), 6d-4 or 6d-6; so many eigenvalues of the Hessian are zero.
    """

    irreps: tuple[int, ...]
    kind: Kind
    degree: int
    energy: float
    dimension: int


def peaks(irreps: Irreps) -> tuple[Peak, ...]:
    """The maxima of every irrep but the trivial one, in the order of :attr:`Irreps.merged`."""
    listed = []
    for numbers in irreps.merged[1:]:
        d, m = int(irreps.degrees[numbers[0]]), irreps.group.order
        kind = KINDS[int(irreps.indicators[numbers[0]])]
        dimension = {"real": 3 * d - 3, "complex": 6 * d - 4, "quaternionic": 6 * d - 6}[kind]
        listed.append(Peak(numbers, kind, d, m / (2 * d if kind == "real" else 4 * d), dimension))
    return tuple(listed)


def split(w: Float[Array, "D K"], group: Group) -> tuple[Float[Array, "M K"], Float[Array, "M K"]]:
    """The functions u and v of a node."""
    return w[: group.order], w[group.order :][group.inverse]


def join(u: Float[Array, "M K"], v: Float[Array, "M K"], group: Group) -> Float[Array, "D K"]:
    """The weights of a node with these functions: the inverse of :func:`split`."""
    return jnp.concatenate([u, v[group.inverse]])


def random_maximum(key: PRNGKeyArray, irreps: Irreps, k: int, count: int = 1) -> Float[Array, "D count"]:
    """Generic local maxima of the energy of x^2 on the unit sphere: uniform points of the set of maxima in irrep k.

    Irrep k and its conjugate have the same maxima. Weights w = [u; v at inverses], one node a column, float64.
    """
    return maximum(jax.random.normal(key, (3, 2, int(irreps.degrees[k]), count), jnp.float64), irreps, k)


def maximum(directions: Float[Array, "3 2 d K"], irreps: Irreps, k: int) -> Float[Array, "D K"]:
    """The maxima in irrep k of directions a, b, r: real and imaginary parts, of any length; for real type the real ones count."""
    parts = directions.at[:, 1].set(0.0) if irreps.indicators[k] == 1 else directions
    a, b, r = parts[:, 0] + 1j * parts[:, 1]
    return join(_member(a[:, None] * jnp.conj(r), irreps, k), _member(b[:, None] * jnp.conj(r), irreps, k), irreps.group)


def random_member(key: PRNGKeyArray, irreps: Irreps, k: int, count: int = 1) -> Float[Array, "M count"]:
    r"""Real functions in the isotypic subspace of irrep k and its conjugate, uniform on :math:`\|u\|^2 = \frac12`."""
    d = int(irreps.degrees[k])
    block = jax.random.normal(key, (2, d, d, count), jnp.float64)
    return _member(block[0] if irreps.indicators[k] == 1 else block[0] + 1j * block[1], irreps, k)


def _member(block: Inexact[Array, "d d K"], irreps: Irreps, k: int) -> Float[Array, "M K"]:
    """The real part of the function with this Fourier block (d, d, K), scaled to squared norm 1/2."""
    u = jnp.einsum("gab,abn->gn", irreps.matrices[k], block, precision=_EXACT).real
    return u / jnp.sqrt(2 * jnp.sum(jnp.square(u), 0))


def _blocks(u: Float[Array, "M K"], irreps: Irreps) -> tuple[Array, ...]:
    return fourier.blocks(fourier.transform(u.T, irreps), irreps)


def masses(u: Float[Array, "M K"], irreps: Irreps) -> Float[Array, "K c"]:
    r"""The squared norm of each irrep's part of u."""
    return fourier.energies(fourier.transform(u.T, irreps), irreps)


def terms(w: Float[Array, "D K"], irreps: Irreps) -> Float[Array, "K c"]:
    r"""E_k, every irrep's share of the energy of x^2 on all pairs; 0 for the trivial one."""
    u, v = (_blocks(f, irreps) for f in split(w, irreps.group))
    squares = []
    for d, x, y in zip(irreps.degrees.tolist(), u, v, strict=True):
        both = 2 * jnp.einsum("nab,ncb->nac", x, jnp.conj(y), precision=_EXACT)
        squares.append(irreps.group.order / (2 * d) * jnp.sum(jnp.square(both.real) + jnp.square(both.imag), (1, 2)))
    return jnp.stack(squares, 1).at[:, 0].set(0.0)


def energy(
    w: Float[Array, "D K"],
    group: Group,
    activation: AnyActivation = "square",
    mask: Bool[Array, "M M"] | Float[Array, "M M"] | None = None,
    residual: Float[Array, "M M"] | None = None,
) -> Float[Array, " K"]:
    """E of each node; arguments as in :func:`value_and_gradient`."""
    return jnp.sum(jnp.square(_response(w, group, activation, mask, residual)), 0) / 2


def gradient(
    w: Float[Array, "D K"],
    group: Group,
    activation: AnyActivation = "square",
    mask: Bool[Array, "M M"] | Float[Array, "M M"] | None = None,
    residual: Float[Array, "M M"] | None = None,
) -> Float[Array, "D K"]:
    """The gradient of E of each node; arguments as in :func:`value_and_gradient`."""
    return value_and_gradient(w, group, activation, mask, residual)[1]


def value_and_gradient(
    w: Float[Array, "D K"],
    group: Group,
    activation: AnyActivation = "square",
    mask: Bool[Array, "M M"] | Float[Array, "M M"] | None = None,
    residual: Float[Array, "M M"] | None = None,
) -> tuple[Float[Array, " K"], Float[Array, "D K"]]:
    r"""E and its gradient for many nodes at once: two gathers of rows by the Cayley table, no scatter.

    Args:
        w: nodes, one a column.
        group: the group.
        activation: sigma.
        mask: 1 for the pairs [h1, h2] in the data, 0 for the others; all pairs when None. Means are over the pairs in the data.
        residual: the residual of the targets, Q[h, h'] on pairs of product h: then :math:`E = \frac12\|Q^\top z\|^2`.
            The centred targets themselves when None.
    """
    m = group.order
    r = _response(w, group, activation, mask, residual)
    x = w[:m, None] + w[None, m:]
    slope = jax.jvp(lambda x: activate(x, activation), (x,), (jnp.ones_like(x),))[1]
    if mask is not None:
        slope = slope * mask[..., None]
    back = slope * _received(r, group, mask, residual)[group.table]
    return jnp.sum(jnp.square(r), 0) / 2, jnp.concatenate([jnp.sum(back, 1), jnp.sum(back, 0)])


def _response(
    w: Float[Array, "D K"],
    group: Group,
    activation: AnyActivation,
    mask: Bool[Array, "M M"] | Float[Array, "M M"] | None,
    residual: Float[Array, "M M"] | None,
) -> Float[Array, "M K"]:
    r""":math:`\tilde Y^\top\sigma(Xw)`. Rows are pairs (a, a^{-1} h) by product h."""
    m, second = group.order, group.table[group.inverse].T
    f = activate(w[None, :m] + w[m:][second], activation)
    if mask is not None:
        f = f * mask[np.arange(m)[None], second][..., None]
    z = jnp.sum(f, 1)
    if residual is not None:
        return jnp.matmul(residual.T, z, precision=_EXACT)
    return z - _shares(group, mask, w.dtype)[:, None] * jnp.sum(z, 0)


def _received(
    r: Float[Array, "M K"],
    group: Group,
    mask: Bool[Array, "M M"] | Float[Array, "M M"] | None,
    residual: Float[Array, "M M"] | None,
) -> Float[Array, "M K"]:
    r"""The row :math:`\tilde Y r` of a pair of product h."""
    if residual is not None:
        return jnp.matmul(residual, r, precision=_EXACT)
    return r - jnp.sum(_shares(group, mask, r.dtype)[:, None] * r, 0)


def _shares(group: Group, mask: Bool[Array, "M M"] | Float[Array, "M M"] | None, dtype: np.dtype) -> Float[Array, " M"]:
    """How much of the data each class holds."""
    if mask is None:
        return jnp.full(group.order, 1 / group.order, dtype)
    counts = jnp.sum(mask[np.arange(group.order)[None], group.table[group.inverse].T], 1)
    return counts / jnp.sum(counts)


def shares(u: Float[Array, "M K"], irreps: Irreps) -> Float[Array, "K peaks"]:
    """The share of u in each irrep but the trivial one, conjugate pairs together."""
    mass = masses(u, irreps)
    mass = mass / jnp.sum(mass, 1, keepdims=True)
    return jnp.stack([jnp.sum(mass[:, list(numbers)], 1) for numbers in irreps.merged[1:]], 1)


def shapes(
    u: Float[Array, "M K"], v: Float[Array, "M K"], irreps: Irreps, place: Int[Array, " K"]
) -> tuple[Float[Array, "K rank"], Float[Array, " K"], Float[Array, "K rank"]]:
    r"""Of the blocks of u and v in the irrep of number ``place`` among the peaks: singular values, alignment, predicted values.

    Singular values are those of the block of u or v that is farther from the prediction, on the unit sphere; the alignment is
    :math:`\|\hat u \hat v^*\| / \|\hat u\| \|\hat v\|`.
    """
    # blocks of all irreps, then the peaks one by one: each writes the nodes that lie in its irrep
    rank, count = int(irreps.degrees.max()), u.shape[1]
    blocks = [fourier.blocks(fourier.transform(f.T, irreps), irreps) for f in (u, v)]
    values, predicted, aligned = jnp.zeros((count, rank)), jnp.zeros((count, rank)), jnp.zeros(count)
    for i, peak in enumerate(peaks(irreps)):
        x, y = (b[peak.irreps[0]] for b in blocks)
        both = jnp.linalg.norm(jnp.einsum("nab,ncb->nac", x, jnp.conj(y)), axis=(1, 2))
        both = both / (jnp.linalg.norm(x, axis=(1, 2)) * jnp.linalg.norm(y, axis=(1, 2)))
        ideal = np.zeros(rank)
        ideal[: 2 if peak.kind == "quaternionic" else 1] = 0.5**0.5 if peak.kind == "quaternionic" else 1.0
        here, s = (place == i)[:, None], _worse(_singular(x, rank), _singular(y, rank), ideal)
        values, predicted = jnp.where(here, s, values), jnp.where(here, ideal, predicted)
        aligned = jnp.where(here[:, 0], both, aligned)
    return values, aligned, predicted


def _singular(block: Inexact[Array, "K d d"], rank: int) -> Float[Array, "K rank"]:
    """Singular values, of sum of squares 1, with zeros at the end."""
    d = block.shape[-1]
    s = linalg.singular_values(block) if d > 1 else jnp.abs(block[:, 0])
    return jnp.pad(s / jnp.linalg.norm(s, axis=1, keepdims=True), ((0, 0), (0, rank - d)))


def _worse(a: Float[Array, "K rank"], b: Float[Array, "K rank"], ideal: Float[np.ndarray, " rank"]) -> Float[Array, "K rank"]:
    far = jnp.max(jnp.abs(a - ideal), 1) >= jnp.max(jnp.abs(b - ideal), 1)
    return jnp.where(far[:, None], a, b)


def members(w: Float[Array, "D K"], irreps: Irreps) -> tuple[Array, Array, Array]:
    """The start's part in the largest irrep, v = u: singular values, energy over all pairs, and the energy by singular values."""
    group, peak = irreps.group, largest(peaks(irreps))
    projector = sum(irreps.projector(k) for k in peak.irreps).real
    u = jnp.asarray(projector) @ w[: group.order]
    u = u / jnp.sqrt(2 * jnp.sum(jnp.square(u), 0))
    block = fourier.blocks(fourier.transform(u.T, irreps), irreps)[peak.irreps[0]]
    s = _singular(block, int(irreps.degrees.max()))
    # scaled by the norm of u, shared by a pair's two blocks, and not by the transform's own scale
    fourth = jnp.sum(s**4, 1) * (0.5 / len(peak.irreps)) ** 2
    formula = 2 * group.order / peak.degree * len(peak.irreps) * fourth
    return s, energy(join(u, u, group), group), formula


def largest(peaks: tuple[Peak, ...]) -> Peak:
    """The peak of the irrep of largest degree, the first of them."""
    return max(peaks, key=lambda p: p.degree)
