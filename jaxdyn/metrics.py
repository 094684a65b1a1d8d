"""Numbers that describe an array, for use inside trials (jax.numpy).

Every dtype of floats stays as it is, others become floats; sums are taken in float32 at least.

On CPU, XLA's ``jnp.max`` and ``jnp.min`` over an axis silently drop NaN (openxla/xla issue 21461): none is used here to
find out whether something is finite, and neither should they be in a trial (``train.finite_status`` is for that).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.scipy.special import entr
from jaxtyping import Array, Bool, Float, Inexact, Int, PyTree

from jaxdyn import linalg
from jaxdyn.errors import UsageError, number, shown, whole

__all__ = ["entropy", "normalized_correlation", "relative_norm_error", "stable_rank", "top_eigenvalue"]


def entropy(p: Float[Array, " *shape"], axis: int = -1) -> Float[Array, " *rest"]:
    r"""Shannon entropy in nats, :math:`H(p) = -\sum_i p_i \ln p_i` with :math:`0 \ln 0 = 0`.

    ``-inf`` where an entry is negative or infinite; ``p`` is not normalised here.

    Raises:
        UsageError: for complex numbers, and without an entry along the axis.
    """
    return jnp.sum(entr(_along("p", p, axis)), axis)


def stable_rank(m: Float[Array, "*rest r c"]) -> Float[Array, " *rest"]:
    r"""Stable rank :math:`\|M\|_F^2 / \|M\|_2^2`, from 1 to the rank; NaN for the zero matrix, and where an entry is not finite.

    Source: Rudelson and Vershynin, arXiv:math/0503442, section 1 ("numerical rank").

    Raises:
        UsageError: for an array that is not of matrices, and for matrices without entries.
    """
    m = _numbers("m", m)
    if not all(m.shape[-2:]):
        raise UsageError(f"m={shown(m)} is not allowed: a matrix has entries")
    s = linalg.singular_values(m)
    return jnp.sum(jnp.square(s / s[..., :1]), -1)


def normalized_correlation(a: Float[Array, " *left"], b: Float[Array, " *right"], axis: int = -1) -> Float[Array, " *rest"]:
    r"""Pearson correlation along ``axis``: :math:`\langle a', b'\rangle / (\|a'\| \|b'\|)`, :math:`x' = x - \bar x`.

    NaN where one of the two is constant or not finite. The two broadcast against each other first: ``axis`` is one of the result.

    Raises:
        UsageError: for complex numbers, for shapes that do not broadcast, and without an entry along the axis.
    """
    a, b = (_along(name, x, axis) for name, x in zip("ab", _broadcast(a, b), strict=True))
    dtype = jnp.result_type(a, b)
    a, b = (x.astype(_wide(x)) for x in (a, b))
    constant = _constant(a, axis) | _constant(b, axis)
    a = a - jnp.mean(a, axis, keepdims=True)
    b = b - jnp.mean(b, axis, keepdims=True)
    a, b = (x * _power(x, -_exponent(x, axis)) for x in (a, b))  # their squares then neither overflow nor vanish
    found = jnp.sum(a * b, axis) / (jnp.linalg.norm(a, axis=axis) * jnp.linalg.norm(b, axis=axis))
    return jnp.where(jnp.squeeze(constant, axis), jnp.nan, found).astype(dtype)


def relative_norm_error(a: PyTree, b: PyTree) -> Float[Array, ""]:
    r"""Relative distance :math:`\|a - b\|_2 / \|b\|_2` of two trees, all leaves taken as one vector; ``b`` is the reference.

    Infinite, or NaN, if the reference is zero.

    Raises:
        UsageError: for trees of other structures or shapes, without a number, or with a leaf that is none.
    """
    structures: list[Any] = [jax.tree.structure(tree) for tree in (a, b)]
    if structures[0] != structures[1]:
        raise UsageError(f"two trees are compared leaf by leaf, got {structures[0]} and {structures[1]}")
    leaves = [[_numbers(name, x) for x in jax.tree.leaves(tree)] for name, tree in (("a", a), ("b", b))]
    for x, y in zip(*leaves, strict=True):
        if x.shape != y.shape:
            raise UsageError(f"two trees are compared leaf by leaf, got leaves {shown(x)} and {shown(y)}")
    if not sum(x.size for x in leaves[0]):
        raise UsageError("two trees without a number cannot be compared")
    pairs = [(x.astype(dtype), y.astype(dtype)) for x, y in zip(*leaves, strict=True) if (dtype := _float(x, y))]
    wide = [(x.astype(_wide(x)), y.astype(_wide(y))) for x, y in pairs]
    (error, far), (size, near) = _norm([x - y for x, y in wide]), _norm([y for _, y in wide])
    return jnp.ldexp(error / size, far - near).astype(jnp.result_type(*(x.real for pair in pairs for x in pair)))


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
        iters: number of iterations, one or more; may be traced.
        shift: :math:`c`; may be traced.

    Raises:
        UsageError: if the number of iterations is below 1, the shift no finite number, the start no tree of numbers, or the
            operator no function that gives such a tree.
    """
    iters = whole("iters", iters, least=1, most=2**31 - 1, traced=True)
    shift = number("shift", shift, traced=True)

    def iterate(_: Int[Array, ""], v: PyTree) -> PyTree:
        moved = jax.tree.map(lambda hx, x: hx + shift * x, hvp(v), v)
        still = _norm(jax.tree.leaves(moved))[0] == 0  # v is an eigenvector already, of the eigenvalue -c
        return jax.tree.map(lambda new, old: jnp.where(still, old, new).astype(old.dtype), _unit(moved), v)

    v = _unit(_start(v0))
    _refuse_other_operators(hvp, v)
    v = jax.lax.fori_loop(0, iters, iterate, v)
    moved = hvp(v)
    found = jnp.real(optax.tree.vdot(*(jax.tree.map(lambda x: x.astype(_wide(x)), tree) for tree in (v, moved))))
    return found.astype(jnp.finfo(jnp.result_type(*jax.tree.leaves((v, moved)))).dtype)


