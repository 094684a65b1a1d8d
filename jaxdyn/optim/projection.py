r"""GaLore: the gradient of a matrix is projected onto few directions, an optimizer works there, and its update is projected back.

.. math:: R_t = P_t^\top G_t, \qquad N_t = \rho_t(R_t), \qquad \tilde G_t = \alpha P_t N_t

The basis P is found afresh every T steps; :math:`\rho` is any elementwise transformation, whose state has the shape of R.
Source: arXiv:2403.03507, algorithm 2 and the released code (T = 200, :math:`\alpha` = 1/4, Adam's moments kept at a refresh).
Departure: the update is linear algebra on a tree of parameters, batches of matrices included; a learning rate goes into the inner
transformation or after this one, weight decay after it: ``optax.chain(galore(adam_direction(), subspace), optax.scale(-lr))``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Int, PRNGKeyArray, PyTree

from jaxdyn.errors import UsageError, number, whole
from jaxdyn.optim.adam import moments_of
from jaxdyn.optim.axes import Dims, as_matrices, as_parameter, hidden_matrices, matrix_shape, specs
from jaxdyn.optim.blocks import Blocks, decode, encode
from jaxdyn.optim.periodic import LARGEST, following, period, when
from jaxdyn.optim.subspace import Basis, Subspace, find, lift, low_shape, lower, overlap, zeros
from jaxdyn.optim.trees import flat

__all__ = ["Clock", "GaloreState", "Lazy", "MOMENTS", "Projected", "galore", "golore", "project"]

MOMENTS = ("keep", "reset", "rotate")
FIRST, SECOND = ("mu", "trace"), ("nu",)  # names of the moments in the states of optax's transformations


class Lazy(NamedTuple):
    """When a basis may be found less often: it overlapped with the one before by ``threshold`` in each of ``streak`` refreshes.

    Its period then doubles. Source: arXiv:2407.08296 (Q-GaLore), section 3.3. Departure: the similarity is that of the subspaces,
    :func:`jaxdyn.optim.subspace.overlap`, which no sign or rotation of the basis changes.
    """

    threshold: float = 0.4
    streak: int = 5


class Clock(NamedTuple):
    """A leaf's own period: steps between two refreshes, steps until the next one, similar bases in a row, and refreshes made."""

    period: Int[Array, ""]
    left: Int[Array, ""]
    similar: Int[Array, ""]
    refreshes: Int[Array, ""]


class GaloreState(NamedTuple):
    """Steps made, bases (None where nothing is projected), clocks (None unless lazy) and the state of the inner transformation."""

    steps: Int[Array, ""]
    bases: PyTree
    clocks: PyTree
    inner: PyTree


class Projected(NamedTuple):
    """What a step has of one leaf: gradient and R as matrices, and the basis; for plain leaves twice the gradient."""

    full: Array
    low: Array
    basis: Basis | None


def golore(subspace: Subspace, at: int | Int[Array, ""]) -> Callable[..., Basis]:
    """Bases from the gradient before step ``at``, random ones from there on, where gradients are mostly noise.

    Source: arXiv:2410.11289 (GoLore), algorithm 2. Give it to :func:`galore` as its ``finder``.

    Raises:
        UsageError: for a step that is no whole number.
    """
    at = whole("at", at, least=0, most=LARGEST, traced=True)
    random = Subspace(rank=subspace.rank, side=subspace.side, finder="orthonormal", dtype=subspace.dtype)

    def finder(at: Array, g: Array, old: Basis, key: PRNGKeyArray, count: Int[Array, ""]) -> Basis:
        early = when(count < at, lambda *a: find(subspace, *a), old, g, old, key)
        return when(count >= at, lambda *a: find(random, *a), early, g, old, key)

    return jax.tree_util.Partial(finder, at)


