r"""Sequences of Markov chains, each with a transition matrix of its own, and what can be predicted of them in context.

.. math:: P_{i\cdot} \sim \text{Dirichlet}(1), \qquad x_1 \sim \pi(P), \qquad x_{t+1} \sim P_{x_t \cdot}

The next token after t tokens, by what a predictor knows:

- nothing: :math:`1/k`;
- counts of tokens: :math:`(n_j + 1)/(t + k)`;
- counts of pairs: :math:`(n_{ij} + 1)/(n_i + k)`, i the current token: Bayes optimal up to what the first token tells;
- P itself.

Source: arXiv:2402.11004, section 2. Letters: k tokens, T length of a sequence.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxdyn.errors import whole
from jaxdyn.nn.tokens import checked
from jaxdyn.sampling import wide

__all__ = ["bigram", "doubly_stochastic", "followers", "sample", "stationary", "transitions", "unigram"]


def transitions(key: PRNGKeyArray, tokens: int, dtype: str = "float32") -> Float[Array, "k k"]:
    """A transition matrix whose rows are uniform on the simplex.

    Raises:
        UsageError: if ``tokens`` is no whole number of at least 1.
    """
    tokens = whole("tokens", tokens, least=1)
    return jax.random.dirichlet(key, jnp.ones(tokens, wide(dtype)), (tokens,), wide(dtype)).astype(dtype)


def doubly_stochastic(matrix: Float[Array, "k k"], rounds: int = 30) -> Float[Array, "k k"]:
    """The same with rows and columns scaled until both sum to one (Sinkhorn's method): its stationary law is uniform.

    Raises:
        UsageError: if ``rounds`` is no whole number of at least 0.
    """
    rounds = whole("rounds", rounds, least=0)

    def once(_: Int[Array, ""], p: Float[Array, "k k"]) -> Float[Array, "k k"]:
        p = p / jnp.sum(p, 0)
        return p / jnp.sum(p, 1, keepdims=True)

    return jax.lax.fori_loop(0, rounds, once, matrix)


def stationary(matrix: Float[Array, "k k"], doublings: int = 14) -> Float[Array, " k"]:
    r""":math:`\pi = \pi P`, the mean row of a high power of P, by squaring.

    Raises:
        UsageError: if ``doublings`` is no whole number of at least 0.
    """
    doublings = whole("doublings", doublings, least=0)

    def square(_: Int[Array, ""], p: Float[Array, "k k"]) -> Float[Array, "k k"]:
        p = jnp.sum(p[:, :, None] * p[None], 1)  # not a product of matrices: batched ones of this size are slow on CPU
        return p / jnp.sum(p, 1, keepdims=True)

    return jnp.mean(jax.lax.fori_loop(0, doublings, square, matrix), 0)


def sample(key: PRNGKeyArray, matrix: Float[Array, "k k"], length: int) -> Int[Array, " T"]:
    """A sequence from its stationary law on.

    Raises:
        UsageError: if ``length`` is no whole number of at least 1.
    """
    length = whole("length", length, least=1)
    u, matrix = jax.random.uniform(key, (length,), wide(matrix.dtype)), matrix.astype(wide(matrix.dtype))
    limits = jnp.concatenate([stationary(matrix)[None], matrix]).cumsum(1)

    def step(row: Int[Array, ""], number: Float[Array, ""]) -> tuple[Int[Array, ""], Int[Array, ""]]:
        token = jnp.sum(limits[row, :-1] <= number).astype(jnp.int32)
        return token + 1, token

    return jax.lax.scan(step, jnp.zeros((), jnp.int32), u)[1]


def unigram(tokens: Int[Array, " T"], count: int, dtype: str = "float32") -> Float[Array, "T k"]:
    """Probabilities of the next token after every token, from counts of tokens.

    Raises:
        UsageError: if a token is none of 0 to ``count`` - 1; a traced one that is none is not counted.
    """
    count = whole("count", count, least=1)
    tokens = checked(tokens, count, of="count")
    seen = jnp.cumsum(jax.nn.one_hot(tokens, count, dtype=jnp.int32), 0)
    return _shares(seen, count, dtype)


def bigram(tokens: Int[Array, " T"], count: int, dtype: str = "float32") -> Float[Array, "T k"]:
    """Probabilities of the next token after every token, from counts of pairs.

    Raises:
        UsageError: as :func:`unigram`.
    """
    count = whole("count", count, least=1)
    tokens = checked(tokens, count, of="count")
    one = jax.nn.one_hot(tokens, count, dtype=jnp.int32)
    pairs = jnp.cumsum(one[:, :, None] * jnp.roll(one, -1, 0)[:, None, :], 0)  # pairs that begin at or before t
    before = jnp.concatenate([jnp.zeros((1, count, count), jnp.int32), pairs[:-1]])
    return _shares(jnp.take_along_axis(before, tokens[:, None, None], 1)[:, 0], count, dtype)


def _shares(seen: Int[Array, "T k"], count: int, dtype: str) -> Float[Array, "T k"]:
    """Shares of counts, each with one more; they are whole numbers, since bfloat16 counts to 256 only."""
    return (seen + 1).astype(dtype) / (jnp.sum(seen, 1, keepdims=True) + count).astype(dtype)


def followers(tokens: Int[Array, " T"]) -> Bool[Array, "T T"]:
    """Which keys (columns) come right after a token equal to the query's (rows), the query itself included."""
    same = tokens[:, None] == jnp.roll(tokens, 1)[None]
    place = jnp.arange(tokens.size)
    return same & (place[None] >= 1) & (place[None] <= place[:, None])
