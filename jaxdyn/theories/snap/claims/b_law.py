r"""Theorem 4: the growth of B with one common token in all classes and one distinct token in each, against the reduced ODE."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.snap.trials.pair import SETTLED, Pair, trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS"]

LATE = 1e3  # times K ln M / eta_Y, from where dB/dln t follows its limit


def judge_law(ds: xr.Dataset) -> list[jd.Check]:
    """B at every save."""
    return [jd.at_most("B against the law, relative", jd.relative_error(ds, "b"), 5e-3)]


def judge_phases(ds: xr.Dataset) -> list[jd.Check]:
    """Each branch two e-folds inside its region, and the growth in ln t far beyond the transition."""
    early, late = ds.time < ds.settles * np.exp(-2), ds.time > SETTLED * ds.settles * np.exp(2)
    far = ds.time > LATE * ds.settles
    return [
        jd.at_most("B against the early branch, relative", jd.relative_error(ds, "early").where(early), 0.05),
        jd.at_most("B against the late branch, relative", jd.relative_error(ds, "late").where(late), 0.05),
        jd.at_most("dB/dln t against (2/q)/u, relative", jd.relative_error(ds, "limit").where(far), 0.05),
    ]


def judge_growth(ds: xr.Dataset) -> list[jd.Check]:
    """dB/dln t while the attention scans, before K ln M / eta_Y."""
    scanning = ds.time < ds.settles
    return [jd.at_most("dB/dln t while scanning, relative", jd.relative_error(ds, "growth").where(scanning), 0.05)]


def judge_effect(ds: xr.Dataset) -> list[jd.Check]:
    """The effect of a larger eta_Y on B: its sign before and after the transition, its size after it."""
    early, late = ds.time < np.exp(-2) * ds.settles / ds.step_ratio, ds.time > SETTLED * ds.settles
    agree = np.sign(ds.measured_effect) * np.sign(ds.predicted_effect)
    return [
        jd.at_least("sign of the effect before the transition, agreement", agree.where(early), 1.0),
        jd.at_least("sign of the effect after the transition, agreement", agree.where(late), 1.0),
        jd.at_most("largest effect on B after the transition", ds.measured_effect.where(late), 0.0),
        jd.at_most("size of the late effect against the law, relative", jd.relative_error(ds, "effect").where(late), 0.05),
    ]


def _run(ds: xr.Dataset, **chosen: float) -> xr.Dataset:
    """One run: the first on every axis but those chosen."""
    return plotting.first_run(ds.sel({k: v for k, v in chosen.items() if k in ds.dims}, method="nearest"))


def _form(values: xr.DataArray, form: str) -> xr.DataArray:
    return values.sel(form=form) if "form" in values.dims else values


def plot_law(ds: xr.Dataset, fig: Figure, form: str = "four", name: str = "law, q = 4 for every $K_m$") -> None:
    """B along time for every K_m, with the law and with another form of it."""
    ax = fig.subplots()
    values = ds.per_query.values if "per_query" in ds.dims else [1.0]
    for k, color in zip(values, plotting.CYCLE[2:], strict=False):
        run = _run(ds, per_query=float(k))
        ax.plot(run.time, run.measured_b, color=color, linewidth=3, alpha=0.5, label=rf"ODE, $K_m={k:g}$")
        ax.plot(run.time, _form(run.predicted_b, "derived"), "--", color=plotting.COLORS["theory"], linewidth=1.2)
        if "form" in run.predicted_b.dims:
            ax.plot(run.time, _form(run.predicted_b, form), ":", color=color)
    ax.plot([], [], "--", color=plotting.COLORS["theory"], label=r"law, $q = 2(1+K_m)$")
    ax.plot([], [], ":", color=plotting.COLORS["control"], label=name)
    ax.set(xscale="log", xlabel="time", ylabel="B")
    ax.legend()


def plot_phases(ds: xr.Dataset, fig: Figure, printed: bool = False) -> None:
    """B with its two branches, and its growth in ln t with the limit and, if asked for, as printed."""
    left, right = fig.subplots(1, 2)
    run, colors = _run(ds), plotting.COLORS
    inside = run.time > run.settles / 3
    left.plot(run.time, run.measured_b, color=colors["measured"], label="ODE")
    left.plot(run.time.where(run.time < 3 * run.settles), run.predicted_early, "--", color=colors["third"], label="early branch")
    left.plot(run.time.where(inside), run.predicted_late, "--", color=colors["theory"], label="late branch")
    right.plot(run.time, run.measured_growth, color=colors["measured"], label="ODE")
    right.plot(run.time, _form(run.predicted_growth, "derived"), "--", color=colors["third"], label="exact law")
    right.plot(run.time.where(inside), run.predicted_limit, "--", color=colors["theory"], label="$(2/q)/u$")
    if printed:
        scanning = _form(run.predicted_growth, "ln t").where(run.time < run.settles)
        right.plot(run.time, scanning, ":", color=colors["control"], label="$2/q$")
    for ax, name in ((left, "B"), (right, r"$dB/d\ln t$")):
        ax.axvline(float(run.settles), color=colors["control"], linewidth=0.8)
        ax.set(xscale="log", xlabel=r"time (line: $K\ln M/\eta_Y$)", ylabel=name)
        ax.legend()


def plot_effect(ds: xr.Dataset, fig: Figure, printed: bool = False) -> None:
    """What twice the decoder's learning rate adds to B; if asked for, also as printed."""
    ax = fig.subplots()
    run = _run(ds)
    ax.plot(run.time, run.measured_effect, color=plotting.COLORS["measured"], linewidth=3, alpha=0.6, label="ODE")
    ax.plot(run.time, _form(run.predicted_effect, "derived"), "--", color=plotting.COLORS["theory"], label="law")
    if printed:
        ax.plot(run.time, _form(run.predicted_effect, "always slower"), ":", color=plotting.COLORS["control"], label="printed sign")
    ax.axhline(0, color=plotting.COLORS["control"], linewidth=0.8)
    ax.set(xscale="log", xlabel="time", ylabel=rf"B at ${float(run.step_ratio):g}\,\eta_Y$ minus B at $\eta_Y$")
    ax.legend()