def _start(v0: PyTree) -> PyTree:
    """The start of an iteration as floats."""
    v = jax.tree.map(lambda x: (x := _numbers("v0", x)).astype(_float(x)), v0)
    if not sum(x.size for x in jax.tree.leaves(v)):
        raise UsageError(f"v0={shown(v0)} is not allowed: a vector has entries")
    return v


def _unit(v: PyTree) -> PyTree:
    """A tree over its norm, whatever its size; NaN for zero."""
    norm, exponent = _norm(jax.tree.leaves(v))

    def scaled(x: Array) -> Array:
        wide = x.astype(jnp.result_type(x, norm))
        return (wide * _power(wide, -exponent) * (1 / norm)).astype(x.dtype)

    return jax.tree.map(scaled, v)


def _refuse_other_operators(hvp: Any, v: PyTree) -> None:
    """Refuse an operator that gives no tree of numbers like the one it takes."""
    if not callable(hvp):
        raise UsageError(f"hvp={shown(hvp)} is not allowed: it is a function of a tree")
    trees = (v, jax.eval_shape(hvp, v))
    structures: list[Any] = [jax.tree.structure(tree) for tree in trees]
    shapes = [[x.shape for x in jax.tree.leaves(tree)] for tree in trees]
    if structures[0] != structures[1] or shapes[0] != shapes[1]:
        raise UsageError("hvp= is not allowed: it gives a tree like the one that it takes")


def _numbers(name: str, x: Any) -> Array:
    """An array of numbers; truth values count as 0 and 1."""
    try:
        if isinstance(x, str | bytes):  # JAX may take it as the name of a dtype
            raise TypeError
        array = jnp.asarray(x)
        if not (jnp.issubdtype(array.dtype, jnp.number) or array.dtype == bool):
            raise TypeError
    except (TypeError, ValueError, OverflowError) as error:  # texts, dates, keys, objects, lists of unequal lengths
        raise UsageError(f"{name}={shown(x)} is not allowed: it is a number, or an array of numbers") from error
    return array


def _along(name: str, x: Float[Array, "*shape"], axis: int) -> Float[Array, "*shape"]:
    """Real floats with an entry along an axis."""
    x, axis = _numbers(name, x), whole("axis", axis)
    if not -x.ndim <= axis < x.ndim or not x.shape[axis]:
        raise UsageError(f"{name}={shown(x)} is not allowed: it has entries along axis {axis}")
    if jnp.iscomplexobj(x):
        raise UsageError(f"{name}={shown(x)} is not allowed: it is real")
    return x.astype(_float(x))


def _float(*arrays: Array) -> Any:
    """The dtype of floats that holds them: their own, if they have one."""
    dtype = jnp.result_type(*arrays)
    return dtype if jnp.issubdtype(dtype, jnp.inexact) else jnp.result_type(dtype, float)


def _wide(*arrays: Array) -> Any:
    """The dtype in which they are summed: bfloat16 stops growing at 256 times the terms, and squares leave float16."""
    return jnp.promote_types(jnp.result_type(*arrays), jnp.float32)


def _broadcast(a: Any, b: Any) -> list[Array]:
    """Two arrays of one shape."""
    a, b = _numbers("a", a), _numbers("b", b)
    try:
        return jnp.broadcast_arrays(a, b)
    except ValueError as error:
        raise UsageError(f"a={shown(a)}, b={shown(b)} are not allowed: their shapes broadcast against each other") from error


def _constant(x: Float[Array, "*shape"], axis: int) -> Bool[Array, "..."]:
    """Where all entries along an axis are equal: minus their mean, they would be its rounding."""
    return jnp.all(x == jax.lax.slice_in_dim(x, 0, 1, axis=axis), axis, keepdims=True)


def _exponent(x: Inexact[Array, "*shape"], axis: int | None = None) -> Int[Array, "..."]:
    """The power of two above all entries along an axis, but for the largest and smallest that the dtype has.

    For zeros it is the smallest. Where ``max`` drops NaN, the entries still have it.
    """
    size = jax.lax.stop_gradient(jnp.max(jnp.abs(x), axis, keepdims=axis is not None))
    widest = int(jnp.finfo(x.dtype).maxexp) - 4
    return jnp.where(size == 0, -widest, jnp.clip(jnp.frexp(size)[1], -widest, widest))


def _power(x: Inexact[Array, "*shape"], exponent: Int[Array, "*rest"]) -> Float[Array, "*rest"]:
    """The power of two in the dtype of x: products with it are exact."""
    return jnp.ldexp(jnp.ones((), jnp.finfo(x.dtype).dtype), exponent)


def _norm(leaves: list[Array]) -> tuple[Float[Array, ""], Int[Array, ""]]:
    """The norm of all leaves as one vector: a number, and the power of two that it is times."""
    wide = _wide(*leaves)  # a narrow dtype lacks the powers of a wide one
    leaves = [x.astype(wide) for x in leaves if x.size]
    largest = functools.reduce(jnp.maximum, map(_exponent, leaves))
    return optax.tree.norm([x * _power(x, -largest) for x in leaves]), largest
