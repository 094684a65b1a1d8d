r"""Words with Zipf's law and a memory of one word, whose entropies are known: no model can have a smaller loss than ``rate``.

The words share the interval [0, 1): word i has a piece of length :math:`\pi_i \propto (i+1)^{-s}`, in the order of their ranks,
and in each of r *layouts* the same pieces are put in another, random order. After word i, with probability 1 - a a point of
[0, 1) is drawn at random, with probability a a point of i's own piece. The next word is that on which the point lies in a layout
drawn at random, so that

.. math:: P_{ij} = (1-a)\,\pi_j + \frac{a}{r} \sum_k \frac{|I_i \cap J^k_j|}{\pi_i}

A point of the piece of a word drawn from :math:`\pi` is uniform on [0, 1), and a uniform point lies on word j with probability
:math:`\pi_j` in any order: :math:`\pi` is stationary exactly, for every layout. Frequent words have many followers, rare ones few.

Letters: V words, s exponent, a memory, r layouts, I and J^k pieces by rank and in layout k.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import entr
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn.errors import number, whole
from jaxdyn.sampling import wide
from jaxdyn.text.corpus import Corpus, split

__all__ = ["LIMIT", "Chain", "Entropies", "Generated", "chain", "entropies", "generate", "sample", "transition"]

LIMIT = 4096  # largest V: the transition matrix is dense
LAYOUTS = 256  # largest r: a place is a number from 0 to r, whose resolution suffers
LONGEST = 2**27  # largest length: all places are computed at once, in some 10 GB
SEEDS = 2**63 - 1  # seeds are int64 in JAX


class Chain(NamedTuple):
    r"""A Zipf-Markov chain.

    Args:
        law: :math:`\pi`, both the stationary law and the lengths of the pieces.
        memory: a, the probability that the next word depends on the last.
        order: the words of each layout from 0 to 1.
        ends: where each of them ends.
    """

    law: Float[Array, " V"]
    memory: Float[Array, ""]
    order: Int[Array, "r V"]
    ends: Float[Array, "r V"]


class Entropies(NamedTuple):
    r"""In nats.

    Args:
        law: :math:`-\sum_i \pi_i \ln \pi_i`, the loss of knowing the frequencies only.
        rate: :math:`-\sum_i \pi_i \sum_j P_{ij} \ln P_{ij}`, the smallest possible loss.
    """

    law: float | Float[Array, ""]
    rate: float | Float[Array, ""]


class Generated(NamedTuple):
    """A corpus and the entropies of the chain that it was drawn from, as Python numbers."""

    corpus: Corpus
    entropies: Entropies


def chain(
    key: PRNGKeyArray,
    words: int,
    exponent: float | Float[Array, ""] = 1.0,
    memory: float | Float[Array, ""] = 0.8,
    layouts: int = 4,
    dtype: str = "float64",
) -> Chain:
    """A chain with layouts drawn from the key; see the module for its law. Exponent and memory may be traced.

    float64 needs ``jax.enable_x64(True)``, in which trials run.

    Raises:
        UsageError: if a number that is not traced is out of its range.
    """
    words, layouts = whole("words", words, least=2, most=LIMIT), whole("layouts", layouts, least=1, most=LAYOUTS)
    number("exponent", exponent, least=0, most=4, traced=True)
    number("memory", memory, least=0, most=1, traced=True)
    law = jnp.arange(1, words + 1, dtype=dtype) ** -jnp.asarray(exponent, dtype)
    law = law / jnp.sum(law)
    order = jax.vmap(lambda k: jax.random.permutation(k, words))(jax.random.split(key, layouts)).astype(jnp.int32)
    return Chain(law, jnp.asarray(memory, dtype), order, jnp.cumsum(law[order], axis=1))


def transition(chain: Chain) -> Float[Array, "V V"]:
    """P: row i holds the probabilities of the words after word i."""
    law, memory, order, ends = chain
    stop = jnp.cumsum(law)
    start = stop - law

    def shared(total: Float[Array, "V V"], layout: tuple[Any, ...]) -> tuple[Float[Array, "V V"], None]:
        order, ends = layout
        end = jnp.zeros_like(law).at[order].set(ends)
        lengths = jnp.minimum(stop[:, None], end) - jnp.maximum(start[:, None], end - law)
        return total + jnp.maximum(lengths, 0), None

    total, _ = lax.scan(shared, jnp.zeros((len(law), len(law)), law.dtype), (order, ends))
    return (1 - memory) * law + memory / len(order) * total / law[:, None]


def entropies(chain: Chain) -> Entropies:
    """Exact: of the law, and of the next word given the last."""
    return Entropies(jnp.sum(entr(chain.law)), jnp.sum(chain.law * jnp.sum(entr(transition(chain)), axis=1)))


def sample(chain: Chain, key: PRNGKeyArray, length: int) -> Int[Array, " {length}"]:
    r"""A stationary stream of the chain.

    All places are computed in parallel, and this is repeated until nothing changes. The first word, and each that is drawn without
    memory, is right from the start; a word whose predecessor is right is right one pass later. The number of passes is thus the
    length of the longest run of words with memory, about :math:`-\ln(length) / \ln a`, each of them parallel; never more than
    ``length``.

    Raises:
        UsageError: if ``length`` is out of its range.
    """
    length = whole("length", length, least=1, most=LONGEST)
    law, memory, order, ends = chain
    k_point, k_layout, k_memory = jax.random.split(key, 3)
    point = jax.random.uniform(k_point, (length,), wide(law.dtype))
    layout = jax.random.randint(k_layout, (length,), 0, len(order), jnp.int32)
    remembers = (jax.random.uniform(k_memory, (length,), wide(law.dtype)) < memory).at[0].set(False)
    rows = jnp.arange(len(order), dtype=law.dtype)[:, None]
    all_ends = jnp.ravel(ends + rows)  # one row: layout k lies in [k, k + 1)
    start = jnp.cumsum(law) - law

    def words_at(place: Float[Array, " n"]) -> Int[Array, " n"]:
        position = jnp.searchsorted(all_ends, place + layout, side="right").astype(jnp.int32)
        return order[layout, jnp.clip(position - layout * len(law), 0, len(law) - 1)]

    def again(state: tuple[Any, ...]) -> tuple[Any, ...]:
        words, _ = state
        last = jnp.roll(words, 1)
        new = words_at(jnp.where(remembers, start[last] + point * law[last], point))
        return new, jnp.any(new != words)

    first = words_at(point)
    return lax.while_loop(lambda state: state[1], again, (first, jnp.bool_(True)))[0]


@partial(jax.jit, static_argnames=("words", "layouts", "length"))
def _draw(
    key: PRNGKeyArray, words: int, exponent: Float[Array, ""], memory: Float[Array, ""], layouts: int, length: int
) -> tuple[Int[Array, " {length}"], Entropies]:
    k_chain, k_sample = jax.random.split(key)
    drawn = chain(k_chain, words, exponent, memory, layouts)
    return sample(drawn, k_sample, length), entropies(drawn)


def generate(
    seed: int = 0, words: int = 1000, exponent: float = 1.0, memory: float = 0.8, layouts: int = 4, length: SupportsIndex = 200_000
) -> Generated:
    """A corpus of ``length`` tokens, split 90 / 5 / 5 percent, with its exact entropies; words are w1 (most frequent), w2, ...

    Raises:
        UsageError: if a number is out of its range.
    """
    seed = whole("seed", seed, least=-SEEDS - 1, most=SEEDS)
    words, layouts = whole("words", words, least=2, most=LIMIT), whole("layouts", layouts, least=1, most=LAYOUTS)
    exponent = number("exponent", exponent, least=0, most=4)  # 0: all words are equally frequent
    memory = number("memory", memory, least=0, most=0.99)
    count = whole("length", length, least=40, most=LONGEST)
    with jax.enable_x64(True):
        stream, exact = jax.device_get(
            _draw(jax.random.key(seed), words, jnp.float64(exponent), jnp.float64(memory), layouts, count)
        )
    vocabulary = tuple(f"w{rank}" for rank in range(1, words + 1))
    return Generated(Corpus("markov", *split(np.asarray(stream)), vocabulary), Entropies(*(float(h) for h in exact)))
