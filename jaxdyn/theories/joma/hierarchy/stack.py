r"""Networks of one to three JoMA blocks on latent trees, and the trees.

.. math:: b^s_m = \sum_{l \ne m} p^s_{ml}\, h^{s-1}_l, \quad p^s_m = \text{softmax}_{l\text{ present}}(z^s_{ml}), \quad
          h^1_m = \phi(V^\top b^1_m + \xi_m), \quad h^s_m = \phi(W_s^\top b^s_m + R_s^\top h^{s-1}_m)

The hidden nodes of a block are the embeddings of the next; those of the first are orthonormal, so it is trained in its projected
weights. Logits are one number for each query, token and block. The class is read at one query from the top block in use, by an
upper layer that is fixed at its random start.
Source: arXiv:2310.00535, sections on hierarchical data and on several layers (qualitative there). Letters: B sequences of M tokens,
S blocks, K nodes, O classes, N latents of a sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.linalg import dense
from jaxdyn.theories.joma.hierarchy import model as one_block

MOST = 3  # blocks
CLASSES = 2  # as many as subtrees: class k turns the top of subtree k on, the other off
LOW, HIGH = 1, 2  # levels of latents; 0: neither
KINDS = ("balanced", "chain", "unequal")


class Tree(NamedTuple):
    """Parents of a subtree's latents and leaves (0: the top, then the latents from 1 on), and the latents' levels."""

    parents: tuple[int, ...]
    levels: tuple[int, ...]


# A subtree of n leaves has n - 2 latents, its top not counted; some of unequal groups have no leaf below.
TREES = {
    8: {
        "balanced": Tree((0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6), (HIGH,) * 2 + (LOW,) * 4),
        "chain": Tree((0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 6, 6), (HIGH,) * 3 + (LOW,) * 3),
        "unequal": Tree((0, 0, 1, 1, 2, 0, 3, 3, 3, 4, 4, 4, 5, 5), (HIGH,) * 2 + (LOW,) * 3 + (0,)),
    },
    16: {
        "balanced": Tree(
            (0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, *(latent for latent in range(7, 15) for _ in range(2))),
            (HIGH,) * 2 + (0,) * 4 + (LOW,) * 8,
        ),
        "chain": Tree((*range(14), *range(15), 14), (HIGH,) * 7 + (LOW,) * 7),
        "unequal": Tree(
            (0, 0, 1, 1, 2, 3, 3, 4, 5, 0, 0, 0, 0, 0, 5, 5, 6, 6, 6, 6, 7, 7, 7, 8, 8, 8, 8, 9, 9, 9),
            (HIGH,) * 2 + (0,) * 3 + (LOW,) * 4 + (0,) * 5,
        ),
    },
}


@jd.setting
class Blocks:
    """A network of JoMA blocks that learns the class of a latent tree.

    Rates were chosen on other seeds (500-515) so that one block's attention falls and returns within the run. With three blocks it
    hardly returns, nor in six times as many steps. (With two, the upper block's does at some rates.)

    Args:
        tree: kind of the hierarchy: pairs of pairs, a chain with one leaf at each latent, or groups of unequal sizes.
        attention: "held" sets the logits of a block to those at its attention's sparsest as soon as the entropy rises again.
        blocks: how many are in use.
        rho: polarity of an edge.
        lr: rate of Adam.
        ratio: rate of the attention logits over that of the weights.
        every: steps between two records (a whole number).
        init: standard deviation of the first block's weights at the start.
        leaves: of each of the two subtrees, 8 or 16.
        hidden: nodes of each block.
        batch: fresh sequences per step.
        samples: records after the first.
        dtype: of the network.
    """

    tree: jd.Code = jd.code(*KINDS)
    attention: jd.Code = jd.code("free", "held")
    blocks: jd.Swept = jd.field(3.0, at_least=1, at_most=MOST)
    rho: jd.Swept = jd.field(0.8, above=0, at_most=1)
    lr: jd.Swept = jd.field(0.01, above=0)
    ratio: jd.Swept = jd.field(10.0, at_least=0)
    every: jd.Swept = jd.field(20.0, at_least=1, whole=True)
    init: jd.Swept = 0.5
    leaves: int = 8
    hidden: int = jd.field(16, at_least=1)
    batch: int = jd.field(32, at_least=1)
    samples: int = jd.field(15, at_least=1)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse parts of blocks, and subtrees that are not listed."""
        jd.require(self, self.blocks == round(self.blocks), "blocks is a whole number", "blocks")
        jd.require(self, self.leaves in TREES, f"leaves is {' or '.join(map(str, TREES))}", "leaves")


class Params(NamedTuple):
    """What is trained."""

    z: Float[Array, "S M M"]
    v: Float[Array, "M K"]
    xi: Float[Array, "M K"]
    w: Float[Array, "S-1 K K"]
    r: Float[Array, "S-1 K K"]


class Sequences(NamedTuple):
    """Latents of sequences, which tokens are present, and the queries with their labels and weights."""

    latents: Bool[Array, "B N"]
    present: Bool[Array, "B M"]
    batch: one_block.Batch


def paths(tree: Tree) -> Int[np.ndarray, "node edge"]:
    """Which edges lead from the top of a subtree to each latent and leaf; edge i ends in node i."""
    table = np.zeros((len(tree.parents), len(tree.parents)), int)
    for node, parent in enumerate(tree.parents):
        table[node, node] = 1
        table[node] += table[parent - 1] if parent else 0
    return table


def distances(tree: Tree) -> Int[np.ndarray, "leaf leaf"]:
    """Edges between every two leaves of a subtree."""
    leaves = paths(tree)[len(tree.levels) :]
    return np.abs(leaves[:, None] - leaves[None]).sum(-1)


def of_tree(s: Blocks, table: Callable[[Tree], np.ndarray], dtype: str) -> Array:
    """The table of the setting's tree."""
    return jnp.asarray(np.stack([table(TREES[s.leaves][name]) for name in s.tree.names]), dtype)[s.tree.index]


def grow(key: PRNGKeyArray, s: Blocks, count: int) -> Sequences:
    """Sequences of the classes in turn: the tops, the latents and leaves below, and one present token as the query of each.

    A node is its top, flipped once for each edge that flips on its path.
    """
    latents, leaves, tokens = s.leaves - 2, s.leaves, CLASSES * s.leaves
    nodes = latents + leaves
    u = jax.random.uniform(key, (count, CLASSES * nodes + tokens), jnp.float32)
    label = jnp.arange(count, dtype=jnp.int32) % CLASSES
    flips = (u[:, :-tokens].reshape(count, CLASSES, nodes) < (1 - s.rho) / 2).astype(s.dtype)
    path = of_tree(s, paths, s.dtype)
    odd = jnp.round(flips @ path.T).astype(jnp.int32) % 2 == 1
    values = (label[:, None] == jnp.arange(CLASSES, dtype=jnp.int32))[..., None] ^ odd
    present = values[..., latents:].reshape(count, tokens)
    mean_count = jnp.asarray(tokens / 2, s.dtype)  # half of the tops are on, and edges are symmetric
    return Sequences(
        values[..., :latents].reshape(count, -1), present, one_block.pick_queries(u[:, -tokens:], label, present, mean_count)
    )


def start(key: PRNGKeyArray, s: Blocks) -> tuple[Params, Float[Array, "K O"]]:
    """Zero logits, random weights, and the fixed upper layer (variance 1/K)."""
    k, m = s.hidden, CLASSES * s.leaves
    shapes = [(m, k), (m, k), (MOST - 1, k, k), (MOST - 1, k, k), (k, CLASSES)]
    ends = np.cumsum([np.prod(shape) for shape in shapes])[:-1]
    parts = jnp.split(jax.random.normal(key, (int(np.sum([np.prod(shape) for shape in shapes])),), s.dtype), ends)
    v, xi, w, r, upper = (part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
    return Params(jnp.zeros((MOST, m, m), s.dtype), s.init * v, s.init * xi, w * k**-0.5, r * k**-0.5), upper * k**-0.5


def _shares(z: Float[Array, "S M M"], x: Float[Array, "M B"]) -> tuple[Float[Array, "S M M"], Float[Array, "S M B"], Array]:
    """Unnormalised attention, its sum over the present tokens (1 where there are none), and its logits without their maximum."""
    shifted = z - jax.lax.stop_gradient(jnp.max(z, -1, keepdims=True))
    e = jnp.exp(shifted) * (1 - jnp.eye(z.shape[-1], dtype=z.dtype))
    total = e @ x
    return e, jnp.where(total > 0, total, 1), shifted


def apply(params: Params, present: Bool[Array, "B M"]) -> Float[Array, "S M B K"]:
    """Hidden nodes of every block at every query; a query that is alone attends to nothing."""
    x = present.T.astype(params.z.dtype)
    e, total, _ = _shares(params.z, x)

    def attend(s: int, below: Float[Array, "M *#B K"]) -> Float[Array, "M B K"]:
        return jnp.einsum("ml,lbk->mbk", e[s], x[..., None] * below) / total[s][..., None]

    h = [jax.nn.relu(attend(0, params.v[:, None]) + params.xi[:, None])]
    for s in range(MOST - 1):
        h.append(jax.nn.relu(dense(attend(s + 1, h[-1]), params.w[s]) + dense(h[-1], params.r[s])))
    return jnp.stack(h)


def entropy(z: Float[Array, "S M M"], present: Bool[Array, "B M"]) -> Float[Array, " S"]:
    """Entropy of each block's attention in nats, mean over the present queries of all sequences."""
    x = present.T.astype(z.dtype)
    e, total, shifted = _shares(z, x)
    each = jnp.log(total) - (e * shifted) @ x / total
    return jnp.sum(x * each, (1, 2)) / jnp.sum(x)


def loss(params: Params, data: Sequences, upper: Float[Array, "K O"], blocks: float | Float[Array, ""]) -> Float[Array, ""]:
    """Mean cross-entropy of the class, read at the queries of the top block in use."""
    h = apply(params, data.present)
    used = (jnp.arange(1, MOST + 1) == blocks).astype(h.dtype)
    asked = jax.nn.one_hot(data.batch.query, data.present.shape[1], dtype=h.dtype, axis=0)
    logits = jnp.einsum("s,smbk,mb->bk", used, h, asked) @ upper
    return jnp.mean(data.batch.weight * optax.softmax_cross_entropy_with_integer_labels(logits, data.batch.label))
