"""Attention before and after the key of the sink has left the cache."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn.nn import attention

__all__ = ["Lost", "trial"]


@jd.setting
class Lost:
    """Random logits, of which the first is set so that its weight is ``mass``; its value has the size ``value``."""

    attention: jd.Code = jd.code("softmax", "zero_sink")
    mass: jd.Swept = 0.9
    value: jd.Swept = 0.0
    keys: int = 12

    def __post_init__(self) -> None:
        jd.require(self, 0 < self.mass < 1, "mass is between 0 and 1", "mass")
        jd.require(self, self.keys >= 2, "keys is at least 2", "keys")


def trial(s: Lost, key: PRNGKeyArray) -> jd.Observables:
    """Growth of the other weights and of the output when the first key goes."""
    k_a, k_v = jax.random.split(key)
    a = jax.random.normal(k_a, (s.keys,), jnp.float64)
    v = jax.random.normal(k_v, (s.keys, 4), jnp.float64)
    a = a.at[0].set(jax.nn.logsumexp(a[1:]) + jnp.log(s.mass) - jnp.log1p(-s.mass))
    v = v.at[0].set(s.value * v[0])
    kept = jnp.arange(s.keys) > 0

    def both(kind: str) -> tuple[jax.Array, jax.Array]:
        return attention.weights(a[None], kind)[0], attention.weights(a[None], kind, kept[None])[0]

    soft, sink = both("softmax"), both("zero_sink")
    before, after = (jnp.where(s.attention == "softmax", x, y) for x, y in zip(soft, sink, strict=True))
    grown = jnp.linalg.norm(after @ v) / jnp.linalg.norm(before @ v)
    factor = 1 / (1 - s.mass)
    return jd.observables(
        predicted={"weights": jd.named(jnp.full((s.keys - 1,), factor), "token"), "output": factor},
        measured={"weights": jd.named((after / before)[1:], "token"), "output": grown},
    )