def project(
    subspace: Subspace,
    *,
    every: int | Int[Array, ""] | None = 200,
    dims: Dims = hidden_matrices,
    key: PRNGKeyArray | None = None,
    finder: Callable[..., Basis] | None = None,
    lazy: Lazy | None = None,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The part that all optimizers of this kind share: bases that are found when they are due.

    Args:
        subspace: how gradients are projected.
        every: steps between two refreshes; may be traced (less than 1 is then 1). None: the first basis stays.
        dims: which leaves are matrices, and how.
        key: of random bases.
        finder: ``(matrices, old basis, key, count) -> basis`` in place of the subspace's own; traced values that it needs are
            arguments of a ``jax.tree_util.Partial``.
        lazy: lengthens the period of leaves whose basis changes little.

    Returns:
        ``start(params) -> (bases, clocks, low)`` with zeros in the shapes that an inner transformation starts from, and
        ``step(gradient, count, bases, clocks) -> (bases, clocks, projected, due)``.

    Raises:
        UsageError: for a period that is no whole number of steps, or a lazy one without period; when used, for leaves that are no
            floating-point arrays, or for gradients of another structure or shape than the parameters.
    """
    every = _checked(every, lazy)
    find_basis = finder or (lambda g, old, key, count: find(subspace, g, old, key))
    bound = find_basis if isinstance(find_basis, jax.tree_util.Partial) else jax.tree_util.Partial(find_basis)

    def start(params: PyTree) -> tuple[PyTree, PyTree, PyTree]:
        leaves, treedef = flat(params)
        bases, low = [], []
        for spec, leaf in zip(specs(dims, params), leaves, strict=True):
            shape = None if spec is None else matrix_shape(spec, leaf.shape)
            bases.append(None if shape is None else zeros(subspace, shape, leaf.dtype))
            low.append(jnp.zeros(leaf.shape if shape is None else low_shape(subspace, shape), leaf.dtype))
        clock = None if lazy is None else Clock(*(jnp.asarray(x, jnp.int32) for x in (every, 0, 0, 0)))
        clocks = [None if b is None else clock for b in bases]
        return tuple(treedef.unflatten(x) for x in (bases, clocks, low))

    def step(gradient: PyTree, count: Array, bases: PyTree, clocks: PyTree) -> tuple[PyTree, PyTree, PyTree, PyTree]:
        leaves, treedef, *old_states = flat(gradient, bases, clocks)
        root = jax.random.key(0) if key is None else key
        parts: list[tuple[Basis | None, Clock | None, Projected, Array | None]] = []
        for i, (spec, g, old, clock) in enumerate(zip(specs(dims, gradient), leaves, *old_states, strict=True)):
            if spec is None:
                parts.append((None, None, Projected(g, g, None), None))
                continue
            matrices, due = as_matrices(spec, g), _is_due(every, count, clock)
            if jax.tree.map(jnp.shape, old) != jax.tree.map(jnp.shape, zeros(subspace, matrices.shape, g.dtype)):
                raise UsageError(f"a gradient of shape {g.shape} is not allowed: its basis is that of a parameter of another shape")
            fresh = jax.random.fold_in(jax.random.fold_in(root, i), count)
            basis = when(due, lambda finder, *a: finder(*a), old, bound, matrices, old, fresh, count)
            ticked = clock if lazy is None else _tick(lazy, clock, due, overlap(old, basis))
            parts.append((basis, ticked, Projected(matrices, lower(basis, matrices), basis), due))
        return tuple(treedef.unflatten(x) for x in zip(*parts, strict=True))

    return start, step


def _checked(every: int | Int[Array, ""] | None, lazy: Lazy | None) -> Any:
    """The period."""
    if lazy is not None:
        number("threshold", lazy.threshold, least=0, traced=True)
        whole("streak", lazy.streak, least=1, traced=True)
        if every is None:
            raise UsageError("lazy is not allowed without a period: every=None keeps the first basis")
    return period(every, none=True)


def _is_due(every: int | Int[Array, ""] | None, count: Int[Array, ""], clock: Clock | None) -> Bool[Array, ""]:
    """Whether a leaf's basis is found in this step."""
    if clock is not None:
        return clock.left <= 0
    return count == 0 if every is None else count % every == 0


def _tick(lazy: Lazy, clock: Clock, due: Array, likeness: Array) -> Clock:
    """The clock after a step; the first basis is like none before it."""
    similar = jnp.where(likeness >= lazy.threshold, clock.similar + 1, 0)
    longer = similar >= lazy.streak
    steps = jnp.where(longer & (clock.period < LARGEST), 2 * clock.period, clock.period)
    new = Clock(steps, steps - 1, jnp.where(longer, 0, similar), optax.safe_increment(clock.refreshes))
    waiting = clock._replace(left=clock.left - 1)
    return Clock(*(jnp.where(due, n, o).astype(jnp.int32) for n, o in zip(new, waiting, strict=True)))


def galore(
    inner: optax.GradientTransformation,
    subspace: Subspace,
    *,
    every: int | Int[Array, ""] | None = 200,
    scale: float | Array = 0.25,
    moments: str = "keep",
    dims: Dims = hidden_matrices,
    key: PRNGKeyArray | None = None,
    finder: Callable[..., Basis] | None = None,
    lazy: Lazy | None = None,
) -> optax.GradientTransformation:
    r"""GaLore around an elementwise transformation, which must not need the parameters.

    Leaves that are not projected go through the same inner transformation, without :math:`\alpha`.

    Args:
        inner: e.g. :func:`jaxdyn.optim.adam.adam_direction`, ``optax.scale_by_lion()``, ``optax.sgd(lr)``.
        subspace: rank, side and finder of the bases.
        every: T. It may be traced (less than 1 is then 1), and steps be vmapped: bases are found once every T steps
            (:mod:`jaxdyn.optim.periodic`).
        scale: :math:`\alpha`.
        moments: of the inner state, when a basis is found: "keep" (as published), "reset" (zero; the count of Adam's correction
            continues), or "rotate": :math:`M \leftarrow P_{new}^\top P_{old} M`, and with squared entries for the second moment.
        dims: which leaves are matrices, and how (:mod:`jaxdyn.optim.axes`).
        key: of random bases.
        finder: another way to a basis, e.g. :func:`golore`.
        lazy: Q-GaLore's longer periods.

    Raises:
        UsageError: for other moments, or to rotate a state in which there are none; and those of :func:`project`.
    """
    number("scale", scale, least=0, traced=True)
    if moments not in MOMENTS:
        raise UsageError(f"moments={moments!r} is not allowed: it is one of {', '.join(MOMENTS)}")
    start, step = project(subspace, every=every, dims=dims, key=key, finder=finder, lazy=lazy)

    def init(params: PyTree) -> GaloreState:
        bases, clocks, low = start(params)
        return GaloreState(jnp.zeros((), jnp.int32), bases, clocks, inner.init(low))

    def update(gradient: PyTree, state: GaloreState, params: PyTree | None = None) -> tuple[PyTree, GaloreState]:
        del params
        leaves, treedef = flat(gradient)
        bases, clocks, projected, due = step(gradient, state.steps, state.bases, state.clocks)
        parts, inner_state = treedef.flatten_up_to(projected), state.inner
        if moments != "keep":
            inner_state = _carried(moments, inner_state, treedef, state.bases, bases, due)
        low, inner_state = inner.update(treedef.unflatten([p.low for p in parts]), inner_state, None)
        out = []
        for spec, g, part, n in zip(specs(dims, gradient), leaves, parts, treedef.flatten_up_to(low), strict=True):
            out.append(n if spec is None else as_parameter(spec, (scale * lift(part.basis, n)).astype(g.dtype), g.shape))
        return treedef.unflatten(out), GaloreState(following(state.steps, every), bases, clocks, inner_state)

    return optax.GradientTransformation(init, update)


def _carried(how: str, inner: PyTree, treedef: Any, old: PyTree, new: PyTree, due: PyTree) -> PyTree:
    """The inner state with its moments brought into the new bases."""
    named = moments_of(inner, FIRST + SECOND)
    if not named:
        raise UsageError(f"moments={how!r} is not allowed: the inner state has none of {', '.join(FIRST + SECOND)}")
    columns = [treedef.flatten_up_to(tree) for tree in (old, new, due)]
    for name, tree in named.items():
        moved = [
            x if now is None else when(is_due, _move(how, name in SECOND), x, x, before, now)
            for x, before, now, is_due in zip(treedef.flatten_up_to(tree), *columns, strict=True)
        ]
        inner = optax.tree.set(inner, **{name: treedef.unflatten(moved)})
    return inner


def _move(how: str, squared: bool) -> Callable[..., Any]:
    """Zeros, or the moment turned from the old basis into the new one, in the form in which it is stored."""

    def move(stored: Array | Blocks, old: Basis, new: Basis) -> Array | Blocks:
        x = decode(stored)
        if how == "reset":
            x = jnp.zeros_like(x)
        else:
            pairs = zip(old, new, strict=True)
            turns = [None if n is None or o is None else (jnp.swapaxes(n, -1, -2) @ o).astype(x.dtype) for o, n in pairs]
            left, right = (None if t is None else jnp.square(t) if squared else t for t in turns)
            x = x if left is None else left @ x
            x = x if right is None else x @ jnp.swapaxes(right, -1, -2)
        return encode(x, stored.signed) if isinstance(stored, Blocks) else x

    return move
