r"""Weights as products of thin factors, as transformations of the full gradient: LoRA, ReLoRA and low-rank factorisation.

.. math:: W = W_0 + s\,BA: \qquad \partial_B L = s\,G A^\top, \quad \partial_A L = s\,B^\top G, \qquad
   \Delta W = s\,(B'A' - BA)

with G the gradient at W. The factors live in the state; the update is the change of the product, so that every method of the
comparison is one transformation of one tree of weights, and the same training step serves all. In exact arithmetic this is
training of the factors. Source: arXiv:2106.09685 (LoRA), arXiv:2307.05695 (ReLoRA). Letters: W (m, n), B (m, r), A (r, n).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import linalg
from jaxdyn.errors import UsageError, number
from jaxdyn.optim.adam import moments_of
from jaxdyn.optim.axes import Dims, Matrix, as_matrices, as_parameter, hidden_matrices, matrix_shape, specs
from jaxdyn.optim.blocks import Blocks
from jaxdyn.optim.periodic import following, period, when
from jaxdyn.optim.sizes import norm
from jaxdyn.optim.trees import check_shape, flat, rank_known
from jaxdyn.sampling import wide

__all__ = ["Factors", "FactorState", "factorised", "lora", "low_rank", "relora", "spectral_start"]


class Factors(NamedTuple):
    """Two thin factors of a matrix, W = B A."""

    b: Float[Array, "*batch m r"]
    a: Float[Array, "*batch r n"]


class FactorState(NamedTuple):
    """Steps made, factors (None for plain leaves), and the state of the optimizer of factors and plain leaves."""

    steps: Int[Array, ""]
    factors: PyTree
    inner: PyTree


def lora(
    tx: optax.GradientTransformation,
    rank: int | Array,
    *,
    alpha: float | Array = 32.0,
    dims: Dims = hidden_matrices,
    key: PRNGKeyArray | None = None,
) -> optax.GradientTransformation:
    r"""LoRA with factor :math:`s = \alpha / r`: B starts at zero, A uniform in :math:`\pm 1/\sqrt n`; :math:`W_0` never moves.

    The rank r of a matrix is ``rank`` or, if that is smaller, its smaller side.

    Args:
        tx: optimizer of the factors and of all leaves that are no matrices, its rate included: ``optax.adam(lr)``.
        rank: r; at most the smaller side of a matrix is used.
        alpha: s r. Source: arXiv:2403.03507, section 5 (32).
        dims: which leaves are matrices, and how.
        key: of A.

    Raises:
        UsageError: for numbers outside their range; when used, for leaves that are no floating-point arrays, or for gradients of
            another structure than the parameters.
    """
    return _factored(tx, rank, alpha, dims, key, every=None, prune=0.0)


def relora(
    tx: optax.GradientTransformation,
    rank: int | Array,
    *,
    every: int | Array,
    alpha: float | Array = 32.0,
    prune: float | Array = 0.99,
    dims: Dims = hidden_matrices,
    key: PRNGKeyArray | None = None,
) -> optax.GradientTransformation:
    """LoRA whose product is merged into the weights every ``every`` steps: the factors start afresh, and the moments are pruned.

    The rate's second warm-up is the schedule's work. Source: arXiv:2307.05695, algorithm 1 (99% of the moments, those of smallest
    magnitude, are zeroed). Departure: both moments are pruned where the first one is small; pruned apart, as in the released code,
    a first moment may lose its second, and is then divided by epsilon. ``every`` may be traced (less than 1 is then 1).

    Args:
        tx: as for :func:`lora`; pruned are ``mu`` and ``nu`` of the factors in its state.
        rank: r; at most the smaller side of a matrix is used.
        every: steps between two merges.
        alpha: s r.
        prune: share of each factor's moments that is zeroed at a merge.
        dims: which leaves are matrices, and how.
        key: of A at all starts.

    Raises:
        UsageError: as :func:`lora`; and if the moments to prune are stored in blocks.
    """
    number("prune", prune, least=0, most=1, traced=True)
    return _factored(tx, rank, alpha, dims, key, every=period(every), prune=prune)


def low_rank(
    tx: optax.GradientTransformation, rank: int | Array, *, dims: Dims = hidden_matrices, key: PRNGKeyArray | None = None
) -> optax.GradientTransformation:
    r"""Training of the factors of W = B A alone, from balanced factors of the parameters at ``init``.

    They must have that rank already: give ``spectral_start(params, rank)`` as the parameters. W itself is then no memory of the
    method, but what its factors say. Both factors of a zero matrix would be zero and never move: A then starts as LoRA's, from
    the key.

    Raises:
        UsageError: as :func:`lora`.
    """
    rank = rank_known(rank)

    def start(i: int, spec: Matrix, x: Array) -> Factors:
        w = as_matrices(spec, x)
        balanced, random = factorised(w, rank), _random_start(w.shape, x.dtype, rank, _draw(key, i, 0))
        zero = jnp.all(w == 0, (-2, -1), keepdims=True)
        return balanced._replace(a=jnp.where(zero, random.a, balanced.a))

    def init(params: PyTree) -> FactorState:
        leaves, treedef = flat(params)
        each = [None if s is None else start(i, s, x) for i, (s, x) in enumerate(zip(specs(dims, params), leaves, strict=True))]
        return _state(tx, treedef, each, leaves)

    def update(gradient: PyTree, state: FactorState, params: PyTree | None = None) -> tuple[PyTree, FactorState]:
        return _step(tx, gradient, state, params, dims, alpha=None)

    return optax.GradientTransformation(init, update)


def factorised(w: Float[Array, "*batch m n"], rank: int) -> Factors:
    r"""Balanced factors :math:`B = U_r \Sigma_r^{1/2}`, :math:`A = \Sigma_r^{1/2} V_r^\top` of the nearest matrix of that rank."""
    r = min(rank_known(rank), *w.shape[-2:])
    u, s, vt = linalg.svd(w.astype(jnp.promote_types(w.dtype, jnp.float32)))
    root = jnp.sqrt(s[..., :r])
    return Factors((u[..., :r] * root[..., None, :]).astype(w.dtype), (root[..., :, None] * vt[..., :r, :]).astype(w.dtype))


def spectral_start(params: PyTree, rank: int, dims: Dims = hidden_matrices) -> PyTree:
    """The parameters with every matrix replaced by the nearest one of that rank, scaled to the root mean square that it had.

    A zero matrix stays zero.
    A factorisation that starts smaller than the full network does fails for its start, not for its rank. Source: Khodak et al.,
    arXiv:2105.01029, section 3.1 (spectral initialisation); the scaling is ours, arXiv:2403.03507 does not say how its baseline
    starts.
    """

    def start(spec: Any, x: Array) -> Array:
        if spec is None:
            return x
        w = as_matrices(spec, x)
        f = factorised(w, rank)
        near = f.b @ f.a
        before, after = norm(w, (-2, -1)), norm(near, (-2, -1))
        return as_parameter(spec, (near * (before / jnp.where(after == 0, 1, after))).astype(x.dtype), x.shape)

    leaves, treedef = flat(params)
    return treedef.unflatten([start(s, x) for s, x in zip(specs(dims, params), leaves, strict=True)])


def _state(tx: optax.GradientTransformation, treedef: Any, factors: list[Factors | None], leaves: list[Array]) -> FactorState:
    trained = treedef.unflatten([x if f is None else f for f, x in zip(factors, leaves, strict=True)])
    return FactorState(jnp.zeros((), jnp.int32), treedef.unflatten(factors), tx.init(trained))


def _draw(key: PRNGKeyArray | None, i: int, count: Any) -> PRNGKeyArray:
    """The key of one leaf at one step."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(0) if key is None else key, i), count)