study = jd.Study(
    trial=trial,
    quick=jd.grid(Pair, per_query=[1.0, 2.0, 4.0], odds=[0.02, 0.06]),
    source="arXiv:2305.16380, Theorem 4",
    form="derived",
)

law = study.claim(
    id="snap.B_law",
    statement=r"In the reduced dynamics with one common and one distinct token a class and $K_m$ classes a query, "
    r"$B = \frac1q\ln(1 + q\,\rho\,\eta_Z\Gamma/C_0)$, $q = 2(1+K_m)$, $C_0^{-1} = (P_c/P_d)^2(K-1)M/(M-1)^2$, within .5% at all "
    r"times and without a fit, for $P_c/P_d$ up to .06.",
    paper=jd.grid(Pair, per_query=[1.0, 2.0, 4.0], odds=[0.01, 0.02, 0.04, 0.06], eta_z=[1e2, 1e4, 2e6], size=[1e2, 1e3, 1e4]),
    judge=judge_law,
    controls={
        "the law for one class a query": jd.swap(predicted_b="four"),
        "a common token as probable as the distinct one": {"odds": 1.0},
        "a decoder that never saturates": {"steady": 1.0},
    },
    plot=plot_law,
    caption=r"B along time by the reduced ODE (thick, a colour for each number $K_m$ of classes a query) and by the law (dashed); "
    r"dotted, where shown: another form of the law. One run of each $K_m$.",
)
phases = study.claim(
    id="snap.two_phase",
    statement=r"In the reduced dynamics B grows in two phases: as $\frac1q\ln(1 + q\rho\,((M-1)/M)^2\eta_Y\eta_Z t^2/2KC_0)$ "
    r"before $K\ln M/\eta_Y$, and after $2K\ln M/\eta_Y$ by the same law with $\Gamma \approx ((M-1)/M)^2 K\ln^2(M\eta_Y "
    r"t/K)/(2\eta_Y)$, each within 5% two e-folds inside its region; beyond $10^3\,K\ln M/\eta_Y$, $dB/d\ln t$ is $(2/q)/u$ "
    r"within 5%.",
    judge=judge_phases,
    controls={"a decoder that never saturates": {"steady": 1.0}},
    plot=plot_phases,
    caption=r"Left: B along time by the reduced ODE, with its early and its late branch (dashed). Right: $dB/d\ln t$ by the ODE, "
    r"by the exact law and by its late limit (dashed). One run; the vertical line is $K\ln M/\eta_Y$.",
)
effect = study.claim(
    id="snap.lr_late",
    statement=r"In the reduced dynamics at fixed $\eta_Z$, twice the learning rate $\eta_Y$ makes B smaller, and attention "
    r"denser, after $2K\ln M/\eta_Y$ (of the smaller $\eta_Y$), by what the law says within 5%; two e-folds before the "
    r"transition it makes B larger: the curves cross.",
    judge=judge_effect,
    controls={"eta_Z grows as well": {"coupling": 1.0}, "a decoder that never saturates": {"steady": 1.0}},
    plot=plot_effect,
    caption=r"What a larger learning rate of the decoder adds to B along time, by the reduced ODE (thick) and by the law "
    r"(dashed). One run.",
)

