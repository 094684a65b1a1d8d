r"""The layer of linear attention, its losses, and where it starts.

One layer of linear attention that reads a prompt of examples and predicts the label of a query.

Tokens are :math:`z_i = (x_i, y_i)`, the query is :math:`e_q = (x_q, 0)`, and the prediction is the label entry of what the layer
writes at the query,

.. math:: \hat y = \frac1N \sum_{i=1}^N (W^{PV} z_i)_{d+1}\; z_i^\top W^{KQ} e_q \;+\;
          \frac1N \sum_h \sum_{i=1}^N (v_h \cdot z_i)(k_h \cdot z_i)(q_h \cdot e_q)

Either part may be absent (zero): full matrices in which keys and queries are merged, or heads of rank one in which they are
separate. All entries train. Source: arXiv:2306.09927, section 2 (merged); arXiv:2501.16265, sections 2 and 4 (separate).
Departure: the query is no key of its own; with the paper's starts its value is zero anyway.

With :math:`\beta_j = \sum_{ab} T_{abj} G_{ab}`, :math:`G = \frac1N\sum_i z_i z_i^\top`, the prediction is
:math:`\beta \cdot x_q`; :func:`population_loss` is its exact mean over Gaussian prompts. Letters: d inputs, N examples, h heads,
n prompts; S the inputs' second moments in a prompt.

Covariances with random eigenvectors, and the layer's first weights, as all topics of in-context learning use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import linalg, nn
from jaxdyn.data.prompts import Prompts
from jaxdyn.engine.claims.code_field import Code
from jaxdyn.errors import UsageError, is_traced
from jaxdyn.theories.icl import dynamics

Scalar = float | int | Float[Array, ""]


class Params(NamedTuple):
    """All weights; d1 = d + 1."""

    pv: Float[Array, "d1 d1"]
    kq: Float[Array, "d1 d1"]
    value: Float[Array, "h d1"]
    key: Float[Array, "h d1"]
    query: Float[Array, "h d1"]


def predict(
    params: Params,
    tokens: Float[Array, "N d1"],
    query: Float[Array, " d"],
    weight: Float[Array, " N"],
    softmax: Bool[Array, ""] | bool = False,
) -> Float[Array, ""]:
    """The label of a query; ``weight`` is 1/N, or 0 for an example that is left out. Softmax attention is a breach."""
    e = jnp.append(query, jnp.zeros((), query.dtype))

    def mix(scores: Float[Array, "*h N"]) -> Float[Array, "*h N"]:
        return jnp.where(softmax, nn.weights(scores, "softmax", weight > 0), nn.weights(scores, "linear", counts=weight))

    merged = mix(tokens @ (params.kq @ e)) @ (tokens @ params.pv[-1])
    heads = mix((params.query @ e)[:, None] * (params.key @ tokens.T)) * (params.value @ tokens.T)
    return merged + jnp.sum(heads)


def batch_loss(params: Params, prompts: Prompts, softmax: Bool[Array, ""] | bool = False) -> Float[Array, ""]:
    """Half the mean squared error over a batch of prompts."""
    length = prompts.tokens.shape[1]
    return risks(params, prompts, jnp.asarray([length]), softmax)[0] / 2


def risks(
    params: Params, prompts: Prompts, lengths: Int[Array, " M"], softmax: Bool[Array, ""] | bool = False
) -> Float[Array, " M"]:
    """Mean squared error where only so many examples of every prompt are shown."""
    place, dtype = jnp.arange(prompts.tokens.shape[1]), prompts.tokens.dtype

    def one(length: Int[Array, ""]) -> Float[Array, ""]:
        weight = jnp.where(place < length, 1 / length.astype(dtype), jnp.zeros((), dtype))
        label = jax.vmap(lambda z, q: predict(params, z, q, weight, softmax))(prompts.tokens, prompts.query)
        return jnp.mean(jnp.square(label - prompts.target))

    return jax.vmap(one)(lengths)


def tensor(params: Params) -> Float[Array, "d1 d1 d"]:
    """T: how the prediction's coefficient of every input depends on the moments of the examples."""
    heads = jnp.einsum("ha,hb,hj->abj", params.value, params.key, params.query[:, :-1])
    return params.pv[-1][:, None, None] * params.kq[:, :-1] + heads


