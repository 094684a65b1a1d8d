r"""The network of JoMA: one block of attention and a lower MLP layer, its losses and its discrete step.

.. math:: b = \text{attention}(x, z_m), \quad f = U_C b + u_m, \quad \text{pre}_k = w_k^\top f, \quad h_k = \phi(\text{pre}_k)

Source: arXiv:2310.00535, section 2. Letters: m contextual tokens, q queries, d embedding dimension, k hidden nodes, o outputs,
n samples; x (n, m) token frequencies, z (q, m) attention logits, w (d, k) lower layer, a (k, o) upper layer;
v = U_C^T w (m, k) projected weights.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import linalg, nn, sampling, train
from jaxdyn.nn import choices

ATTENTIONS = ("exp", "linear", "softmax")
ACTIVATIONS = ("id", "relu", "tanh", "gelu")
OPTIMIZERS = ("gd", "momentum", "adam")
UPPERS = ("tanh", "relu", "id")  # activation below each of the further upper layers
LOSSES = ("squared", "entropy")
Scalar = float | Float[Array, ""]


class Params(NamedTuple):
    """What is trained: logits, lower layer, and the upper layers where there are any.

    ``a=None``: the outputs are the hidden nodes. ``c``: square layers above ``a``, of which the block says how many are in use.
    """

    w: Float[Array, "d k"]
    z: Float[Array, "q m"]
    a: Float[Array, "k o"] | None = None
    c: Float[Array, "l o o"] | None = None


class Block(NamedTuple):
    """What is fixed in a run: embeddings, kinds of attention and activation, temperature, constant A, the upper layers in use.

    Embeddings that are None are one-hot: token l is coordinate l, query j coordinate m + j.
    """

    tokens: Float[Array, "d m"] | None
    queries: Float[Array, "d q"] | None
    attention: jd.Code
    phi: jd.Code
    tau: Scalar = 1.0
    normalizer: Scalar = 1.0
    upper: jd.Code = jd.Code.of("tanh", UPPERS)
    depth: Scalar = 0.0


class Batch(NamedTuple):
    """Samples: token frequencies, query, target (one row each) and a weight, whose sum is 1 over the batch."""

    x: Float[Array, "n m"]
    query: Int[Array, " n"]
    target: Float[Array, "n o"]
    weight: Float[Array, " n"]


def attention(
    x: Float[Array, "*n m"], z: Float[Array, "*n m"], kind: jd.Code, tau: Scalar = 1.0, normalizer: Scalar = 1.0
) -> Float[Array, "*n m"]:
    r"""Attended frequencies b of the tokens, by :func:`jaxdyn.nn.weights` with frequencies as counts.

    .. math:: b_l = x_l e^{z_l/\tau}/A \ (\text{exp}), \quad x_l z_l \ (\text{linear}), \quad
       x_l \sigma(z_l/\tau) \ (\text{sigmoid}), \qquad
       x_l e^{z_l/\tau} / \textstyle\sum_j x_j e^{z_j/\tau} \ (\text{softmax; some } x_l > 0)
    """
    scores = jnp.where(choices.is_kind(kind, "linear"), z, z / tau)
    return nn.weights(scores, kind, counts=x) / jnp.where(choices.is_kind(kind, "exp"), normalizer, 1.0)


def activation(pre: Float[Array, "*n k"], phi: jd.Code) -> Float[Array, "*n k"]:
    """The activation that the switch names (GELU in its exact form), entry by entry."""
    return choices.applied("phi", phi, nn.ACTIVATIONS | {"id": nn.ACTIVATIONS["linear"]}, pre)


def projected(params: Params, block: Block) -> Float[Array, "m k"]:
    """Projected weights v = U_C^T w."""
    return params.w[: params.z.shape[1]] if block.tokens is None else block.tokens.T @ params.w


def of_queries(params: Params, block: Block) -> Float[Array, "q k"]:
    """What the queries add to the pre-activations, u_m^T w."""
    queries, tokens = params.z.shape
    return params.w[tokens : tokens + queries] if block.queries is None else block.queries.T @ params.w


def attend(params: Params, block: Block, x: Float[Array, "n m"], query: Int[Array, " n"]) -> Float[Array, "n m"]:
    """Attended frequencies b of each sample."""
    return attention(x, params.z[query], block.attention, block.tau, block.normalizer)


def mean_attention(params: Params, block: Block, batch: Batch) -> Float[Array, " m"]:
    """E[b] over the batch."""
    return batch.weight @ attend(params, block, batch.x, batch.query)


def pre_activations(params: Params, block: Block, x: Float[Array, "n m"], query: Int[Array, " n"]) -> Float[Array, "n k"]:
    r"""Pre-activations :math:`w_k^\top(U_C b + u_m)` of samples and nodes, as :math:`(U_C^\top w_k)\cdot b + u_m^\top w_k`."""
    return attend(params, block, x, query) @ projected(params, block) + of_queries(params, block)[query]


def _outputs(params: Params, block: Block, pre: Float[Array, "n k"]) -> Float[Array, "n o"]:
    h = activation(pre, block.phi)
    if params.a is None:
        return h
    out = h @ params.a
    for i, layer in enumerate(() if params.c is None else params.c):
        below = jnp.where(block.upper == "tanh", jnp.tanh(out), jnp.where(block.upper == "relu", jax.nn.relu(out), out))
        out = jnp.where(i < block.depth, below @ layer, out)
    return out


def squared_loss(params: Params, block: Block, batch: Batch, weight_decay: Scalar = 0.0) -> Float[Array, ""]:
    """Half the mean squared error of the outputs, plus half the decay times the squared norms of w and z."""
    error = _outputs(params, block, pre_activations(params, block, batch.x, batch.query)) - batch.target
    return 0.5 * jnp.dot(batch.weight, jnp.sum(error**2, -1)) + _decay(params, weight_decay)


def cross_entropy(params: Params, block: Block, batch: Batch) -> Float[Array, ""]:
    """Mean cross-entropy of the outputs as logits; targets are probabilities."""
    logits = _outputs(params, block, pre_activations(params, block, batch.x, batch.query))
    return jnp.dot(batch.weight, optax.softmax_cross_entropy(logits, batch.target))


def training_loss(kind: jd.Code, params: Params, block: Block, batch: Batch, weight_decay: Scalar = 0.0) -> Float[Array, ""]:
    """Squared loss, or cross-entropy against the targets' softmax, whichever the switch names; plus the weight decay."""
    squared = squared_loss(params, block, batch)
    entropy = cross_entropy(params, block, batch._replace(target=jax.nn.softmax(batch.target)))
    return jnp.where(kind == "squared", squared, entropy) + _decay(params, weight_decay)


