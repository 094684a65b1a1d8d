"""Claims on the bilinear model: its reverse loss stays where it was while the loss falls, the more so the larger d."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, stats
from jaxdyn.errors import given
from jaxdyn.theories.rev import bilinear
from jaxdyn.theories.rev.dynamics import bilinear as theory

__all__ = ["CLAIMS", "EXPONENT", "Bilinear", "judge_lower", "judge_ortho", "judge_ratio", "largest", "ratio_exponent", "trial"]

SOURCE = "arXiv:2405.04669"
FRACTIONS = (0.0, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # of the horizon, at which losses are read
EXPONENT = 0.05  # of the floor of Theorem 1


@jd.setting
class Bilinear:
    """Gradient flow from a small start; stopped where the loss is ``stop`` (0: never)."""

    kind: jd.Code = jd.code(*bilinear.KINDS)
    d: jd.Swept = 100.0
    sigma: jd.Swept = 0.01  # standard deviation of an entry of Theta at the start
    symmetric: jd.Swept = 0.0  # 1: Theta is kept symmetric
    reverse: jd.Swept = 0.0  # weight of the reverse loss in training
    stop: jd.Swept = 0.0
    horizon: jd.Swept = 1000.0
    tokens: int = 20
    pairs: int = 5
    most: int = 200  # the largest d that the arrays hold

    def __post_init__(self) -> None:
        """Refuse pairs and dimensions that the arrays cannot hold."""
        if not 1 <= self.pairs <= self.tokens // 2:
            raise jd.UsageError(
                f"pairs={self.pairs} is not allowed: {self.tokens} tokens make 1 to {self.tokens // 2} distinct pairs"
            )
        if self.d != round(self.d) or not 1 <= self.d <= self.most:
            raise jd.UsageError(f"d={self.d} is not allowed: it is a whole number from 1 to most={self.most}")
        if self.horizon <= 0 or min(self.sigma, self.stop) < 0 or not 0 <= self.symmetric <= 1:
            found = given(self, "horizon", "sigma", "stop", "symmetric")
            raise jd.UsageError(f"horizon must be > 0, sigma and stop >= 0, and symmetric 0 to 1, {found}")


def trial(s: Bilinear, key: PRNGKeyArray) -> jd.Observables:
    """Both losses along the flow (held at its end where it was stopped), beside closed forms and lower bounds."""
    k_tokens, k_start = jax.random.split(key)
    v = bilinear.draw_tokens(k_tokens, s.kind, s.tokens, s.d, s.most)
    w0 = bilinear.effective(s.sigma * jax.random.normal(k_start, (s.most, s.most), jnp.float64), v)
    args, n, m = (bilinear.Flow(v @ v.T, s.reverse, s.symmetric), s.stop), s.pairs, s.tokens

    def move(t: Array, w: Array, packed: Any) -> Array:
        return bilinear.field(w, packed[0], n)

    def above(t: Array, w: Array, packed: Any) -> Array:
        return bilinear.loss(w, n) - packed[1]

    t = s.horizon * jnp.asarray(FRACTIONS, jnp.float64)
    sol = flow.solve(move, w0, t, args, rtol=1e-10, atol=1e-12, event=above)
    w = jnp.where(jnp.isfinite(sol.ys), sol.ys, sol.y_end)
    forward, reverse = (jax.vmap(lambda x, f=f: f(x, n))(w) for f in (bilinear.loss, bilinear.reverse_loss))
    end = bilinear.reverse_loss(sol.y_end, n)
    return jd.observables(
        predicted={
            "forward": jd.named(theory.orthonormal_loss(t, m, n), "time"),
            "reverse": math.log(m),
            "floor": jd.named(theory.reverse_floor(reverse[0], forward / forward[0], EXPONENT), "time"),
            "end": theory.half_guess(m),
        },
        measured={
            "forward": jd.named(forward, "time"),
            "reverse": jd.named(reverse, "time"),
            "floor": jd.named(reverse, "time"),
            "end": end,
        },
        recorded={"t": jd.named(t, "time"), "stopped": sol.event, "tau": sol.t_end, "loss_at_end": bilinear.loss(sol.y_end, n)},
        status=sol.status,
    )


def ratio_exponent(ds: xr.Dataset) -> xr.DataArray:
    r"""How fast the reverse loss follows, :math:`\epsilon_t = \ln(L_\text{rev}/L_\text{rev}(0)) / \ln(L/L(0))`, after the start."""
    logs = [np.log(ds[name] / ds[name].isel(time=0)).isel(time=slice(1, None)) for name in ("measured_reverse", "measured_forward")]
    return logs[0] / logs[1]


def largest(ds: xr.Dataset) -> xr.DataArray:
    """The largest exponent of a run over the reading times (it may be negative: the reverse loss rose)."""
    return ratio_exponent(ds).max("time", skipna=False)


def judge_ratio(ds: xr.Dataset) -> list[jd.Check]:
    """The exponents shrink with d, in their 90th percentile and their root mean square; no run at large d is below the floor."""
    if ds.sizes.get("d", 0) < 3 or float(ds.d.max()) < 200 or ds.sizes.get("seed", 0) < 10:
        raise jd.Inconclusive("the trend in d needs at least three values of d, one of them 200 or more, and 10 seeds")
    ds = ds.sortby("d")
    worst = largest(ds)
    p90, rms = worst.quantile(0.9, "seed").drop_vars("quantile"), np.sqrt((worst**2).mean("seed"))
    wide = ds.sel(d=ds.d[ds.d >= 200]).isel(time=slice(1, None))
    return [
        jd.at_most("90th percentile of the exponent, ratio of each d to the one before", p90[1:] / p90[:-1].values, 1.0),
        jd.within("slope of the rms exponent over d", stats.loglog_slope(ds.d, rms, "d"), -1.5, -0.4),
        jd.at_least("reverse loss over its floor, d >= 200", wide.measured_floor / wide.predicted_floor, 1.0),
    ]


def judge_lower(ds: xr.Dataset) -> list[jd.Check]:
    """Every run reaches the loss that stops it, and its reverse loss is then above the bound."""
    miss = abs(ds.loss_at_end / ds.stop - 1)
    return [
        jd.at_most("loss at the event, relative error", miss.where(ds.measured_end.notnull()), 1e-6),
        jd.at_least("reverse loss at the event minus its bound", ds.measured_end - ds.predicted_end, 0.0),
    ]


def judge_ortho(ds: xr.Dataset) -> list[jd.Check]:
    """Both losses are the closed forms at all times."""
    return [
        jd.at_most("loss against its closed form, relative error", jd.relative_error(ds, "forward"), 1e-8),
        jd.at_most("reverse loss against ln m, relative error", jd.relative_error(ds, "reverse"), 1e-8),
    ]


def plot_ratio(ds: xr.Dataset, fig: Figure) -> None:
    """The largest exponent of every run against d; both losses along the flow, against each other."""
    left, right = fig.subplots(1, 2)
    worst, d = largest(ds), np.atleast_1d(ds.d.values)
    points = worst.transpose("seed", "d").values
    left.plot(np.broadcast_to(d, points.shape).ravel(), points.ravel(), ".", color=plotting.COLORS["measured"], label="runs")
    left.plot(d, np.sqrt((points**2).mean(0)), "-", color=plotting.COLORS["third"], label="root mean square")
    left.plot(d, np.quantile(points, 0.9, axis=0), "--", color=plotting.COLORS["third"], label="90th percentile")
    left.axhline(EXPONENT, linestyle=":", color=plotting.COLORS["theory"], label=f"{EXPONENT}")
    left.set(xscale="log", xlabel="d", ylabel=r"largest $\epsilon_t$ of a run")
    left.set_xticks(d, [f"{x:g}" for x in d], minor=False)
    left.minorticks_off()
    for value, color in zip(d[[0, -1]], ("fourth", "measured"), strict=True):
        part = ds.sel(d=value)
        for i in range(part.sizes["seed"]):
            label = f"d = {value:g}" if i == 0 else None
            one = part.isel(seed=i)
            right.plot(one.measured_forward, one.measured_reverse, color=plotting.COLORS[color], linewidth=0.8, label=label)
    right.axhline(float(ds.predicted_reverse.max()), linestyle="--", color=plotting.COLORS["theory"], label="ln m")
    right.set(xscale="log", xlabel="loss L", ylabel=r"reverse loss $L_\mathrm{rev}$", ylim=(0, None))
    right.invert_xaxis()


def plot_lower(ds: xr.Dataset, fig: Figure) -> None:
    """Reverse loss of every run at the event, and the bound."""
    ax = fig.subplots()
    for d, color, shift in zip(np.atleast_1d(ds.d.values), ("measured", "third"), (0.94, 1.06), strict=False):
        part = ds.sel(d=d).transpose("seed", "stop", ...) if "d" in ds.dims else ds
        x = np.broadcast_to(ds.stop.values * shift, part.measured_end.shape)
        ax.plot(x.ravel(), part.measured_end.values.ravel(), "o", alpha=0.6, color=plotting.COLORS[color], label=f"runs, d = {d:g}")
    ax.axhline(float(ds.predicted_end.max()), linestyle="--", color=plotting.COLORS["theory"], label="ln(m/2)")
    ax.set(xscale="log", xlabel="loss L at the event", ylabel=r"reverse loss $L_\mathrm{rev}$ at the event", ylim=(0, None))


def plot_ortho(ds: xr.Dataset, fig: Figure) -> None:
    """Both losses along the flow beside their closed forms."""
    ax = fig.subplots()
    one = ds.isel(seed=0, **{dim: 0 for dim in ("d",) if dim in ds.dims})
    t = one.t.values[1:]
    for name, label, color in (("forward", "loss", "measured"), ("reverse", "reverse loss", "third")):
        ax.plot(t, one[f"measured_{name}"].values[1:], "o", color=plotting.COLORS[color], label=f"{label}, network")
        law = np.broadcast_to(one[f"predicted_{name}"].values, one.t.shape)[1:]
        ax.plot(t, law, "--", color=plotting.COLORS["theory"], label=f"{label}, closed form")
    ax.set(xscale="log", yscale="log", xlabel="time t", ylabel="loss")


_RUNS = {"trial": trial, "seeds": 20, "paper_seeds": 100}
_SYMMETRIC = {"symmetric Theta": {"symmetric": 1.0}}
_WIDE = {"most": 1000}

CLAIMS = (
    jd.Claim(
        id="rev.bil_ratio",
        statement=r"With Gaussian tokens, small start and large d the reverse loss stays above "
        rf"$L_\mathrm{{rev}}(0)\,(L(t)/L(0))^\epsilon$ at all times: $\epsilon = {EXPONENT}$ holds for all runs at $d = 200$, "
        r"and the exponents needed shrink with d.",
        source=f"{SOURCE}, Theorem 1",
        quick=jd.grid(Bilinear, d=[20, 50, 100, 200]),
        paper=jd.grid(Bilinear, d=[20, 50, 100, 200, 500, 1000], **_WIDE),
        judge=judge_ratio,
        controls=_SYMMETRIC | {"reverse loss added": {"reverse": 1.0}},
        plot=plot_ratio,
        **_RUNS,
    ),
    jd.Claim(
        id="rev.bil_lower",
        statement=r"At the first time when $L = c$ (c = .5, .1, .01) the reverse loss is still at least $\ln(m/2)$, for every "
        r"run at $d \ge 100$.",
        source=f"{SOURCE}, Theorem 2",
        quick=jd.grid(Bilinear, d=[100, 200], stop=[0.5, 0.1, 0.01], horizon=10_000),
        paper=jd.grid(Bilinear, d=[100, 200, 500, 1000], stop=[0.5, 0.1, 0.01, 0.001], horizon=100_000, **_WIDE),
        judge=judge_lower,
        controls=_SYMMETRIC,
        plot=plot_lower,
        **_RUNS,
    ),
    jd.Claim(
        id="rev.bil_ortho",
        statement=r"With orthonormal tokens $L = \ln(1 + (m-1)e^{-u})$, $(m-1)u + e^u - 1 = mt/n$, and "
        r"$L_\mathrm{rev} = \ln m$ for ever.",
        source="derived",
        quick=jd.grid(Bilinear, kind="orthonormal", sigma=0.0, d=[20, 200]),
        judge=judge_ortho,
        controls={"fewer dimensions than tokens": {"d": [15, 18]}},
        plot=plot_ortho,
        **_RUNS,
    ),
)
