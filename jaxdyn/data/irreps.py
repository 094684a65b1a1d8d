r"""The irreducible representations of a finite group, computed from its Cayley table, and the Fourier transform on it.

A class function x gives :math:`Z = \sum_g x(g) R_g`, :math:`R_g e_j = e_{gj}`, whose eigenspaces are (for random x) the isotypic
subspaces :math:`H_k` of dimension :math:`d_k^2`; their projectors give the characters, :math:`\chi_k(g) = \frac{M}{d_k}
\overline{\Pi_k[g, e]}`. On H_k, a random Hermitian element of the *right* regular representation commutes with all R_g and has
d_k eigenvalues of multiplicity d_k; an orthonormal basis B_k of one eigenspace gives :math:`C_k(g) = B_k^* R_g B_k`. The transform
is

.. math:: \hat u_k = \sqrt{d_k / M} \sum_g u(g) \overline{C_k(g)}, \qquad \|u\|^2 = \sum_k \|\hat u_k\|_F^2, \qquad
    \widehat{(u * v)}_k = \sqrt{M / d_k}\, \hat u_k \hat v_k, \quad (u * v)(h) = \sum_g u(g) v(g^{-1} h).

so block k holds the part of u in :math:`H_{\bar k}`, which the functions :math:`C_k(g)_{ab}` span (for cyclic groups: the
coefficient of the k-th wave). Irreps are numbered by degree, the trivial one first, then by their characters. The conjugate of an
irrep of complex type is its neighbour, with :math:`C_{\bar k} = \overline{C_k}` entry by entry; an irrep of real type has real
orthogonal C_k; a real u thus has :math:`\hat u_{\bar k} = \overline{\hat u_k}` but for quaternionic type. The bases B_k are one
choice of many: only :math:`\|\hat u_k\|_F` and what else is invariant under unitary changes of basis has a meaning.

Source: Serre, Linear Representations of Finite Groups, chapters 2, 6 and 13; recipe for arXiv:2509.21519.
Departure: a character value is a sum of roots of unity, whose whole multiplicities are rounded, so that characters are as exact
as cosines are, and the projectors are made from them. Letters: m elements, c conjugacy classes and as many irreps k, d degrees.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float, Int, Num

from jaxdyn.data.cayley import Group

__all__ = ["Irreps", "blocks", "decompose", "energies", "flatten", "inverse", "transform"]

_DRAWS = 20
_SEPARATION = 1e-7  # least gap between eigenvalues of Z, in parts of their spread: their own errors are about 1e-14
_WHOLE = 1e-3  # how far a multiplicity may be from a whole number: eigenvectors are good to 1e-9 at the least gap
_ACCURACY = 1e-9
_EXACT = jax.lax.Precision.HIGHEST


@dataclasses.dataclass(frozen=True, eq=False)
class Irreps:
    """The irreps of a group, made by :func:`decompose`; hashable, so usable as a static argument.

    Args:
        group: the group.
        table: the character table, irreps by conjugacy classes.
        matrices: C_k(g) of each irrep, shapes (m, d_k, d_k); float64 for real type, else complex128.
    """

    group: Group
    table: Complex[np.ndarray, "c c"] = dataclasses.field(repr=False)
    matrices: tuple[Num[np.ndarray, "m _ _"], ...] = dataclasses.field(repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Irreps) and self.group == other.group

    def __hash__(self) -> int:
        return hash((Irreps, self.group))

    def __len__(self) -> int:
        return len(self.table)

    @functools.cached_property
    def degrees(self) -> Int[np.ndarray, " c"]:
        """d_k."""
        return np.array([len(c[0]) for c in self.matrices])

    @functools.cached_property
    def characters(self) -> Complex[np.ndarray, "c m"]:
        """chi_k(g): row k, column g."""
        return self.table[:, self.group.classes]

    @functools.cached_property
    def indicators(self) -> Int[np.ndarray, " c"]:
        """Frobenius-Schur: 1 real, 0 complex, -1 quaternionic type."""
        return _indicators(self.group, self.table)

    @functools.cached_property
    def conjugate(self) -> Int[np.ndarray, " c"]:
        """The number of the conjugate irrep of each; its own where the character is real."""
        return _conjugate(self.group, self.table)

    @functools.cached_property
    def merged(self) -> tuple[tuple[int, ...], ...]:
        """The irreps merged as the spectrum of a real u has them: (k,) for a real character, (k, conjugate of k) for a pair."""
        return tuple((k,) if k == c else (k, int(c)) for k, c in enumerate(self.conjugate) if k <= c)

    @functools.cached_property
    def owner(self) -> Int[np.ndarray, " m"]:
        """The irrep of each entry of a flat spectrum, in which the blocks follow one another, each row by row."""
        return np.repeat(np.arange(len(self)), self.degrees**2)

    @functools.cached_property
    def fourier(self) -> Complex[np.ndarray, "m m"]:
        r"""The unitary matrix of the transform: :math:`\sqrt{d_k/M}\, \overline{C_k(g)_{ab}}` in row (k, a, b), column g."""
        scale = np.sqrt(self.degrees[self.owner] / self.group.order).astype(complex)
        return scale[:, None] * np.concatenate([c.reshape(len(c), -1).conj().T for c in self.matrices])

    def projector(self, k: int | np.integer) -> Complex[np.ndarray, "m m"]:
        r""":math:`\Pi_k = \frac{d_k}{M} \sum_g \overline{\chi_k(g)} R_g` on the isotypic subspace."""
        return _projector(self.group, self.table[k])


@functools.cache
def decompose(group: Group) -> Irreps:
    """All irreps of a group, the same at every call; an order of 168 takes a tenth of a second, of 720 a second or two.

    Raises:
        RuntimeError: if no draw of the random elements separated the irreps, which has not been observed.
    """
    for draw in range(_DRAWS):
        rng = np.random.default_rng(draw)
        if (spaces := _isotypic(group, rng)) is None or (table := _characters(group, spaces)) is None:
            continue
        if (matrices := _matrices(group, table, spaces, rng)) is not None:
            return Irreps(group, table, matrices)
    raise RuntimeError(f"the irreps of the group {group} ({group.order} elements) could not be separated in {_DRAWS} random draws")


def _isotypic(group: Group, rng: np.random.Generator) -> list[np.ndarray] | None:
    """Orthonormal bases of the eigenspaces of a random Hermitian Z; None if they are not those of all irreps."""
    count = len(group.class_sizes)
    x = (rng.standard_normal(count) + 1j * rng.standard_normal(count))[group.classes]
    values, vectors = np.linalg.eigh((x + x[group.inverse].conj())[group.quotient])
    ends = np.flatnonzero(np.diff(values) > _SEPARATION * np.ptp(values)) + 1
    spaces = np.split(vectors, ends, axis=1)
    degrees = [round(space.shape[1] ** 0.5) for space in spaces]
    whole = all(d * d == space.shape[1] for d, space in zip(degrees, spaces, strict=True))
    return spaces if whole and len(spaces) == count else None


def _characters(group: Group, spaces: list[np.ndarray]) -> Complex[np.ndarray, "c c"] | None:
    """The character table, with the spaces sorted as its rows are; None if a row is not a character or two are not orthogonal."""
    degrees = np.array([round(space.shape[1] ** 0.5) for space in spaces])
    columns = np.stack([space @ space[group.identity].conj() for space in spaces])
    sums = columns.conj() @ (group.classes[:, None] == np.arange(len(spaces)))
    table = _rounded(group, sums / group.class_sizes * (group.order / degrees)[:, None])
    if table is None or np.abs((table * group.class_sizes) @ table.conj().T / group.order - np.eye(len(table))).max() > _ACCURACY:
        return None
    # rounded, so that equal real parts of different irreps are equal and the next class or the imaginary parts decide
    keys = np.concatenate([degrees[:, None], -np.round(table.real, 6), -np.round(table.imag, 6)], 1)
    order = np.lexsort(keys.T[::-1])
    spaces[:] = [spaces[k] for k in order]
    table = table[order]
    conjugate = _conjugate(group, table)
    return np.where((conjugate < np.arange(len(table)))[:, None], table[conjugate].conj(), table)  # to the last bit


def _rounded(group: Group, values: Complex[np.ndarray, "c c"]) -> Complex[np.ndarray, "c c"] | None:
    """chi(h^l) = sum_j m_j exp(2 pi i j l / n), n the order of h, the whole m_j >= 0 read off the values; None if none fit."""
    exact = np.full_like(values, np.nan)
    for place in np.argsort(-group.element_orders[group.representatives], kind="stable"):
        if not np.isnan(exact[0, place]):
            continue  # a power of an earlier element: so one element serves for its whole cyclic group
        classes = group.classes[group.powers(int(group.representatives[place]))]
        n = len(classes)
        counts = np.fft.fft(values[:, classes]) / n
        whole = np.round(counts.real)
        if np.abs(counts - whole).max() > _WHOLE or whole.min() < 0:
            return None
        # j and -j together: then a real character has no imaginary part at all
        backward = np.roll(whole[:, ::-1], 1, axis=1)
        half, powers = np.arange(1, (n + 1) // 2), np.arange(n)
        angles = 2 * np.pi * (half[:, None] * powers % n) / n
        real = whole[:, :1] + (whole + backward)[:, half] @ np.cos(angles)
        if n % 2 == 0:
            real += whole[:, n // 2, None] * (-1.0) ** powers
        exact[:, classes] = real + 1j * ((whole - backward)[:, half] @ np.sin(angles))
    return exact


def _indicators(group: Group, table: Complex[np.ndarray, "c c"]) -> Int[np.ndarray, " c"]:
    squares = np.bincount(group.classes[np.diagonal(group.table)], minlength=len(table))
    return np.round((table @ squares).real / group.order).astype(int)


def _conjugate(group: Group, table: Complex[np.ndarray, "c c"]) -> Int[np.ndarray, " c"]:
    """By orthogonality: the mean of chi_k chi_l is 1 for the conjugate and 0 for all others."""
    return ((table * group.class_sizes) @ table.T).real.argmax(1)


def _projector(group: Group, row: Complex[np.ndarray, " c"]) -> Complex[np.ndarray, "m m"]:
    return (row[0].real / group.order) * row.conj()[group.classes][group.quotient]


def _matrices(
    group: Group, table: Complex[np.ndarray, "c c"], spaces: list[np.ndarray], rng: np.random.Generator
) -> tuple[np.ndarray, ...] | None:
    """C_k of every irrep; None if one of them is not a unitary representation, from eigenvalues too close to each other."""
    representations: list[np.ndarray] = []
    conjugate, indicators = _conjugate(group, table), _indicators(group, table)
    for k, (row, space) in enumerate(zip(table, spaces, strict=True)):
        if conjugate[k] < k:
            representations.append(representations[conjugate[k]].conj())
            continue
        real = bool(indicators[k] == 1)
        if space.shape[1] == 1:
            matrices = row[group.classes][:, None, None]
            representations.append(matrices.real if real else matrices)
            continue
        basis = _one_copy(group, _cleaned(_projector(group, row), space, real), rng, real)
        matrices = np.einsum("ia,gib->gab", basis.conj(), basis[group.table[group.inverse]], optimize=True)
        if not _represents(group, matrices):
            return None
        representations.append(matrices)
    return tuple(representations)


def _cleaned(projector: np.ndarray, space: np.ndarray, real: bool) -> Num[np.ndarray, "m _"]:
    """An orthonormal basis of the projector's range, a real one on demand, from an inexact one."""
    if not real:
        return np.linalg.qr(projector @ space)[0]
    # Re V Re V' + Im V Im V' = Re(V V^*) is a projector again, so all singular values are 1 or 0
    vectors = np.linalg.svd(np.concatenate([space.real, space.imag], 1), full_matrices=False)[0][:, : space.shape[1]]
    return np.linalg.qr(projector.real @ vectors)[0]


