r"""Theorem 3: the relative gain of distinct tokens, its bounds, and how far it holds in the network's own gradient flow.

In the reduced dynamics (``random_laws.py``) it is an identity. In the flow of the network in (Y, Z) (``random_laws_flow.py``) the
decoder's memory holds gains back, by a share that vanishes as eta_Y / eta_Z grows at a given time, but not at a given logit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.snap import random_laws
from jaxdyn.theories.snap.scan import random_laws_flow
from jaxdyn.theories.snap.scan.random_laws_flow import ALONE

LATE = 8.0  # clock from which the shortfall of the gains is the memory's
GROWN = "growth over the predicted at ratio {}"
LOWER, UPPER = (
    f"{which}, ratio {{:g}}, common weight {{:g}}"
    for which in ("smallest logit over its lower bound", "largest logit over its upper bound")
)
KEPT = "missing share at a ten times larger ratio and the same logit, over that at the smaller one"
OVER_LAW = "missing share over the law's, at both ratios"


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
    """The dominant token's logit and share f rise between any two saves."""
    checks = []
    for name, key in (("logit", "z_own"), ("share f", "f_own")):
        moves = ds[key].isel(distinct=-1).diff("save")
        rises = (moves > 0).where(moves.notnull()).mean("save", skipna=False)
        checks.append(jd.at_least(f"share of increments of the dominant token's {name} above 0", rises, 1.0))
    return checks


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


def judge_ratio(ds: xr.Dataset) -> list[jd.Reading]:
    """How much of the growth of relative gains there is at the end, for each ratio of the rates."""
    jd.need(ds, ratio=2, seed=2)
    grown = _grown(ds)
    runs = [d for d in grown.dims if d != "ratio"]
    return [jd.mean_reading(GROWN.format(f"{r:g}"), grown.sel(ratio=r), over=runs) for r in ds.ratio.values]


def _grown(ds: xr.Dataset) -> xr.DataArray:
    """Growth of relative gains over the predicted at the end, the mean of a run's pairs of tokens and of its numbers K_m."""
    grown = 1 - ds.measured_shortfall.isel(time=-1)
    return grown.mean([d for d in ("class", "other", "per_query") if d in grown.dims])


def judge_plateau(ds: stats.Labelled) -> list[jd.Check]:
    """The shortfall at equal logits of the dominant token at ratios next to one another, and the law's at these logits."""
    jd.need(ds, ratio=2)
    ds = ds.sortby("ratio")
    z = ds.z_own.isel(distinct=-1, save=slice(1, None)).rename(save="time")
    small, large = ds.isel(ratio=slice(0, -1)), ds.isel(ratio=slice(1, None))
    low, high = (z.isel(ratio=part).drop_vars("ratio") for part in (slice(0, -1), slice(1, None)))

    def at_same_logit(name: str) -> tuple[xr.DataArray, xr.DataArray]:
        """Logarithms at the smaller ratio and at the larger one, at the logit that the larger one leads to."""
        one, other = (np.log(part[name]).drop_vars("ratio") for part in (small, large))
        there = xr.apply_ufunc(
            np.interp, np.log(high.isel(time=-1)), np.log(low), one, input_core_dims=[[], ["time"], ["time"]], vectorize=True
        )
        return there, other.isel(time=-1)

    measured, predicted = at_same_logit("measured_shortfall"), at_same_logit("predicted_shortfall")
    over_law = xr.concat([m - p for m, p in zip(measured, predicted, strict=True)], "side")
    kept = np.exp(measured[1] - measured[0])
    return [jd.within(KEPT, kept, 0.7, 1.0), jd.within(OVER_LAW, np.exp(over_law), 0.75, 1.0)]


