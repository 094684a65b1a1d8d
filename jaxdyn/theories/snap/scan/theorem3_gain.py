r"""Theorem 3: the relative gain of distinct tokens, its bounds, and how far it holds in the network's own gradient flow.

In the reduced dynamics (``random_laws.py``) it is an identity. In the flow of the network in (Y, Z) (``random_laws_flow.py``) the
decoder's memory holds gains back, by a share that vanishes as eta_Y / eta_Z grows at a given time, but not at a given logit
(``dynamics/growth.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.snap import random_laws
from jaxdyn.theories.snap.scan import random_laws_flow
from jaxdyn.theories.snap.scan.random_laws_flow import ALONE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS"]

LATE = 8.0  # clock from which the shortfall of the gains is the memory's


def judge_gain(ds: xr.Dataset) -> list[jd.Check]:
    """Every pair of distinct tokens, every save."""
    return [jd.at_most("relative gain against the law", jd.relative_error(ds, "gain"), 1e-9)]


def judge_bounds(ds: xr.Dataset) -> list[jd.Check]:
    """Both bounds at every save, to rounding."""
    slack = 1e-12 * abs(ds.measured_upper)
    return [
        jd.at_least("logit over its lower bound", ds.measured_lower - ds.predicted_lower + slack, 0.0),
        jd.at_most("logit over its upper bound", ds.measured_upper - ds.predicted_upper - slack, 0.0),
    ]


def judge_monotone(ds: xr.Dataset) -> list[jd.Check]:
    """The dominant token's logit and share f do not fall between saves."""
    return [
        jd.at_least(f"smallest increment of the dominant token's {name}", ds[key].isel(distinct=-1).diff("save"), -1e-12)
        for name, key in (("logit", "z_own"), ("share f", "f_own"))
    ]


def judge_tight(ds: xr.Dataset) -> list[jd.Check]:
    """Both bounds, as :func:`judge_bounds`, and that the lower one is taken at the start."""
    tight = (ds.measured_lower / ds.predicted_lower).min("time")
    return [*judge_bounds(ds), jd.at_most("logit over its lower bound, the smallest of a run", tight, 1.01)]


def judge_shortfall(ds: xr.Dataset) -> list[jd.Check]:
    """By which share relative gains grow less than Theorem 3 has it: its law late in training, and how much is left at the end."""
    late = ds.u.isel(save=slice(1, None)).rename(save="time") > LATE
    grown = _grown(ds)
    runs = [d for d in grown.dims if d != "ratio"]
    if "ratio" in grown.dims:  # a ratio of which at most one run is inside the assumptions has no interval
        grown = grown.isel(ratio=np.flatnonzero(grown.notnull().sum(runs) >= 2))
    return [
        jd.at_most("shortfall of the growth late in training, relative", jd.relative_error(ds, "shortfall").where(late), 0.2),
        jd.mean_within("growth of relative gains over the predicted, at the end", grown, over=runs, low=0.9, high=1.0),
    ]


def judge_ratio(ds: xr.Dataset) -> list[jd.Check]:
    """How much of the growth of relative gains there is at the end, for each ratio of the rates."""
    jd.need(ds, ratio=2)
    grown = _grown(ds)
    runs = [d for d in grown.dims if d != "ratio"]
    return [
        jd.mean_within(f"growth over the predicted at ratio {r:g}", grown.sel(ratio=r), over=runs, low=0.9, high=1.1)
        for r in ds.ratio.values
    ]


def _grown(ds: xr.Dataset) -> xr.DataArray:
    """Growth of relative gains over the predicted at the end, the mean of a run's pairs of tokens and of its numbers K_m."""
    grown = 1 - ds.measured_shortfall.isel(time=-1)
    return grown.mean([d for d in ("class", "other", "per_query") if d in grown.dims])


def judge_plateau(ds: xr.Dataset) -> list[jd.Check]:
    """The shortfall at equal logits of the dominant token does not depend on the ratio."""
    jd.need(ds, ratio=2)
    ds = ds.sortby("ratio")
    z = ds.z_own.isel(distinct=-1, save=slice(1, None)).rename(save="time")
    small, large = ds.isel(ratio=slice(0, -1)), ds.isel(ratio=slice(1, None))
    low, high = (z.isel(ratio=part).drop_vars("ratio") for part in (slice(0, -1), slice(1, None)))

    def quotient(name: str) -> xr.DataArray:
        one, other = (np.log(part[name]).drop_vars("ratio") for part in (small, large))
        there = xr.apply_ufunc(
            np.interp, np.log(high.isel(time=-1)), np.log(low), one, input_core_dims=[[], ["time"], ["time"]], vectorize=True
        )
        return np.exp(other.isel(time=-1) - there)

    measured, predicted = quotient("measured_shortfall"), quotient("predicted_shortfall")
    return [
        jd.within("shortfall at a larger ratio and the same logit, over that at the smaller one", measured, 0.6, 1.4),
        jd.within("this quotient over the law's", measured / predicted, 0.75, 1.25),
    ]