CLAIMS = (
    law,
    phases,
    effect,
    law.as_printed(
        id="snap.quarter_as_printed",
        statement=r"In the reduced dynamics with one common and one distinct token a class, $B = \ln(1 + "
        r"q\,\rho\,\eta_Z\Gamma/C_0)$, without the factor $1/q$ (1/4 for one class a query).",
        form="no quarter",
        source="slides on arXiv:2305.16380, growth of B",
        plot=functools.partial(plot_law, form="no quarter", name="without 1/q"),
    ),
    law.as_printed(
        id="snap.constant_as_printed",
        statement=r"In the reduced dynamics with one common and one distinct token a class, "
        r"$B = \frac1q\ln(C_0 + q\,\rho\,\eta_Z\Gamma)$, which is $\frac1q\ln C_0$ and not 0 at the start.",
        form="constant",
        plot=functools.partial(plot_law, form="constant", name=r"$C_0$ inside the logarithm"),
    ),
    law.as_printed(
        id="snap.exponent_as_printed",
        statement=r"In the reduced dynamics with one common and one distinct token a class, "
        r"$B = \frac14\ln(1 + 4\,\rho\,\eta_Z\Gamma/C_0)$ whatever the number $K_m$ of classes a query.",
        form="four",
        caption=r"B along time by the reduced ODE (thick, a colour for each number $K_m$ of classes a query) and by the law "
        r"(dashed). Dotted: the law with $q = 4$, for every $K_m$ the curve of $K_m = 1$. One run of each $K_m$.",
    ),
    study.claim(
        id="snap.scanning_as_printed",
        statement=r"In the reduced dynamics with one common and one distinct token a class, B is linear in $\ln t$ before "
        r"$K\ln M/\eta_Y$, while the attention scans: $dB/d\ln t = 2/q$.",
        form="ln t",
        judge=judge_growth,
        expected="refuted",
        counterpart="derived",
        plot=functools.partial(plot_phases, printed=True),
        caption=f"{phases.caption} Dotted: the printed growth $2/q$.",
    ),
    effect.as_printed(
        id="snap.lr_sign_as_printed",
        statement=r"In the reduced dynamics at fixed $\eta_Z$, a larger $\eta_Y$ makes B smaller at every time.",
        form="always slower",
        source=f"{study.source} and Figure 6",
        plot=functools.partial(plot_effect, printed=True),
        caption=f"{effect.caption} Dotted: the law's effect with the printed sign.",
    ),
)
