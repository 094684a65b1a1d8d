r"""The output of attention after eviction: its error, the equality for it and the bound.

.. math:: o - o_K = \epsilon\, (\bar v_{K^c} - \bar v_K), \qquad \|o - o_K\| \le 2 \epsilon \max_j \|v_j\|

Letters: K kept keys, :math:`\epsilon` the weight of all others, :math:`\bar v` means of values by weight.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn.nn import attention

__all__ = ["Eviction", "trial"]


@jd.setting
class Eviction:
    """Random logits and values; ``opposed`` values are one vector for kept keys and its negative for the others."""

    kept: jd.Swept = 6.0
    spread: jd.Swept = 2.0
    opposed: jd.Swept = 0.0
    keys: int = 24

    def __post_init__(self) -> None:
        jd.require(self, self.keys >= 2, "keys is at least 2", "keys")
        jd.require(self, 1 <= self.kept < self.keys, "kept is at least 1 and below keys", "kept", "keys")
        jd.require(self, self.spread >= 0, "spread is at least 0", "spread")


def trial(s: Eviction, key: PRNGKeyArray) -> jd.Observables:
    """The size of the error with renormalised weights, by attention itself, and what is said of it."""
    k_a, k_v, k_k = jax.random.split(key, 3)
    a = s.spread * jax.random.normal(k_a, (s.keys,), jnp.float64)
    v = jax.random.normal(k_v, (s.keys, 4), jnp.float64)
    kept = jnp.argsort(jnp.argsort(jax.random.uniform(k_k, (s.keys,), jnp.float64))) < s.kept
    v = jnp.where(s.opposed > 0.5, jnp.where(kept, 1.0, -1.0)[:, None] * v[:1], v)
    p = attention.weights(a[None])[0]
    left = attention.weights(a[None], mask=kept[None])[0]
    error = jnp.linalg.norm(p @ v - left @ v)
    inside, outside = (jnp.where(part, p, 0) for part in (kept, ~kept))
    lost = jnp.sum(outside)
    apart = jnp.linalg.norm(outside @ v / lost - inside @ v / jnp.sum(inside))
    size = jnp.linalg.norm(v, axis=1)
    largest = jnp.max(size)
    return jd.observables(
        predicted={"error": lost * apart, "bound": 2 * lost * largest},
        measured={"error": error, "bound": error},
        recorded={
            "plain": jnp.linalg.norm(p @ v - inside @ v),
            "half": lost * largest,
            "without_mass": 2 * largest,
            "nothing": jnp.zeros((), jnp.float64),
        },
        assumed={"lost": lost},
    )
