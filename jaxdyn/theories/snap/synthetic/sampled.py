r"""The network of ``model.py`` on batches of sampled sequences, restricted to the parameters that such data can move.

Y has rows of contextual tokens only, and a row of Z has the tokens of its query's classes only: all other entries stay at their
initial values, whatever the optimizer. A class's own token occurs with one query only, so that its logit is stored once. Letters
as in ``data/classes.py``; n sequences, :math:`\delta = (e_\text{label} - \alpha)/n`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn.data.classes import Vocabulary
from jaxdyn.theories.snap import model


class Compact(NamedTuple):
    """What can move: decoder rows of contextual tokens, logits of common tokens by query, and of own tokens by class."""

    y: Float[Array, "T M"]
    common: Float[Array, "R C"]
    own: Float[Array, "K D"]


class Batch(NamedTuple):
    """Sequences: class, and counts on the class's support."""

    chosen: Int[Array, " n"]
    counts: Float[Array, "n S"]


def start(key: PRNGKeyArray, vocabulary: Vocabulary, scale: float | Float[Array, ""], dtype: str) -> Compact:
    r"""Uniform on :math:`\pm\,\text{scale}/\sqrt M`: with scale 1 the usual initial values of a linear layer, with 0 zero."""
    v = vocabulary
    shapes = ((v.contextual, v.size), (v.num_last, v.common), (v.classes, v.distinct))
    ends = np.cumsum([np.prod(shape) for shape in shapes])
    u = scale * jax.random.uniform(key, (int(ends[-1]),), dtype, -1.0, 1.0) / v.size**0.5
    return Compact(*(part.reshape(shape) for part, shape in zip(jnp.split(u, ends[:-1]), shapes, strict=True)))


def expand(params: Compact, vocabulary: Vocabulary) -> model.Params:
    """The same network in the parameters of ``model.py``; what cannot move is 0."""
    v = vocabulary
    y = jnp.zeros((v.size, v.size), params.y.dtype).at[: v.contextual].set(params.y)
    z = jnp.zeros((v.num_last, v.size), params.y.dtype).at[:, : v.common].set(params.common)
    return model.Params(y, z.at[v.query[:, None], v.support[:, v.common :]].set(params.own))


def _class_logits(params: Compact, query: Int[np.ndarray, " K"]) -> Float[Array, "K S"]:
    return jnp.concatenate([params.common[query], params.own], 1)


def attention(params: Compact, vocabulary: Vocabulary, on_support: Float[Array, " S"]) -> Float[Array, "K S"]:
    """Attention of every class at infinite length, on its support."""
    return jax.nn.softmax(jnp.log(on_support) + _class_logits(params, vocabulary.query))


def sums(params: Compact, vocabulary: Vocabulary) -> tuple[Float[Array, " T"], Float[Array, " R"]]:
    """Sum of each row of Y, and of each row of Z over the tokens that can move."""
    own = jnp.sum(params.own.reshape(vocabulary.num_last, -1), 1)  # the classes of a query are neighbours
    return jnp.sum(params.y, 1), jnp.sum(params.common, 1) + own


def make_loss(vocabulary: Vocabulary) -> Any:
    r"""Mean cross-entropy of a batch, ``loss(params, batch)``, with a gradient that takes two large matrix products.

    With the features F (n x T) and :math:`s = (FY)\cdot\delta`,

    .. math:: \partial Y = F^\top\delta, \qquad
              \partial z_l = \sum_b f_{bl}\,(Y\delta_b)_l - f_{bl}^2\,s_b

    and for a token l of one class alone :math:`\sum_b f_{bl}(Y\delta_b)_l = \sum_j Y_{lj}\,\partial Y_{lj}`: of the third
    product that backpropagation makes, :math:`\delta Y^\top`, only the columns of common tokens are needed. Source: the
    gradient of arXiv:2305.16380, Lemma 1, summed over a batch; equal to autodiff of ``model.cross_entropy``.
    """
    v, query = vocabulary, vocabulary.query

    # forward: the loss, and what its gradient needs
    def features(params: Compact, batch: Batch) -> tuple[Array, Array]:
        """Normalised attention on the supports, and the same over all contextual tokens."""
        e = model.attend(_class_logits(params, query)[batch.chosen], batch.counts)
        f = model.normalized(e)
        member = jax.nn.one_hot(batch.chosen, v.classes, dtype=f.dtype)
        own = (member[:, :, None] * f[:, None, v.common :]).reshape(len(f), -1)
        return f, jnp.concatenate([f[:, : v.common], own], 1)

    def forward(params: Compact, batch: Batch) -> tuple[Array, tuple]:
        f, wide = features(params, batch)
        logits = wide @ params.y
        log_alpha = jax.nn.log_softmax(logits)
        label = jnp.asarray(v.label)[batch.chosen]
        value = -jnp.mean(jnp.take_along_axis(log_alpha, label[:, None], 1))
        target = jax.nn.one_hot(label, v.size, dtype=f.dtype)
        return value, (params, batch.chosen, f, wide, logits, (target - jnp.exp(log_alpha)) / len(f))

    # backward: two large products
    def backward(saved: tuple, outer: Array) -> tuple[Compact, None]:
        params, chosen, f, wide, logits, delta = saved
        s = jnp.sum(logits * delta, 1, keepdims=True)
        y = wide.T @ delta
        back = delta @ params.y[: v.common].T
        by_class = jax.nn.one_hot(chosen, v.classes, dtype=f.dtype)
        by_query = jax.nn.one_hot(jnp.asarray(query)[chosen], v.num_last, dtype=f.dtype)
        shared, own = f[:, : v.common], f[:, v.common :]
        common = by_query.T @ (shared * (back - shared * s))
        match = jnp.sum(params.y[v.common :] * y[v.common :], 1).reshape(v.classes, v.distinct)
        gradient = Compact(y, common, match - by_class.T @ (own**2 * s))
        return jax.tree.map(lambda g: -outer * g, gradient), None

    @jax.custom_vjp
    def loss(params: Compact, batch: Batch) -> Float[Array, ""]:
        return forward(params, batch)[0]

    loss.defvjp(forward, backward)
    return loss
