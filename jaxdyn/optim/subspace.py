r"""Low-dimensional bases of a gradient: which side of a matrix is projected, and how the basis is found.

.. math:: R = P^\top G \ (\text{left}), \qquad R = G Q \ (\text{right}), \qquad R = P^\top G Q \ (\text{full})

Source: arXiv:2403.03507 (GaLore), section 4.1 and the released code. Letters: G (m, n) a gradient, P (m, r) and Q (n, r) bases, r
rank.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from jaxdyn import linalg
from jaxdyn.errors import require, whole
from jaxdyn.optim.sizes import binade
from jaxdyn.optim.trees import check_dtype, rank_known
from jaxdyn.sampling import wide

__all__ = ["FINDERS", "SIDES", "Basis", "Subspace", "find", "lift", "low_shape", "lower", "overlap", "sides", "signed", "zeros"]

SIDES = ("short", "long", "left", "right", "full")
FINDERS = ("svd", "randomized", "iteration", "orthonormal", "gaussian")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Subspace:
    """How gradients are projected; hashable.

    Args:
        rank: number of directions; at most the smaller side of a matrix is used.
        side: "short" projects the shorter dimension (ties: the columns; the released default), "long" the longer one (ties: the
            rows; the smallest state), "left" the rows, "right" the columns, "full" both.
        finder: "svd" (exact), "randomized" (Halko et al.), "iteration" (subspace iteration from the last basis), "orthonormal"
            (random, the gradient is not looked at), "gaussian" (random entries of variance 1/rank, not orthonormal).
        oversample: further directions of the randomised decomposition.
        power: power steps of the randomised decomposition, or rounds of subspace iteration.
        signs: whether the largest entry of each singular vector is made positive. A vector's sign is arbitrary, and the moments
            that are kept through a refresh depend on it: with this, all machines agree.
        dtype: of the stored basis; None: the parameter's. An orthonormal basis in bfloat16 is so to about 1%.
    """

    rank: int
    side: str = "short"
    finder: str = "svd"
    oversample: int = 8
    power: int = 2
    signs: bool = True
    dtype: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", rank_known(self.rank))
        for name in ("oversample", "power"):
            object.__setattr__(self, name, whole(name, getattr(self, name), least=0))
        check_dtype("dtype", self.dtype)
        require(self, self.side in SIDES, f"side is one of {', '.join(SIDES)}", "side")
        require(self, self.finder in FINDERS, f"finder is one of {', '.join(FINDERS)}", "finder")
        require(self, self.finder != "iteration" or self.power >= 1, "subspace iteration has at least one round", "power")


class Basis(NamedTuple):
    """Directions on either side, as columns; None where that side is not projected."""

    left: Float[Array, "*batch m r"] | None
    right: Float[Array, "*batch n r"] | None


def sides(s: Subspace, m: int, n: int) -> tuple[bool, bool]:
    """Whether rows and whether columns are projected: decided by the shape of the weight alone."""
    if s.side == "full":
        return True, True
    left = {"short": m < n, "long": m >= n, "left": True, "right": False}[s.side]
    return left, not left


def zeros(s: Subspace, shape: tuple[int, ...], dtype: Any) -> Basis:
    """A basis before the first gradient, for matrices [*batch, m, n]."""
    *batch, m, n = shape
    r, stored = min(s.rank, m, n), jnp.dtype(s.dtype or dtype)
    return Basis(*(jnp.zeros((*batch, size, r), stored) if on else None for size, on in zip((m, n), sides(s, m, n), strict=True)))


def low_shape(s: Subspace, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of R for matrices [*batch, m, n]."""
    *batch, m, n = shape
    r, (left, right) = min(s.rank, m, n), sides(s, m, n)
    return (*batch, r if left else m, r if right else n)


def lower(basis: Basis, g: Float[Array, "*batch m n"]) -> Float[Array, "*batch a b"]:
    """R of a gradient."""
    if basis.left is not None:
        g = jnp.swapaxes(basis.left, -1, -2).astype(g.dtype) @ g
    return g if basis.right is None else g @ basis.right.astype(g.dtype)


def lift(basis: Basis, r: Float[Array, "*batch a b"]) -> Float[Array, "*batch m n"]:
    """Back to the weight's shape: P R, R Q' or P R Q'."""
    if basis.left is not None:
        r = basis.left.astype(r.dtype) @ r
    return r if basis.right is None else r @ jnp.swapaxes(basis.right, -1, -2).astype(r.dtype)