def _random_start(shape: tuple[int, ...], dtype: Any, rank: int, key: PRNGKeyArray) -> Factors:
    """LoRA's factors of matrices [*batch, m, n]."""
    *batch, m, n = shape
    r = min(rank, m, n)
    a = jax.random.uniform(key, (*batch, r, n), wide(dtype), -(n**-0.5), n**-0.5)
    return Factors(jnp.zeros((*batch, m, r), dtype), a.astype(dtype))


def _step(
    tx: optax.GradientTransformation,
    gradient: PyTree,
    state: FactorState,
    params: PyTree | None,
    dims: Dims,
    *,
    alpha: float | Array | None,
    every: int | Array | None = None,
) -> tuple[PyTree, FactorState]:
    """One step of the factors and of the plain leaves, as an update of the full tree; without alpha, s is 1."""
    leaves, treedef, factors = flat(gradient, state.factors)
    given = specs(dims, gradient)

    def scale(f: Factors) -> Any:
        return 1.0 if alpha is None else alpha / f.a.shape[-2]

    def low(spec: Matrix | None, g: Array, f: Factors | None) -> Any:
        if spec is None or f is None:
            return g
        full, s = as_matrices(spec, g), scale(f)
        check_shape((*f.b.shape[:-1], f.a.shape[-1]), full.shape)
        change = s * (full @ jnp.swapaxes(f.a, -1, -2)), s * (jnp.swapaxes(f.b, -1, -2) @ full)
        return Factors(*(x.astype(own.dtype) for x, own in zip(change, f, strict=True)))

    gradients = treedef.unflatten([low(*each) for each in zip(given, leaves, factors, strict=True)])
    weights = None
    if params is not None:
        weights = treedef.unflatten([x if f is None else f for f, x in zip(factors, jax.tree.leaves(params), strict=True)])
    updates, inner = tx.update(gradients, state.inner, weights)
    out: list[Any] = []
    moved: list[Factors | None] = []
    for spec, g, f, change in zip(given, leaves, factors, treedef.flatten_up_to(updates), strict=True):
        if spec is None:
            out.append(change)
            moved.append(None)
            continue
        new = optax.apply_updates(f, change)
        out.append(as_parameter(spec, (scale(f) * (_product(new) - _product(f))).astype(g.dtype), g.shape))
        moved.append(new)
    return treedef.unflatten(out), FactorState(following(state.steps, every), treedef.unflatten(moved), inner)


