r"""Theorem 4 in its reduced dynamics: attention speeds up large components (in networks: ``thm4_trained.py``).

The gradient flow of the node of ``model.py`` near a critical point, compared with the exact solution. With
``s = ln 1/(1 - v/mu)`` the gradient of v per unit of g is ``ds/dt``: no resolution is lost as v approaches mu.
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
from jaxdyn.theories.joma.dynamics.nonlinear import clock, linear_slope_ratio, offset, orbit, slope_ratio
from jaxdyn.theories.joma.nonlinear.model import ATTENTIONS, gradients, sample_mu, start_logits

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
    start: jd.Swept = jd.field(0.3, at_least=0)
    linear_constant: jd.Swept = 1.0
    rate_spread: jd.Swept = 0.0
    tokens: int = jd.field(5, at_least=2)
    solver: Literal["tsit5", "dopri8", "kvaerno5"] = "tsit5"

    def __post_init__(self) -> None:
        """Refuse a start that is not below mu."""
        jd.require(self, self.start < self.mu_low, "every token starts below mu: start < mu_low", "start", "mu_low")
        jd.require(self, self.mu_low < self.mu_high, "mu_low is below mu_high", "mu_low", "mu_high")


def trial(s: Critical, key: PRNGKeyArray) -> jd.Observables:
    """Flow of (s, z) by the network's gradient, and the exact solution."""
    k_mu, k_v, k_rate = jax.random.split(key, 3)
    mu = sample_mu(k_mu, s.mu_low, s.mu_high, s.tokens)
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
    # the time of the slowest token, and speeds late in the flow
    kappa = mu**2 / 2
    own = clock(s[:, 0], kappa[0], s0[0])
    t = jnp.where(setting.attention == "exp", times, own)[:, None]
    far = s[EARLY - 1 :]
    speed = ((far[1:] - far[:-1]) / (far[1:, :1] - far[:-1, :1]))[:, 1:]
    # limits of the ratios of speeds, and how the ratio of places approaches its own
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
        jd.at_most("s on the orbit of exp attention", miss, 1e-7),
        jd.at_most("time against the sum of s - s(0)", jd.relative_error(ds, "softmax_time"), 1e-7),
    ]


# s - s(0) alone is t exp(mu^2/2), without C(s).
UNIFORM_MOTION = jd.swap(predicted_clock=lambda ds: ds.predicted_clock + ds.measured_clock - ds.uniform_clock)


def plot_thm4(ds: xr.Dataset, fig: Figure) -> None:
    """The exact relation s + C(s) = t exp(mu^2/2), and the ratio of speeds against its limit."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_clock, ds.measured_clock, "tokens and times", log=True)
    plotting.scatter(right, ds.predicted_speed, ds.measured_speed, "pairs of tokens", log=True)
    left.set(xlabel=r"$t\,e^{\mu^2/2}$", ylabel="$s + C(s)$ along the flow")
    right.set(xlabel=r"$e^{(\mu_j^2-\mu_k^2)/2}$", ylabel=r"$\dot s_j/\dot s_k$ along the flow")


def plot_linear(ds: xr.Dataset, fig: Figure) -> None:
    """Ratios of speeds under linear attention, next to those of exp attention."""
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


def _norm(bend: stats.Labelled) -> xr.DataArray:
    return np.sqrt((bend**2).sum("other", min_count=1)).transpose(..., "late")


def plot_orbit(ds: xr.Dataset, fig: Figure) -> None:
    """Every token's s under normalised attention against the orbit of exp attention, and the clock."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_orbit, ds.measured_orbit, "tokens and times", log=True)
    plotting.scatter(right, ds.predicted_softmax_time, ds.measured_softmax_time, "times", log=True)
    left.set(xlabel="$s_j$ on the orbit of exp attention", ylabel="$s_j$ under normalised attention")
    right.set(xlabel=r"time $\tau$ under normalised attention", ylabel=r"$\sum_j (s_j - s_j(0))$")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Critical),
    seeds=8,
    paper_seeds=64,
    evidence="reduced",
    bounds="derived: the solver's tolerance, a relative 1e-10 a step, and exp(-20), what is left of a token's way at s = 20",
    tested="Reduced dynamics, no network in training: the flow of one linear node with {attention} attention and upper "
    r"gradient $\mu - v$ inserted, {tokens} tokens, random $\mu$ with components between {mu_low} and {mu_high}, "
    "weights between -{start} and {start} at the start; seeds: {seeds}.",
    source="arXiv:2310.00535, Theorem 4",
)
OTHERS = {"linear attention": {"attention": "linear"}, "no attention": {"attention": "none"}}

