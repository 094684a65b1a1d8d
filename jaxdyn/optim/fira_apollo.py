r"""Optimizers with GaLore's small state that move the whole matrix: Fira and APOLLO.

.. math:: \text{Fira:}\ \alpha \bigl(P N + (G - P R)\,\mathrm{diag}(\phi)\bigr), \quad \phi_j = \|N_j\| / \|R_j\|; \qquad
   \text{APOLLO:}\ \alpha\, G\, \mathrm{diag}(s), \quad s_j = \|N_j\| / \|R_j\|

Fira adds what the basis leaves out, APOLLO scales the gradient;
columns j are along the side that is not projected, N Adam's direction of R. In both a limiter holds back a step whose norm grows
by more than 1% from the last one. Source: arXiv:2410.01623 (Fira), section 4 and algorithm 1; arXiv:2412.05270 (APOLLO), section 4
and algorithm 1 (APOLLO-Mini: rank 1, one factor for the whole matrix).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn.errors import UsageError, number
from jaxdyn.optim.axes import Dims, as_parameter, hidden_matrices, specs
from jaxdyn.optim.periodic import following
from jaxdyn.optim.projection import Projected, project
from jaxdyn.optim.sizes import norm
from jaxdyn.optim.subspace import Subspace, lift
from jaxdyn.optim.trees import flat

__all__ = ["GROWTH", "LimitedState", "apollo", "fira", "limit_growth"]

GROWTH = 1.01
Direction = Callable[[Projected, Array], Array]


class LimitedState(NamedTuple):
    """Steps made, bases, the inner state, and the norms of the last limited parts (one for each matrix)."""

    steps: Int[Array, ""]
    bases: PyTree
    inner: PyTree
    norms: PyTree


def limit_growth(x: Float[Array, "*batch m n"], last: Float[Array, " *batch"], growth: float | Array) -> tuple[Array, Array]:
    r"""The matrices scaled down to norms of at most ``growth`` times the last, and their norms; a last norm of 0 limits nothing."""
    size = norm(x.astype(last.dtype), (-2, -1))[..., 0, 0]
    cut = jnp.where((last > 0) & (size > growth * last), growth * last / size, 1)
    return x * cut[..., None, None].astype(x.dtype), size * cut


def fira(
    inner: optax.GradientTransformation,
    subspace: Subspace,
    *,
    every: int | Array | None = 200,
    scale: float | Array = 0.25,
    growth: float | Array = GROWTH,
    dims: Dims = hidden_matrices,
    key: PRNGKeyArray | None = None,
) -> optax.GradientTransformation:
    """Fira around an elementwise transformation that points uphill; arguments as those of :func:`jaxdyn.optim.projection.galore`.

    ``growth`` limits the norm of the part outside the basis from step to step.

    Raises:
        UsageError: for bases on both sides, where the factors have no column; for numbers outside their range.
    """
    if subspace.side == "full":
        raise UsageError("side='full' is not allowed: a factor belongs to a column along the side that is not projected")

    def rest(part: Projected, n: Array) -> Array:
        assert part.basis is not None
        return _ratio(part, n, tensor=False) * (part.full - lift(part.basis, part.low))

    return _scaled(inner, subspace, rest, scale, growth, every, dims, key, inside=True)


def apollo(
    inner: optax.GradientTransformation,
    subspace: Subspace,
    *,
    every: int | Array | None = 200,
    scale: float | Array = 1.0,
    tensor: bool = False,
    growth: float | Array = GROWTH,
    dims: Dims = hidden_matrices,
    key: PRNGKeyArray | None = None,
) -> optax.GradientTransformation:
    r"""APOLLO around an elementwise transformation that points uphill.

    Arguments are those of :func:`jaxdyn.optim.projection.galore`. The published bases are Gaussian (``finder="gaussian"``).
    APOLLO-Mini: ``tensor=True`` with rank 1, and a scale of :math:`\sqrt{128}`.

    Raises:
        UsageError: for bases on both sides, where the factors have no column; for numbers outside their range.
    """
    if subspace.side == "full":
        raise UsageError("side='full' is not allowed: a factor belongs to a column along the side that is not projected")
    return _scaled(
        inner, subspace, lambda part, n: _ratio(part, n, tensor) * part.full, scale, growth, every, dims, key, inside=False
    )


def _ratio(part: Projected, n: Array, tensor: bool) -> Array:
    """Norms of N over norms of R, of columns along the free side or of whole matrices; 0 where R is, NaN where one is."""
    assert part.basis is not None
    axis: int | tuple[int, int] = (-2, -1) if tensor else -2 if part.basis.left is not None else -1
    over = norm(part.low, axis)
    return norm(n, axis) / jnp.where(over == 0, jnp.inf, over)


def _scaled(
    inner: optax.GradientTransformation,
    subspace: Subspace,
    direction: Direction,
    scale: float | Array,
    growth: float | Array,
    every: int | Array | None,
    dims: Dims,
    key: PRNGKeyArray | None,
    *,
    inside: bool,
) -> optax.GradientTransformation:
    """The limited direction, and (``inside``) in addition the inner update within the basis."""
    number("scale", scale, least=0, traced=True)
    number("growth", growth, above=0, traced=True)
    start, step = project(subspace, every=every, dims=dims, key=key)

    def init(params: PyTree) -> LimitedState:
        bases, _, low = start(params)
        treedef: Any  # mypy does not know the class
        leaves, treedef = jax.tree.flatten(low)
        norms = [
            None if b is None else jnp.zeros(x.shape[:-2], jnp.promote_types(x.dtype, jnp.float32))
            for b, x in zip(treedef.flatten_up_to(bases), leaves, strict=True)
        ]
        return LimitedState(jnp.zeros((), jnp.int32), bases, inner.init(low), treedef.unflatten(norms))

    def update(gradient: PyTree, state: LimitedState, params: PyTree | None = None) -> tuple[PyTree, LimitedState]:
        del params
        leaves, treedef, last_norms = flat(gradient, state.norms)
        clocks = treedef.unflatten([None] * len(leaves))
        bases, _, projected, _ = step(gradient, state.steps, state.bases, clocks)
        parts = treedef.flatten_up_to(projected)
        low, inner_state = inner.update(treedef.unflatten([p.low for p in parts]), state.inner, None)
        out: list[Array] = []
        norms: list[Array | None] = []
        columns = zip(specs(dims, gradient), leaves, parts, treedef.flatten_up_to(low), last_norms, strict=True)
        for spec, g, part, n, last in columns:
            if spec is None:
                out.append(n)
                norms.append(None)
                continue
            change, size = limit_growth(direction(part, n), last, growth)
            change = change + lift(part.basis, n) if inside else change
            out.append(as_parameter(spec, (scale * change).astype(g.dtype), g.shape))
            norms.append(size)
        return treedef.unflatten(out), LimitedState(following(state.steps, every), bases, inner_state, treedef.unflatten(norms))

    return optax.GradientTransformation(init, update)
