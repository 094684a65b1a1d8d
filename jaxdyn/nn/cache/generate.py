"""Text from a network, token by token, with a cache of fixed size: one stream, or several at once.

Letters: b streams, T tokens of the prompts, N new tokens, V tokens of the vocabulary.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, PRNGKeyArray, PyTree

from jaxdyn.errors import UsageError, is_traced, number, whole
from jaxdyn.nn.cache.decode import decode, step
from jaxdyn.nn.cache.policy import Policy
from jaxdyn.nn.cache.state import State, fits, speaks
from jaxdyn.nn.config import Transformer
from jaxdyn.nn.tokens import checked

__all__ = ["generate"]

GREEDY = 0.0


def generate(
    shape: Transformer,
    params: PyTree,
    policy: Policy,
    prompt: Int[Array, "*b T"],
    count: int,
    *,
    state: State | None = None,
    temperature: float | Float[Array, ""] = GREEDY,
    key: PRNGKeyArray | None = None,
) -> tuple[State, Int[Array, "*b N"]]:
    r"""The cache, and ``count`` new tokens after each prompt, drawn from :math:`\mathrm{softmax}(\ell / \tau)`.

    Prompts of one length are several streams, each with a cache and random numbers of its own: stream i gives what it gives alone
    with the key folded by i. There is no padding: each number is a token of its prompt. The last new token is not read: to go on,
    give it as the prompt, with the state.

    Args:
        shape: of the network.
        params: its weights.
        policy: which keys are kept; none that looks at the whole text.
        prompt: T tokens, or b times T.
        count: N, new tokens; at least 1.
        state: the cache (of all streams) after what came before, nothing by default.
        temperature: tau; at 0 the most probable token is taken. It may be traced, and is then above 0.
        key: of the draws, and of the policy ``random``; it may be None at temperature 0 for other policies.

    Raises:
        UsageError: for prompts of more than two axes, tokens outside the vocabulary, too few or too many tokens for the cache,
            a policy that needs the whole text, or draws without a key.
    """
    speaks(shape)
    count, tau = whole("count", count, least=1), number("temperature", temperature, least=0, traced=True)
    tokens = checked(prompt, shape.vocabulary, name="prompt", least=1)
    axes = tokens.ndim
    if axes > 2:
        raise UsageError(f"a prompt with {axes} axes is not allowed: it is a text, or several of one length")
    if policy.kind == "oracle_global":
        raise UsageError("kind='oracle_global' is not allowed: it looks at the whole text, which is not there yet")
    greedy = not is_traced(tau) and tau == GREEDY
    if key is None and (not greedy or policy.kind == "random"):
        raise UsageError("key=None is not allowed: random numbers need a key")
    had = 0 if state is None or is_traced(state.time) else int(jnp.max(state.time))
    fits(shape, policy, had + (shape.sink_token and had == 0) + tokens.shape[-1] + count - 1)

    def one(tokens: Integer[Array, " T"], state: State | None, key: PRNGKeyArray | None) -> tuple[State, Int[Array, " N"]]:
        return _stream(shape, params, policy, tokens, count, state, None if greedy else tau, key)

    if axes == 1:
        return one(tokens, state, key)
    keys = None if key is None else jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(len(tokens)))
    return jax.vmap(one, in_axes=(0, None if state is None else 0, None if key is None else 0))(tokens, state, keys)


def _stream(
    shape: Transformer,
    params: PyTree,
    policy: Policy,
    tokens: Integer[Array, " T"],
    count: int,
    state: State | None,
    tau: Any,
    key: PRNGKeyArray | None,
) -> tuple[State, Int[Array, " N"]]:
    """One stream; without tau the most probable token."""
    both: Any = (None, None) if key is None else jax.random.split(key)
    reading, drawing = both
    read, logits = decode(shape, params, policy, tokens, state=state, key=reading)

    def choose(logits: Float[Array, " V"], time: Int[Array, ""]) -> Int[Array, ""]:
        if tau is None:
            return jnp.argmax(logits).astype(tokens.dtype)
        wide = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
        wide = wide - jnp.max(wide)  # so that a temperature near 0 makes the others very small, and none infinitely large
        least = jnp.maximum(jnp.asarray(tau, wide.dtype), jnp.finfo(wide.dtype).tiny)
        return jax.random.categorical(jax.random.fold_in(drawing, time), wide / least).astype(tokens.dtype)

    def more(carry: tuple[State, Array], _: None) -> tuple[tuple[State, Array], Array]:
        state, token = carry
        state, logits = step(shape, params, policy, state, token, key=reading)
        new = choose(logits, state.time)
        return (state, new), new

    first = choose(logits[-1], read.time)
    (last, _), rest = jax.lax.scan(more, (read, first), None, length=count - 1)
    return last, jnp.concatenate([first[None], rest])
