r"""Hidden layers from which a linear top layer makes the targets exactly, on any finite group, by pairs of nodes.

A pair [u; v], [u; -v] (v at inverses) has :math:`(u_a + v_b)^2 - (u_a - v_b)^2 = 4 u_a v_b` at the pair of elements (a, b^{-1}):
the M x M matrix :math:`4uv^\top`. The target of class h is the permutation matrix :math:`R_h`, centred, which is the sum over
irreps of its parts :math:`\Pi_k R_h`, in :math:`H_k \otimes H_{\bar k}`. With u and v in the subspaces of one irrep, matrices of
different irreps are orthogonal, and all of them are orthogonal to the sums :math:`u_a^2 + v_b^2`: so the least squares top layer
is found irrep by irrep, and its weights on a pair are opposite. How many generic pairs it takes, d the degree:

=========================  ==========================================  =======================================
layer                      a pair                                      pairs in an irrep
=========================  ==========================================  =======================================
complex weights            u in H_k, v its conjugate                   d^4
matrix coefficients        u = C_ir, v = conj C_jr, all i, j, r        d^3
real weights, maxima       as in ``dynamics/energy.py``                real type d^3 (d + 1) / 2; a conjugate
                                                                       pair of irreps 3 d^4 + d^3;
                                                                       quaternionic type d^4
real weights, v = u        u in H_k                                    r (r + 1) / 2, r the real dimension
=========================  ==========================================  =======================================

The last one only reaches the symmetric half, :math:`\frac12 (R_h + R_{h^{-1}})`.
Source: arXiv:2509.21519, theorem 3. Departures: the conjugate, without which pairs of complex irreps stay out of reach; all rows
but the first are new, the counts of maxima being the dimensions of their spans. Letters: M elements (m: of the largest group), n
pairs, s irreps that are alike, d degree, r dimension of a subspace.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float, Num

from jaxdyn import linalg
from jaxdyn.data.irreps import Irreps
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import energy

LAYERS = ("complex", "coefficients", "maxima", "tied")
CUT = 1e-9  # singular values below this share of the largest are rounding
_EXACT = jax.lax.Precision.HIGHEST


def count(layer: str, kind: str, degree: int) -> int:
    """The pairs of a layer in one irrep (for real weights: with its conjugate); ``kind`` is the irrep's type.

    Raises:
        ValueError: for a layer that is none of ``LAYERS``.
    """
    d = degree
    if layer not in LAYERS:
        raise ValueError(f"layer={layer!r} is none of {', '.join(LAYERS)}")
    if layer == "maxima":
        return {"real": d**3 * (d + 1) // 2, "complex": 3 * d**4 + d**3, "quaternionic": d**4}[kind]
    if layer == "tied":
        r = (2 if kind == "complex" else 1) * d**2
        return r * (r + 1) // 2
    return d**4 if layer == "complex" else d**3


@dataclasses.dataclass(frozen=True, eq=False)
class Sectors:
    """Irreps of one type and degree, from several groups: their subspaces side by side, functions on small groups ended by zeros.

    Args:
        decomposed: the irreps of every group.
        kind: the type; all types together for complex weights.
        degree: d.
        places: number of the group and of the irreps, two for a conjugate pair with real weights.
        basis: orthonormal bases of the subspaces, real ones for real weights.
    """

    decomposed: tuple[Irreps, ...]
    kind: str
    degree: int
    places: tuple[tuple[int, tuple[int, ...]], ...]
    basis: Num[np.ndarray, "s m r"]

    @functools.cached_property
    def last(self) -> Float[np.ndarray, " s"]:
        """1 for the last irrep of a group, which has the highest degree."""
        return np.array([float(self.decomposed[i].merged[-1][-1] == numbers[-1]) for i, numbers in self.places])

    @functools.cached_property
    def matrices(self) -> Complex[np.ndarray, "s m d d"]:
        """C of the irrep whose matrix coefficients span the subspace, the first one's conjugate."""
        c = [self.decomposed[i].matrices[self.decomposed[i].conjugate[numbers[0]]].astype(complex) for i, numbers in self.places]
        return np.stack([np.pad(x, ((0, self.basis.shape[1] - len(x)), (0, 0), (0, 0))) for x in c])

    def targets(self, right: Num[np.ndarray, "s m r"]) -> Num[np.ndarray, "s q m"]:
        """The part of every R_h between the subspaces of ``basis`` and ``right``, entry by entry."""
        s, m, r = self.basis.shape
        target = np.zeros((s, r * r, m), self.basis.dtype)
        for x, left, other, (i, _) in zip(target, self.basis.conj(), right.conj(), self.places, strict=True):
            table = self.decomposed[i].group.table  # row h: the a = hb with R_h[a, b] = 1
            x[:, : len(table)] = np.einsum("hbi,bj->ijh", left[table], other[: len(table)], optimize=True).reshape(r * r, -1)
        return target