def _one_copy(group: Group, space: np.ndarray, rng: np.random.Generator, real: bool) -> Num[np.ndarray, "m d"]:
    """The eigenspace of a random Hermitian element of the right regular representation that is best separated from the others."""
    y = rng.standard_normal(group.order) + (0 if real else 1j * rng.standard_normal(group.order))
    y = y + y[group.inverse].conj()
    values, vectors = np.linalg.eigh(space.conj().T @ y[group.table[group.inverse]] @ space)
    degree = round(space.shape[1] ** 0.5)
    levels = np.pad(values.reshape(degree, degree).mean(1), 1, constant_values=(-np.inf, np.inf))
    best = int(np.argmax(np.minimum(levels[1:-1] - levels[:-2], levels[2:] - levels[1:-1])))
    return space @ vectors[:, best * degree : (best + 1) * degree]


def _represents(group: Group, matrices: Num[np.ndarray, "m d d"]) -> bool:
    """Whether C(hg) = C(h) C(g) for generators g and all h, and C C^* = 1."""
    errors = [matrices[group.table[:, g]] - matrices @ matrices[g] for g in group.generators]
    errors.append(matrices @ matrices.conj().swapaxes(1, 2) - np.eye(matrices.shape[1]))
    return all(bool(np.abs(error).max() < _ACCURACY) for error in errors)