def judge_flow_bounds(ds: xr.Dataset) -> list[jd.Check]:
    """For each ratio of the rates: the smallest logit over its lower bound, the largest over its upper one; means over runs."""
    jd.need(ds, ratio=2)
    checks = []
    for r in ds.ratio.values:
        part, runs = ds.sel(ratio=r), [d for d in ds.status.dims if d != "ratio"]
        low = (part.measured_lower / part.predicted_lower).min(["time", "class"])
        high = (part.measured_upper / part.predicted_upper).max(["time", "class"])
        checks += [
            jd.mean_within(f"smallest logit over its lower bound, ratio {r:g}", low, over=runs, low=1.0),
            jd.mean_within(f"largest logit over its upper bound, ratio {r:g}", high, over=runs, high=1.0),
        ]
    return checks


def judge_monotone_flow(ds: xr.Dataset) -> list[jd.Check]:
    """The dominant token's logit and its share f rise between any two saves."""
    rise = abs(ds.measured_rise - ds.predicted_rise).isel(distinct=-1)
    return [
        jd.at_most("direction of the dominant token's logit, distance from up at all saves", rise, 0.0),
        jd.at_most("direction of its share f, distance from up at all saves", abs(ds.measured_grow - ds.predicted_grow), 0.0),
    ]


# One of the pair is a common token.
WITH_COMMON = jd.swap(predicted_gain=lambda ds: ds.pair_common.isel(side=0), measured_gain=lambda ds: ds.pair_common.isel(side=1))


def weakest_logit(ds: xr.Dataset) -> xr.DataArray:
    """Logit of the least probable distinct token of every class after the start."""
    return ds.z_own.isel(distinct=0, save=slice(1, None)).rename(save="time")


# The least probable distinct token of a class in place of its dominant one.
WEAKEST = jd.swap(
    predicted_lower="lower_weakest",
    measured_lower=weakest_logit,
    measured_upper=weakest_logit,
    z_own=lambda ds: ds.z_own.isel(distinct=slice(None, None, -1)),
    f_own=lambda ds: ds.f_own.isel(distinct=slice(None, None, -1)),
)
WEAKEST_FLOW = jd.swap(measured_grow="weakest_grow")  # the least probable distinct token for the dominant one
FALLING = jd.scaled(measured_rise=-1.0, measured_grow=-1.0)  # Z descends J
STILL = jd.swap(predicted_rise=0.0, predicted_grow=0.0)  # no logit moves
STAYS = jd.swap(measured_shortfall=1.0, measured_lower=0.0, measured_upper=0.0)  # gains and logits stay as they start
COMPLETE = jd.swap(predicted_shortfall=0.0)  # Theorem 3 holds as it stands, and nothing is missing
NO_GROWTH = jd.swap(predicted_shortfall=1.0)  # attention stays as it starts, and all of the growth is missing
FIRST_ORDER = jd.swap(measured_shortfall="predicted_shortfall")  # the memory's law of large ratios, whatever the ratio
BY_RATIO = jd.swap(predicted_shortfall=lambda ds: 1 / ds.ratio)  # the shortfall at a logit falls as one over the ratio
SAME_TIMES = jd.initial("ratio", "z_own")  # equal times in place of equal logits
EXACT_GAIN = jd.scaled(measured_shortfall=1e-9)  # in place of the flow, gains that follow Theorem 3


def plot_gain(ds: xr.Dataset, fig: Figure) -> None:
    """Measured against predicted gains of all pairs, and what chi squared would predict."""
    ax = fig.subplots()
    forms = list(ds.form.values) if "form" in ds.dims else [None]
    for form, label, color in zip(forms, (r"$r_0\,\chi$", r"$r_0\,\chi^2$"), ("measured", "control"), strict=False):
        predicted = ds.predicted_gain if form is None else ds.predicted_gain.sel(form=form)
        plotting.scatter(ax, predicted, ds.measured_gain, label, color, log=True)
    ax.set(xlabel="predicted relative gain", ylabel="relative gain in the reduced dynamics")
    ax.legend()


