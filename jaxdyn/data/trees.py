r"""Binary latent trees under a class: sampling, and exact marginals by sum-product.

A class :math:`y_0 \in \{0..D-1\}` (depth 0) with a prior; S top latents (depth 1) that depend on the class alone; below each
a complete binary tree of binary channels; the leaves, at depth L, say which tokens are in the sequence (1: present).
Letters: D classes, S subtrees, E = L - 1 channel edges on the way from a top latent to a leaf, n = 2**E leaves a subtree.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxdyn.errors import UsageError, is_traced, number, whole

__all__ = [
    "Tree",
    "cla_heights",
    "draws",
    "grow",
    "grow_shallow",
    "leaf_joint",
    "leaf_rate",
    "sample",
    "sample_shallow",
    "symmetric",
]


DEEPEST = 12  # E: a table of two leaves each has the square of 2**E entries


class Tree(NamedTuple):
    """The distribution of a class and its leaves.

    Args:
        prior: P(class).
        polarity: p of each top latent and class, P(top = 0 | class) = (1 + p) / 2.
        flip: of each level of edges from the top, P(child differs from parent) where the parent is 0, and where it is 1.
    """

    prior: Float[Array, " D"]
    polarity: Float[Array, "S D"]
    flip: Float[Array, "E 2"]

    @property
    def leaves(self) -> int:
        """Leaves of one subtree."""
        return 2 ** self.flip.shape[0]


def symmetric(rho: float | Float[Array, ""], edges: int, dtype: str = "float64") -> Float[Array, "E 2"]:
    """The ``flip`` of symmetric channels of polarity ``rho``: P(child = parent) = (1 + rho) / 2 on every edge.

    Raises:
        UsageError: if there are no 0 to 12 edges, or a ``rho`` that is not traced is none of -1 to 1.
    """
    edges = whole("edges", edges, least=0, most=DEEPEST)
    number("rho", rho, least=-1, most=1, traced=True)
    return jnp.full((edges, 2), (1 - jnp.asarray(rho, dtype)) / 2, dtype)


def cla_heights(edges: int) -> Int[np.ndarray, "n n"]:
    """H of every two leaves of a subtree: the edges from either of them up to their closest common ancestor.

    Raises:
        UsageError: if there are no 0 to 12 edges.
    """
    edges = whole("edges", edges, least=0, most=DEEPEST)
    leaf = np.arange(2**edges)
    differing = leaf[:, None] ^ leaf[None, :]
    return np.where(differing > 0, np.frexp(differing)[1], 0)


def _children(parents: Bool[Array, "N S k"], flip: Float[Array, " two"], u: Float[Array, "N S 2*k"]) -> Bool[Array, "N S 2*k"]:
    parents = jnp.repeat(parents, 2, axis=-1)
    return parents ^ (u < jnp.where(parents, flip[1], flip[0]))


def draws(tree: Tree) -> int:
    """How many uniforms one sequence takes: one for the class, one for every node below it."""
    return 1 + tree.polarity.shape[0] * (2 * tree.leaves - 1)


def _split(tree: Tree, u: Float[Array, "N draws"]) -> tuple[Int[Array, " N"], Float[Array, "N S nodes"]]:
    """The class, and the uniforms of the nodes."""
    if u.ndim != 2 or u.shape[1] != draws(tree):
        raise UsageError(f"u of shape {u.shape} is not allowed: there are {draws(tree)} uniforms for each sequence")
    label = jnp.sum(u[:, :1] >= jnp.cumsum(tree.prior)[:-1], -1, dtype=jnp.int32)
    return label, u[:, 1:].reshape(len(u), tree.polarity.shape[0], -1)


def grow(tree: Tree, u: Float[Array, "N draws"]) -> tuple[Int[Array, " N"], Bool[Array, "N S n"]]:
    """Classes and leaves from uniforms on [0, 1), :func:`draws` of them a sequence, from the class downwards.

    Trees that differ in probabilities only share their noise when they share ``u``.

    Raises:
        UsageError: if ``u`` has another number of columns.
    """
    label, u = _split(tree, u)
    nodes = u[..., :1] < (1 - tree.polarity.T[label][..., None]) / 2
    for e in range(tree.flip.shape[0]):
        nodes = _children(nodes, tree.flip[e], u[..., 2 ** (e + 1) - 1 : 2 ** (e + 2) - 1])
    return label, nodes


def grow_shallow(tree: Tree, u: Float[Array, "N draws"]) -> tuple[Int[Array, " N"], Bool[Array, "N S n"]]:
    """The same without latents: all leaves hang on the class, each as likely as under :func:`grow`.

    Given the class the leaves are independent; P(leaf | class) is that of the same tree with its latents.
    """
    label, u = _split(tree, u)
    return label, u[..., -tree.leaves :] < leaf_rate(tree).T[label][..., None]


def sample(tree: Tree, key: PRNGKeyArray, count: int) -> tuple[Int[Array, " N"], Bool[Array, "N S n"]]:
    """``count`` draws of (class, leaves); uniforms are float32, so probabilities are met to 2e-7.

    Raises:
        UsageError: if ``count`` is no whole number of at least 1.
    """
    return grow(tree, jax.random.uniform(key, (whole("count", count, least=1), draws(tree)), jnp.float32))


def sample_shallow(tree: Tree, key: PRNGKeyArray, count: int) -> tuple[Int[Array, " N"], Bool[Array, "N S n"]]:
    """``count`` draws of (class, leaves) without latents, see :func:`grow_shallow`.

    Raises:
        UsageError: if ``count`` is no whole number of at least 1.
    """
    return grow_shallow(tree, jax.random.uniform(key, (whole("count", count, least=1), draws(tree)), jnp.float32))


def _to_child(belief: Float[Array, "... k 2"], flip: Float[Array, " two"]) -> Float[Array, "... k 2"]:
    """Sum over the parent's value: what a belief about parents says about one child of each."""
    stay = 1 - flip
    ones = belief[..., 0] * flip[0] + belief[..., 1] * stay[1]
    return jnp.stack([belief[..., 0] * stay[0] + belief[..., 1] * flip[1], ones], -1)


