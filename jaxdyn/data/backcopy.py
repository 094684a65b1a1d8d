r"""The Bigram-Backcopy task: a Markov chain in which a few tokens, the triggers, are followed by the token before them.

.. math:: x_0 = 0, \qquad x_{t+1} = x_{t-1} \ \text{if } x_t \in \mathcal T, \qquad x_{t+1} \sim \pi(\cdot \mid x_t) \ \text{else}

Token 0 begins every sequence and does not return. No trigger follows it, so that no two triggers are neighbours: the token before
a trigger is none, and a copy of it is none.
Source: arXiv:2410.13835, section 2.
Letters: V tokens, :math:`\mathcal T` triggers, T length of a sequence.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import entr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxdyn.errors import number, whole
from jaxdyn.nn.tokens import checked
from jaxdyn.sampling import wide

__all__ = ["Law", "draw", "due", "entropies", "law"]


class Law(NamedTuple):
    """Probabilities of the next token (columns) after each token (rows), and which tokens are triggers."""

    chain: Float[Array, "V V"]
    triggers: Bool[Array, " V"]


def law(
    key: PRNGKeyArray, vocabulary: int, triggers: int = 3, *, concentration: float = 0.1, share: float = 0.1, dtype: str = "float32"
) -> Law:
    r"""A random chain, :math:`\pi(\cdot | x) = (1 - s)\,\text{Dirichlet}(\alpha) + s / (V - 1)` over all tokens but 0.

    The triggers are tokens 1, 2, …; they have no weight after token 0. Where nothing else has, the others are equally likely.

    Args:
        key: of the rows.
        vocabulary: V, at least 2.
        triggers: how many, so that a token besides 0 and them is left.
        concentration: alpha, small for rows with few likely tokens; from 1e-6 to 1e6, beyond which float32 has no such rows.
        share: s, of the uniform part.
        dtype: of the probabilities.

    Raises:
        UsageError: if no token but 0 and the triggers is left, or a number is out of range.
    """
    vocabulary = whole("vocabulary", vocabulary, least=2)
    triggers = whole("triggers", triggers, least=0, most=vocabulary - 2)
    concentration, share = number("concentration", concentration, least=1e-6, most=1e6), number("share", share, least=0, most=1)
    rows = jax.random.dirichlet(key, jnp.full((vocabulary - 1,), concentration, wide(dtype)), (vocabulary,), wide(dtype))
    rows = (1 - share) * rows + share / (vocabulary - 1)
    chain = jnp.concatenate([jnp.zeros((vocabulary, 1), rows.dtype), rows], 1)
    place = jnp.arange(vocabulary)
    is_trigger = (place >= 1) & (place <= triggers)
    chain = jnp.where((place[:, None] == 0) & is_trigger, 0, chain)
    total = jnp.sum(chain, 1, keepdims=True)
    rest = (place > triggers).astype(rows.dtype) / (vocabulary - 1 - triggers)  # all weight of the first row was on the triggers
    return Law(jnp.where(total > 0, chain / total, rest).astype(dtype), is_trigger)


def draw(key: PRNGKeyArray, law: Law, length: int) -> Int[Array, " T"]:
    """One sequence of the task.

    Raises:
        UsageError: if ``length`` is no whole number of at least 1.
    """
    length = whole("length", length, least=1)
    limits = jnp.cumsum(law.chain.astype(wide(law.chain.dtype)), 1)
    numbers = jax.random.uniform(key, (length - 1,), wide(law.chain.dtype))

    def step(pair: tuple[Array, Array], u: Array) -> tuple[tuple[Array, Array], Array]:
        before, now = pair
        drawn = jnp.sum(limits[now] <= u * limits[now, -1]).astype(jnp.int32)
        following = jnp.where(law.triggers[now], before, drawn)
        return (now, following), following

    zero = jnp.zeros((), jnp.int32)
    return jnp.concatenate([zero[None], jax.lax.scan(step, (zero, zero), numbers)[1]])


def due(law: Law, tokens: Int[Array, "*b T"]) -> Bool[Array, "*b T"]:
    """Where the next token is a copy.

    Raises:
        UsageError: if a token is none of 0 to V - 1; a traced one that is beyond counts as the last.
    """
    return law.triggers[checked(tokens, law.triggers.shape[-1])]


def entropies(law: Law) -> Float[Array, " V"]:
    """Entropy in nats of the next token after each token: the least cross-entropy there; 0 after triggers."""
    return jnp.where(law.triggers, 0, jnp.sum(entr(law.chain), 1))
