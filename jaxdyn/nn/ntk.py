r"""The empirical neural tangent kernel of any network, and how far two kernels are from each other.

.. math:: K(x, x')_{ij} = \langle \nabla_\theta f_i(x), \nabla_\theta f_j(x') \rangle

Under gradient flow on half of the squared error, :math:`\dot f = -K (f - y)`. Training is lazy where K keeps its initial value, and
rich where it changes: the relative change is ``metrics.relative_norm_error(final, initial)`` of the two kernels, the change of its
direction alone is ``1 - kernel_alignment(final, initial)``.

Source: Jacot, Gabriel and Hongler, arXiv:1806.07572; its computation at finite width: Novak, Sohl-Dickstein and Schoenholz,
arXiv:2206.08720.
Letters: n inputs x, m others, o outputs of f for one input, P parameters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree, Real

from jaxdyn import linalg
from jaxdyn.errors import UsageError, flag, shown, whole

__all__ = ["empirical_ntk", "kernel_alignment", "target_alignment"]

FULL = ("jacobians", "products")  # ways to the full kernel
Output = Callable[[list[Array], PyTree], Array]  # of the parameters that count, and of one input: all outputs as a vector
Side = Callable[[PyTree], Callable[[PyTree], Array]]  # of a block of inputs: the function block of others -> their kernel


def empirical_ntk(
    f: Callable[[Any, Any], Any],
    params: PyTree,
    x: PyTree,
    other: PyTree | None = None,
    *,
    trace: bool = False,
    part: Callable[[str], bool] | PyTree | None = None,
    batch: int | None = None,
    by: str | None = None,
) -> Float[Array, "n m ..."]:
    r"""The empirical neural tangent kernel of two batches of inputs, full or as its mean over outputs.

    .. math:: K(x, x')_{ij} = \langle \nabla_\theta f_i(x), \nabla_\theta f_j(x') \rangle, \qquad
       \bar K(x, x') = \frac1o \sum_i K(x, x')_{ii}

    The mean, not the sum: of a wide network with independent outputs it has the same limit for every o. Leaves of ``params`` that
    are not floats stay fixed. Pure: use it under ``jax.jit``, and ``jax.vmap`` over seeds.

    There are two ways to the full kernel: the product of two Jacobians, :math:`n m o^2 P` multiplications; or products of the
    Jacobian at x with every gradient at x', :math:`n m o F` up to a constant, if f itself takes F. Products are chosen if
    :math:`o P > F`; both agree to rounding. For floats narrower than 32 bits it is always Jacobians, multiplied in float32. No way
    needs a forward mode: products transpose the backward pass. The mean takes :math:`n m o P`, one output after another.

    Source: arXiv:1806.07572, section 4; arXiv:2206.08720, "Jacobian contraction" and "NTK-vector products".

    Args:
        f: ``f(params, x)``, the outputs for ONE input, an array of any shape, taken as a vector. Of a network that reads batches:
            ``lambda params, row: net.apply(params, row[None])[0, -1]``.
        params: any tree of arrays.
        x: inputs, an array or a tree of arrays, each [n, ...].
        other: the other inputs, [m, ...]; None: ``x`` again.
        trace: False: the full kernel [n, m, o, o]; True: its mean over outputs [n, m].
        part: which parameters count: None, all of them; a function of a leaf's name, its path joined by "/" (``"blocks/up"``); or a
            tree of True and False like ``params``, or like the top of it. The kernels of disjoint parts add up.
        batch: inputs in a block; the kernel is computed for one pair of blocks after another. Memory then holds two Jacobians,
            :math:`2\,\text{batch}\,o P` numbers; for products a single gradient and the activations of a block; for the mean the
            gradients of one output, :math:`2\,\text{batch}\,P`. None: all inputs at once.
        by: ``"jacobians"`` or ``"products"`` for the full kernel; None: the cheaper one.

    Returns:
        The kernel in the floats of the parameters, in float32 at least.

    Raises:
        UsageError: unless f gives one array of real floats, of as many entries for both batches; for batches without a row or with
            leaves of unequal lengths; if no parameters are left; and for other values of the options.
    """
    # the inputs, the parameters that count, and f as a function of both
    x = _inputs("x", x)
    other = x if other is None else _inputs("other", other)
    trace, size = flag("trace", trace), None if batch is None else whole("batch", batch, least=1)
    if by is not None and (by not in FULL or trace):
        raise UsageError(f"by={shown(by)} is not allowed: it is {' or '.join(FULL)} for the full kernel, or None")
    chosen, output = _restricted(f, params, part)
    like = _outputs(output, chosen, x, other)
    # the way, and pairs of blocks
    way = WAYS["mean" if trace else by or _cheaper(output, chosen, _row(x), like)]
    return _in_blocks(functools.partial(way, output, like.size, chosen), x, other, size).astype(_wide(chosen))


def kernel_alignment(a: Real[Array, "*shape"], b: Real[Array, "*shape"]) -> Float[Array, ""]:
    r"""Cosine of two kernels, :math:`\langle A, B\rangle_F / (\|A\|_F \|B\|_F)`.

    It is 1 if and only if one is a positive multiple of the other, NaN if one of them is zero or not finite.
    Source: Cristianini et al., "On kernel-target alignment" (NIPS 2001), definition 1; one minus it is the kernel distance of
    Fort et al., arXiv:2010.15110, between tangent kernels along training.

    Raises:
        UsageError: unless both are real arrays of one shape, with entries.
    """
    a, b = _kernel("a", a), _kernel("b", b)
    if a.shape != b.shape or not a.size:
        raise UsageError(f"a={shown(a)}, b={shown(b)} are not allowed: they are kernels of one shape, with entries")
    a, b = (v / jnp.max(jnp.abs(v)) for v in (a, b))  # their squares then do not overflow
    return jnp.sum(a * b) / (jnp.linalg.norm(a.reshape(-1)) * jnp.linalg.norm(b.reshape(-1)))


def target_alignment(kernel: Real[Array, "n n ..."], y: Real[Array, "n ..."]) -> Float[Array, ""]:
    r"""Alignment of a kernel with its targets, :math:`\langle K, y y^\top\rangle_F / (\|K\|_F \|y y^\top\|_F)`.

    Between 0 and 1 for a kernel that is positive semidefinite; 1 if it is a multiple of :math:`y y^\top`. Means are not subtracted.
    Source: Cristianini et al., "On kernel-target alignment" (NIPS 2001), definition 2.

    Args:
        kernel: [n, n], or the full one [n, n, o, o].
        y: targets, [n] or [n, o].

    Raises:
        UsageError: unless the kernel is of the n targets with themselves, and the full one of their o outputs.
    """
    kernel, y = _kernel("kernel", kernel), _kernel("y", y)
    rows = y.reshape(y.shape[0], -1) if y.ndim else y.reshape(1, 1)
    n, o = rows.shape
    if not y.size or kernel.shape not in ((n, n), (n, n, o, o)):
        raise UsageError(
            f"kernel={shown(kernel)}, y={shown(y)} are not allowed: a kernel is [n, n] or [n, n, o, o] for targets [n, o]"
        )
    rows = rows / jnp.max(jnp.abs(rows))
    return kernel_alignment(kernel, rows @ rows.T if kernel.ndim == 2 else jnp.einsum("ia,jb->ijab", rows, rows))


def _by_jacobians(output: Output, outputs: int, chosen: list[Array], block: PyTree) -> Callable[[PyTree], Array]:
    """The full kernel of a block with others as the product of their Jacobians."""

    def jacobian(rows: PyTree) -> list[Array]:  # leaves [rows * outputs, ...]
        leaves = jax.vmap(jax.jacrev(output), (None, 0))(chosen, rows)
        return [leaf.reshape(-1, *leaf.shape[2:]) for leaf in leaves]

    left = jacobian(block)

    def kernel(rows: PyTree) -> Array:
        found = _inner(left, left if rows is block else jacobian(rows))
        return found.reshape(-1, outputs, found.shape[1] // outputs, outputs).swapaxes(1, 2)

    return kernel


def _by_products(output: Output, outputs: int, chosen: list[Array], block: PyTree) -> Callable[[PyTree], Array]:
    """The full kernel of a block with others: the gradient of each output, multiplied by the Jacobian of the block."""
    made, back = jax.vjp(lambda chosen: jax.vmap(output, (None, 0))(chosen, block), chosen)
    forward = jax.vjp(back, jnp.zeros_like(made))[1]  # the transpose of the transposed Jacobian

    def of_row(row: PyTree) -> Array:  # [o, block, o]
        one, gradient = jax.vjp(lambda chosen: output(chosen, row), chosen)
        return jax.lax.map(lambda unit: forward(gradient(unit))[0], jnp.eye(outputs, dtype=one.dtype))

    return lambda rows: jax.lax.map(of_row, rows).transpose(2, 0, 3, 1)


def _mean_over_outputs(output: Output, outputs: int, chosen: list[Array], block: PyTree) -> Callable[[PyTree], Array]:
    """The mean over outputs of the kernel of a block with others; the gradients of one output are in memory at a time."""

    def kernel(rows: PyTree) -> Array:
        def added(total: Array, i: Int[Array, ""]) -> tuple[Array, None]:
            gradients = jax.vmap(jax.grad(lambda chosen, row: output(chosen, row)[i]), (None, 0))
            left = gradients(chosen, block)
            return total + _inner(left, left if rows is block else gradients(chosen, rows)), None

        zero = jnp.zeros([jax.tree.leaves(tree)[0].shape[0] for tree in (block, rows)], _wide(chosen))
        return jax.lax.scan(added, zero, jnp.arange(outputs, dtype=jnp.int32))[0] / outputs

    return kernel


WAYS = {"jacobians": _by_jacobians, "products": _by_products, "mean": _mean_over_outputs}


def _inner(left: list[Array], right: list[Array]) -> Float[Array, "r q"]:
    """Inner products of trees, leaf by leaf: the parameters are never one long vector."""
    flat = [[leaf.reshape(leaf.shape[0], -1).astype(_wide([leaf])) for leaf in leaves] for leaves in (left, right)]
    products = [a @ b.T for a, b in zip(*flat, strict=True)]
    return functools.reduce(jnp.add, products)


def _in_blocks(side: Side, x: PyTree, other: PyTree, size: int | None) -> Array:
    """The kernel of all pairs of blocks; the last row fills up the last block, and is cut off."""
    if size is None:
        return side(x)(other)
    counts = [jax.tree.leaves(rows)[0].shape[0] for rows in (x, other)]
    blocks = []
    for rows, count in zip((x, other), counts, strict=True):
        used = min(size, count)
        places = jnp.minimum(jnp.arange(-(-count // used) * used, dtype=jnp.int32), count - 1).reshape(-1, used)
        blocks.append(jax.tree.map(lambda v, places=places: v[places], rows))
    found = jax.lax.map(lambda block: jax.lax.map(side(block), blocks[1]), blocks[0]).swapaxes(1, 2)
    b, p, c, q = found.shape[:4]
    return found.reshape(b * p, c * q, *found.shape[4:])[: counts[0], : counts[1]]


def _cheaper(output: Output, chosen: list[Array], row: PyTree, like: jax.ShapeDtypeStruct) -> str:
    """Jacobians or products, by their numbers of multiplications."""
    if any(jnp.finfo(dtype).bits < 32 for dtype in (*(v.dtype for v in chosen), like.dtype)):
        return "jacobians"
    forward = linalg.multiplications(jax.make_jaxpr(output)(chosen, row).jaxpr)
    return "products" if like.size * sum(leaf.size for leaf in chosen) > forward else "jacobians"


def _restricted(f: Any, params: PyTree, part: Any) -> tuple[list[Array], Output]:
    """The leaves that count, and the outputs as a function of them and of one input.

    Raises:
        UsageError: without such a leaf, for complex ones, and for a function that does not give one array of real floats.
    """
    if not callable(f):
        raise UsageError(f"f={shown(f)} is not allowed: it is a function of the parameters and one input")
    treedef: Any
    named, treedef = jax.tree_util.tree_flatten_with_path(params)
    leaves = [jnp.asarray(leaf) if isinstance(leaf, float | np.ndarray | np.generic | jax.Array) else leaf for _, leaf in named]
    wanted = _wanted(part, params, [path for path, _ in named])
    counts = [
        want and isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.inexact)
        for want, leaf in zip(wanted, leaves, strict=True)
    ]
    chosen = [leaf for leaf, counted in zip(leaves, counts, strict=True) if counted]
    if not sum(leaf.size for leaf in chosen):
        raise UsageError(f"{'params' if part is None else 'part'}= is not allowed: it leaves no parameters that are floats")
    if any(jnp.iscomplexobj(leaf) for leaf in chosen):
        raise UsageError("params= is not allowed: the parameters are real")

    def output(chosen: list[Array], row: PyTree) -> Array:
        left = iter(chosen)
        all_leaves = [next(left) if counted else leaf for leaf, counted in zip(leaves, counts, strict=True)]
        made = f(treedef.unflatten(all_leaves), row)
        if not (hasattr(made, "dtype") and made.size and jnp.issubdtype(made.dtype, jnp.floating)):
            raise UsageError(f"f= is not allowed: for one input it gives one array of real floats, got {shown(made)}")
        return made.reshape(-1)

    return chosen, output


def _outputs(output: Output, chosen: list[Array], x: PyTree, other: PyTree) -> jax.ShapeDtypeStruct:
    """Shape and dtype of the outputs for one input, equally many for both batches."""
    like, again = (jax.eval_shape(output, chosen, _row(rows)) for rows in (x, other))
    if like.shape != again.shape:
        raise UsageError(f"other= is not allowed: f has {again.size} outputs of it, and {like.size} of x")
    return like


def _wanted(part: Any, params: PyTree, paths: list[Any]) -> list[bool]:
    """Of every leaf whether it counts."""
    if part is None:
        return [True] * len(paths)
    if callable(part):
        return [flag("part", part(jax.tree_util.keystr(path, simple=True, separator="/"))) for path in paths]
    try:
        mask = jax.tree.leaves(jax.tree.broadcast(part, params))
    except ValueError as error:
        raise UsageError(
            "part= is not allowed: it is a function of names, or a tree of True and False like the parameters"
        ) from error
    return [flag("part", one) for one in mask]


def _inputs(name: str, x: PyTree) -> PyTree:
    """A batch of inputs as arrays with a common first axis."""
    treedef: Any
    leaves, treedef = jax.tree.flatten(x)
    leaves = _arrays(name, leaves)
    if not leaves or len({leaf.shape[:1] for leaf in leaves}) != 1 or not leaves[0].shape[:1] > (0,):
        raise UsageError(
            f"{name}={shown(x)} is not allowed: it is an array of one input or more, or a tree of such arrays [n, ...]"
        )
    return treedef.unflatten(leaves)


def _arrays(name: str, leaves: list[Any]) -> list[Array]:
    """Leaves as arrays of JAX."""
    try:
        if any(isinstance(leaf, str | bytes) for leaf in leaves):  # JAX may take it as the name of a dtype
            raise TypeError
        return [jnp.asarray(leaf) for leaf in leaves]
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{name}= is not allowed: its leaves are arrays of numbers") from error


def _kernel(name: str, value: Any) -> Array:
    """A real array of floats, of 32 bits or more."""
    (array,) = _arrays(name, [value])
    if jnp.iscomplexobj(array) or not (jnp.issubdtype(array.dtype, jnp.number) or array.dtype == bool):
        raise UsageError(f"{name}={shown(array)} is not allowed: it is an array of real numbers")
    return array.astype(jnp.promote_types(jnp.result_type(array, float), jnp.float32))


def _row(x: PyTree) -> PyTree:
    """Shape and dtype of one input."""
    return jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape[1:], v.dtype), x)


def _wide(leaves: list[Array]) -> Any:
    """The dtype of sums over them."""
    return jnp.promote_types(jnp.result_type(*leaves), jnp.float32)