def effective(params: Params) -> Float[Array, "d d"]:
    r"""P of :math:`\hat y = w^\top S P x_q + \dots`: the part of the prediction that is linear in the task."""
    t = tensor(params)
    return t[-1, :-1] + t[:-1, -1]


def population_loss(params: Params, covariance: Float[Array, "d d"], length: Scalar) -> Float[Array, ""]:
    r"""Half the mean squared error over tasks :math:`w \sim N(0, I)`, by the second moments of Wishart matrices.

    .. math:: \beta - w = (P^\top S - I)w + \langle A, S\rangle + c\, w^\top S w

    The first term is odd in w, the others even. :math:`E[S^2] = (1 + \frac1N)\Lambda^2 + \frac{\mathrm{tr}\Lambda}{N}\Lambda`,
    :math:`E[\langle A_i, S\rangle\langle A_j, S\rangle] = \langle A_i, \Lambda\rangle\langle A_j, \Lambda\rangle +
    \frac1N \mathrm{tr}(A_i\Lambda(A_j + A_j^\top)\Lambda)`, and :math:`w^\top S w` has the moments
    :math:`E_w = \mathrm{tr} S`, :math:`E_w[\cdot^2] = 2\,\mathrm{tr}S^2 + (\mathrm{tr}S)^2`.
    """
    lam, t = covariance, tensor(params)
    p, a, c = t[-1, :-1] + t[:-1, -1], t[:-1, :-1], t[-1, -1]
    trace = jnp.trace(lam)
    square = (1 + 1 / length) * lam @ lam + trace / length * lam
    odd = jnp.sum(lam * (p.T @ square @ p)) - 2 * jnp.sum(lam * (lam @ p)) + trace
    mean = jnp.einsum("abj,ab->j", a, lam)
    turned = jnp.einsum("abj,bc,ad->dcj", a, lam, lam)
    pairs = jnp.outer(mean, mean) + jnp.einsum("dci,dcj->ij", turned, a + a.transpose(1, 0, 2)) / length
    mixed = mean * trace + 2 / length * jnp.einsum("abj,ab->j", a, lam @ lam)
    fourth = 2 * jnp.trace(square) + trace**2 + 2 / length * jnp.sum(lam * lam)
    even = jnp.sum(lam * pairs) + 2 * c @ lam @ mixed + fourth * (c @ lam @ c)
    return 0.5 * (odd + even)


def as_transformer(
    params: Params, tokens: Float[Array, "N d1"], query: Float[Array, " d"], softmax: bool = False
) -> tuple[nn.Transformer, PyTree]:
    r"""The heads of rank one as a transformer whose tokens 0 to N - 1 are a prompt's examples, and N its query.

    Heads have one entry: :math:`W_Q, W_K, W_V` have the columns :math:`q_h, k_h, v_h` (values over N in linear attention). Every
    head writes into the label's coordinate, which the read-out reads. The query does not see itself.

    Raises:
        UsageError: for merged matrices, which are one head of another form.
    """
    if not is_traced(params.pv) and bool(jnp.any(params.pv[-1] != 0)):
        raise UsageError("merged matrices are not allowed as a transformer: heads of rank one are")
    count, width = tokens.shape
    heads = params.query.shape[0]
    shape = nn.Transformer(
        vocabulary=count + 1,
        width=width,
        heads=heads,
        head_size=1,
        outputs=1,
        attention="softmax" if softmax else "linear",
        sees_itself=False,
        position="none",
        norm="none",
        skip=0.0,
        mlp="none",
        dtype=tokens.dtype.name,
    )
    label = jnp.zeros(width, tokens.dtype).at[-1].set(1)
    blocks = {
        "q": params.query.T,
        "k": params.key.T,
        "v": params.value.T / (1 if softmax else count),
        "o": jnp.broadcast_to(label, (heads, width)),
    }
    last = jnp.append(query, jnp.zeros((), query.dtype))
    embed = jnp.concatenate([tokens, last[None]])
    return shape, {"embed": embed, "head": label[None], "blocks": jax.tree.map(lambda x: x[None], blocks)}