def _decay(params: Params, weight_decay: Scalar) -> Float[Array, ""]:
    return 0.5 * weight_decay * (jnp.sum(params.w**2) + jnp.sum(params.z**2))


def node_gradients(params: Params, block: Block, batch: Batch) -> Float[Array, "n k"]:
    r"""Ascent gradients :math:`G_k = -\partial\ell/\partial\text{pre}_k` of every sample's cross-entropy."""
    return _node_gradients(params, block, batch, pre_activations(params, block, batch.x, batch.query))


def _node_gradients(params: Params, block: Block, batch: Batch, pre: Float[Array, "n k"]) -> Float[Array, "n k"]:
    def total(pre: Float[Array, "n k"]) -> Float[Array, ""]:
        return jnp.sum(optax.softmax_cross_entropy(_outputs(params, block, pre), batch.target))

    return -jax.grad(total)(pre)


class Backward(NamedTuple):
    """One backward pass: attended frequencies b, ascent gradients of the nodes, and the gradient in what is trained."""

    b: Float[Array, "n m"]
    nodes: Float[Array, "n k"]
    gradient: Params


def backward(params: Params, v: Float[Array, "m k"], block: Block, batch: Batch) -> Backward:
    """The gradient of the cross-entropy of a block without upper layers, and what it passes through.

    As :func:`attend`, :func:`node_gradients` and the gradient of :func:`cross_entropy`, with attention computed once, and from
    projected weights that the caller has: ``v`` is :func:`projected` of the same parameters.

    Raises:
        UsageError: there are upper layers, whose gradients it would leave out.
    """
    if params.a is not None:
        raise jd.UsageError("params.a is not allowed in backward: a block without upper layers has a=None; or use cross_entropy")

    def forward(v: Array, queries: Array, z: Array) -> tuple[Float[Array, "n k"], Float[Array, "n m"]]:
        b = attention(batch.x, z[batch.query], block.attention, block.tau, block.normalizer)
        return b @ v + queries[batch.query], b

    def read(w: Array) -> tuple[Float[Array, "m k"], Float[Array, "q k"]]:
        return projected(params._replace(w=w), block), of_queries(params._replace(w=w), block)

    (_, queries), lifted = jax.vjp(read, params.w)
    pre, back, b = jax.vjp(forward, v, queries, params.z, has_aux=True)
    nodes = _node_gradients(params, block, batch, pre)
    *inner, dz = back(-batch.weight[:, None] * nodes)
    return Backward(b, nodes, Params(lifted(tuple(inner))[0], dz))


