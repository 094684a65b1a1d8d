r"""Greedy choice of k tokens of n, by additions or by evictions, and the best choice by enumeration.

.. math:: S \leftarrow S \cup \arg\max_v f(S \cup v) \ \text{(k additions)}, \qquad
   G = S_{i-1} \cup i,\ S_i = G \setminus \arg\max_v f(G \setminus v) \ \text{if } |G| > k \ \text{(evictions)}

A set is a vector of n truth values; f maps it to a number. Greedy additions reach :math:`1 - (1 - 1/k)^k` of the optimum if f is
monotone and submodular (Nemhauser, Wolsey, Fisher 1978); nothing of the kind holds for evictions in one pass, but for additive f.
Source: arXiv:2306.14048, definition 4.3 and theorem 4.4 (evictions).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

Value = Callable[[Array], Array]


def subsets(n: int, k: int) -> Bool[np.ndarray, "sets n"]:
    """All sets of k of n tokens."""
    chosen = np.array(list(itertools.combinations(range(n), k)))
    table = np.zeros((len(chosen), n), bool)
    np.put_along_axis(table, chosen, True, 1)
    return table


def guarantee(k: int) -> float:
    r"""The share :math:`1 - (1 - 1/k)^k` of the optimum that greedy additions reach; it falls to :math:`1 - 1/e`."""
    return 1 - (1 - 1 / k) ** k


def add(value: Value, n: int, k: int) -> Bool[Array, " n"]:
    """The set after k greedy additions."""
    one = jnp.eye(n, dtype=bool)

    def grow(_: int | Int[Array, ""], chosen: Array) -> Array:
        worth = jnp.where(chosen, -jnp.inf, jax.vmap(value)(chosen | one))
        return chosen | one[jnp.argmax(worth)]

    return jax.lax.fori_loop(0, k, grow, jnp.zeros((n,), bool))


def evict(value: Callable[[Array, Array], Array], n: int, k: int) -> Bool[Array, "n n"]:
    """The set after each token, in one pass with at most one eviction per step; ``value`` may also depend on the step."""
    one = jnp.eye(n, dtype=bool)

    def step(chosen: Array, i: Array) -> tuple[Array, Array]:
        grown = chosen | one[i]
        worth = jnp.where(grown, jax.vmap(lambda v: value(grown & ~v, i))(one), -jnp.inf)
        chosen = jnp.where(jnp.sum(grown) > k, grown & ~one[jnp.argmax(worth)], grown)
        return chosen, chosen

    return jax.lax.scan(step, jnp.zeros((n,), bool), jnp.arange(n, dtype=jnp.int32))[1]


def best(values: Float[Array, " sets"], table: Bool[Array, "sets n"]) -> Float[Array, " n"]:
    """After each token, the largest value of a set among the tokens so far; -inf before there are enough."""
    last = table.shape[1] - 1 - jnp.argmax(table[:, ::-1], 1)
    there = last[None] <= jnp.arange(table.shape[1])[:, None]
    return jnp.max(jnp.where(there, values[None], -jnp.inf), -1)