STARTS = ("paper", "white", "zero", "dense", "heads", "negative")


def basis(key: PRNGKeyArray, inputs: int) -> Float[Array, "d d"]:
    """Random orthonormal eigenvectors, in columns."""
    return linalg.qr(jax.random.normal(key, (inputs, inputs), jnp.float64))[0]


def spectrum(first: Scalar, ratio: Scalar, inputs: int) -> Float[Array, " d"]:
    """Eigenvalues of the inputs' covariance, from the largest: each is ``ratio`` times the one before."""
    return first * ratio ** jnp.arange(inputs, dtype=jnp.float64)


def first_weights(start: Code, key: PRNGKeyArray, inputs: int, heads: int, size: Scalar, imbalance: Scalar) -> Params:
    r"""The layer at the start; its heads are zero except for "heads".

    "paper": :math:`U = \sigma\Theta\Theta^\top` of norm :math:`\sigma` for a Gaussian :math:`\Theta`, and
    :math:`u = \sqrt{\sigma^2 + c}`; "white": the same with :math:`\Theta\Theta^\top \propto I`; "zero": no entry
    differs from zero; "dense": all entries Gaussian of standard deviation
    :math:`\sigma/\sqrt d`; "heads": separate keys and queries, all their entries Gaussian of standard deviation :math:`\sigma`;
    "negative": "white" with the sign of U changed.
    """
    k_theta, k_pv, k_kq, k_heads = jax.random.split(key, 4)
    d, zeros = inputs, jnp.zeros((inputs + 1, inputs + 1), jnp.float64)
    # merged matrices: two blocks, nothing, or all entries
    theta = jax.random.normal(k_theta, (d, d), jnp.float64)

    def normed(block: Array) -> Array:
        return block / jnp.linalg.norm(block)

    def structured(block: Array) -> Callable[[], tuple[Array, Array]]:
        corner = jnp.sqrt(size**2 + imbalance)
        return lambda: (zeros.at[d, d].set(corner), zeros.at[:d, :d].set(size * block))

    def dense() -> tuple[Array, Array]:
        pv, kq = (size / d**0.5 * jax.random.normal(k, (d + 1, d + 1), jnp.float64) for k in (k_pv, k_kq))
        return pv, kq

    kinds = [
        structured(normed(theta @ theta.T)),
        structured(jnp.eye(d) / d**0.5),
        lambda: (zeros, zeros),
        dense,
        lambda: (zeros, zeros),
        structured(-jnp.eye(d) / d**0.5),
    ]
    pv, kq = jax.lax.switch(start.index, kinds)
    # separate keys and queries
    drawn = size * jax.random.normal(k_heads, (3, heads, d + 1), jnp.float64)
    return Params(pv, kq, *jnp.where(start == "heads", drawn, 0.0))


def blocks(pv: Float[Array, "*T d1 d1"], kq: Float[Array, "*T d1 d1"]) -> tuple[dynamics.Blocks, Float[Array, " *T"]]:
    """The two blocks that the theory has, and the root mean square of the other entries that act on predictions."""
    rest: Sequence[Array] = (pv[..., -1, :-1], kq[..., -1, :-1])
    other = jnp.sqrt(sum(jnp.mean(jnp.square(r), -1) for r in rest) / 2)
    return dynamics.Blocks(pv[..., -1, -1], kq[..., :-1, :-1]), other