def plot_bounds(ds: xr.Dataset, fig: Figure) -> None:
    """Logit of the dominant token between its bounds, and its feature next to that of the least probable token."""
    left, right = fig.subplots(1, 2)
    ds = ds.sel(eta_z=ds.eta_z.max()) if "eta_z" in ds.dims else ds
    run = plotting.first_run(ds).isel({"class": 0})
    t = run.t.isel(save=slice(1, None))
    left.fill_between(t, run.predicted_lower, run.predicted_upper, color=plotting.COLORS["theory"], alpha=0.25, label="bounds")
    left.plot(t, run.measured_lower, color=plotting.COLORS["measured"], label="dominant token")
    right.plot(run.t[1:], run.f_own.isel(distinct=-1)[1:], color=plotting.COLORS["measured"], label="dominant token")
    right.plot(run.t[1:], run.f_own.isel(distinct=0)[1:], color=plotting.COLORS["control"], label="least probable token")
    left.set(xscale="log", xlabel="time", ylabel="attention logit")
    right.set(xscale="log", xlabel="time", ylabel="share f")
    left.legend()
    right.legend()


def plot_flow(ds: xr.Dataset, fig: Figure) -> None:
    """What is missing of the growth, along the clock and over the dominant token's logit, for each ratio."""
    left, right = fig.subplots(1, 2)
    ratios = np.atleast_1d(ds.ratio.values) if "ratio" in ds.coords else [float("nan")]
    for ratio, color in zip(ratios, plotting.CYCLE, strict=False):
        run = plotting.first_run(ds.sel(ratio=ratio) if "ratio" in ds.dims else ds).isel({"class": 0, "other": 0})
        u, z = run.u.isel(save=slice(1, None)), run.z_own.isel(distinct=-1, save=slice(1, None))
        left.loglog(u, run.measured_shortfall, color=color, label=rf"$\eta_Y/\eta_Z$ = {ratio:g}")
        left.loglog(u, run.predicted_shortfall, "--", color=color, linewidth=1)
        right.loglog(z, run.measured_shortfall, color=color)
    left.set(xlabel="clock u", ylabel="share of the growth that is missing", ylim=(1e-6, 2))
    right.set(xlabel="logit of the dominant token", ylim=(1e-6, 2))
    left.legend()


def plot_flow_bounds(ds: xr.Dataset, fig: Figure) -> None:
    """The dominant token's logit over its two bounds along the clock, for each ratio: all classes of all runs."""
    axes = fig.subplots(1, 2, sharex=True)
    for ratio, color in zip(np.atleast_1d(ds.ratio.values), plotting.CYCLE, strict=False):
        part = ds.sel(ratio=ratio) if "ratio" in ds.dims else ds
        u = part.u.isel({d: 0 for d in part.u.dims if d != "save"}).isel(save=slice(1, None))
        for ax, name in zip(axes, ("lower", "upper"), strict=True):
            quotient = part[f"measured_{name}"] / part[f"predicted_{name}"]
            flat = quotient.transpose("time", ...).values.reshape(quotient.sizes["time"], -1)
            ax.fill_between(u, flat.min(1), flat.max(1), color=color, alpha=0.4, label=rf"$\eta_Y/\eta_Z$ = {ratio:g}")
    for ax, name in zip(axes, ("lower", "upper"), strict=True):
        ax.axhline(1, color=plotting.COLORS["theory"], linestyle="--", linewidth=1)
        ax.set(xlabel="clock u", ylabel=f"logit over its {name} bound")
    axes[0].legend()


SOURCE = "arXiv:2305.16380, Theorem 3"
reduced = jd.Study(
    trial=random_laws.trial, quick=random_laws.RANDOM, seeds=8, paper_seeds=64, source=SOURCE, form="derived", plot=plot_bounds,
    evidence="reduced", bounds="derived", rivals={},
    caption=r"Left: attention logit of the dominant distinct token of one class along time by the reduced ODE, between its "
    r"bounds (shaded). Right: its share $f$ of the normalised attention, next to that of the least probable distinct token. One "
    r"run, at the largest $\eta_Z$.",
)  # fmt: skip

