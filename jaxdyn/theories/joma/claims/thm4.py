r"""Theorem 4: near a critical point, attention makes large components converge exponentially faster than small ones.

The network is ``h = v . b`` under attention, with one sample a token (``x = e_l``) and, near the critical point with curvature
one, the upper gradient ``g_l = mu_l - v_l``. Both v and the attention logits z follow the network's own gradient: the theory's
``exp(v^2/2)`` is nowhere put in. With ``s = ln 1/(1 - v/mu)`` the gradient of v per unit of g is ``ds/dt``: no resolution is lost
as v approaches mu.
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, stats
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.dynamics.nonlinear import clock, linear_slope_ratio, offset, orbit, slope_ratio

SOURCE = "arXiv:2310.00535, Theorem 4"
ATTENTIONS = ("exp", "normalised", "linear", "none")
EXP, NORMALISED, LINEAR, NONE = range(4)
EARLY, LATE = 12, 13  # save times before and after the slowest token reaches s = 20
FAR = 20.0


@jd.setting
class Critical:
    """Tokens near a critical point: ``mu`` uniform in [mu_low, mu_high), starts uniform in ±start; ``rate_spread`` is a breach."""

    attention: jd.Code = jd.code(*ATTENTIONS)
    mu_low: jd.Swept = 0.5
    mu_high: jd.Swept = 4.0
    start: jd.Swept = 0.3
    linear_constant: jd.Swept = 1.0  # c of z^2 = v^2 + c under linear attention
    rate_spread: jd.Swept = 0.0  # spread of ln(step size) over tokens
    tokens: int = 5
    solver: Literal["tsit5", "dopri8", "kvaerno5"] = "tsit5"

    def __post_init__(self):
        if not 0 <= self.start < self.mu_low < self.mu_high:
            raise ValueError("0 <= start < mu_low < mu_high is needed: every token starts below its critical point")
        if self.tokens < 2:
            raise ValueError(f"ratios need at least 2 tokens, got {self.tokens}")


def draw_mu(key: PRNGKeyArray, low: Float[Array, ""], high: Float[Array, ""], tokens: int) -> Float[Array, " d"]:
    """Critical point: sorted uniform numbers in [low, high)."""
    return low + (high - low) * jnp.sort(jax.random.uniform(key, (tokens,), jnp.float64))


def _hidden(v: Float[Array, " d"], z: Float[Array, " d"], attention: Int[Array, ""]) -> Float[Array, " d"]:
    """The node's output on each token's sample; ``normalised`` divides by A(t), which is not differentiated."""
    x = jnp.eye(v.shape[0], dtype=v.dtype)
    kind = jnp.where(attention == LINEAR, 1, 0)
    z = jnp.where(attention == NONE, 0.0, z)
    total = jnp.where(attention == NORMALISED, jax.lax.stop_gradient(jnp.sum(jnp.exp(z))), 1.0)
    return model.attention(x, jnp.broadcast_to(z, x.shape), kind, normalizer=total) @ v


def gradients(
    v: Float[Array, " d"], z: Float[Array, " d"], g: Float[Array, " d"], attention: Int[Array, ""]
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """Ascent gradient of ``sum_l g_l h_l``: that of v per unit of its token's g, and that of z.

    A token's h depends on its own v alone, so the former is the latter's pull-back of ones; g itself may underflow.
    """
    _, pull = jax.vjp(lambda v, z: _hidden(v, z, attention), v, z)
    return pull(jnp.ones_like(g))[0], pull(g)[1]


def start_logits(v: Float[Array, " d"], attention: Int[Array, ""], c: Float[Array, ""]) -> Float[Array, " d"]:
    """Logits that satisfy Theorem 1's invariant at the start: ``v^2/2`` (exp), ``sqrt(v^2 + c)`` (linear)."""
    return jnp.where(attention == LINEAR, jnp.sqrt(v * v + c), 0.5 * v * v)


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
    total = jnp.where(s.attention == NORMALISED, jnp.sum(jnp.exp(kappa)), 1.0)  # A(t) near the end: the normalised flow is slower

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
    """Predictions of the exact solution; time is read off the slowest token where the attention changes the clock."""
    kappa = mu**2 / 2
    own = clock(s[:, 0], kappa[0], s0[0])
    t = jnp.where(setting.attention == EXP, times, own)[:, None]
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
        recorded={"t": jd.named(times, "time"), "s_slowest": jd.named(s[:, 0], "time"), "mu": jd.named(mu, "token")},
        status=status,
    )


