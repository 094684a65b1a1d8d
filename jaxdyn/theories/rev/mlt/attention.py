r"""Attention logits between entities in a transformer: how asymmetric they are on pairs, and whether they tell a fact's direction.

.. math:: Z_{xy} = \frac{(W_Q x + b_Q) \cdot (W_K y + b_K)}{\sqrt e} - \text{mean over all entities as } y

with x and y what a layer's attention reads after one entity alone, at the first position, where questions have their entity: its
embedding with the position, through all blocks before and the layer's norm. A query's mean is subtracted since softmax does not
depend on it. In training no entity is the key of another one's query: the context is one entity and a relation, and the entity,
which comes first, has only itself as key. What Z is between entities is a by-product of weights and embeddings that are trained
for other ends.

If :math:`W_Q` and :math:`W_K` are independent Gaussian matrices, entries of Z and its transpose have over their draws the
correlation :math:`\rho = \langle (x \cdot y)(\bar x \cdot \bar y) \rangle / \langle |x|^2 |\bar y|^2 \rangle`, with
:math:`\bar x` the input minus the mean over entities, and Z has the asymmetry

.. math:: \frac{\|Z - Z^\top\|_F}{\|Z + Z^\top\|_F} \approx \sqrt{\frac{1 - \rho}{1 + \rho}},

near 1: a Z in which nothing was learned is as asymmetric as one that holds A to B alone.

Source: arXiv:2405.04669, in whose one-layer model the matrix is learned; derived. Letters: m pairs, the last T of which are trained
in one direction, n = 2m entities, those of A first, h heads of e numbers, l layers.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxdyn import nn
from jaxdyn.nn import transformer
from jaxdyn.theories.rev.mlt import logits
from jaxdyn.theories.rev.mlt.sentences import Facts

PAIRS = ("two-way", "one-way")
PARTNERS = ("own", "reassigned", "any direction")


def entity_logits(shape: nn.Transformer, params: PyTree, facts: Facts) -> tuple[Float[Array, "l h n n"], Float[Array, "l n d"]]:
    """Z of every layer and head, queries in rows; and what attention reads in every layer. A word is read by its first token."""
    tokens = facts.words[:2, :, :1].reshape(-1, 1)
    enter, block, _ = transformer.parts(shape)
    x, logits_, inputs = enter(params, tokens), [], []
    for layer in range(shape.layers):
        w = jax.tree.map(lambda a, i=layer: a[i], params["blocks"])
        q, k, _ = (part[:, 0] for part in transformer.heads(shape, x, w))
        z = jnp.einsum("xhe,yhe->hxy", q, k) / np.sqrt(shape.entries).astype(shape.dtype)
        logits_.append(z - jnp.mean(z, -1, keepdims=True))
        inputs.append(transformer.entering(shape, w, "attention_norm", x)[:, 0])
        x = block(w, x)
    return jnp.stack(logits_), jnp.stack(inputs)


def partners(m: int, forward: Bool[Array, " T"]) -> Int[Array, "partner m"]:
    """The B with which every A is paired: its own one, that of the next pair of its kind, and that of the next pair of its group.

    Kinds are two-way pairs and one-way pairs of one direction, groups two-way and one-way pairs.
    """
    place, p = np.arange(m), m - len(forward)
    two_way, one_way = np.roll(place[:p], -1), np.roll(place[p:], -1)
    same_kind = p + logits.reassigned(forward[:, None] == forward)
    return jnp.stack([jnp.asarray(place), *(jnp.concatenate([two_way, other]) for other in (same_kind, one_way))])


def asymmetry(z: Float[Array, "l h n n"], forward: Bool[Array, " T"]) -> Float[Array, "partner l group"]:
    r""":math:`\|Z - Z^\top\|_F / \|Z + Z^\top\|_F` of all heads of a layer, on the entries of each group of pairs."""
    m, held = z.shape[-1] // 2, len(forward)

    def shares(b: Int[Array, " m"]) -> Float[Array, "l group"]:
        there, back = z[..., np.arange(m), m + b], z[..., m + b, np.arange(m)]
        minus, plus = jnp.sum(jnp.square(there - back), 1), jnp.sum(jnp.square(there + back), 1)  # over heads
        groups = slice(None, m - held), slice(m - held, None)
        return jnp.stack([jnp.sqrt(jnp.sum(minus[:, g], -1) / jnp.sum(plus[:, g], -1)) for g in groups], -1)

    return jnp.stack([shares(b) for b in partners(m, forward)])


def random_asymmetry(x: Float[Array, "l n d"], held: int) -> Float[Array, "l group"]:
    """The asymmetry that independent Gaussian matrices of queries and keys give for the same inputs, on each group of pairs."""
    m = x.shape[1] // 2
    a, b = x[:, :m], x[:, m:]
    centred = x - jnp.mean(x, 1, keepdims=True)
    ca, cb = centred[:, :m], centred[:, m:]
    both = jnp.sum(a * b, -1) * jnp.sum(ca * cb, -1)
    each = (jnp.sum(a * a, -1) * jnp.sum(cb * cb, -1) + jnp.sum(b * b, -1) * jnp.sum(ca * ca, -1)) / 2
    shares = []
    for group in (slice(None, m - held), slice(m - held, None)):
        rho = jnp.sum(both[:, group], -1) / jnp.sum(each[:, group], -1)
        shares.append(jnp.sqrt((1 - rho) / (1 + rho)))
    return jnp.stack(shares, -1)


def differences(z: Float[Array, "l h n n"], forward: Bool[Array, " T"]) -> tuple[Float[Array, "l p p"], Float[Array, "l T T"]]:
    """Z[x, y] - Z[y, x], mean over heads, for all x and y of a group: A and B of two-way, question and answer of one-way pairs.

    The question of a one-way pair is the entity after which the other one is trained: A if ``forward``.
    """
    z = jnp.mean(z, 1)
    m = z.shape[-1] // 2
    odd = z - jnp.swapaxes(z, 1, 2)
    there, p = odd[:, :m, m:], m - len(forward)
    one_way = jnp.where(forward[:, None], there[:, p:, p:], -jnp.swapaxes(there[:, p:, p:], 1, 2))
    return there[:, :p, :p], one_way


def direction(z: Float[Array, "l h n n"], forward: Bool[Array, " T"]) -> tuple[Float[Array, "l group"], Float[Array, " l"]]:
    """How far the difference of :func:`differences` stands out in own pairs, and how far it is from 0 in unrelated ones.

    Both in standard deviations over unrelated pairs: those of the same group and, of one-way pairs, of the same direction.
    """
    two_way, one_way = differences(z, forward)
    every, same = np.ones(two_way.shape[1:], bool), forward[:, None] == forward
    excess = [logits.among(d, mask)[1] for d, mask in ((two_way, jnp.asarray(every)), (one_way, same))]
    # from the question of one pair to the answer of another
    others = same & ~jnp.eye(len(forward), dtype=bool)
    count = jnp.sum(others)
    mean = jnp.sum(jnp.where(others, one_way, 0), (1, 2)) / count
    square = jnp.sum(jnp.where(others, jnp.square(one_way - mean[:, None, None]), 0), (1, 2)) / count
    return jnp.stack(excess, -1), mean / jnp.sqrt(square)
