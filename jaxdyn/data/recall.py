r"""Recall over any distance: facts stated once in a sequence, which later tokens ask for, in a stream of Markov fillers.

A fact is one token that stands for a key and a value; the value is drawn anew in every sequence, so that only the sequence tells.

.. math:: x_0 = 0, \qquad x_{t+1} = \text{answer}(\text{value}_k) \ \text{if } x_t \text{ asks for key } k; \qquad
   \text{else a new fact, a question, or a filler } x_{t+1} \sim \pi(\cdot \mid x_t)

with the rates f (while a key has no fact yet), q (once there is a fact), and the rest. After a token that is no filler, a filler is
drawn by the row of token 0. With f = q = 0 what remains is a Markov chain.
Tokens, in this order: 0, which begins every sequence; fillers; facts (key by key); questions; answers.
Source: ours; the task of arXiv:2306.14048 is long texts, in which what is needed again may be any distance away.
Letters: V tokens, F fillers, K keys, A values, T length of a sequence.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn.errors import UsageError, number, whole
from jaxdyn.sampling import wide

__all__ = ["Sizes", "chain", "distance", "draw"]


class Sizes(NamedTuple):
    """How many fillers, keys and values there are, and where their tokens begin."""

    fillers: int = 12
    keys: int = 4
    values: int = 4

    @property
    def facts(self) -> int:
        """The first fact."""
        return 1 + self.fillers

    @property
    def questions(self) -> int:
        """The first question."""
        return self.facts + self.keys * self.values

    @property
    def answers(self) -> int:
        """The first answer."""
        return self.questions + self.keys

    @property
    def vocabulary(self) -> int:
        """V."""
        return self.answers + self.values


def chain(key: PRNGKeyArray, sizes: Sizes, concentration: float = 0.1, dtype: str = "float32") -> Float[Array, "F1 F"]:
    """Probabilities of the next filler (columns) after token 0 and after each filler (rows): Dirichlet rows.

    Raises:
        UsageError: without fillers, keys or values, or if the concentration is not from 1e-6 to 1e6, as float32 has it.
    """
    _check(sizes)
    concentration = number("concentration", concentration, least=1e-6, most=1e6)
    alpha = jnp.full((sizes.fillers,), concentration, wide(dtype))
    return jax.random.dirichlet(key, alpha, (sizes.fillers + 1,), wide(dtype)).astype(dtype)


def _check(sizes: Sizes) -> None:
    for name, value in zip(Sizes._fields, sizes, strict=True):
        whole(name, value, least=1)


def draw(
    key: PRNGKeyArray,
    sizes: Sizes,
    law: Float[Array, "F1 F"],
    length: int,
    stating: float | Float[Array, ""] = 0.4,
    asking: float | Float[Array, ""] = 0.25,
) -> Int[Array, " T"]:
    """One sequence; ``stating`` is f, ``asking`` is q, and both may be traced.

    Raises:
        UsageError: if a number that is not traced is out of its range, or the law is that of another number of fillers.
    """
    _check(sizes)
    length = whole("length", length, least=1)
    number("stating", stating, least=0, most=1, traced=True)
    number("asking", asking, least=0, most=1, traced=True)
    if law.shape != (sizes.fillers + 1, sizes.fillers):
        raise UsageError(f"a law of shape {law.shape} is not allowed: for {sizes.fillers} fillers it has one more row than columns")
    k_order, k_value, k_steps = jax.random.split(key, 3)
    order = jax.random.permutation(k_order, sizes.keys).astype(jnp.int32)
    value = jax.random.randint(k_value, (sizes.keys,), 0, sizes.values, jnp.int32)
    limits = jnp.cumsum(law.astype(wide(law.dtype)), 1)
    numbers = jax.random.uniform(k_steps, (length - 1, 3), wide(law.dtype))

    def step(state: tuple[Array, Array], u: Float[Array, " three"]) -> tuple[tuple[Array, Array], Array]:
        now, stated = state
        row = limits[jnp.where(now <= sizes.fillers, now, 0)]
        filler = 1 + jnp.minimum(jnp.sum(row <= u[1] * row[-1]), sizes.fillers - 1).astype(jnp.int32)
        new = order[jnp.minimum(stated, sizes.keys - 1)]
        old = order[jnp.floor(u[1] * stated.astype(u.dtype)).astype(jnp.int32)]
        states = (u[0] < stating) & (stated < sizes.keys)
        asks = ~states & (u[2] < asking) & (stated > 0)
        answers = (now >= sizes.questions) & (now < sizes.answers)
        free = jnp.where(states, sizes.facts + new * sizes.values + value[new], jnp.where(asks, sizes.questions + old, filler))
        asked = jnp.clip(now - sizes.questions, 0, sizes.keys - 1)
        token = jnp.where(answers, sizes.answers + value[asked], free)
        return (token, stated + (states & ~answers)), token

    start = (jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))
    return jnp.concatenate([start[0][None], jax.lax.scan(step, start, numbers)[1]])


def distance(sizes: Sizes, tokens: Int[Array, "*b T"]) -> Int[Array, "*b T"]:
    """How many tokens before each question its fact stands; 0 at all other tokens."""
    fact = (tokens >= sizes.facts) & (tokens < sizes.questions)
    about = jnp.where(fact, (tokens - sizes.facts) // sizes.values, -1)
    question = (tokens >= sizes.questions) & (tokens < sizes.answers)
    same = about[..., None, :] == jnp.where(question, tokens - sizes.questions, -2)[..., :, None]
    at = jnp.arange(tokens.shape[-1], dtype=jnp.int32)
    return jnp.where(question, at - jnp.max(jnp.where(same, at, -1), -1), 0)
