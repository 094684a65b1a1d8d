r"""Theorem 2: distinct tokens gain, a common token loses; and two unequal common tokens, which the theorem does not cover.

All claims are about the reduced dynamics, integrated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.trials.laws import COMMONS, RANDOM, Laws, trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS"]


def judge_up(ds: xr.Dataset) -> list[jd.Check]:
    """Every distinct token's logit rises at every save, at the stated rate."""
    moves = ds.z_own.diff("save").where(ds.p_own > 0)
    share = (moves > 0).where(moves.notnull()).mean(["save", "class", "distinct"])
    return [
        jd.at_least("share of increments above 0", share, 1.0),
        jd.at_most(r"rate against the pressure times f squared", jd.relative_error(ds, "rise"), 1e-9),
    ]


def judge_down(ds: xr.Dataset) -> list[jd.Check]:
    """Every common token's logit falls at every save."""
    moves = ds.z.isel(token=slice(COMMONS)).diff("save").where(ds.p.isel(token=slice(COMMONS)) > 0)
    share = (moves < 0).where(moves.notnull()).mean(["save", "class", "token"])
    return [jd.at_least("share of increments below 0", share, 1.0)]


def judge_unequal(ds: xr.Dataset) -> list[jd.Check]:
    """A common token gains; with the laws of the table the logits are those of the table."""
    first = ds.z.isel({"class": 0, "save": -1})
    tokens = [0, 1, COMMONS + int(ds.sizes["distinct"]) - 1, COMMONS + 2 * int(ds.sizes["distinct"]) - 1]
    error = abs(first.isel(token=tokens) - xr.DataArray(list(published.UNEQUAL_LOGITS), dims="token"))
    moves = ds.z.isel({"class": 0, "token": 0}).diff("save")
    return [
        jd.at_least("smallest increment of the common token", moves.min("save"), 0.0),
        jd.at_most("logits against the table's digits", error, 5.5e-5),
    ]


def plot_logits(ds: xr.Dataset, fig: Figure) -> None:
    """Logits of distinct and common tokens of all classes along time."""
    ax = fig.subplots()
    ds = ds.isel(save=slice(1, None))
    t = plotting.first_run(ds).t
    for name, values, color in (
        ("most probable distinct token", ds.z_own.isel(distinct=-1), "measured"),
        ("least probable distinct token", ds.z_own.isel(distinct=0), "third"),
        ("common token", ds.z.isel(token=0), "theory"),
    ):
        plotting.band(ax, t, values.transpose(..., "save"), name, color)
    ax.axhline(0, color=plotting.COLORS["control"], linewidth=0.8)
    ax.set(xscale="log", xlabel="time", ylabel="attention logit, all runs and classes")
    ax.legend()


def plot_unequal(ds: xr.Dataset, fig: Figure) -> None:
    """The logits of the first class of the table along time, beside the table's numbers."""
    ax = fig.subplots()
    run = plotting.first_run(ds).isel({"class": 0, "save": slice(1, None)})
    last = COMMONS + int(ds.sizes["distinct"]) - 1
    names = ("common, P = .30 and .02", "common, P = .10 and .38", "distinct, P = .60")
    for token, name, end, color in zip(
        (0, 1, last), names, published.UNEQUAL_LOGITS, ("theory", "control", "measured"), strict=False
    ):
        ax.plot(run.t, run.z.isel(token=token), color=plotting.COLORS[color], label=name)
        ax.plot(run.t[-1], end, "o", color=plotting.COLORS[color])
    ax.set(xlabel="time", ylabel="attention logit of the first class")
    ax.legend()


study = jd.Study(
    trial=trial,
    quick=RANDOM,
    seeds=8,
    paper_seeds=64,
    source="arXiv:2305.16380, Theorem 2",
    form="derived",
    plot=plot_logits,
    caption=r"Attention logits along time by the reduced ODE: of the most and the least probable distinct token of each class "
    r"and of the first common token; median and central 90% over runs and classes.",
)
TABLE = jd.grid(Laws, laws="table", size=6.0, eta_z=1.0, horizon=20.0)

CLAIMS = (
    study.claim(
        id="snap.distinct_up",
        statement=r"In the reduced dynamics from zero, a distinct token of a class gains: $\dot z_l = \rho\,\eta_Z\,\xi_n "
        r"f_{nl}^2 > 0$, with one class a query and with two.",
        judge=judge_up,
        controls={
            "each distinct token also in the next class": {"leak": 0.5},
            "descent instead of ascent": {"ascent": -1.0},
            "f for f squared": jd.swap(predicted_rise="linear_rise"),
        },
    ),
    study.claim(
        id="snap.common_down",
        statement=r"In the reduced dynamics from zero, a common token loses, $\dot z_c < 0$, if it is the only one or if all "
        r"common tokens have the same probability in every class.",
        quick=jd.grid(Laws, per_query=[1.0, 2.0], second=[0.0, 0.2]),
        judge=judge_down,
        controls={
            "two unequal common tokens": {"unequal": 1.5},
            "the two common tokens of the table": {"laws": "table", "size": 6.0, "eta_z": 1.0, "horizon": 20.0},
            "descent instead of ascent": {"ascent": -1.0},
        },
    ),
    study.claim(
        id="snap.unequal_commons",
        statement=r"Of two unequal common tokens one may gain in the reduced dynamics: with $P = (.30,.10,.60,0)$ and "
        r"$(.02,.38,0,.60)$, $M = 6$, unit rates and $\rho = 1$ the first class has $z = (+.0045, -.1448, +.1402, 0)$ at $t = 20$. "
        r"Theorem 2(b) does not cover this case.",
        source=f"{study.source}(b), beyond its assumption",
        quick=TABLE,
        seeds=1,
        paper_seeds=1,
        judge=judge_unequal,
        controls={"equal common tokens": {"laws": "random", "second": 0.2}, "rho = 1/2": {"rho": 0.5}},
        plot=plot_unequal,
        caption=r"Attention logits of the first class along time by the reduced ODE, a line for each of its three tokens; dots: "
        r"the independently integrated values at $t = 20$.",
    ),
)
