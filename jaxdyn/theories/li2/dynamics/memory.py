r"""Memorisation: the nodes that maximise the response to a single target, whose pairs have different probabilities.

.. math:: \max \sum_g p_g\, \sigma(s_g), \quad \sum_g s_g^2 = 2, \qquad s_g = w_g + w_{M + g^{-1}h}

over the pairs (g, g^{-1} h) of target h on the sphere :math:`\|w\| = 1`, whose maxima share every s_g evenly between both
weights. With :math:`\varphi(x) = \sigma'(x)/x` a maximum has :math:`\varphi(s_g) = 2\lambda / p_g` or :math:`s_g = 0` where
:math:`\sigma'(0) = 0`. If :math:`\varphi` falls strictly, :math:`s_g = \varphi^{-1}(2\lambda/p_g)` is the one with all s_g > 0;
for x^2 all goes to the most probable pair. Source: arXiv:2509.21519, theorem 5. Letters: M elements, D = 2M, K nodes.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxdyn.data.cayley import Group
from jaxdyn.theories.li2.model import AnyActivation, activate

HALVINGS = 60
LARGEST = 40.0  # bound of |ln lambda|, far beyond its values for these activations


def strengths(w: Float[Array, "D K"], group: Group, target: int = 0) -> Float[Array, "M K"]:
    """s_g of every pair of the target."""
    return w[: group.order] + w[group.order :][group.table[group.inverse, target]]


def ascend(
    w: Float[Array, "D K"], p: Float[Array, " M"], group: Group, activation: AnyActivation, steps: int = 400, target: int = 0
) -> Float[Array, "D K"]:
    r"""Steps :math:`w \leftarrow w + \nabla / \|\nabla\|` up the objective, on the sphere."""

    def objective(w: Float[Array, "D K"]) -> Float[Array, ""]:
        return jnp.sum(p[:, None] * activate(strengths(w, group, target), activation))

    def one(w: Float[Array, "D K"], _: None) -> tuple[Float[Array, "D K"], None]:
        g = jax.grad(objective)(w)
        w = w + g / jnp.maximum(jnp.linalg.norm(g, axis=0), jnp.finfo(w.dtype).tiny)
        return w / jnp.linalg.norm(w, axis=0), None

    return jax.lax.scan(one, w / jnp.linalg.norm(w, axis=0), None, length=steps)[0]


def winner(p: Float[Array, " M"]) -> Float[Array, " M"]:
    r"""The maximum for x^2: :math:`\sqrt 2` at the most probable pair."""
    return jnp.where(jnp.arange(p.shape[0]) == jnp.argmax(p), jnp.sqrt(jnp.asarray(2, p.dtype)), 0.0)


def spread(p: Float[Array, " M"], activation: AnyActivation) -> Float[Array, " M"]:
    r""":math:`s_g = \varphi^{-1}(2\lambda/p_g)` with the :math:`\lambda` for which :math:`\sum_g s_g^2 = 2`, by bisection in both.

    Right where :math:`\varphi` falls strictly from infinity on :math:`(0, \sqrt 2]`: relu, silu, tanh.
    """

    def phi(x: Float[Array, " M"]) -> Float[Array, " M"]:
        return jax.jvp(lambda x: activate(x, activation), (x,), (jnp.ones_like(x),))[1] / x

    def inverse(goal: Float[Array, " M"]) -> Float[Array, " M"]:
        return _bisected(lambda x: phi(x) > goal, jnp.zeros_like(p), jnp.full_like(p, np.sqrt(2.0)))

    def at(log: Float[Array, ""]) -> Float[Array, " M"]:
        return inverse(2 * jnp.exp(log) / p)

    bound = jnp.full((), LARGEST, p.dtype)
    return at(_bisected(lambda log: jnp.sum(jnp.square(at(log))) > 2, -bound, bound))


def _bisected(below: Callable[[Array], Array], low: Float[Array, "*shape"], high: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The point at which ``below`` turns from true to false."""

    def halve(_: Int[Array, ""], ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = (ends[0] + ends[1]) / 2
        left = below(middle)
        return jnp.where(left, middle, ends[0]), jnp.where(left, ends[1], middle)

    low, high = jax.lax.fori_loop(0, HALVINGS, halve, (low, high))
    return (low + high) / 2