def sectors(decomposed: tuple[Irreps, ...], real: bool) -> tuple[Sectors, ...]:
    """All irreps of these groups but the trivial ones, by type and degree; conjugate ones together for real weights."""
    m = max(irreps.group.order for irreps in decomposed)
    alike: dict[tuple[str, int], list[tuple[int, tuple[int, ...]]]] = {}
    for i, irreps in enumerate(decomposed):
        for peak in energy.peaks(irreps):
            for numbers in (peak.irreps,) if real else ((k,) for k in peak.irreps):
                alike.setdefault((peak.kind if real else "any", peak.degree), []).append((i, numbers))
    return tuple(
        Sectors(decomposed, kind, d, tuple(places), np.stack([_basis(decomposed[i], numbers, real, m) for i, numbers in places]))
        for (kind, d), places in sorted(alike.items())
    )


def _basis(irreps: Irreps, numbers: tuple[int, ...], real: bool, m: int) -> Num[np.ndarray, "m r"]:
    projector = sum(irreps.projector(k) for k in numbers)
    values, vectors = np.linalg.eigh(projector.real if real else projector)
    return np.pad(vectors[:, values > 0.5], ((0, m - irreps.group.order), (0, 0)))


def draws(layer: str, sectors: Sectors) -> tuple[int, ...]:
    """The shape of the normal numbers from which a layer's pairs are made."""
    s, _, r = sectors.basis.shape
    n, d = count(layer, sectors.kind, sectors.degree), sectors.degree
    return {"complex": (2, s, r, n), "coefficients": (2, s, d, d), "maxima": (3, 2, s, d, n), "tied": (s, r, n)}[layer]


def conjugates(normal: Float[Array, "2 s r n"], sectors: Sectors) -> tuple[Num[Array, "s m n"], Num[Array, "s m n"]]:
    """Random complex functions u in the subspaces, of norm 1, and v, their conjugates."""
    normal = normal / jnp.sqrt(jnp.sum(jnp.square(normal), (0, 2), keepdims=True))
    u = jnp.einsum("smr,srn->smn", sectors.basis, normal[0] + 1j * normal[1], precision=_EXACT)
    return u, jnp.conj(u)


def coefficients(normal: Float[Array, "2 s d d"], sectors: Sectors) -> tuple[Num[Array, "s m n"], Num[Array, "s m n"]]:
    """Matrix coefficients u = C_ir, v = conj C_jr in random orthonormal bases; r runs fastest."""
    d = sectors.degree
    turn = linalg.qr(normal[0] + 1j * normal[1])[0]
    c = jnp.einsum("sai,smab,sbj->smij", jnp.conj(turn), sectors.matrices, turn, precision=_EXACT)
    shape = (*c.shape[:2], d, d, d)
    u, v = jnp.broadcast_to(c[:, :, :, None], shape), jnp.broadcast_to(jnp.conj(c)[:, :, None], shape)
    return u.reshape(*shape[:2], -1), v.reshape(*shape[:2], -1)


def maxima(normal: Float[Array, "3 2 s d n"], sectors: Sectors) -> tuple[Float[Array, "s m n"], Float[Array, "s m n"]]:
    """Generic maxima of a node's energy, u and v of ``energy.maximum``: the real parts of functions with blocks a r^*, b r^*."""
    parts = normal.at[:, 1].set(0.0) if sectors.kind == "real" else normal
    a, b, r = parts[:, 0] + 1j * parts[:, 1]

    def function(a: Complex[Array, "s d n"]) -> Float[Array, "s m n"]:
        u = jnp.einsum("smij,sin,sjn->smn", sectors.matrices, a, jnp.conj(r), precision=_EXACT).real
        return u / jnp.sqrt(2 * jnp.sum(jnp.square(u), 1, keepdims=True))

    return function(a), function(b)


def tied(normal: Float[Array, "s r n"], sectors: Sectors) -> tuple[Float[Array, "s m n"], Float[Array, "s m n"]]:
    """Random real functions u = v in the subspaces, of squared norm 1/2, whose :math:`uu^T` span the symmetric matrices."""
    normal = normal / jnp.sqrt(2 * jnp.sum(jnp.square(normal), 1, keepdims=True))
    u = jnp.einsum("smr,srn->smn", sectors.basis, normal, precision=_EXACT)
    return u, u