flow = jd.Study(
    trial=random_laws_flow.trial,
    quick=ALONE,
    paper=jd.grid(
        random_laws_flow.LawsFlow, ratio=[0.1, 1.0, 10.0, 100.0, 1000.0], common=[0.03, 0.05, 0.1, 0.15], per_query=[1.0, 2.0]
    ),
    seeds=4,
    paper_seeds=64,
    source=SOURCE,
    evidence="flow",
    bounds=jd.looked(at="0:4", confirmed="4000:4004"),
    assumes=(jd.below("overlap", 1.0),),
    plot=plot_flow,
    caption=r"Share of Theorem 3's growth of a relative gain that is missing in the network's flow, along the decoder's clock "
    r"(left; dashed: the law) and over the dominant token's logit (right), a colour for each $\eta_Y/\eta_Z$; one pair of tokens "
    r"of one run.",
)
gain = reduced.claim(
    id="snap.rel_gain",
    statement=r"An identity of the reduced dynamics: from zero, the relative gain $r_{l/l'} = \tilde c_l^2/\tilde c_{l'}^2 - 1$ "
    r"of the dominant distinct token of a class over each of its other distinct tokens is $r(0)\,e^{2z_l}$; up to the solver's "
    r"tolerance, for M from 30 to $10^5$ and one, two and four classes a query.",
    evidence="algebra",
    quick=jd.grid(random_laws.Laws, per_query=[1.0, 2.0, 4.0], eta_z=[1.0, 1000.0], size=[30.0, 1000.0, 1e5]),
    seeds=4,
    judge=judge_gain,
    controls={
        "a common token in the pair": WITH_COMMON,
        "each distinct token also in the next class": {"leak": 0.5},
        "logits that start apart": {"tilt": 0.1},
    },
    plot=plot_gain,
    caption=r"Relative gain of the dominant distinct token over another one in the reduced ODE against the predicted gain, with "
    r"the line of equality: $r_0\,\chi$ with $\chi = e^{2z_l}$, and $r_0\,\chi^2$ where it is shown. A point for each pair, time "
    r"and run.",
)