def judge_flow_bounds(ds: xr.Dataset) -> list[jd.Reading]:
    """The smallest logit over its lower bound and the largest over its upper one, by ratio and common weight; means over runs."""
    jd.need(ds, ratio=2, common=2, seed=2)
    low = (ds.measured_lower / ds.predicted_lower).min(["time", "class"])
    high = (ds.measured_upper / ds.predicted_upper).max(["time", "class"])
    runs = [d for d in ds.status.dims if d not in ("ratio", "common")]
    return [
        jd.mean_reading(name.format(r, w), values.sel(ratio=r, common=w), over=runs)
        for r in ds.ratio.values
        for w in ds.common.values
        for name, values in ((LOWER, low), (UPPER, high))
    ]


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
# A row of Z sees its class all the time, so that pressure and bounds are K times as large.
EVERY_STEP = jd.swap(
    predicted_lower=lambda ds: ds.predicted_lower * ds.sizes["class"],
    predicted_upper=lambda ds: ds.predicted_upper * ds.sizes["class"],
)
SAME_TIMES = jd.initial("ratio", "z_own")  # equal times in place of equal logits
EXACT_GAIN = jd.scaled(measured_shortfall=1e-9)  # in place of the flow, gains that follow Theorem 3


def first_order(ratio: float) -> Callable[[xr.Dataset], float]:
    """The growth by the memory's law of large ratios, at any ratio; the mean over runs."""
    return lambda ds: float(1 - ds.predicted_shortfall.sel(ratio=ratio).isel(time=-1).mean())


