"""Generated text against a loop that reads the whole text again for each token; streams, parts, temperatures, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.nn.cache import Policy, decode, generate
from tests.nn.cache.helpers import SMALL, apply, params_of, text

pytestmark = pytest.mark.usefixtures("x64")
STREAMING = Policy(kind="streaming", size=6, sinks=2)
jitted = jax.jit(generate, static_argnums=(0, 4))


@pytest.mark.slow
def test_greedy_text_is_that_of_the_whole_network():
    """With a cache that holds everything: each new token is the argmax of the logits after the whole text before it."""
    params, tokens = params_of(SMALL), jnp.asarray(text(4))
    _, new = jitted(SMALL, params, Policy(kind="dense", size=12), tokens, 5)
    logits = apply(SMALL, params, jnp.concatenate([tokens, new])[None])[0]
    np.testing.assert_array_equal(new, jnp.argmax(logits[3:-1], -1))


@pytest.mark.slow
def test_streams_are_what_each_is_alone_and_parts_are_the_whole():
    params, key = params_of(SMALL), jax.random.key(3)
    prompts = jnp.stack([jnp.asarray(text(4)), jnp.asarray(text(4))[::-1]])
    states, drawn = jitted(SMALL, params, STREAMING, prompts, 9, temperature=0.7, key=key)
    for i in range(2):
        state, alone = jitted(SMALL, params, STREAMING, prompts[i], 9, temperature=0.7, key=jax.random.fold_in(key, i))
        np.testing.assert_array_equal(drawn[i], alone)
        assert int(state.time) == int(states.time[i]) == 4 + 9 - 1
    state, whole = jitted(SMALL, params, STREAMING, prompts[0], 9)
    state, first = jitted(SMALL, params, STREAMING, prompts[0], 4)
    _, second = jitted(SMALL, params, STREAMING, first[-1:], 5, state=state)
    np.testing.assert_array_equal(jnp.concatenate([first, second]), whole)
    both, _ = jitted(SMALL, params, STREAMING, prompts, 4)
    _, later = jitted(SMALL, params, STREAMING, jnp.stack([first[-1:], first[-1:]]), 5, state=both)
    np.testing.assert_array_equal(later[0], second)


@pytest.mark.slow
def test_draws_have_the_probabilities_of_the_softmax():
    """4000 first tokens against softmax(logits / 2): each count within five standard deviations."""
    params, prompt = params_of(SMALL), jnp.asarray(text(3))
    _, logits = decode(SMALL, params, STREAMING, prompt)
    p = np.asarray(jax.nn.softmax(logits[-1] / 2), np.float64)
    _, drawn = jitted(SMALL, params, STREAMING, jnp.tile(prompt, (4000, 1)), 1, temperature=2.0, key=jax.random.key(0))
    counts = np.bincount(np.asarray(drawn[:, 0]), minlength=SMALL.vocabulary)
    assert np.all(np.abs(counts - 4000 * p) <= 5 * np.sqrt(4000 * p * (1 - p)) + 1)


def test_what_is_not_allowed():
    params, prompt = params_of(SMALL), jnp.asarray(text(4))
    for arguments, options, sentence in (
        ((STREAMING, prompt, 0), {}, "count=0 is not allowed"),
        ((STREAMING, prompt[None, None], 1), {}, "a prompt with 3 axes is not allowed"),
        ((STREAMING, [[0, 1], [0]], 1), {}, r"prompt=\[\[0, 1\], \[0\]\] is not allowed: its lists have equal lengths"),
        ((STREAMING, [[-1, 1], [0, 1]], 1), {}, "-1 in prompt is not allowed: it is a number from 0 to"),
        ((STREAMING, np.ma.masked_equal([[0, 1], [1, 1]], 0), 1), {}, r"prompt=int64\[2,2\] is not allowed with a mask"),
        ((STREAMING, prompt, 2), {"temperature": 1.0}, "random numbers need a key"),
        ((STREAMING, prompt, 2), {"temperature": -1.0}, "temperature=-1.0 is not allowed"),
        ((Policy(kind="oracle_global", size=6), prompt, 2), {}, "looks at the whole text"),
        ((Policy(kind="dense", size=6), prompt, 4), {}, "6"),
    ):
        with pytest.raises(UsageError, match=sentence):
            generate(SMALL, params, *arguments, **options)


def test_caches_are_a_name_of_the_networks():
    assert "cache" in nn.__all__ and nn.cache.generate is generate


@pytest.mark.parametrize("tau", [1e-30, 1e-37, 1e-38, 1e-45, 1e-300])
def test_the_smallest_temperatures_are_greedy(tau):
    params, tokens, policy = params_of(SMALL), jnp.asarray(text(4)), Policy(kind="dense", size=12)
    _, greedy = jitted(SMALL, params, policy, tokens, 5)
    _, drawn = jitted(SMALL, params, policy, tokens, 5, temperature=tau, key=jax.random.key(0))
    np.testing.assert_array_equal(drawn, greedy)
