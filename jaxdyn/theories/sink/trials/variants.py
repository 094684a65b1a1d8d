r"""Weights of attention with sinks beside the formulas, at logits shifted far up and down.

Letters: a logits of the keys, :math:`\beta` the sink's logit, c the shift of them all.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.nn import attention

__all__ = ["Variants", "trial"]


@jd.setting
class Variants:
    """Logits N(0, spread^2), all of them shifted; ``value`` is the value of the extra key that stands for the zero sink."""

    shift: jd.Swept = 0.0
    spread: jd.Swept = 3.0
    value: jd.Swept = 0.0
    keys: int = 16

    def __post_init__(self) -> None:
        jd.require(self, self.spread >= 0, "spread is at least 0", "spread")
        jd.require(self, self.keys >= 1, "keys is at least 1", "keys")


def shares(a: Float[Array, " m"], sink: Float[Array, ""]) -> Float[Array, " m"]:
    """The formula as it is written: e^a over the sum of all of them and of the sink's."""
    return jnp.exp(a) / (jnp.exp(sink) + jnp.sum(jnp.exp(a)))


def trial(s: Variants, key: PRNGKeyArray) -> jd.Observables:
    r"""Weights of shifted logits, and the formulas at the logits before the shift: the zero sink's is then at :math:`-c`."""
    k_a, k_b, k_v = jax.random.split(key, 3)
    a = s.spread * jax.random.normal(k_a, (s.keys,), jnp.float64)
    beta = s.spread * jax.random.normal(k_b, (), jnp.float64)
    v = jax.random.normal(k_v, (s.keys, 3), jnp.float64)
    moved = (a + s.shift)[None]
    zero = attention.weights(moved, "zero_sink")[0]
    wide, values = jnp.concatenate([jnp.zeros((1,), jnp.float64), moved[0]]), jnp.concatenate([jnp.full((1, 3), s.value), v])
    e = jnp.exp(moved[0] - jnp.max(moved))
    softmax, formula = shares(a, jnp.full((), -jnp.inf, jnp.float64)), shares(a, -s.shift)
    return jd.observables(
        predicted={
            "zero": jd.named(formula, "token"),
            "bias": jd.named(shares(a, beta), "token"),
            "faint": jd.named(softmax, "token"),
            "output": jd.named(jax.nn.softmax(wide) @ values, "entry"),
        },
        measured={
            "zero": jd.named(zero, "token"),
            "bias": jd.named(attention.weights(moved, "sink_bias", None, (beta + s.shift)[None])[0], "token"),
            "faint": jd.named(attention.weights(moved, "sink_bias", None, (s.shift - 1000)[None])[0], "token"),
            "output": jd.named(zero @ v, "entry"),
        },
        recorded={
            "naive": jd.named(e / (1 + jnp.sum(e)), "token"),
            "softmax": jd.named(softmax, "token"),
            "softmax_output": jd.named(softmax @ v, "entry"),
            "off_by_one": jd.named(formula, "token"),
        },
    )