CLAIMS = (
    STUDY.claim(
        id="joma.thm4",
        talks=("training:joma-theorem-4",),
        title="Near a minimum, attention speeds up large weights exponentially",
        statement=r"In the reduced dynamics of one linear node with exp attention near a critical point $\mu$ (upper gradient "
        r"$\mu - v$; equal rates, logits $v^2/2$ at the start), with $s_j=\ln 1/(1-v_j/\mu_j)$ for the weight $v_j$ of token "
        r"$j$: $s_j - s_j(0) + C_j(s_j) = t\,e^{\mu_j^2/2}$ along the flow, where $C_j(s) = \int_{e^{-s}}^{e^{-s_j(0)}} "
        r"(e^{\mu_j^2(2\delta - \delta^2)/2} - 1)\,d\delta/\delta$, and $\dot s_j/\dot s_k = e^{(\mu_j^2-\mu_k^2)/2}$ to "
        r"$10^{-6}$ once $s_k \ge 20$ for the slowest token $k$.",
        judge=judge_thm4,
        controls=OTHERS,
        rivals={
            "no attention: all speeds are equal": jd.off(predicted_speed=1.0),
            "the ratio under linear attention": jd.swap(predicted_speed="predicted_linear_speed"),
            "uniform motion from the start": UNIFORM_MOTION,
        },
        plot=plot_thm4,
        caption=r"Left: $s - s(0) + C(s)$ along the flow of the network against $t\,e^{\mu^2/2}$; one point per token, time and "
        r"run. Right: ratio of the speeds $\dot s_j/\dot s_k$ late in the flow against its limit; one point per pair of tokens, "
        r"time and run.",
    ),
    STUDY.claim(
        id="joma.thm4_linear",
        title="Under linear attention large weights are not sped up exponentially",
        statement=r"In the reduced dynamics of one linear node with linear attention near a critical point $\mu$ (upper "
        r"gradient $\mu - v$; equal rates, logits $\sqrt{v^2 + c}$ at the start), with $s_j=\ln 1/(1-v_j/\mu_j)$ for the "
        r"weight $v_j$ of token $j$, the ratio of speeds is not exponential in $\mu$: $\dot v = (\mu - v)\sqrt{v^2+c}$ gives "
        r"$\dot s_j/\dot s_k \to \sqrt{\mu_j^2+c}\,/\sqrt{\mu_k^2+c}$.",
        quick=jd.grid(Critical, attention="linear"),
        judge=judge_linear,
        controls={"exp attention": {"attention": "exp"}, "no attention": {"attention": "none"}},
        rivals={
            "no attention: all speeds are equal": jd.off(predicted_linear_speed=1.0),
            "the ratio under exp attention": jd.swap(predicted_linear_speed="predicted_speed"),
        },
        plot=plot_linear,
        caption=r"Ratio of the speeds $\dot s_j/\dot s_k$ against its limit under linear attention; one point per pair of tokens, "
        r"time and run: measured along the flow, and predicted for exp attention (Theorem 4). The line is equality.",
    ),
    STUDY.claim(
        id="joma.thm4_offset",
        talks=("training:joma-theorem-4",),
        bounds="derived: the solver's tolerance, a relative 1e-10 a step, and the term in 1/t^2 of the offset",
        title="How Theorem 4's ratio is approached: as one over time",
        statement=r"In the reduced dynamics of one linear node with exp attention near a critical point $\mu$ (upper gradient "
        r"$\mu - v$; equal rates, logits $v^2/2$ at the start), with $s_j=\ln 1/(1-v_j/\mu_j)$ counted from the start, "
        r"$s_j/s_k = e^{(\mu_j^2-\mu_k^2)/2}\,(1-c_j/t)/(1-c_k/t)$ late in the flow, where $c = C(\infty)e^{-\mu^2/2}$ and "
        r"$C(\infty) = \int_0^{\delta(0)} (e^{\mu^2(2\delta - \delta^2)/2} - 1)\,d\delta/\delta$, $\delta = 1 - v/\mu$; so "
        "the ratio differs from its limit by a term in $1/t$.",
        judge=judge_offset,
        controls=OTHERS,
        rivals={"no offset: the limit is there at once": jd.off(predicted_bend=0.0)},
        plot=plot_offset,
        caption=r"Distance of $s_j/s_k$ from its limit (root sum of squares over the tokens $j$) against $s_k$ of the slowest "
        r"token: along the flow (points) and in the exact form (lines), one line per run.",
    ),
    STUDY.claim(
        id="joma.time_change",
        bounds="derived: the solver's tolerance, a relative 1e-10 a step",
        title="Near a minimum a common normaliser changes only the clock",
        statement=r"In the reduced dynamics of one linear node near a critical point $\mu$ (upper gradient $\mu - v$; equal "
        r"rates, logits $v^2/2$ at the start), dividing the speeds of exp attention by the sum $A = \sum_l e^{z_l}$ over the "
        "attention logits $z_l$, as a constant that the gradient does not differentiate, changes only the clock and leaves "
        r"the orbit as it is: the time is $\tau = \sum_j (s_j - s_j(0))$, with $s_j=\ln 1/(1-v_j/\mu_j)$ for the weight $v_j$ "
        "of token $j$. Under a softmax, whose own gradient differentiates $A$, it is another orbit.",
        decides={"only": ("s on the orbit of exp attention", "softmax attention, which differentiates A")},
        quick=jd.grid(Critical, attention="normalised"),
        judge=judge_orbit,
        controls={
            "softmax attention, which differentiates A": jd.Control({"attention": "softmax"}, breaks="does not differentiate"),
            "a step size per component": {"rate_spread": 0.3},
            "linear attention": {"attention": "linear"},
        },
        rivals={"the clock of exp attention": jd.off(predicted_softmax_time="exp_time")},
        plot=plot_orbit,
        caption=r"Left: $s_j$ of the tokens under normalised attention against the orbit of exp attention at the same $s$ of the "
        r"slowest token. Right: $\sum_j (s_j - s_j(0))$ against time. One point per token (left), time and run; lines are "
        r"equality.",
    ),
)