def plain_trial(s: Critical, key: PRNGKeyArray) -> jd.Observables:
    """Gradient flow of (v, z) as it stands, and the exact solution, until the slowest token reaches s = 9."""
    k_mu, k_v, _ = jax.random.split(key, 3)
    mu = draw_mu(k_mu, s.mu_low, s.mu_high, s.tokens)
    v0 = s.start * jax.random.uniform(k_v, (s.tokens,), jnp.float64, -1, 1)
    kappa, s0 = mu**2 / 2, -jnp.log1p(-v0 / mu)
    first, last = clock(s0 + 0.1, kappa, s0)[-1], clock(jnp.full_like(s0, 9.0), kappa, s0)[0]
    ts = first * (last / first) ** jnp.linspace(0, 1, 16, dtype=jnp.float64)

    def loss(params: tuple, mu: Float[Array, " d"]) -> Float[Array, ""]:
        v, z = params
        return -jnp.dot(jax.lax.stop_gradient(mu - v), _hidden(v, z, s.attention))

    times, start = jnp.concatenate([jnp.zeros(1), ts]), (v0, start_logits(v0, s.attention, s.linear_constant))
    sol = flow.gradient_flow(loss, start, times, mu, solver=s.solver, rtol=1e-9, atol=1e-11, max_steps=20_000)
    v, exact = sol.ys[0][1:], orbit(ts[:, None], kappa, s0)
    return jd.observables(
        predicted={"v": jd.named(-mu * jnp.expm1(-exact), "time token")},
        measured={"v": jd.named(v, "time token")},
        recorded={"mu": jd.named(mu, "token"), "t": jd.named(ts, "time"), "steps": sol.steps},
        status=sol.status,
    )


def judge_thm4(ds: xr.Dataset) -> list[jd.Check]:
    """The exact implicit solution, and the ratio of speeds once the slowest token is far."""
    return [
        jd.at_most("s + C(s) against t exp(mu^2/2)", jd.relative_error(ds, "clock"), 1e-8),
        jd.at_most("ratio of speeds at s >= 20", jd.relative_error(ds, "speed"), 1e-6),
    ]


def judge_linear(ds: xr.Dataset) -> list[jd.Check]:
    """The ratio of speeds under linear attention, once the slowest token is far."""
    before = ds.s_slowest.isel(time=slice(EARLY - 1, -1)).rename(time="late")
    error = jd.relative_error(ds, "linear_speed").where(before >= FAR)
    return [jd.at_most("ratio of speeds at s >= 20", error, 1e-6)]


def judge_offset(ds: xr.Dataset) -> list[jd.Check]:
    """The ratio s_j/s_k approaches its limit as 1/t, by the exact amount."""
    bend = np.sqrt((ds.measured_bend**2).sum("other", min_count=1)).isel(late=slice(4, None))
    t = ds.t.isel(time=slice(EARLY + 4, None)).rename(time="late")
    return [
        jd.at_most("offset of s_j/s_k from its limit", jd.relative_error(ds, "bend", "late other"), 1e-6),
        jd.within("slope of the offset over t", stats.loglog_slope(t, bend, "late"), -1.05, -0.95),
    ]


def judge_orbit(ds: xr.Dataset) -> list[jd.Check]:
    """Every token's place as a function of the slowest token's, and the clock."""
    miss = abs(ds.measured_orbit - ds.predicted_orbit) / np.maximum(abs(ds.predicted_orbit), 1)
    return [
        jd.at_most("place on the orbit of exp attention", miss, 1e-7),
        jd.at_most("softmax time against the sum of s - s(0)", jd.relative_error(ds, "softmax_time"), 1e-7),
    ]


def judge_plain(ds: xr.Dataset) -> list[jd.Check]:
    """The weights against the exact solution."""
    miss = abs(ds.measured_v - ds.predicted_v) / ds.mu
    return [jd.at_most("v against the exact solution, over mu", miss, 1e-7)]


def plot_thm4(ds: xr.Dataset, fig: Figure) -> None:
    """The exact relation s + C(s) = t exp(mu^2/2), and the ratio of speeds against its limit."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_clock, ds.measured_clock, "tokens and times", log=True)
    plotting.scatter(right, ds.predicted_speed, ds.measured_speed, "pairs of tokens", log=True)
    left.set(xlabel=r"$t\,e^{\mu^2/2}$", ylabel="$s + C(s)$ along the flow")
    right.set(xlabel=r"$e^{(\mu_j^2-\mu_k^2)/2}$", ylabel=r"$\dot s_j/\dot s_k$ along the flow")


def plot_linear(ds: xr.Dataset, fig: Figure) -> None:
    """Ratios of speeds under linear attention, beside those of exp attention."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_linear_speed, ds.measured_linear_speed, "pairs of tokens", log=True)
    plotting.scatter(ax, ds.predicted_linear_speed, ds.predicted_speed, "exp attention (Theorem 4)", "control", log=True)
    ax.set(xlabel=r"$\sqrt{\mu_j^2+c}\,/\sqrt{\mu_k^2+c}$", ylabel=r"$\dot s_j/\dot s_k$")


