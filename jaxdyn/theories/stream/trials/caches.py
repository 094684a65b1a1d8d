"""A decoder with random weights reads a text token by token with a streaming cache, beside other ways to the same logits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.nn import cache
from jaxdyn.nn.decoder import Decoder, init

__all__ = ["TOKENS", "Stream", "trial"]

TOKENS, VOCABULARY = 20, 7


@jd.setting
class Stream:
    """A text of 20 tokens through a cache of ``size``, of which ``sinks`` are the first tokens.

    With ``layers`` = 1 the second block of the network writes nothing into the stream, so that both depths share a program.
    """

    sinks: jd.Swept = 2.0
    layers: jd.Swept = 1.0
    size: int = 6
    std: float = 0.6  # of the weights: attention is far from uniform

    def __post_init__(self) -> None:
        jd.require(self, 0 <= self.sinks < self.size, "sinks is at least 0 and below size", "sinks", "size")
        jd.require(self, 2 <= self.size < TOKENS, f"size is between 2 and {TOKENS - 1}", "size")
        jd.require(self, self.layers in (1, 2), "layers is 1 or 2", "layers")


def trial(s: Stream, key: PRNGKeyArray) -> jd.Observables:
    """Logits by decoding, by one pass with pairwise offsets, with positions of the text, and by recomputing a window."""
    k_w, k_t = jax.random.split(key)
    shape = Decoder(vocabulary=VOCABULARY, width=8, layers=2, heads=2, groups=1, hidden=8, std=s.std, dtype="float64")
    params = init(shape, k_w)
    writes = jnp.stack([jnp.ones((), jnp.float64), s.layers - 1])[:, None, None]
    params["blocks"] |= {name: writes * params["blocks"][name] for name in ("o", "down")}
    tokens = jax.random.randint(k_t, (TOKENS,), 0, VOCABULARY, jnp.int32)
    sinks = jnp.asarray(s.sinks).astype(jnp.int32)

    def pass_of(positions: str) -> Array:
        policy = cache.Policy(kind="streaming", size=s.size, sinks=sinks, positions=positions)
        return cache.prefill(shape, params, policy, tokens)

    absolute = jd.named(pass_of("absolute"), "token word")
    decoded = cache.decode(shape, params, cache.Policy(kind="streaming", size=s.size, sinks=sinks), tokens)[1]
    axes = "token word"
    measured = {name: jd.named(decoded, axes) for name in ("pairwise", "absolute", "recomputed")}
    return jd.observables(
        predicted={
            "pairwise": jd.named(pass_of("cache"), axes),
            "absolute": absolute,
            "recomputed": jd.named(cache.recompute(shape, params, s.size, tokens), axes),
        },
        measured=measured,
        recorded={"rotated": absolute},
    )
