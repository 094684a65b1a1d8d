r"""JoMA on a hierarchical binary latent tree (HBLT): co-occurrence of tokens, and the saliency that follows from it.

Letters: D classes y_0 with prior p0; L depth of the leaves; rho polarity of an edge, P(child = parent) = (1 + rho) / 2; p_k
polarity of the top latent, P(top = 0 | y_0 = k) = (1 + p_k) / 2; rho0 = sum_k p0_k p_k = 2 P(top = 0) - 1; H edges from a leaf
to the closest common ancestor of the leaves l and m; c = rho^(L-1); n_H = number of heights.
Source: arXiv:2310.00535, Theorem 5 and the section on hierarchical data.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxdyn import flow

Number = int | float | Float[Array, ""]


def mean_polarity(prior: Float[Array, " D"], polarity: Float[Array, " D"]) -> Float[Array, ""]:
    r"""``rho0``: :math:`\rho_0 = \sum_k p^0_k p_k = 2P(\text{top}=0) - 1`."""
    return jnp.sum(prior * polarity)


def conditional(rho: Number, rho0: Number, depth: Number, height: Float[Array, " n_H"]) -> Float[Array, " n_H"]:
    r"""Co-occurrence of two tokens of one subtree.

    .. math:: P(y_l = 1 \mid y_m = 1) = \tfrac12 \,\frac{1 + \rho^{2H} - 2\rho^{L-1}\rho_0}{1 - \rho^{L-1}\rho_0}

    Source: arXiv:2310.00535, Theorem 5. Exact where ``rho0`` is :func:`mean_polarity`; read as P(top = 0) it is wrong.
    """
    c = rho ** (depth - 1)
    return 0.5 * (1 + rho ** (2 * height) - 2 * c * rho0) / (1 - c * rho0)


def limit(depth: Number, height: Float[Array, " n_H"]) -> Float[Array, " n_H"]:
    r"""Limit of :func:`conditional` for ``rho = rho0 = 1 - eps``, ``eps -> 0``: :math:`1 - H/L` (error of order ``eps``)."""
    return 1 - height / depth


def across(
    prior: Float[Array, " D"], token: Float[Array, " D"], query: Float[Array, " D"], rho: Number, depth: Number
) -> Float[Array, ""]:
    r"""Co-occurrence of two tokens under different top latents, which are independent given the class.

    .. math:: P(y_l = 1 \mid y_m = 1) = \frac{\sum_k p^0_k q_k q'_k}{\sum_k p^0_k q'_k}, \qquad q_k = \tfrac12(1 - \rho^{L-1} p_k)

    Args:
        prior: p0.
        token: p_k of the token's top latent (q).
        query: p_k of the query's top latent (q').
        rho: polarity of an edge.
        depth: L.
    """
    c = rho ** (depth - 1)
    q, q_query = (1 - c * token) / 2, (1 - c * query) / 2
    return jnp.sum(prior * q * q_query) / jnp.sum(prior * q_query)


def class_joint(
    prior: Float[Array, " D"], polarity: Float[Array, " D"], rho: Number, depth: Number, height: Float[Array, " n_H"]
) -> Float[Array, "D n_H"]:
    r"""Class and token given the query, in one subtree.

    .. math:: E[1[y_0 = k]\, y_l \mid y_m = 1] = p^0_k \,\frac{1 + \rho^{2H} - 2\rho^{L-1}p_k}{2\,(1 - \rho^{L-1}\rho_0)}
    """
    c = rho ** (depth - 1)
    top = 1 + rho ** (2 * height)[None, :] - 2 * c * polarity[:, None]
    return prior[:, None] * top / (2 * (1 - c * mean_polarity(prior, polarity)))


def saliency(
    prior: Float[Array, " D"],
    polarity: Float[Array, " D"],
    rho: Number,
    depth: Number,
    height: Float[Array, " n_H"],
    output: Float[Array, " D"],
) -> Float[Array, "D n_H"]:
    r"""Saliency of a token for the query m, under the class gradient of softmax outputs ``pi``.

    .. math:: \Delta^{(k)}_{lm} = E[(1[y_0 = k] - \pi_k)\, y_l \mid y_m = 1]

    Args:
        prior: p0.
        polarity: p_k of the top latent of both tokens.
        rho: polarity of an edge.
        depth: L.
        height: H.
        output: pi, the network's probabilities of the classes, the same for all sequences (as at a start with zero logits).
    """
    together = conditional(rho, mean_polarity(prior, polarity), depth, height)
    return class_joint(prior, polarity, rho, depth, height) - output[:, None] * together


def saliency_at_prior(prior: Float[Array, " D"], polarity: Float[Array, " D"], rho: Number, depth: Number) -> Float[Array, " D"]:
    r"""Saliency where the outputs are the classes' prior: H cancels, all tokens of the subtree are equally salient.

    .. math:: \pi = p^0: \quad \Delta^{(k)}_{lm} = p^0_k\, \frac{\rho^{L-1}(\rho_0 - p_k)}{1 - \rho^{L-1}\rho_0}

    Source: derived here from :func:`saliency`; a token of small H is more salient through the class bias alone.
    """
    c, rho0 = rho ** (depth - 1), mean_polarity(prior, polarity)
    return prior * c * (rho0 - polarity) / (1 - c * rho0)


def saliency_at_posterior(
    prior: Float[Array, " D"], polarity: Float[Array, " D"], rho: Number, depth: Number, height: Float[Array, " n_H"]
) -> Float[Array, "D n_H"]:
    r"""Saliency where the outputs are the classes' posterior given the query: it grows with H, from 0 at H = 0.

    .. math:: \pi_k = P(y_0 = k \mid y_m = 1): \quad
              \Delta^{(k)}_{lm} = p^0_k\, \frac{\rho^{L-1}(\rho_0 - p_k)\,(1 - \rho^{2H})}{2\,(1 - \rho^{L-1}\rho_0)^2}

    Source: derived here from :func:`saliency`; a near token repeats the information of the query, a far one adds to it.
    """
    c, rho0 = rho ** (depth - 1), mean_polarity(prior, polarity)
    by_class = prior * c * (rho0 - polarity) / (2 * (1 - c * rho0) ** 2)
    return by_class[:, None] * (1 - rho ** (2 * height))[None, :]


class Saliencies(NamedTuple):
    """Saliency of a token for a query at given outputs; S subtrees, O outputs (those beyond the classes never occur).

    Args:
        near: of tokens in the query's subtree, by height.
        far: of tokens in another one, by (query's subtree, token's subtree); the diagonal is not used.
        query: share of the queries that lie in each subtree.
    """

    near: Float[Array, "S O n_H"]
    far: Float[Array, "S S O"]
    query: Float[Array, " S"]


def start_saliencies(
    prior: Float[Array, " D"],
    polarity: Float[Array, "S D"],
    rho: Number,
    depth: int,
    allowed: Bool[Array, " O"],
    shallow: bool | Bool[Array, ""],
) -> Saliencies:
    """Saliencies at zero logits, where all allowed outputs are equally likely.

    Args:
        prior: p0.
        polarity: p_k of all top latents.
        rho: polarity of an edge.
        depth: L.
        allowed: outputs that exist; the first D are the classes.
        shallow: tokens depend on the class directly, each as likely as in the tree: then H has no meaning, and two tokens of a
            subtree are independent given the class, like two of different subtrees.
    """
    # class and token given the query: in different subtrees, and in the same one by height
    q = (1 - rho ** (depth - 1) * polarity) / 2
    rate = q @ prior
    apart = prior * q[:, None] * q[None] / rate[:, None, None]  # P(class, token | query): query, token, class
    height = jnp.arange(1, depth, dtype=jnp.float64)
    deep = jax.vmap(lambda p: class_joint(prior, p, rho, depth, height))(polarity)
    same = jnp.where(shallow, jnp.diagonal(apart).T[..., None], deep)

    # minus the outputs' probabilities
    def saliency_of(joint: Float[Array, "... D"]) -> Float[Array, "... O"]:
        padded = jnp.zeros((*joint.shape[:-1], allowed.size), joint.dtype).at[..., : prior.size].set(joint)
        return padded - jnp.sum(joint, -1, keepdims=True) * allowed / jnp.sum(allowed)

    return Saliencies(jnp.moveaxis(saliency_of(jnp.moveaxis(same, 1, -1)), -1, 1), saliency_of(apart), rate / jnp.sum(rate))


class Speeds(NamedTuple):
    """Learning rate of the lower layer, ratio of the logits' rate to it, slope of phi at 0, constant A."""

    lr: Number
    ratio: Number
    slope: Number
    normalizer: Number