def _constant(value: np.ndarray, like: Num[Array, "..."]) -> Complex[Array, "..."]:
    return jnp.asarray(value, jnp.result_type(like.dtype, jnp.complex64))


def transform(u: Num[Array, "*n m"], irreps: Irreps) -> Complex[Array, "*n m"]:
    r"""The flat spectrum of a function on the group, :math:`\hat u = F u` with the unitary F of :attr:`Irreps.fourier`."""
    f = _constant(irreps.fourier, u)
    return jnp.matmul(u.astype(f.dtype), f.T, precision=_EXACT)


def inverse(z: Complex[Array, "*n m"], irreps: Irreps) -> Complex[Array, "*n m"]:
    r"""The function of a flat spectrum, :math:`u = F^* \hat u`: real up to rounding if conjugate irreps have conjugate blocks."""
    return jnp.matmul(z, jnp.conj(_constant(irreps.fourier, z)), precision=_EXACT)


def blocks(z: Complex[Array, "*n m"], irreps: Irreps) -> tuple[Complex[Array, "*n _ _"], ...]:
    """The d_k x d_k matrices of a flat spectrum, irrep by irrep."""
    degrees = irreps.degrees.tolist()
    pieces = jnp.split(z, np.cumsum(irreps.degrees**2)[:-1], axis=-1)
    return tuple(piece.reshape(*z.shape[:-1], d, d) for piece, d in zip(pieces, degrees, strict=True))


def flatten(matrices: tuple[Complex[Array, "*n _ _"], ...]) -> Complex[Array, "*n m"]:
    """The flat spectrum of blocks: the inverse of :func:`blocks`."""
    return jnp.concatenate([block.reshape(*block.shape[:-2], -1) for block in matrices], -1)


def energies(z: Complex[Array, "*n m"], irreps: Irreps) -> Float[Array, "*n c"]:
    r""":math:`\|\hat u_k\|_F^2` of each irrep: by Plancherel their sum is :math:`\|u\|^2`."""
    squares = jnp.square(z.real) + jnp.square(z.imag)
    member = jnp.asarray(irreps.owner[:, None] == np.arange(len(irreps)), squares.dtype)
    return jnp.matmul(squares, member, precision=_EXACT)
