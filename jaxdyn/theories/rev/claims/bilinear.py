"""Claims on the bilinear model: its reverse loss stays where it was while the loss falls, the more so the larger d."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.rev.trials.bilinear import EXPONENT, Bilinear, trial

__all__ = ["CLAIMS", "judge_lower", "judge_ortho", "judge_ratio", "largest", "ratio_exponent"]

SOURCE = "arXiv:2405.04669"
WIDE = 200  # dimension from which on the floor of Theorem 1 is judged


def ratio_exponent(ds: xr.Dataset) -> xr.DataArray:
    r"""How fast the reverse loss follows, :math:`\epsilon_t = \ln(L_\text{rev}/L_\text{rev}(0)) / \ln(L/L(0))`, after the start."""
    logs = [np.log(ds[name] / ds[name].isel(time=0)).isel(time=slice(1, None)) for name in ("measured_reverse", "measured_forward")]
    return logs[0] / logs[1]


def largest(ds: xr.Dataset) -> xr.DataArray:
    """The largest exponent of a run over the reading times (it may be negative: the reverse loss rose)."""
    return ratio_exponent(ds).max("time", skipna=False)


def judge_ratio(ds: xr.Dataset) -> list[jd.Check]:
    """The exponents shrink with d, in their 90th percentile and their root mean square; no run at large d is below the floor."""
    jd.need(ds, d=3, seed=10)
    if float(ds.d.max()) < WIDE:
        raise jd.Inconclusive(f"the trend in d needs a value of d of {WIDE} or more")
    ds = ds.sortby("d")
    worst = largest(ds)
    p90, rms = worst.quantile(0.9, "seed").drop_vars("quantile"), np.sqrt((worst**2).mean("seed"))
    wide = ds.sel(d=ds.d[ds.d >= WIDE]).isel(time=slice(1, None))
    return [
        jd.at_most("90th percentile of the exponent, ratio of each d to the one before", p90[1:] / p90[:-1].values, 1.0),
        jd.within("slope of the rms exponent over d", stats.loglog_slope(ds.d, rms, "d"), -1.5, -0.4),
        jd.at_least(f"reverse loss over its floor, d >= {WIDE}", wide.measured_floor / wide.predicted_floor, 1.0),
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
    one = plotting.first_run(ds)
    t = one.t.values[1:]
    for name, label, color in (("forward", "loss", "measured"), ("reverse", "reverse loss", "third")):
        ax.plot(t, one[f"measured_{name}"].values[1:], "o", color=plotting.COLORS[color], label=f"{label}, network")
        law = np.broadcast_to(one[f"predicted_{name}"].values, one.t.shape)[1:]
        ax.plot(t, law, "--", color=plotting.COLORS["theory"], label=f"{label}, closed form")
    ax.set(xscale="log", yscale="log", xlabel="time t", ylabel="loss")


SYMMETRIC = {"symmetric Theta": {"symmetric": 1.0}}

study = jd.Study(
    trial=trial,
    quick=jd.grid(Bilinear),
    seeds=20,
    paper_seeds=100,
    source=f"{SOURCE}, Theorem 1",
)

CLAIMS = (
    study.claim(
        id="rev.bil_ratio",
        statement=r"In the bilinear model under gradient flow, with Gaussian tokens and a small start, the reverse loss stays "
        rf"above $L_\mathrm{{rev}}(0)\,(L(t)/L(0))^\epsilon$ with $\epsilon = {EXPONENT}$ in all runs at $d = {WIDE}$, and the "
        r"exponents that are needed shrink as d grows.",
        quick=study.quick.replace(d=[20, 50, 100, 200]),
        paper=jd.grid(Bilinear, max_d=1000, d=[20, 50, 100, 200, 500, 1000]),
        judge=judge_ratio,
        controls=SYMMETRIC | {"reverse loss added": {"reverse": 1.0}},
        plot=plot_ratio,
        caption=r"Left: largest exponent $\epsilon_t = \ln(L_\mathrm{rev}/L_\mathrm{rev}(0))/\ln(L/L(0))$ of a run against d, one "
        r"point per run, with root mean square, 90th percentile and the theorem's exponent. Right: reverse loss against loss along "
        r"the flow, one line per run at the smallest and the largest d; dashed: $\ln m$.",
    ),
    study.claim(
        id="rev.bil_lower",
        statement=r"In the bilinear model with Gaussian tokens and a small start, at the first time when $L = c$ (c = .5, .1, .01) "
        r"the reverse loss is still at least $\ln(m/2)$, in all runs at d = 100 and 200.",
        source=f"{SOURCE}, Theorem 2",
        quick=study.quick.replace(d=[100, 200], stop=[0.5, 0.1, 0.01], horizon=10_000),
        paper=jd.grid(Bilinear, max_d=1000, d=[100, 200, 500, 1000], stop=[0.5, 0.1, 0.01, 0.001], horizon=100_000),
        judge=judge_lower,
        controls=SYMMETRIC,
        plot=plot_lower,
        caption=r"Reverse loss at the first time when the loss is c, against c, one point per run; dashed: the bound $\ln(m/2)$.",
    ),
    study.claim(
        id="rev.bil_ortho",
        statement=r"In the bilinear model with orthonormal tokens and $\Theta(0) = 0$ gradient flow has the loss "
        r"$L = \ln(1 + (m-1)e^{-u})$, $(m-1)u + e^u - 1 = mt/n$, and the constant reverse loss $L_\mathrm{rev} = \ln m$.",
        source="derived",
        quick=study.quick.replace(kind="orthonormal", sigma=0.0, d=[20, 200]),
        judge=judge_ortho,
        controls={"fewer dimensions than tokens": {"d": [15, 18]}},
        plot=plot_ortho,
        caption="Loss and reverse loss along the flow, one run (points), and their closed forms (dashed).",
    ),
)