def make_tx(optimizer: jd.Code, lr: Scalar, rates: Params, momentum: Scalar = 0.9) -> optax.GradientTransformation:
    """Plain descent, heavy ball with this momentum, or Adam; ``rates`` multiplies ``lr`` for each parameter.

    The ratio of the attention's learning rate to the MLP's is ``rates.z / rates.w``.
    """
    rules = {
        "gd": optax.identity(),
        "momentum": optax.trace(momentum),
        "adam": optax.scale_by_adam(),
    }
    return optax.chain(
        train.switched(optimizer, rules),
        optax.stateless(lambda steps, _: jax.tree.map(lambda rate, step: -lr * rate * step, rates, steps)),
    )


def normals(key: PRNGKeyArray, *shapes: tuple[int, ...]) -> list[Float[Array, ...]]:
    """Standard normal float64 arrays of these shapes: slices of one, as each call of the generator has its own compile time."""
    sizes = [math.prod(shape) for shape in shapes]
    flat = sampling.normal(key, (sum(sizes),))
    ends = list(itertools.accumulate(sizes))
    return [flat[end - size : end].reshape(shape) for size, end, shape in zip(sizes, ends, shapes, strict=True)]


def embed(key: PRNGKeyArray, d: int, m: int, q: int, noise: Scalar = 0.0) -> tuple[Float[Array, "d m"], Float[Array, "d q"]]:
    """Embeddings of m tokens and q queries: random orthonormal columns, plus ``noise`` times standard normal entries.

    Raises:
        UsageError: fewer dimensions than columns.
    """
    if d < m + q:
        raise jd.UsageError(f"dim={d} is not allowed: orthonormal embeddings of {m} tokens and {q} queries need dim >= {m + q}")
    gaussian = jax.random.normal(key, (2, d, m + q), jnp.float64)
    frame, _ = linalg.qr(gaussian[0])
    u = frame + noise * gaussian[1]
    return u[:, :m], u[:, m:]


def as_transformer(params: Params, block: Block, length: int) -> tuple[nn.Transformer, PyTree]:
    r"""The same block as a transformer on sequences of ``length`` contextual tokens and the query after them (token m + j).

    Frequencies are counts over the length. Attention: :math:`W_Q = \sqrt{D}\,\sum_j u_j (\sum_l z_{jl} u_l)^\top / \tau`,
    :math:`W_K = 1`, values the embeddings over the length (exp, linear) or the embeddings (softmax); the query does not see
    itself. The MLP writes its outputs into further coordinates of the stream, which the read-out reads. Letters: D the width.

    Raises:
        UsageError: for one-hot embeddings that are not held, upper layers above the first, a traced kind, or no upper layer.
    """
    kind, phi = str(block.attention), str(block.phi)
    if block.tokens is None or block.queries is None or params.a is None or params.c is not None:
        raise jd.UsageError("this block is not allowed as a transformer: it has embeddings that are held, and one upper layer")
    (d, m), o = block.tokens.shape, params.a.shape[1]
    shape = nn.Transformer(
        vocabulary=m + block.queries.shape[1],
        width=d + o,
        hidden=params.w.shape[1],
        outputs=o,
        attention=kind,
        sees_itself=False,
        project=False,
        position="none",
        norm="none",
        mlp="plain",
        activation="linear" if phi == "id" else phi,
        dtype=params.w.dtype.name,
    )
    wide = jnp.pad(jnp.concatenate([block.tokens, block.queries], 1).T, ((0, 0), (0, o)))
    u_tokens, u_queries = wide[:m], wide[m:]
    scale = 1 / length / block.normalizer if kind == "exp" else 1 / length if kind == "linear" else 1.0
    tau = 1.0 if kind == "linear" else block.tau
    identity = jnp.eye(d + o, dtype=wide.dtype)
    blocks = {
        "q": (d + o) ** 0.5 / tau * u_queries.T @ params.z @ u_tokens,
        "k": identity,
        "v": scale * identity,
        "up": jnp.pad(params.w, ((0, o), (0, 0))),
        "down": jnp.pad(params.a, ((0, 0), (d, 0))),
    }
    return shape, {"embed": wide, "head": identity[d:], "blocks": jax.tree.map(lambda x: x[None], blocks)}
