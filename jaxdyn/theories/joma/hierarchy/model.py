r"""The network that learns a hierarchical latent tree: one JoMA block per query, trained to classify sequences.

.. math:: b_l = x_l e^{z_{ml}}/M, \quad h_k = \phi(v_k \cdot b + \xi_{mk}), \quad \text{logits} = A^\top h

The query m is a token that is present, x the presence of all others. With orthonormal embeddings training (v, xi) is training
the lower layer w. The upper layer A is fixed at its random start (then the gradient at the hidden nodes depends on time through
the outputs alone). Letters: M tokens, S subtrees, n leaves of a subtree, K hidden nodes, O outputs, B batch.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.joma.model import ATTENTIONS, activation, attention

EXP = jd.Code.of("exp", ATTENTIONS)


class Params(NamedTuple):
    """What is trained: logits of each query for each token, projected weights, and the projections of the query (residual path)."""

    z: Float[Array, "M M"]
    v: Float[Array, "M K"]
    xi: Float[Array, "M K"]


class Batch(NamedTuple):
    """Sequences with one query each. Weights make every (sequence, present token) pair count the same."""

    label: Int[Array, " B"]
    query: Int[Array, " B"]
    x: Float[Array, "B M"]
    weight: Float[Array, " B"]


def init(
    key: PRNGKeyArray, tokens: int, hidden: int, outputs: int, scale: float | Float[Array, ""], dtype: str
) -> tuple[Params, Float[Array, "K O"]]:
    """Zero logits, small random weights (standard deviation ``scale``), and the fixed upper layer (variance 1/K)."""
    k_v, k_xi, k_upper = jax.random.split(key, 3)
    v = scale * jax.random.normal(k_v, (tokens, hidden), dtype)
    xi = scale * jax.random.normal(k_xi, (tokens, hidden), dtype)
    upper = jax.random.normal(k_upper, (hidden, outputs), dtype) * hidden**-0.5
    return Params(jnp.zeros((tokens, tokens), dtype), v, xi), upper


def pick_queries(
    u: Float[Array, "B M"], label: Int[Array, " B"], present: Bool[Array, "B M"], mean_count: Float[Array, ""]
) -> Batch:
    """One query for each sequence, uniform over its tokens, weighted by their number over its mean.

    So given that m is the query, the rest of the sequence is distributed as given ``y_m = 1`` alone, as in Theorem 5.
    """
    query = jnp.argmax(jnp.where(present, u, -1.0), -1)
    x = present & (jnp.arange(present.shape[1]) != query[:, None])
    weight = jnp.sum(present, -1) / mean_count
    return Batch(label, query, x.astype(mean_count.dtype), weight)


def loss(params: Params, batch: Batch, upper: Float[Array, "K O"], allowed: Bool[Array, " O"], phi: jd.Code) -> Float[Array, ""]:
    """Mean cross-entropy of the class over the batch; outputs that are not ``allowed`` have probability 0."""
    tokens = batch.x.shape[1]
    b = attention(batch.x, params.z[batch.query], EXP, 1.0, tokens)
    h = activation(b @ params.v + params.xi[batch.query], phi)
    logits = jnp.where(allowed, h @ upper, -jnp.inf)
    return jnp.mean(batch.weight * optax.softmax_cross_entropy_with_integer_labels(logits, batch.label))


def descent(lr: Float[Array, ""], ratio: Float[Array, ""]) -> optax.GradientTransformation:
    """Plain SGD, the logits ``ratio`` times as fast as the weights."""
    return optax.stateless(lambda g, _: Params(-lr * ratio * g.z, -lr * g.v, -lr * g.xi))


def same_subtree(pairs: Float[Array, "M M"], subtrees: int) -> Float[Array, "S n n"]:
    """The blocks of an array over (query, token) in which both lie in one subtree."""
    n = pairs.shape[0] // subtrees
    return jnp.diagonal(pairs.reshape(subtrees, n, subtrees, n), axis1=0, axis2=2).transpose(2, 0, 1)


def track(
    time: Float[Array, "*pairs"], z: Float[Array, "*pairs"], step: Int[Array, ""], threshold: Float[Array, ""]
) -> Float[Array, "*pairs"]:
    """The step at which each logit reached the threshold first; ``inf`` until then."""
    return jnp.where(jnp.isinf(time) & (z >= threshold), step.astype(time.dtype), time)


def height_means(pairs: Float[Array, "S n n"], height: Int[Array, "n n"], count: int) -> Float[Array, " H"]:
    """Means over all pairs of each height 1..count."""
    member = (height == jnp.arange(1, count + 1)[:, None, None]).astype(pairs.dtype)
    return jnp.einsum("sqt,hqt->h", pairs, member) / (pairs.shape[0] * jnp.sum(member, (1, 2)))
