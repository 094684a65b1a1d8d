"""Runs of incremental learning: gradient flow of a two-layer linear network from a small balanced start."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, linalg
from jaxdyn.theories.cal.dynamics import linear as theory
from jaxdyn.theories.cal.model import linear_loss
from jaxdyn.theories.cal.trials.checks import at_least_one, falling, positive
from jaxdyn.theories.cal.trials.starts import linear_start, orthonormals, spectrum

__all__ = ["Stairs", "crossing", "trial"]


@jd.setting
class Stairs:
    """Incremental learning of the singular values of a target from a balanced start of size ``eps``."""

    eps: jd.Swept = 1e-6
    start: jd.Code = jd.code("aligned", "frames")
    size: int = 6
    modes: int = 3
    values: tuple[float, ...] | None = None  # singular values of the target; None: drawn
    samples: int = 400

    def __post_init__(self) -> None:
        positive(self, "eps")
        at_least_one(self, "size", "modes", "samples")
        jd.require(self, self.modes <= self.size, "modes is at most size", "modes", "size")
        falling(self, "values", self.modes)


def crossing(ts: Float[Array, " t"], y: Float[Array, " t"], level: Float[Array, ""]) -> Float[Array, ""]:
    """First time at which y reaches the level, interpolated between save times; the last time if it never does."""
    above = y >= level
    i = jnp.argmax(above)
    before = jnp.maximum(i - 1, 0)
    share = (level - y[before]) / jnp.where(i > 0, y[i] - y[before], 1.0)
    return jnp.where(jnp.any(above), jnp.where(i > 0, ts[before] + share * (ts[i] - ts[before]), ts[0]), ts[-1])


def trial(s: Stairs, key: PRNGKeyArray) -> jd.Observables:
    """Gradient flow of a two-layer network towards a target of rank ``modes``, from a balanced start of size ``eps``."""
    k_u, k_v, k_r, k_a, k_b, k_s = jax.random.split(key, 6)
    d, k = s.size, s.modes
    u, v = orthonormals((k_u, k_v), d, k)
    values = spectrum(k_s, k, 0.5, 3.5, s.values)
    m = (u * values) @ v.T
    turned = s.start == "frames"
    full = s.eps * jnp.ones((d,), jnp.float64)
    left, right, hidden = orthonormals((k_b, k_a, k_r), d, d)
    frames = linear_start(full, 0.0, left, right, hidden)
    aligned = linear_start(full[:k], 0.0, u, v, hidden[:, :k])
    start = jax.tree.map(lambda a, b: jnp.where(turned, b, a), aligned, frames)

    eps = theory.effective_starts(u, v, start)
    times = theory.appearance(values, eps)
    ends = jnp.concatenate([jnp.zeros(1, jnp.float64), times, jnp.max(times)[None] * 1.25])
    ts = jnp.linspace(0.0, 1.0, s.samples + 1, dtype=jnp.float64) * ends[-1]
    sol = flow.gradient_flow(linear_loss, start, ts, m, rtol=1e-9, atol=1e-14)
    learned = linalg.singular_values(sol.ys.w2 @ sol.ys.w1)[:, :k]
    reached = jax.vmap(crossing, (None, 1, 0))(ts, learned, values / 2)
    between = (ends[1:] + ends[:-1]) / 2
    count = jnp.sum(learned > values / 2, -1)[jnp.searchsorted(ts, between)]
    return jd.observables(
        predicted={"time": jd.named(times, "mode"), "rank": jd.named(jnp.arange(k + 1, dtype=jnp.float64), "plateau")},
        measured={"time": jd.named(reached, "mode"), "rank": jd.named(count.astype(jnp.float64), "plateau")},
        recorded={"t": jd.named(ts, "step"), "learned": jd.named(learned, "step mode"), "values": jd.named(values, "mode")},
        status=sol.status,
    )
