r"""The task of Table 1, and the network.

Sequences from three layers of latent variables, each a set of variables of the layer below.

The lowest latents (s = 0) are sets of tokens, the next (s = 1) sets of lowest latents, a class is a set of the latter. The sequence
of a class holds the union of its tokens, in ascending order at the right end, after padding: there is one sequence per class. Two
classes may have the same tokens; no network distinguishes them.
Source: arXiv:2310.00535, Table 1 (three latent layers, a vocabulary of 100 with the padding, sequences of 30). Letters: C classes,
N0 and N1 latents, k members of every set, M = 99 tokens, L positions.

The network of Table 1, computed where its positions differ.

It is :func:`jaxdyn.nn.tree_network`, three post-norm blocks without positions under a causal mask that does not hide the padding.
So positions of the padding attend to padding alone and are all equal: of those that precede every token, one is computed, and
counts m times as a key,

.. math:: b_{ij} \propto m_j\, e^{q_i \cdot k_j / \sqrt d}, \qquad m_0 = L - n + 1, \quad m_{j>0} = 1,

which is exact. Only the last position is read: the top block computes queries and MLP there alone.
Source: arXiv:2310.00535, Table 1. Letters: C sequences of L symbols, n of them computed, d width, u hidden nodes of an MLP.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.linalg import dense
from jaxdyn.nn import transformer

PAD = 99  # the last of 100 symbols; the others are tokens
LENGTH = 30


class Layers(NamedTuple):
    """Which members each set has: classes of upper latents, upper latents of lower ones, lower latents of tokens."""

    top: Bool[Array, "C N1"]
    mid: Bool[Array, "N1 N0"]
    low: Bool[Array, "N0 M"]


def longest(latents: tuple[int, int], members: int) -> int:
    """Largest possible number of tokens of a class."""
    return members * min(latents[0], members * min(latents[1], members))


def refuse(classes: int, latents: tuple[int, int], members: int) -> None:
    """Refuse sizes for which there are no such sets or sequences.

    Raises:
        UsageError: too few variables below for so many different sets, or sequences that may not fit into 30 positions (the
            published sizes always fit: 27 tokens at most).
    """
    below = (PAD, *latents)
    if members < 1 or min(classes, *latents) < 1:
        raise UsageError(f"classes={classes}, latents={latents}, members={members} are not allowed: sizes are positive")
    for name, count, n in zip(("lower latents", "upper latents", "classes"), (*latents, classes), below, strict=True):
        if count > math.comb(n, members):
            sets = math.comb(n, members)
            raise UsageError(f"{count} {name} are not allowed: there are {sets} different sets of {members} out of {n}")
    if longest(latents, members) > LENGTH:
        tokens = longest(latents, members)
        raise UsageError(f"members={members} is not allowed: sequences of up to {tokens} tokens do not fit into {LENGTH} positions")


def subsets(key: PRNGKeyArray, count: int, n: int, k: int) -> Bool[Array, "count n"]:
    r"""Different subsets of size k out of n, uniformly at random, by their membership.

    The places of the largest of as many random numbers as there are subsets are distinct ranks
    :math:`r = \sum_{i=1}^{k} \binom{c_i}{i}`, :math:`c_k > \dots > c_1 \ge 0`; each is decoded greedily from its
    largest member (the combinatorial number system).
    """
    rank = jax.lax.top_k(jax.random.uniform(key, (math.comb(n, k),), jnp.float32), count)[1].astype(jnp.int32)
    member = jnp.zeros((count, n), bool)
    for i in range(k, 0, -1):
        binomials = jnp.asarray([math.comb(c, i) for c in range(n)], jnp.int32)
        c = jnp.sum(binomials <= rank[:, None], 1, dtype=jnp.int32) - 1
        member = member | (c[:, None] == jnp.arange(n, dtype=jnp.int32))
        rank = rank - binomials[c]
    return member


def sample_layers(key: PRNGKeyArray, classes: int, latents: tuple[int, int], members: int) -> Layers:
    """Latent variables and classes; within a layer all sets differ.

    Raises:
        UsageError: as :func:`refuse`.
    """
    refuse(classes, latents, members)
    k_top, k_mid, k_low = jax.random.split(key, 3)
    return Layers(
        subsets(k_top, classes, latents[1], members),
        subsets(k_mid, latents[1], latents[0], members),
        subsets(k_low, latents[0], PAD, members),
    )


def _below(active: Bool[Array, "C a"], sets: Bool[Array, "a b"]) -> Bool[Array, "C b"]:
    """Which members are in any active set."""
    return jnp.any(active[:, :, None] & sets, 1)


def activity(layers: Layers) -> tuple[Bool[Array, "C N0"], Bool[Array, "C N1"]]:
    """Which latents of s = 0 and of s = 1 each class has."""
    return _below(layers.top, layers.mid), layers.top


def sequences(layers: Layers) -> Int[Array, "C L"]:
    """The one sequence of every class; the label of row c is c."""
    present = _below(activity(layers)[0], layers.low)
    ids = jnp.where(present, jnp.arange(PAD, dtype=jnp.int32), -1)
    last = jnp.sort(ids, 1)[:, -LENGTH:]
    return jnp.where(last < 0, PAD, last)


def positions(length: int, longest: int) -> int:
    """Number of positions to compute if no sequence has more than ``longest`` tokens: these, and one of padding."""
    return min(length, longest + 1)


def _block(
    shape: nn.Transformer, count: Float[Array, " n"], w: PyTree, x: Float[Array, "C n d"], seen: Bool[Array, "q n"]
) -> tuple[Float[Array, "C q d"], Float[Array, "C q u"]]:
    """Output and hidden nodes of a block at its last q positions."""
    asking = x[:, -seen.shape[0] :]
    query = transformer.product(shape, w, "q", asking)
    key, value = (transformer.product(shape, w, name, x) for name in ("k", "v"))
    scores = jnp.einsum("cqd,cnd->cqn", query, key) * x.shape[-1] ** -0.5
    mixed = nn.weights(scores, shape.attention, seen, counts=count) @ value
    end = transformer.ending(shape, asking, mixed[..., None, :], w)
    return end.after, end.units


def apply(
    shape: nn.Transformer, params: PyTree, tokens: Int[Array, "C L"], n: int
) -> tuple[Float[Array, "C C"], Float[Array, "s C u"]]:
    """Logits of the classes at the last position, and the largest value over positions of each hidden node below the top block.

    Rows of the logits are sequences. Their first L - n + 1 symbols must all be padding.
    """
    count = jnp.ones(n, shape.dtype).at[0].set(tokens.shape[1] - n + 1)
    seen, block = nn.causal_mask(n), functools.partial(_block, shape, count)

    def lower(x: Array, w: PyTree) -> tuple[Array, Array]:
        x, units = block(w, x, seen)
        return x, jnp.max(units, 1)

    below, top = (jax.tree.map(lambda w, part=part: w[part], params["blocks"]) for part in (slice(-1), -1))
    x, nodes = jax.lax.scan(lower, params["embed"][tokens[:, -n:]], below)
    x, _ = block(top, x, seen[-1:])
    matrix, shift = nn.read_out(params)
    return dense(x[:, 0], matrix.T) + shift, nodes