def _to_parent(likelihood: Float[Array, "... k 2"], flip: Float[Array, " two"]) -> Float[Array, "... k 2"]:
    """Sum over the child's value: the likelihood of each value of the parent."""
    stay = 1 - flip
    zero = likelihood[..., 0] * stay[0] + likelihood[..., 1] * flip[0]
    return jnp.stack([zero, likelihood[..., 0] * flip[1] + likelihood[..., 1] * stay[1]], -1)


def _top(tree: Tree) -> Float[Array, "D S 2"]:
    return jnp.stack([(1 + tree.polarity.T) / 2, (1 - tree.polarity.T) / 2], -1)


def leaf_rate(tree: Tree) -> Float[Array, "S D"]:
    """P(leaf = 1 | class), the same for all leaves of a subtree."""
    belief = _top(tree)
    for e in range(tree.flip.shape[0]):
        belief = _to_child(belief, tree.flip[e])
    return belief[..., 1].T


def _place(name: str, value: int | Int[Array, ""], count: int) -> int | Int[Array, ""]:
    """A place among so many, checked, or moved into the range where it is traced."""
    value = whole(name, value, least=0, most=count - 1, traced=True)
    return jnp.clip(value, 0, count - 1) if is_traced(value) else value


def leaf_joint(
    tree: Tree, subtree: int | Int[Array, ""], leaf: int | Int[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, "D S n"]]:
    r"""``P(y_m = 1)`` of the query leaf m, and ``P(y_0 = k, y_l = 1 | y_m = 1)`` of all classes k and leaves l.

    Sum-product on the tree itself: likelihoods of the evidence are passed from the leaves to the class, then beliefs from the
    class to the leaves, where each edge carries the product of the belief above it and its sibling's likelihood. Nothing is
    assumed of the channels, so that this is an oracle for formulas that hold for symmetric ones only.

    Args:
        tree: the distribution.
        subtree: of the query m; may be traced, and is then moved into the range.
        leaf: the query's place in its subtree; may be traced, and is then moved into the range.

    Raises:
        UsageError: if there is no such subtree or leaf.
    """
    subtrees, edges = tree.polarity.shape[0], tree.flip.shape[0]
    subtree, leaf = _place("subtree", subtree, subtrees), _place("leaf", leaf, tree.leaves)
    likelihoods = [jnp.ones((subtrees, tree.leaves, 2), tree.flip.dtype).at[subtree, leaf, 0].set(0)]
    messages = []
    for e in reversed(range(edges)):
        messages.append(_to_parent(likelihoods[-1], tree.flip[e]))  # (S, children, 2), in terms of the parent's value
        likelihoods.append(messages[-1][:, 0::2] * messages[-1][:, 1::2])
    top = _top(tree)
    of_subtree = jnp.sum(top * likelihoods[-1][:, 0], -1)  # (D, S): likelihood of the evidence in each subtree
    query = of_subtree[:, subtree]
    outside = jnp.where(jnp.arange(subtrees) == subtree, 1, query[:, None])  # of a leaf's subtree: the query is in one of them
    belief = (top * outside[..., None])[:, :, None]
    for e in range(edges):
        sibling = messages[edges - 1 - e].reshape(subtrees, -1, 2, 2)[:, :, ::-1].reshape(subtrees, -1, 2)
        belief = _to_child(jnp.repeat(belief, 2, axis=2) * sibling, tree.flip[e])
    evidence = jnp.sum(tree.prior * query)
    joint = tree.prior[:, None, None] * belief[..., 1] * likelihoods[0][..., 1]
    return evidence, joint / evidence