def _product(f: Factors) -> Float[Array, "*batch m n"]:
    """B A in float32 at least: the difference of two products that are rounded to bfloat16 would be their rounding."""

    def widened(x: Array) -> Array:
        wide, info = x.astype(jnp.promote_types(x.dtype, jnp.float32)), jnp.finfo(x.dtype)
        # the factors as they are stored: XLA may leave out a rounding to bfloat16 that is widened again
        return wide if wide.dtype == x.dtype else jax.lax.reduce_precision(wide, int(info.nexp), int(info.nmant))

    return widened(f.b) @ widened(f.a)


def _factored(
    tx: optax.GradientTransformation,
    rank: int | Array,
    alpha: float | Array,
    dims: Dims,
    key: PRNGKeyArray | None,
    *,
    every: int | Array | None,
    prune: float | Array,
) -> optax.GradientTransformation:
    """LoRA, merged every ``every`` steps; None: never."""
    rank = rank_known(rank)
    number("alpha", alpha, above=0, traced=True)

    def init(params: PyTree) -> FactorState:
        leaves, treedef = flat(params)
        factors = [
            None if spec is None else _random_start(matrix_shape(spec, x.shape), x.dtype, rank, _draw(key, i, 0))
            for i, (spec, x) in enumerate(zip(specs(dims, params), leaves, strict=True))
        ]
        return _state(tx, treedef, factors, leaves)

    def merged(state: FactorState, treedef: Any, every: int | Array) -> FactorState:
        due = (state.steps > 0) & (state.steps % every == 0)
        factors = []
        for i, f in enumerate(treedef.flatten_up_to(state.factors)):
            if f is not None:
                again = functools.partial(_random_start, (*f.b.shape[:-1], f.a.shape[-1]), f.a.dtype, rank)
                f = when(due, again, f, _draw(key, i, state.steps))
            factors.append(f)
        inner, named = state.inner, moments_of(state.inner, ("mu", "nu"))
        if len(named) == 2:
            mu, nu = named.values()
            pairs = [
                (m, v) if not isinstance(m, Factors) else when(due, _pruned, (m, v), m, v, jnp.float32(prune))
                for m, v in zip(treedef.flatten_up_to(mu), treedef.flatten_up_to(nu), strict=True)
            ]
            inner = optax.tree.set(inner, **{k: treedef.unflatten([p[i] for p in pairs]) for i, k in enumerate(("mu", "nu"))})
        return FactorState(state.steps, treedef.unflatten(factors), inner)

    def update(gradient: PyTree, state: FactorState, params: PyTree | None = None) -> tuple[PyTree, FactorState]:
        if every is not None:
            state = merged(state, flat(gradient, state.factors)[1], every)
        return _step(tx, gradient, state, params, dims, alpha=alpha, every=every)

    return optax.GradientTransformation(init, update)


def _pruned(mu: Factors, nu: Factors, share: Array) -> tuple[Factors, Factors]:
    """Moments of the factors, zero where the first is not among the largest."""
    if any(isinstance(x, Blocks) for x in mu):
        raise UsageError("ReLoRA does not prune moments in blocks: store them as numbers")
    # all stay where one is NaN: no quantile says which are small
    small = [jnp.abs(m) <= jnp.quantile(jnp.abs(m).astype(jnp.float32), share) for m in mu]
    first, second = (Factors(*(jnp.where(k, 0, x) for k, x in zip(small, both, strict=True))) for both in (mu, nu))
    return first, second