CLAIMS = (
    gain,
    gain.as_printed(
        id="snap.chi_squared_as_printed",
        statement=r"In the reduced dynamics from zero, the relative gain of two distinct tokens of a class grows by the factor "
        r"$\chi_l^2$ with $\chi_l = e^{2z_l}$.",
        form="squared",
        source="slides on arXiv:2305.16380, relative gain",
        printed=r"slides: $r_{l_0/l|n}(t) = r_{l_0/l|n}(0)\,\chi^2_{l_0}(t)$, with $e^{2f_{nl_0}^2(0)B_n(t)} \le \chi_{l_0}(t) "
        r"\le e^{2B_n(t)}$",
    ),
    reduced.claim(
        id="snap.bounds",
        statement=r"In the reduced dynamics from zero, the logit of the dominant distinct token lies between $f_{l_0}(0)^2 B_n$ "
        r"and $B_n$, $B_n = \rho\,\eta_Z\int\xi_n\,dt$; the lower bound is approached, to 1%, in every class of every run.",
        judge=judge_tight,
        controls={"the least probable distinct token": WEAKEST, "each distinct token also in the next class": {"leak": 0.5}},
        rivals={
            "the lower bound is taken at all times": jd.swap(predicted_upper="predicted_lower"),
            "the lower bound of the least probable token": jd.swap(predicted_lower="lower_weakest"),
        },
    ),
    reduced.claim(
        id="snap.monotone",
        statement=r"In the reduced dynamics from zero, the dominant distinct token's logit and its share $f$ of the normalised "
        r"attention do not fall.",
        judge=judge_monotone,
        controls={"the least probable distinct token": WEAKEST, "descent instead of ascent": {"ascent": -1.0}},
    ),
    flow.claim(
        id="snap.theorem3",
        statement=r"In the network's gradient flow with one common token and $K\|E\| < 1$, at $\eta_Y/\eta_Z$ of 100 and 1000, "
        r"relative gains of the dominant token have grown by 90% of $r_0(e^{2z_l} - 1)$ or more, in the mean, at $\eta_Y t = "
        r"10^6$, and late (clock $u > 8$) fall short of it by the share $\frac16\frac{\eta_Z}{\eta_Y}u^2f_{l'}^2$, within 20% of "
        r"this, $l'$ the other token: the decoder's memory.",
        quick=ALONE.replace(ratio=[100.0, 1000.0]),
        judge=judge_shortfall,
        assumes=(jd.below("overlap", 1.0), jd.above("rate_ratio", 50.0)),
        controls={"attention that learns as fast as the decoder": {"ratio": [1.0, 0.1]}, "gains that follow Theorem 3": EXACT_GAIN},
        rivals={"nothing moves": NO_GROWTH, "Theorem 3 as it stands": COMPLETE},
    ),
    flow.claim(
        id="snap.theorem3_plateau",
        statement=r"In the network's gradient flow with one common token and $K\|E\| < 1$, the share of $r_0(e^{2z_l} - 1)$ that "
        r"relative gains lack at a given logit $z_l$ of the dominant token does not vanish as $\eta_Y/\eta_Z$ grows: at the "
        r"logits that a ratio of 100, or 1000, leads to by $\eta_Y t = 10^6$ it is .6 to 1.4 times that at a ten times smaller "
        r"ratio, and within 25% what the law $\frac16\frac{\eta_Z}{\eta_Y}u^2f_{l'}^2$ says of the two.",
        quick=ALONE.replace(ratio=[10.0, 100.0, 1000.0]),
        judge=judge_plateau,
        assumes=(jd.below("overlap", 1.0), jd.above("rate_ratio", 5.0)),
        controls={"at equal times": SAME_TIMES},
        rivals={"nothing is missing in the limit: a share of 1/ratio": BY_RATIO},
    ),
    flow.claim(
        id="snap.theorem3_ratio",
        statement=r"How much of Theorem 3's growth $r_0(e^{2z_l} - 1)$ of relative gains is there in the network's gradient flow "
        r"with one common token and $K\|E\| < 1$, at $\eta_Y t = 10^6$, by $\eta_Y/\eta_Z$? Found: .10, .20, .60, .94 "
        r"and .99 at ratios .1, 1, 10, 100 and 1000.",
        judge=judge_ratio,
        expected="measured",
        controls={"gains that stay": STAYS},
        rivals={"the memory's law of first order at every ratio": FIRST_ORDER},
        found={
            "growth over the predicted at ratio 0.1": (0.037, 0.155),
            "growth over the predicted at ratio 1": (0.155, 0.247),
            "growth over the predicted at ratio 10": (0.562, 0.641),
            "growth over the predicted at ratio 100": (0.929, 0.944),
            "growth over the predicted at ratio 1000": (0.993, 0.994),
        },
    ),
    flow.claim(
        id="snap.bounds_flow",
        statement=r"Does the dominant distinct token's logit lie between $f_{l_0}(0)^2B_n$ and $B_n$ of the reduced dynamics at "
        r"$\rho = 1/K$ in the network's gradient flow with one common token and $K\|E\| < 1$? Measured: the smallest logit over "
        r"the lower bound, and the largest over the upper one, by $\eta_Y/\eta_Z$.",
        judge=judge_flow_bounds,
        expected="measured",
        controls={"logits that stay": STAYS},
        rivals={"the bounds of the least probable token": jd.swap(predicted_upper="lower_weakest")},
        found={
            "smallest logit over its lower bound, ratio 0.1": (0.192, 0.241),
            "largest logit over its upper bound, ratio 0.1": (0.64, 0.703),
            "smallest logit over its lower bound, ratio 1": (0.35, 0.454),
            "largest logit over its upper bound, ratio 1": (0.654, 0.715),
            "smallest logit over its lower bound, ratio 10": (0.75, 0.894),
            "largest logit over its upper bound, ratio 10": (0.686, 0.766),
            "smallest logit over its lower bound, ratio 100": (1.002, 1.011),
            "largest logit over its upper bound, ratio 100": (0.72, 0.989),
            "smallest logit over its lower bound, ratio 1000": (1.002, 1.011),
            "largest logit over its upper bound, ratio 1000": (0.75, 1.07),
        },
        plot=plot_flow_bounds,
        caption=r"Logit of the dominant distinct token over $f_{l_0}(0)^2B_n$ (left; above 1 if the bound holds) and over $B_n$ "
        r"(right; below 1) along the decoder's clock; shaded: all classes of all runs, a colour for each $\eta_Y/\eta_Z$.",
    ),
    flow.claim(
        id="snap.monotone_flow",
        statement=r"In the network's gradient flow with one common token and $K\|E\| < 1$, the dominant distinct token's logit "
        r"and its share $f$ of the normalised attention do not fall between saves up to $\eta_Y t = 10^6$, at $\eta_Y/\eta_Z$ "
        r"from .1 to 1000.",
        judge=judge_monotone_flow,
        controls={"the least probable distinct token": WEAKEST_FLOW, "descent instead of ascent": FALLING},
        rivals={"nothing moves": STILL},
    ),
)
