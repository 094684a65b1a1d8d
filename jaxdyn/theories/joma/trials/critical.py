r"""Runs behind the claims on Theorem 4: the network's own gradient flow near a critical point, beside the exact solution.

With ``s = ln 1/(1 - v/mu)`` the gradient of v per unit of g is ``ds/dt``: no resolution is lost as v approaches mu.
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow
from jaxdyn.theories.joma.critical import ATTENTIONS, draw_mu, gradients, start_logits
from jaxdyn.theories.joma.dynamics.thm4 import clock, linear_slope_ratio, offset, orbit, slope_ratio

__all__ = ["EARLY", "FAR", "Critical", "trial"]

EARLY, LATE = 12, 13  # save times before and after the slowest token reaches s = FAR
FAR = 20.0


@jd.setting
class Critical:
    """Tokens near a critical point.

    Args:
        attention: of the node.
        mu_low: components of the critical point are uniform in [mu_low, mu_high).
        mu_high: see mu_low.
        start: v starts uniform in [-start, start].
        linear_constant: c of z^2 = v^2 + c under linear attention.
        rate_spread: standard deviation over tokens of the logarithm of the step size; 0 in the theorem.
        tokens: number of components.
        solver: of the ODE.
    """

    attention: jd.Code = jd.code(*ATTENTIONS)
    mu_low: jd.Swept = 0.5
    mu_high: jd.Swept = 4.0
    start: jd.Swept = 0.3
    linear_constant: jd.Swept = 1.0
    rate_spread: jd.Swept = 0.0
    tokens: int = 5
    solver: Literal["tsit5", "dopri8", "kvaerno5"] = "tsit5"

    def __post_init__(self) -> None:
        jd.require(self, 0 <= self.start < self.mu_low, "every token starts below mu, 0 <= start < mu_low", "start", "mu_low")
        jd.require(self, self.mu_low < self.mu_high, "mu_low is below mu_high", "mu_low", "mu_high")
        jd.require(self, self.tokens >= 2, "ratios need at least 2 tokens", "tokens")


def trial(s: Critical, key: PRNGKeyArray) -> jd.Observables:
    """Flow of (s, z) by the network's gradient, and the exact solution."""
    k_mu, k_v, k_rate = jax.random.split(key, 3)
    mu = draw_mu(k_mu, s.mu_low, s.mu_high, s.tokens)
    v0 = s.start * jax.random.uniform(k_v, (s.tokens,), jnp.float64, -1, 1)
    rate = jnp.exp(s.rate_spread * jax.random.normal(k_rate, (s.tokens,), jnp.float64))
    kappa, s0 = mu**2 / 2, -jnp.log1p(-v0 / mu)
    marks = jnp.concatenate(
        [jnp.geomspace(1e-2, FAR, EARLY, dtype=jnp.float64), jnp.geomspace(1.2, 1e3, LATE, dtype=jnp.float64) * FAR]
    )
    ts = clock(s0[0] + marks, kappa[0], s0[0])
    total = jnp.where(s.attention == "normalised", jnp.sum(jnp.exp(kappa)), 1.0)  # A(t) near the end: the normalised flow is slower

    def field(_: object, y: tuple, c: tuple) -> tuple:
        mu, rate = c
        ds, dz = gradients(-mu * jnp.expm1(-y[0]), y[1], mu * jnp.exp(-y[0]), s.attention)
        return rate * ds, rate * dz

    times = jnp.concatenate([jnp.zeros(1), ts * total])
    sol = flow.solve(field, (s0, start_logits(v0, s.attention, s.linear_constant)), times, (mu, rate), solver=s.solver)
    return _observed(s, sol.ys[0][1:], sol.status, times[1:], mu, s0)


def _observed(
    setting: Critical,
    s: Float[Array, "T d"],
    status: Int[Array, ""],
    times: Float[Array, " T"],
    mu: Float[Array, " d"],
    s0: Float[Array, " d"],
) -> jd.Observables:
    """Predictions of the exact solution; time is that of the slowest token where the attention changes the clock."""
    kappa = mu**2 / 2
    own = clock(s[:, 0], kappa[0], s0[0])
    t = jnp.where(setting.attention == "exp", times, own)[:, None]
    far = s[EARLY - 1 :]
    speed = ((far[1:] - far[:-1]) / (far[1:, :1] - far[:-1, :1]))[:, 1:]
    c = offset(jnp.full_like(s0, 800.0), kappa, s0) * jnp.exp(-kappa)
    ratio, linear = slope_ratio(kappa), linear_slope_ratio(mu, setting.linear_constant)
    late = t[EARLY:]
    bend = (1 - c / late) / (1 - c[0] / late) - 1
    return jd.observables(
        predicted={
            "clock": jd.named(t * jnp.exp(kappa), "time token"),
            "speed": jd.named(jnp.broadcast_to(ratio[1:], speed.shape), "late other"),
            "linear_speed": jd.named(jnp.broadcast_to(linear[1:], speed.shape), "late other"),
            "bend": jd.named(bend[:, 1:], "late other"),
            "orbit": jd.named(orbit(own[:, None], kappa, s0), "time token"),
            "softmax_time": jd.named(times, "time"),
        },
        measured={
            "clock": jd.named(s - s0 + offset(s, kappa, s0), "time token"),
            "speed": jd.named(speed, "late other"),
            "linear_speed": jd.named(speed, "late other"),
            "bend": jd.named(((s - s0)[EARLY:] / (s - s0)[EARLY:, :1] / ratio - 1)[:, 1:], "late other"),
            "orbit": jd.named(s, "time token"),
            "softmax_time": jd.named(jnp.sum(s - s0, -1), "time"),
        },
        recorded={
            "exp_time": jd.named(own, "time"),
            "uniform_clock": jd.named(s - s0, "time token"),
            "t": jd.named(times, "time"),
            "s_slowest": jd.named(s[:, 0], "time"),
            "mu": jd.named(mu, "token"),
        },
        status=status,
    )