def plot_offset(ds: xr.Dataset, fig: Figure) -> None:
    """Distance of s_j/s_k from its limit against the slowest token's s."""
    ax = fig.subplots()
    t = ds.s_slowest.isel(time=slice(EARLY, None)).rename(time="late").transpose(..., "late")
    x, y, p = (np.reshape(np.asarray(a), (-1, ds.sizes["late"])) for a in (t, _norm(ds.measured_bend), _norm(ds.predicted_bend)))
    for xi, yi, pi in zip(x, y, p, strict=True):
        ax.loglog(xi, pi, color=plotting.COLORS["theory"], linewidth=1, label=None if ax.lines else "exact form")
        ax.loglog(xi, yi, ".", color=plotting.COLORS["measured"], label="flow" if len(ax.lines) == 1 else None)
    ax.set(xlabel="$s$ of the slowest token", ylabel=r"$\|\,s_j/s_k\; e^{-(\mu_j^2-\mu_k^2)/2} - 1\|$")


def _norm(bend: xr.DataArray) -> xr.DataArray:
    return np.sqrt((bend**2).sum("other", min_count=1)).transpose(..., "late")


def plot_orbit(ds: xr.Dataset, fig: Figure) -> None:
    """Every token's s under softmax normalisation against the orbit of exp attention."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_orbit, ds.measured_orbit, "tokens and times", log=True)
    plotting.scatter(right, ds.predicted_softmax_time, ds.measured_softmax_time, "times", log=True)
    left.set(xlabel="$s_j$ on the orbit of exp attention", ylabel="$s_j$ under softmax normalisation")
    right.set(xlabel=r"softmax time $\tau$", ylabel=r"$\sum_j (s_j - s_j(0))$")


def plot_plain(ds: xr.Dataset, fig: Figure) -> None:
    """The weights against the exact solution."""
    plotting.scatter(fig.subplots(), ds.predicted_v, ds.measured_v, "tokens and times", log=False)


_COMMON = {"source": SOURCE, "seeds": 8, "paper_seeds": 64}
_ATTENTION = {"linear attention": {"attention": "linear"}, "no attention": {"attention": "none"}}
_QUICK = jd.grid(Critical)

CLAIMS = (
    jd.Claim(
        id="joma.thm4",
        statement=r"Near a critical point $\mu$, with $s_j=\ln 1/(1-v_j/\mu_j)$: $s_j + C_j(s_j) = t\,e^{\mu_j^2/2}$ exactly (from "
        r"$v(0)\ne 0$: $s - s(0)$), so $\dot s_j/\dot s_k \to e^{(\mu_j^2-\mu_k^2)/2}$.",
        trial=trial,
        quick=_QUICK,
        judge=judge_thm4,
        controls={
            **_ATTENTION,
            "exp(mu^2) for exp(mu^2/2)": lambda ds: ds.assign(predicted_speed=ds.predicted_speed**2),
        },
        plot=plot_thm4,
        **_COMMON,
    ),
    jd.Claim(
        id="joma.thm4_linear",
        statement=r"Under linear attention the ratio of speeds is not exponential: $\dot v = (\mu - v)\sqrt{v^2+c}$ gives "
        r"$\dot s_j/\dot s_k \to \sqrt{\mu_j^2+c}\,/\sqrt{\mu_k^2+c}$.",
        trial=trial,
        quick=jd.grid(Critical, attention="linear"),
        judge=judge_linear,
        controls={"exp attention": {"attention": "exp"}, "no attention": {"attention": "none"}},
        plot=plot_linear,
        **_COMMON,
    ),
    jd.Claim(
        id="joma.thm4_offset",
        statement=r"$s_j/s_k = e^{(\mu_j^2-\mu_k^2)/2}(1+\Lambda_{jk})$ with $1+\Lambda_{jk} = (1-c_j/t)/(1-c_k/t)$, "
        r"$c = C(\infty)e^{-\mu^2/2}$: the ratio itself converges only as $1/t$.",
        trial=trial,
        quick=_QUICK,
        judge=judge_offset,
        controls=_ATTENTION,
        plot=plot_offset,
        **_COMMON,
    ),
    jd.Claim(
        id="joma.time_change",
        statement=r"Dividing every speed by the same $A(t)$, as the softmax does, leaves the orbit of exp attention and changes "
        r"the clock: $\tau = \sum_j (s_j - s_j(0))$.",
        trial=trial,
        quick=jd.grid(Critical, attention="normalised"),
        judge=judge_orbit,
        controls={"a step size per component": {"rate_spread": 0.3}, "linear attention": {"attention": "linear"}},
        plot=plot_orbit,
        **_COMMON,
    ),
    jd.Claim(
        id="joma.thm4_plain",
        statement=r"The gradient flow of $(v, z)$ itself, integrated without a change of variables, follows the exact solution of "
        r"$\dot v = (\mu - v)\circ e^{v^2/2}$ as far as $1 - v/\mu$ is resolved.",
        trial=plain_trial,
        quick=_QUICK,
        judge=judge_plain,
        controls=_ATTENTION,
        plot=plot_plain,
        **_COMMON,
    ),
)