def plot_gain(ds: xr.Dataset, fig: Figure) -> None:
    """Measured against predicted gains of all pairs."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_gain, ds.measured_gain, r"$r_0\,\chi$", "measured", log=True)
    ax.set(xlabel="predicted relative gain", ylabel="relative gain in the reduced dynamics")
    ax.legend()


def plot_bounds(ds: xr.Dataset, fig: Figure) -> None:
    """Logit of the dominant token between its bounds, and its feature next to that of the least probable token."""
    left, right = fig.subplots(1, 2)
    ds = ds.sel(eta_z=ds.eta_z.max()) if "eta_z" in ds.dims else ds
    run = plotting.first_run(ds).isel({"class": 0})
    bounds = (run.predicted_lower, run.predicted_upper)
    left.fill_between(run.t[1:], *bounds, color=plotting.COLORS["theory"], alpha=0.25, label="bounds")
    left.plot(run.t[1:], run.measured_lower, color=plotting.COLORS["measured"], label="dominant token")
    right.plot(run.t[1:], run.f_own.isel(distinct=-1)[1:], color=plotting.COLORS["measured"], label="dominant token")
    right.plot(run.t[1:], run.f_own.isel(distinct=0)[1:], color=plotting.COLORS["control"], label="least probable token")
    for ax, label in ((left, "attention logit"), (right, "share f")):
        ax.set(xscale="log", xlabel="time", ylabel=label)
        ax.legend()


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
    trial=random_laws.trial, quick=random_laws.RANDOM, seeds=8, tested=random_laws.TESTED,
    paper_seeds=64, source=SOURCE, plot=plot_bounds,
    evidence="reduced", bounds="derived: the solver's tolerance, and increments that have the right sign or not", rivals={},
    caption="Left: attention logit of the dominant distinct token of one class along time by the reduced ODE, between its "
    "bounds (shaded). Right: its share $f$ of the normalised attention, next to that of the least probable distinct token. "
    r"One run, at the largest $\eta_Z$.",
)  # fmt: skip

COMMONS = random_laws.RANDOM.replace(second=[0.0, 0.2])  # one common token, or two
RATIOS = ALONE.axes["ratio"]
SETTINGS = [(r, w) for r in RATIOS for w in ALONE.axes["common"]]
PAPER = jd.grid(
    random_laws_flow.LawsFlow, ratio=[0.1, 1.0, 10.0, 100.0, 1000.0], common=[0.03, 0.05, 0.1, 0.15], per_query=[1.0, 2.0]
)
flow = jd.Study(
    trial=random_laws_flow.trial,
    quick=ALONE,
    tested=random_laws_flow.TESTED,
    paper=PAPER,
    seeds=4,
    max_seeds=32,
    paper_seeds=64,
    source=SOURCE,
    evidence="flow",
    bounds=jd.tuned(on="0:4", confirmed_on="4000:4004"),
    assumes=(jd.below("overlap", 1.0),),
    plot=plot_flow,
    caption="Share of Theorem 3's growth of a relative gain that is missing in the network's flow, along the decoder's clock "
    r"(left; dashed: the law) and over the dominant token's logit (right), a colour for each $\eta_Y/\eta_Z$; one pair of "
    "tokens of one run.",
)
FOUND_BOUNDS = {
    LOWER.format(0.1, 0.05): (0.189562, 0.232386, 0.27521),
    UPPER.format(0.1, 0.05): (0.525281, 0.685971, 0.846662),
    LOWER.format(0.1, 0.15): (0.164169, 0.201042, 0.237915),
    UPPER.format(0.1, 0.15): (0.498405, 0.657047, 0.815689),
    LOWER.format(1, 0.05): (0.378372, 0.449454, 0.520537),
    UPPER.format(1, 0.05): (0.532591, 0.695017, 0.857443),
    LOWER.format(1, 0.15): (0.306922, 0.35471, 0.402497),
    UPPER.format(1, 0.15): (0.512484, 0.673255, 0.834025),
    LOWER.format(10, 0.05): (0.72435, 0.754498, 0.784645),
    UPPER.format(10, 0.05): (0.534598, 0.697087, 0.859576),
    LOWER.format(10, 0.15): (0.839188, 0.889274, 0.93936),
    UPPER.format(10, 0.15): (0.587606, 0.754776, 0.921946),
    LOWER.format(100, 0.05): (1.00113, 1.00131, 1.00149),
    UPPER.format(100, 0.05): (0.548719, 0.712105, 0.875491),
    LOWER.format(100, 0.15): (1.00984, 1.01135, 1.01287),
    UPPER.format(100, 0.15): (0.799909, 0.996893, 1.19388),
    LOWER.format(1000, 0.05): (1.00114, 1.00132, 1.00151),
    UPPER.format(1000, 0.05): (0.571579, 0.73866, 0.905741),
    LOWER.format(1000, 0.15): (1.00985, 1.01137, 1.01289),
    UPPER.format(1000, 0.15): (0.872688, 1.08137, 1.29005),
}
gain = reduced.claim(
    id="snap.rel_gain",
    talks=("training:snap-theorem-3",),
    title="Relative gains follow from one token's logit (reduced ODE)",
    statement=r"In the reduced dynamics from zero, the relative gain $r_{l/l'} = \tilde c_l^2/\tilde c_{l'}^2 - 1$ of a "
    r"class's most frequent distinct token $l$ over each of its other distinct tokens ($\tilde c$: attention before "
    "normalisation) is its initial value times $e^{2z_l}$, with $z_l$ the logit of $l$; an identity, which holds here to a "
    "relative $10^{-9}$.",
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
    caption="Relative gain of the dominant distinct token over another one in the reduced ODE against the predicted gain, "
    r"$r_0\,\chi$, $\chi = e^{2z_l}$, with the line of equality; a point for each pair, time and run.",
)

CLAIMS = (
    gain,
    reduced.claim(
        id="snap.bounds",
        talks=("training:snap-theorem-3-bounds",),
        title="The leading token's logit lies between two bounds (reduced ODE)",
        statement="In the reduced dynamics from zero, with one common token or two as frequent in one class as in another "
        "(together at most as frequent as a class's distinct tokens), the logit of a class's most frequent distinct token "
        r"lies between $f(0)^2 B_n$ and $B_n$ at all recorded times, where $B_n = \rho\,\eta_Z\int\xi_n\,dt$ is the "
        "accumulated pressure on class $n$ and $f$ the token's share of normalised attention; at first it is at the lower "
        "bound, to 1%, in every class of every run.",
        quick=COMMONS,
        judge=judge_tight,
        bounds="derived: float64 rounding, and the change of f up to the first record",
        controls={
            "the least probable distinct token": WEAKEST,
            "each distinct token also in the next class": {"leak": 0.5},
            "common tokens unequally frequent": {"unequal": 1.5},
        },
        rivals={
            "the lower bound is taken at all times": jd.swap(predicted_upper="predicted_lower"),
            "the lower bound of the least probable token": jd.swap(predicted_lower="lower_weakest"),
        },
    ),
    reduced.claim(
        id="snap.monotone",
        talks=("training:snap-frequent",),
        title="The leading token gains without a break (reduced ODE)",
        statement="In the reduced dynamics from zero, with one common token or two as frequent in one class as in another "
        "(together at most as frequent as a class's distinct tokens), the logit of a class's most frequent distinct token and its "
        "share $f$ of the normalised attention rise between any two records.",
        quick=COMMONS,
        judge=judge_monotone,
        decides={"any two records": ("share of increments of the dominant token's logit above 0", "descent instead of ascent")},
        controls={
            "the least probable distinct token": WEAKEST,
            "common tokens unequally frequent": {"unequal": 1.5},
            "descent instead of ascent": jd.Control({"ascent": -1.0}, breaks="rise"),
        },
    ),
    flow.claim(
        id="snap.theorem3",
        talks=("training:snap-theorem-3", "training:snap-frequent"),
        title="With a fast decoder relative gains follow Theorem 3 up to its memory",
        statement=r"In the network's gradient flow with one common token, overlap $K\|E\| < 1$ ($K$ classes, $E = F^\top F - "
        "I$ for the normalised attention $F$ at the start) and a decoder at least 100 times as fast as the "
        "attention, the relative gains of a class's most frequent distinct token (initially $r_0$, logit $z_l$) "
        r"have grown by $\eta_Y t = 10^6$, on average, by 90 to 100% of Theorem 3's $r_0(e^{2z_l} - 1)$. Late (decoder's clock "
        r"$u > 8$) the missing share is $\frac16\frac{\eta_Z}{\eta_Y}u^2f_{l'}^2$ within 20%, $f_{l'}$ the other "
        "token's share of normalised attention: the decoder's memory.",
        quick=ALONE.replace(ratio=[100.0, 1000.0]),
        judge=judge_shortfall,
        assumes=(jd.below("overlap", 1.0), jd.above("rate_ratio", 99.0)),
        controls={"attention that learns as fast as the decoder": {"ratio": [1.0, 0.1]}, "gains that follow Theorem 3": EXACT_GAIN},
        rivals={"nothing moves": jd.off(NO_GROWTH), "Theorem 3 as it stands": COMPLETE},
    ),
    flow.claim(
        id="snap.theorem3_plateau",
        talks=("training:snap-theorem-3",),
        title="At a given logit a faster decoder hardly mends Theorem 3",
        statement="In the network's gradient flow of $K = 4$ classes, one or two per query, with one common token of weight .05 "
        r"to .15 and overlap $K\|E\| < 1$ ($E = F^\top F - I$ for the normalised attention $F$ at the start), relative gains "
        r"lack a share of Theorem 3's $r_0(e^{2z_l} - 1)$ that hardly depends on $\eta_Y/\eta_Z$ at a given logit $z_l$ of the "
        r"most frequent distinct token: at the logit that a ratio leads to by $\eta_Y t = 10^6$, it is 70 to 100% of that at a "
        r"ten times smaller ratio, for 10 to 100 and 100 to 1000, and 75 to 100% of $\frac16\frac{\eta_Z}{\eta_Y}u^2f_{l'}^2$ "
        "at either ($u$ the decoder's clock, $f_{l'}$ the other token's share of normalised attention).",
        quick=ALONE.replace(ratio=[10.0, 100.0, 1000.0]),
        paper=PAPER.replace(ratio=[10.0, 100.0, 1000.0], common=[0.05, 0.1, 0.15]),
        holds={"classes": (4, 4), "per_query": (1.0, 2.0), "common": (0.05, 0.15), "distinct": (3, 3)},
        judge=judge_plateau,
        bounds=jd.tuned(on="0:4", confirmed_on="81000000:81000004"),
        assumes=(jd.below("overlap", 1.0), jd.above("rate_ratio", 5.0)),
        controls={"at equal times": SAME_TIMES, "gains that follow Theorem 3": EXACT_GAIN},
        rivals={
            "a decoder without memory: nothing is missing": jd.off({OVER_LAW: 0.0}),
            "Theorem 3 becomes exact: a share that falls like 1/ratio": {KEPT: 0.1},
        },
    ),
    flow.claim(
        id="snap.theorem3_ratio",
        talks=("training:snap-theorem-3",),
        title="How much of Theorem 3's relative gains a network shows",
        statement=r"How much of Theorem 3's growth $r_0(e^{2z_l} - 1)$ of relative gains is there at $\eta_Y t = 10^6$ in the "
        r"network's gradient flow with one common token and overlap $K\|E\| < 1$ ($K$ classes, $E = F^\top F - I$ for the "
        r"normalised attention $F$ at the start), at each ratio $\eta_Y/\eta_Z$ of the learning rates? The reading "
        "is the mean over runs of growth over predicted growth.",
        judge=judge_ratio,
        expected="measured",
        controls={"gains that stay": STAYS},
        rivals={
            "nothing moves": jd.off({GROWN.format(f"{r:g}"): 0.0 for r in RATIOS}),
            "Theorem 3 as it stands": {GROWN.format(f"{r:g}"): 1.0 for r in RATIOS},
            "the memory's law of first order at every ratio": {GROWN.format(f"{r:g}"): first_order(r) for r in RATIOS},
        },
        recorded={
            GROWN.format("0.1"): (0.0545, 0.09617, 0.138),
            GROWN.format("1"): (0.105, 0.2012, 0.297),
            GROWN.format("10"): (0.481, 0.6015, 0.722),
            GROWN.format("100"): (0.914, 0.9368, 0.96),
            GROWN.format("1000"): (0.99, 0.9934, 0.996),
        },
    ),
    flow.claim(
        id="snap.bounds_flow",
        talks=("training:snap-theorem-3-bounds",),
        title="Does the leading token's logit keep its bounds in a network?",
        statement="Does the logit of a class's most frequent distinct token lie between $f(0)^2B_n$ and $B_n$ of the reduced "
        r"dynamics at $\rho = 1/K$ in the network's gradient flow with one common token and overlap $K\|E\| < 1$ "
        r"($K$ classes, $E = F^\top F - I$ for the normalised attention $F$ at the start)? Read are, at each ratio "
        r"$\eta_Y/\eta_Z$ and weight of the common token, the smallest logit over its lower bound and the largest over its upper "
        r"bound, of all classes and times up to $\eta_Y t = 10^6$, averaged over runs.",
        judge=judge_flow_bounds,
        expected="measured",
        controls={"logits that stay": STAYS},
        rivals={
            "nothing moves": jd.off(dict.fromkeys((name.format(*at) for name in (LOWER, UPPER) for at in SETTINGS), 0.0)),
            "rho = 1: bounds as if a row learned from its class at every step": EVERY_STEP,
            "the reduced dynamics: the lower bound is taken": {LOWER.format(*at): 1.0 for at in SETTINGS},
        },
        recorded=FOUND_BOUNDS,
        plot=plot_flow_bounds,
        caption="Logit of the dominant distinct token over $f_{l_0}(0)^2B_n$ (left; above 1 if the bound holds) and over "
        "$B_n$ (right; below 1) along the decoder's clock; shaded: all classes of all runs, a colour for each "
        r"$\eta_Y/\eta_Z$.",
    ),
    flow.claim(
        id="snap.monotone_flow",
        talks=("training:snap-frequent",),
        title="The leading token gains attention without a break",
        statement=r"In the network's gradient flow with one common token, one query for each class and overlap $K\|E\| < 1$ "
        r"($K$ classes, $E = F^\top F - I$ for the normalised attention $F$ at the start), the logit of a class's most frequent "
        "distinct token and its share $f$ of the normalised attention rise between any two records, for "
        r"$\eta_Y/\eta_Z$ from .1 to 1000.",
        quick=ALONE.replace(per_query=1.0),
        paper=PAPER.replace(per_query=1.0),
        judge=judge_monotone_flow,
        decides={
            "any two records": (
                "direction of the dominant token's logit, distance from up at all saves",
                "descent instead of ascent",
            )
        },
        controls={
            "the least probable distinct token": WEAKEST_FLOW,
            "descent instead of ascent": jd.Control(FALLING, breaks="rise"),
        },
        rivals={"nothing moves": jd.off(STILL)},
    ),
)