def solve(
    u: Num[Array, "s m n"], v: Num[Array, "s m n"], sectors: Sectors, conjugate: bool = True
) -> tuple[Num[Array, "s n m"], Float[Array, "s n"]]:
    r"""The least squares weights c of :math:`\sum_n c_{nh} u_n v_n^\top \approx R_h`, and what leaving out a pair would cost.

    Args:
        u: functions in the subspaces of ``sectors``.
        v: functions in the conjugates of the subspaces, or in the same ones if not ``conjugate``.
        sectors: the irreps.
        conjugate: where v lies.

    Returns:
        c, and for each pair the squared residual that its absence adds, in parts of all the squared targets,
        :math:`\sum_h |c_{nh}|^2 / [(A^* A)^{-1}]_{nn}` for independent columns A; 0 for a pair of zeros.
    """
    # the columns u v^T, in coordinates of the subspaces
    right = sectors.basis.conj() if conjugate else sectors.basis
    a = jnp.einsum("smr,smn->srn", sectors.basis.conj(), u, precision=_EXACT)
    b = jnp.einsum("smr,smn->srn", right.conj(), v, precision=_EXACT)
    x = (a[:, :, None] * b[:, None]).reshape(len(a), -1, a.shape[-1])
    # least squares by singular values
    left, size, rows = linalg.svd(x)
    inverse = jnp.where(size > CUT * size[:, :1], 1 / jnp.where(size > 0, size, 1), 0.0)
    inner = jnp.einsum("sqp,sqm->spm", jnp.conj(left), sectors.targets(right), precision=_EXACT)
    c = jnp.einsum("spn,spm->snm", jnp.conj(rows) * inverse[:, :, None], inner, precision=_EXACT)
    # what leaving out a pair would cost
    spread = jnp.sum(jnp.square(jnp.abs(rows) * inverse[:, :, None]), 1)
    lost = jnp.sum(jnp.square(jnp.abs(c)), 2) / jnp.where(spread > 0, spread, 1)
    orders = np.array([sectors.decomposed[i].group.order for i, _ in sectors.places], float)
    return c, lost / (orders * (orders - 1))[:, None]


def outputs(u: Num[Array, "s m n"], v: Num[Array, "s m n"], c: Num[Array, "s n m"], sectors: Sectors) -> Num[Array, "g p m"]:
    """What the 2n nodes of these pairs add to the outputs of their groups' networks, on all pairs of elements, row by row.

    The network is that of ``model.py``, with complex weights for complex functions and its features centred over the pairs of
    elements. Rows with an element that a group does not have are zero.
    """
    groups, m = [sectors.decomposed[i].group for i, _ in sectors.places], u.shape[1]
    at = np.stack([np.concatenate([g.inverse, np.arange(g.order, m)]) for g in groups])
    second = jnp.take_along_axis(v, jnp.asarray(at)[:, :, None], 1)
    w = jnp.concatenate([jnp.concatenate([u, u], 2), jnp.concatenate([second, -second], 2)], 1)
    w, top = jax.lax.optimization_barrier((w, jnp.concatenate([c, -c], 1) / 4))  # or XLA makes the weights anew for every output
    f = jax.vmap(lambda w: model.features(w, model.pairs(m)))(w)
    real = np.stack([np.logical_and.outer(*(np.arange(m) < g.order,) * 2).ravel() for g in groups])[:, :, None]
    mean = jnp.sum(f * real, 1, keepdims=True) / np.sum(real, 1, keepdims=True)
    y = jnp.matmul((f - mean) * real, top, precision=_EXACT)
    owner = np.arange(len(sectors.decomposed))[:, None] == [i for i, _ in sectors.places]
    return jnp.einsum("gs,spm->gpm", owner.astype(float), y, precision=_EXACT)


def by_product(y: Num[Array, "g p m"], decomposed: tuple[Irreps, ...]) -> tuple[Float[Array, "g m m"], Float[Array, " g"]]:
    """Outputs on all pairs of elements, real parts by product, and what else there is.

    Returns:
        The mean over the pairs of each product (rows), and the squared deviations from it, imaginary parts included, in parts of
        the squared targets: what the two miss of the targets adds up to the squared residual.
    """
    m = math.isqrt(y.shape[1])
    rows, real = np.zeros((len(decomposed), m, m), int), np.zeros((len(decomposed), m, m))
    for row, inside, irreps in zip(rows, real, decomposed, strict=True):
        group, n = irreps.group, irreps.group.order
        row[:n, :n] = (m * np.arange(n)[:, None] + group.table[group.inverse]).T  # the pair (a, a^{-1} h) in row h, column a
        inside[:n, :n] = 1
    y = y[np.arange(len(decomposed))[:, None, None], rows] * real[..., None]
    orders = np.array([irreps.group.order for irreps in decomposed], float)
    mean = jnp.sum(y, 2).real / orders[:, None, None]
    gap = jnp.square(jnp.abs(y - mean[:, :, None])) * real[..., None]
    return mean, jnp.sum(gap, (1, 2, 3)) / (orders * (orders - 1))
