"""One head with random queries and keys reads a stream through a cache that keeps heavy hitters: which tokens are left."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn.nn import cache
from jaxdyn.nn.decoder import Decoder

__all__ = ["Stream", "trial"]


@jd.setting
class Stream:
    """Random logits of the standard deviation ``spread``; the last ``recent`` tokens are kept, the current one included."""

    recent: jd.Swept = 1.0
    spread: jd.Swept = 0.5
    size: int = 8
    tokens: int = 96

    def __post_init__(self) -> None:
        jd.require(self, 2 <= self.size < self.tokens, "size is at least 2 and below tokens", "size", "tokens")
        jd.require(self, 1 <= self.recent <= self.size, "recent is between 1 and size", "recent", "size")
        jd.require(self, self.spread >= 0, "spread is at least 0", "spread")


def trial(s: Stream, key: PRNGKeyArray) -> jd.Observables:
    """Numbers of the kept tokens at the end, sorted, and those of a cache whose heavy part never changed."""
    k_q, k_k = jax.random.split(key)
    shape = Decoder(vocabulary=2, width=4, layers=1, heads=1, hidden=1, position="none", dtype="float64")
    policy = cache.Policy(kind="h2o", size=s.size, recent=jnp.asarray(s.recent).astype(jnp.int32))
    queries, keys = (jax.random.normal(k, (s.tokens, 1, 4), jnp.float64) for k in (k_q, k_k))
    empty = jax.tree.map(lambda x: x[0], cache.start(shape, policy).layers)

    def read(layer: cache.Layer, one: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[cache.Layer, None]:
        time, q, k = one
        return cache.attend(shape, policy, layer, time, s.spread * q, k, k)[1], None

    layer, _ = jax.lax.scan(read, empty, (jnp.arange(s.tokens, dtype=jnp.int32), queries, keys))
    place, gone = jnp.arange(s.size), s.tokens - s.size
    frozen = jnp.where(place < s.size - 1, place, place + gone)
    return jd.observables(
        predicted={"kept": jd.named(frozen.astype(jnp.float64), "place")},
        measured={"kept": jd.named(jnp.sort(layer.born[0]).astype(jnp.float64), "place")},
        recorded={"newest": jd.named((place + gone).astype(jnp.float64), "place")},
    )