def overlap(a: Basis, b: Basis) -> Float[Array, ""]:
    r"""Mean over sides and matrices of :math:`\|P_a^\top P_b\|_F^2 / r`: 1 for one subspace, 0 for orthogonal ones."""
    pairs = [(x.astype(jnp.float32), y.astype(jnp.float32)) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    shared = (jnp.mean(jnp.sum(jnp.square(jnp.swapaxes(x, -1, -2) @ y), (-2, -1)) / x.shape[-1]) for x, y in pairs)
    return jnp.asarray(sum(shared) / len(pairs))


def signed(p: Float[Array, "m r"]) -> Float[Array, "m r"]:
    """Each column times the sign of its largest entry."""
    largest = jnp.take_along_axis(p, jnp.argmax(jnp.abs(p), 0)[None], 0)
    return jnp.where(largest < 0, -p, p)


def find(s: Subspace, g: Float[Array, "*batch m n"], old: Basis, key: PRNGKeyArray) -> Basis:
    """The basis of a gradient, one matrix after another; float32 at least.

    A gradient that is zero or not finite keeps the old basis, and takes the first unit vectors if there is none.
    """
    batch = g.shape[:-2]
    one: Callable[..., Basis] = lambda *a: _find(s, *a)  # noqa: E731
    for _ in batch:
        one = jax.vmap(one)
    return one(g, old, jax.random.split(key, batch) if batch else key)


def _find(s: Subspace, g: Float[Array, "m n"], old: Basis, key: PRNGKeyArray) -> Basis:
    g = g.astype(jnp.promote_types(g.dtype, jnp.float32))
    usable = jnp.all(jnp.isfinite(g)) & jnp.any(g != 0)
    g = jnp.where(usable, g, 0)
    keys = jax.random.split(key)
    if s.finder == "svd":
        u, _, vt = linalg.svd(g)
        exact = u, vt.T

    def side(i: int, a: Array) -> Array | None:
        before = old[i]
        if before is None:
            return None
        r = before.shape[-1]
        gaussian = jax.random.normal(keys[i], before.shape, wide(a.dtype))
        if s.finder == "gaussian":
            return (gaussian / r**0.5).astype(before.dtype)
        if s.finder == "orthonormal":
            return linalg.qr(gaussian)[0].astype(before.dtype)
        has_basis, last = jnp.any(before != 0), before.astype(a.dtype)
        if s.finder == "iteration":
            new = _iterate(a, jnp.where(has_basis, last, gaussian), s.power)
        else:
            new = exact[i][:, :r] if s.finder == "svd" else _randomized(a, r, s, keys[i])
            new = signed(new) if s.signs else new
        # a QR of random columns here would be half the cost
        other = jnp.where(has_basis, last, jnp.eye(before.shape[0], r, dtype=a.dtype))
        return jnp.where(usable, new, other).astype(before.dtype)

    return Basis(side(0, g), side(1, g.T))


def _iterate(a: Float[Array, "m n"], p: Float[Array, "m r"], rounds: int) -> Float[Array, "m r"]:
    r"""Subspace iteration :math:`P \leftarrow \mathrm{qr}(A A^\top P)`, with R's diagonal positive, so that a basis at rest stays.

    Source: Golub and Van Loan, Matrix Computations, section 8.2.4.
    """
    a = a / binade(a)  # the square of a tiny or huge one would be zero or infinite
    for _ in range(rounds):
        p, upper = linalg.qr(a @ (a.T @ p))
        p = jnp.where(jnp.diagonal(upper) < 0, -p, p)
    return p


def _randomized(a: Float[Array, "m n"], r: int, s: Subspace, key: PRNGKeyArray) -> Float[Array, "m r"]:
    r"""Left singular vectors from the range of :math:`(AA^\top)^q A \Omega`, :math:`\Omega` Gaussian with r + p columns.

    Source: Halko, Martinsson, Tropp, arXiv:0909.4061, algorithms 4.4 and 5.1; the power steps are orthonormalised.
    """
    columns = min(r + s.oversample, *a.shape)
    a = a / binade(a)
    q = linalg.qr(a @ jax.random.normal(key, (a.shape[1], columns), wide(a.dtype)))[0]
    for _ in range(s.power):
        q = linalg.qr(a @ linalg.qr(a.T @ q)[0])[0]
    return q @ linalg.svd(q.T @ a)[0][:, :r]
