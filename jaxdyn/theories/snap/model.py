r"""The network of Scan & Snap in its (Y, Z) parametrisation: one layer of attention and a decoder.

.. math:: c_l \propto k_l\, e^{z_{ml}}, \qquad f = c / \|c\|_2, \qquad \alpha = \text{softmax}(Y^\top f)

Here k are the numbers of contextual tokens of a sequence, or their law P(l | class) for infinite length; the query m is not
among the keys. Source: arXiv:2305.16380, section 3 and Lemmas 1-2. Letters: M tokens of the vocabulary, R query tokens, K classes
(a class is a next token with its query and its law), n sequences.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import nn


class Params(NamedTuple):
    """What is trained: decoder (row = input token, column = output token) and attention logits (row = query)."""

    y: Float[Array, "M M"]
    z: Float[Array, "R M"]


class Task(NamedTuple):
    """The classes: law of a contextual token, query (a row of Z), next token, and frequency (sum 1)."""

    p: Float[Array, "K M"]
    query: Int[Array | np.ndarray, " K"]
    label: Int[Array | np.ndarray, " K"]
    weight: Float[Array, " K"]


def zeros(task: Task, dtype: str = "float64") -> Params:
    """The initial weights Y = Z = 0, with a row of Z for each query."""
    size = task.p.shape[-1]
    return Params(jnp.zeros((size, size), dtype), jnp.zeros((int(np.max(task.query)) + 1, size), dtype))


def attend(z: Float[Array, "*n M"], counts: Float[Array, "*n M"]) -> Float[Array, "*n M"]:
    r"""Attention on each token, :math:`c_l = k_l e^{z_l} / \sum_j k_j e^{z_j}`; tokens with count 0 get none."""
    return nn.weights(z, "softmax", counts=counts)


def normalized(c: Float[Array, "*n M"]) -> Float[Array, "*n M"]:
    """LN(c) = c / |c|, the network's normalisation: no mean is removed, nothing is scaled."""
    return c / jnp.linalg.norm(c, axis=-1, keepdims=True)


def logits(params: Params, counts: Float[Array, "n M"], query: Int[Array, " n"]) -> Float[Array, "n M"]:
    """Logits of the next token for sequences given by their counts (or by P) and queries."""
    return normalized(attend(params.z[query], counts)) @ params.y


def cross_entropy(
    params: Params, counts: Float[Array, "n M"], query: Int[Array, " n"], label: Int[Array, " n"], weight: Float[Array, " n"]
) -> Float[Array, ""]:
    r"""Weighted sum of :math:`-\ln \alpha_\text{label}`; the softmax runs over all M tokens."""
    log_alpha = jax.nn.log_softmax(logits(params, counts, query))
    return -jnp.dot(weight, jnp.take_along_axis(log_alpha, label[:, None], -1)[:, 0])


def loss(params: Params, task: Task) -> Float[Array, ""]:
    """The loss -J at infinite length: every class is represented by its law."""
    return cross_entropy(params, *(jnp.asarray(a) for a in task))


def sampled(key: PRNGKeyArray, p: Float[Array, "*n M"], length: int) -> Float[Array, "*n M"]:
    """Counts of ``length`` independent contextual tokens: multinomial draws, one for each row of laws."""
    return jax.random.multinomial(key, length, p, dtype=p.dtype)


def as_transformer(params: Params) -> tuple[nn.Transformer, PyTree]:
    r"""The same network as a transformer on sequences of contextual tokens and the query after them (token M + m).

    One-hot embeddings of width M + R, :math:`W_Q = \sqrt{M + R}\, Z` (rows of queries, columns of tokens), :math:`W_K = W_V = 1`,
    no skip connection, a root-mean-square norm after attention with the gain :math:`1/\sqrt{M + R}`, no MLP; the read-out is
    :math:`Y^\top`.
    """
    queries, tokens = params.z.shape
    d = tokens + queries
    shape = nn.Transformer(
        vocabulary=d,
        width=d,
        outputs=params.y.shape[1],
        sees_itself=False,
        project=False,
        position="none",
        norm="rms",
        norm_place="post",
        epsilon=1e-24,  # the first token sees none
        skip=0.0,
        mlp="none",
        dtype=params.y.dtype.name,
    )
    identity = jnp.eye(d, dtype=params.y.dtype)
    blocks = {
        "q": d**0.5 * jnp.pad(params.z, ((tokens, 0), (0, queries))),
        "k": identity,
        "v": identity,
        "attention_norm": jnp.full(d, d**-0.5, params.y.dtype),
    }
    head = jnp.pad(params.y, ((0, queries), (0, 0))).T
    return shape, {"embed": identity, "head": head, "blocks": jax.tree.map(lambda x: x[None], blocks)}
