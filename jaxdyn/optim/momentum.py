r"""Directions without Adam: the gradient, its sign, and its sum over steps (heavy ball, Nesterov).

.. math:: M \leftarrow \beta M + R, \qquad N = M \ \text{(heavy ball)} \quad\text{or}\quad R + \beta M \ \text{(Nesterov)}

from M = 0, as in optax and PyTorch: a rate with beta is the rate over 1 - beta without. All is calculated in float32 at least.
Source: B. Polyak 1964; I. Sutskever et al., ICML 2013, section 2 (Nesterov); arXiv:1802.04434 (signs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from jaxdyn.errors import UsageError, number
from jaxdyn.optim.blocks import STORED, decode, stored_as
from jaxdyn.optim.trees import check_shape, flat

__all__ = ["Momentum", "gradient_direction", "momentum_direction", "sign_direction"]


class Momentum(NamedTuple):
    """The sum of gradients."""

    trace: PyTree


def gradient_direction() -> optax.GradientTransformation:
    """The gradient as it is.

    Raises:
        UsageError: when used, for leaves that are not floating-point, or of other shapes than the parameters, if these are given.
    """
    return _elementwise(lambda g: g)


def sign_direction() -> optax.GradientTransformation:
    """The sign of every entry, 0 of a zero; one that is not finite is NaN.

    Raises:
        UsageError: as :func:`gradient_direction`.
    """
    return _elementwise(lambda g: jnp.where(jnp.isfinite(g), jnp.sign(g), jnp.nan).astype(g.dtype))


def _elementwise(change: Callable[[Array], Array]) -> optax.GradientTransformation:
    """A transformation without a state."""

    def update(gradient: PyTree, state: optax.EmptyState, params: PyTree | None = None) -> tuple[PyTree, optax.EmptyState]:
        leaves, treedef, *weights = flat(gradient, *([] if params is None else [params]))
        for w, g in zip(*weights, leaves, strict=True) if weights else ():
            check_shape(w.shape, g.shape)
        return treedef.unflatten([change(g) for g in leaves]), state

    def init(params: PyTree) -> optax.EmptyState:
        flat(params)
        return optax.EmptyState()

    return optax.GradientTransformation(init, update)


def momentum_direction(
    beta: float | Array = 0.9, *, nesterov: bool = False, stored: str = "parameter"
) -> optax.GradientTransformation:
    """The sum of gradients, each step beta times the last; updates point uphill, as those of ``optax.trace``.

    A gradient that is not finite stays in the sum, with ``stored="8bit"`` in its whole block.

    Args:
        beta: what is left of the sum after a step.
        nesterov: whether the gradient is added once more to what the next step begins with.
        stored: the sum's dtype: the parameter's, float32, or blocks of one byte per number (:mod:`jaxdyn.optim.blocks`).

    Raises:
        UsageError: another name, a number outside its range; when used, leaves that are not floating-point, gradients unlike them.
    """
    if stored not in STORED:
        raise UsageError(f"stored={stored!r} is not allowed: stored is one of {', '.join(STORED)}")
    number("beta", beta, least=0, below=1, traced=True)

    def init(params: PyTree) -> Momentum:
        leaves, treedef = flat(params)
        kinds = [p.dtype if stored == "parameter" else jnp.float32 for p in leaves]
        return Momentum(
            treedef.unflatten([stored_as(stored, jnp.zeros(p.shape, d), d) for p, d in zip(leaves, kinds, strict=True)])
        )

    def update(gradient: PyTree, state: Momentum, params: PyTree | None = None) -> tuple[PyTree, Momentum]:
        del params
        leaves, treedef, old = flat(gradient, state.trace)
        sums, updates = [], []
        for g, before in zip(leaves, old, strict=True):
            check_shape(before.shape, g.shape)
            past, r = decode(before), g.astype(jnp.promote_types(g.dtype, jnp.float32))
            new: Float[Array, "..."] = r + beta * past.astype(r.dtype)
            updates.append((r + beta * new if nesterov else new).astype(g.dtype))
            sums.append(stored_as(stored, new, past.dtype))
        return treedef.unflatten(updates), Momentum(treedef.unflatten(sums))

    return optax.GradientTransformation(init, update)
