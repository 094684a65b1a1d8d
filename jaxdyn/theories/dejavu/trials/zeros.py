"""A two-layer MLP with random weights, in full and by the units alone that are largest for each input."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd

__all__ = ["Pruned", "trial"]

WIDTH, INPUTS = 16, 4


@jd.setting
class Pruned:
    """An MLP of ``hidden`` units, of which ``kept`` are used; ``offset`` moves all units up, so that more are active."""

    unit: jd.Code = jd.code("relu", "gelu")
    offset: jd.Swept = 0.0
    shuffled: jd.Swept = 0.0  # 1: the units are those of another input
    hidden: int = 64
    kept: int = 48

    def __post_init__(self) -> None:
        jd.require(self, 1 <= self.kept <= self.hidden, "kept is between 1 and hidden", "kept", "hidden")


def trial(s: Pruned, key: PRNGKeyArray) -> jd.Observables:
    """Outputs in full, and by gathering the rows of the largest units of each input."""
    k_x, k_in, k_out = jax.random.split(key, 3)
    x = jax.random.normal(k_x, (INPUTS, WIDTH), jnp.float64)
    w_in = jax.random.normal(k_in, (WIDTH, s.hidden), jnp.float64) / WIDTH**0.5
    w_out = jax.random.normal(k_out, (s.hidden, WIDTH), jnp.float64)
    before = x @ w_in + s.offset
    units = jnp.where(s.unit == "relu", jax.nn.relu(before), jax.nn.gelu(before))
    chosen = jnp.argsort(-jnp.abs(units), -1)[:, : s.kept]
    chosen = jnp.where(s.shuffled > 0.5, jnp.roll(chosen, 1, 0), chosen)

    def sparse(units: Float[Array, " hidden"], rows: Array) -> Float[Array, " d"]:
        return units[rows] @ w_out[rows]

    return jd.observables(
        predicted={"output": jd.named(units @ w_out, "input entry")},
        measured={"output": jd.named(jax.vmap(sparse)(units, chosen), "input entry")},
        recorded={"active": jd.named(jnp.sum(units != 0, -1), "input"), "none": jd.named(jnp.zeros_like(x), "input entry")},
    )
