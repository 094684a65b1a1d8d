r"""Adam's direction with a choice of where epsilon stands and how the moments are stored.

.. math:: M \leftarrow \beta_1 M + (1 - \beta_1) R, \quad V \leftarrow \beta_2 V + (1 - \beta_2) R^2, \qquad
   N = \frac{\sqrt{1 - \beta_2^k}}{1 - \beta_1^k} \frac{M}{\sqrt V + \epsilon} \ \text{(raw)} \quad\text{or}\quad
   \frac{M / (1 - \beta_1^k)}{\sqrt{V / (1 - \beta_2^k)} + \epsilon} \ \text{(corrected)}

at step k = 1, 2, …. Source: arXiv:1412.6980, section 2 (raw: its last paragraph; corrected: algorithm 1); arXiv:2403.03507,
released code (raw, epsilon 1e-6).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import optax
from jaxtyping import Array, Int, PyTree

from jaxdyn.errors import UsageError, number
from jaxdyn.optim.blocks import STORED, decode, stored_as
from jaxdyn.optim.trees import check_shape, flat

__all__ = ["Moments", "adam_direction", "moments_of"]


class Moments(NamedTuple):
    """Steps made, and both moments."""

    steps: Int[Array, ""]
    mu: PyTree
    nu: PyTree


def adam_direction(
    b1: float | Array = 0.9,
    b2: float | Array = 0.999,
    eps: float | Array = 1e-6,
    *,
    epsilon: str = "raw",
    stored: str = "parameter",
) -> optax.GradientTransformation:
    """Adam without its rate: updates point uphill, as those of ``optax.scale_by_adam``.

    With epsilon 1e-8, "corrected", it is optax's own, which alone would calculate gradients of 16 bits in 16.

    The count of steps stays at the last number of int32, as optax's does; the corrections are 1 long before. A gradient that is
    not finite stays in the moments: its entry's updates are NaN from there on, with ``stored="8bit"`` those of its whole block.

    Args:
        b1: decay of the first moment.
        b2: decay of the second.
        eps: the number added to the root; with 0, an entry whose gradients were all zero is NaN.
        epsilon: "raw" or "corrected", the root to which it is added.
        stored: the moments' dtype: the parameter's, float32, or blocks of one byte per number (:mod:`jaxdyn.optim.blocks`).
            They are calculated in float32 at least. Stored in bfloat16, a second moment no longer falls if ``b2`` is above
            0.998; in float16 (``b2`` = 0.999), those of gradients below 0.005 are zero, and of gradients above 8,000 infinite.

    Raises:
        UsageError: another name, a number outside its range; when used, leaves that are not floating-point, gradients unlike them.
    """
    if epsilon not in ("raw", "corrected"):
        raise UsageError(f"epsilon={epsilon!r} is not allowed: epsilon is raw or corrected")
    if stored not in STORED:
        raise UsageError(f"stored={stored!r} is not allowed: stored is one of {', '.join(STORED)}")
    number("b1", b1, least=0, below=1, traced=True)
    number("b2", b2, least=0, below=1, traced=True)
    number("eps", eps, least=0, traced=True)
    step = functools.partial(_raw if epsilon == "raw" else _corrected, b1, b2, eps, stored)

    def init(params: PyTree) -> Moments:
        leaves, treedef = flat(params)
        kinds = [p.dtype if stored == "parameter" else jnp.float32 for p in leaves]
        mu, nu = (
            treedef.unflatten([stored_as(stored, jnp.zeros(p.shape, d), d, signed) for p, d in zip(leaves, kinds, strict=True)])
            for signed in (True, False)
        )
        return Moments(jnp.zeros((), jnp.int32), mu, nu)

    def update(gradient: PyTree, state: Moments, params: PyTree | None = None) -> tuple[PyTree, Moments]:
        del params
        leaves, treedef, mu, nu = flat(gradient, state.mu, state.nu)
        for first, g in zip(mu, leaves, strict=True):
            check_shape(first.shape, g.shape)
        k, updates, mu, nu = step(leaves, mu, nu, state.steps)
        return treedef.unflatten(updates), Moments(k, treedef.unflatten(mu), treedef.unflatten(nu))

    return optax.GradientTransformation(init, update)


def _raw(
    b1: Any, b2: Any, eps: Any, stored: str, leaves: list[Array], mu: list[Any], nu: list[Any], count: Array
) -> tuple[Array, list[Array], list[Any], list[Any]]:
    """The count, directions and moments after a step, with epsilon added to the root of the moment as it is stored."""
    k = optax.safe_increment(count)
    parts: list[tuple[Array, Any, Any]] = []
    for g, first, second in zip(leaves, mu, nu, strict=True):
        r = g.astype(jnp.promote_types(g.dtype, jnp.float32))
        before = decode(first), decode(second)
        m = b1 * before[0].astype(r.dtype) + (1 - b1) * r
        v = b2 * before[1].astype(r.dtype) + (1 - b2) * jnp.square(r)
        steps = k.astype(r.dtype)
        start, root = 1 - b1**steps, jnp.sqrt(1 - b2**steps)
        update = (root / start * m / (jnp.sqrt(v) + eps)).astype(g.dtype)
        parts.append((update, stored_as(stored, m, before[0].dtype), stored_as(stored, v, before[1].dtype, False)))
    return k, [part[0] for part in parts], [part[1] for part in parts], [part[2] for part in parts]


def _corrected(
    b1: Any, b2: Any, eps: Any, stored: str, leaves: list[Array], mu: list[Any], nu: list[Any], count: Array
) -> tuple[Array, list[Array], list[Any], list[Any]]:
    """The same by optax's own step, with epsilon added to the corrected root."""
    wide = [g.astype(jnp.promote_types(g.dtype, jnp.float32)) for g in leaves]
    before = [[decode(x) for x in moments] for moments in (mu, nu)]
    now = [[x.astype(r.dtype) for x, r in zip(moments, wide, strict=True)] for moments in before]
    updates, new = optax.scale_by_adam(b1, b2, eps).update(wide, optax.ScaleByAdamState(count, *now))
    first, second = (
        [stored_as(stored, x, old.dtype, signed) for x, old in zip(moments, olds, strict=True)]
        for moments, olds, signed in zip((new.mu, new.nu), before, (True, False), strict=True)
    )
    return new.count, [n.astype(g.dtype) for n, g in zip(updates, leaves, strict=True)], first, second


def moments_of(state: PyTree, names: tuple[str, ...]) -> dict[str, PyTree]:
    """Those moments of an optimizer's state that it has, by name.

    Raises:
        UsageError: if it has several of one name.
    """
    try:
        named = {name: optax.tree.get(state, name) for name in names}
    except KeyError:
        raise UsageError(
            f"an inner state with several moments called {' or '.join(names)} is not allowed: one optimizer at most"
        ) from None
    return {name: tree for name, tree in named.items() if tree is not None}