def arrival_times(
    saliency: Saliencies,
    speeds: Speeds,
    threshold: Number,
    horizon: Number,
    kernel: Float[Array, "O O"] | None = None,
    points: int = 256,
) -> Float[Array, "S n_H"]:
    r"""Times at which the attention logits reach a threshold, with the gradient constant at its value of the start.

    .. math:: \dot v_l = \tfrac{\eta\phi'}{A}\sum_m P(m)\, e^{z_{ml}} \Delta_{lm}, \qquad
              \dot z_{ml} = \tfrac{\eta r\phi'}{A} P(m)\, e^{z_{ml}}\, \Delta_{lm}\cdot G v_l, \qquad v(0) = z(0) = 0

    Source: arXiv:2310.00535, the dynamics of exp attention with a stationary gradient, for many queries. v is taken in the space of
    outputs: the hidden nodes' weights are U v, and G = U^T U with the fixed upper layer U is the ``kernel`` (by default 1, its mean
    over random U). All tokens of a subtree share v, all pairs of one height share z.

    Solved in a clock that slows down as exp(max z), in which the blow-up is infinitely far.

    Returns:
        Times in steps by (subtree, height); ``inf`` for logits that do not reach the threshold before the horizon.
    """
    # how many tokens and queries there are of each kind
    subtrees, _, heights = saliency.near.shape
    n = 2**heights
    count = 2.0 ** jnp.arange(heights, dtype=jnp.float64)  # tokens at each height of one query
    query = saliency.query / n
    other = n * (1 - jnp.eye(subtrees, dtype=jnp.float64))
    scale = speeds.lr * speeds.slope / speeds.normalizer
    kernel = jnp.eye(saliency.near.shape[1], dtype=jnp.float64) if kernel is None else kernel

    # the flow, in a clock that slows down
    def field(_: Float[Array, ""], y: tuple, args: None) -> tuple:
        del args
        z_near, z_far, v, _time = y
        e_near, e_far = jnp.exp(z_near), jnp.exp(z_far)
        dv = query[:, None] * jnp.einsum("h,sh,soh->so", count, e_near, saliency.near)
        dv = dv + jnp.einsum("q,qs,qs,qso->so", query, other, e_far, saliency.far)
        pull = v @ kernel
        dz_near = speeds.ratio * query[:, None] * e_near * jnp.einsum("soh,so->sh", saliency.near, pull)
        dz_far = speeds.ratio * query[:, None] * e_far * jnp.einsum("qso,so->qs", saliency.far, pull)
        slow = jnp.exp(-jnp.maximum(jnp.max(z_near), 0.0))
        return slow * scale * dz_near, slow * scale * dz_far, slow * scale * dv, slow

    # solved from zero, and the times at which logits cross the threshold
    zero = jnp.zeros((), jnp.float64)
    y0 = (jnp.zeros((subtrees, heights)), jnp.zeros((subtrees, subtrees)), jnp.zeros(saliency.near.shape[:2]), zero)
    y0 = jax.tree.map(lambda x: x.astype(jnp.float64), y0)
    clock = jnp.linspace(0.0, 1.0, points, dtype=jnp.float64) * 3 * horizon
    z, _, _, time = flow.solve(field, y0, clock, rtol=1e-8, atol=1e-10).ys
    cross = jax.vmap(lambda path: jnp.interp(threshold, path, time, right=jnp.inf), 1)
    at = cross(z.reshape(points, -1)).reshape(subtrees, heights)
    return jnp.where(at <= horizon, at, jnp.inf)
