r"""Theorem 2: distinct tokens gain, a common token loses; and two unequal common tokens, which the theorem does not cover.

Each in the reduced dynamics, integrated, and in the network's own gradient flow. That distinct tokens gain in the reduced
dynamics can be read off its equation, whose right side is positive; it is judged in the flow alone.
"""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.random_laws import COMMONS, RANDOM, TESTED, Laws, trial
from jaxdyn.theories.snap.scan import random_laws_flow
from jaxdyn.theories.snap.scan.random_laws_flow import FLOW, LawsFlow

UNEQUAL = {"unequal": 1.5}
DIGITS = 5e-5  # to which the independent integration's logits are given


def judge_up(ds: xr.Dataset) -> list[jd.Check]:
    """Every distinct token's logit rises between any two saves."""
    return [
        jd.at_most("direction of distinct tokens, distance from up at all saves", abs(ds.measured_rise - ds.predicted_rise), 0.0)
    ]


def judge_fall(ds: xr.Dataset) -> list[jd.Check]:
    """Every common token's logit falls between any two saves."""
    return [
        jd.at_most("direction of common tokens, distance from down at all saves", abs(ds.measured_fall - ds.predicted_fall), 0.0)
    ]


def judge_down(ds: xr.Dataset) -> list[jd.Check]:
    """Every common token's logit falls at every save."""
    moves = ds.z_common.diff("save").where(ds.p_common > 0)
    share = (moves < 0).where(moves.notnull()).mean(["save", "class", "common_token"])
    return [jd.at_least("share of increments below 0", share, 1.0)]


def judge_unequal(ds: xr.Dataset) -> list[jd.Check]:
    """The first common token of the first class gains between any two saves, the second loses; and their logits at the end."""
    logits = ds.z_common.isel({"class": 0})
    moves, known = logits.diff("save"), xr.DataArray(list(published.UNEQUAL_LOGITS[:COMMONS]), dims="common_token")
    rises, falls = (moves.isel(common_token=0) > 0).mean("save"), (moves.isel(common_token=1) < 0).mean("save")
    return [
        jd.at_least("share of increments above 0, token that is rarer in the other class", rises.where(ds.status == 0), 1.0),
        jd.at_least(
            "share of increments below 0, token that is more frequent in the other class", falls.where(ds.status == 0), 1.0
        ),
        jd.at_most("logits at the end, difference from an independent integration", abs(logits.isel(save=-1) - known), DIGITS),
    ]


DESCENT = jd.scaled(measured_rise=-1.0, measured_fall=-1.0)  # Z goes down where it went up
STILL = jd.swap(predicted_rise=0.0, predicted_fall=0.0)  # no logit moves
ALL_RISE = jd.scaled(predicted_fall=-1.0)  # attention to every token that occurs with a class grows


def plot_logits(ds: xr.Dataset, fig: Figure) -> None:
    """Logits of distinct and common tokens of all classes along time."""
    ax = fig.subplots()
    ds = ds.isel(save=slice(1, None))
    first = plotting.first_run(ds)
    t = first.t if "t" in first else first.eta_y_t
    for name, values, color in (
        ("most probable distinct token", ds.z_own.isel(distinct=-1), "measured"),
        ("least probable distinct token", ds.z_own.isel(distinct=0), "third"),
        ("common token", ds.z_common.isel(common_token=0), "theory"),
    ):
        plotting.band(ax, t, values.transpose(..., "save"), name, color)
    ax.axhline(0, color=plotting.COLORS["control"], linewidth=0.8)
    ax.set(xscale="log", xlabel="time" if "t" in first else r"$\eta_Y t$", ylabel="attention logit, all runs and classes")
    ax.legend()


def plot_unequal(ds: xr.Dataset, fig: Figure) -> None:
    """The logits of the first class of the table along time, and the table's numbers."""
    ax = fig.subplots()
    run = plotting.first_run(ds).isel({"class": 0, "save": slice(1, None)})
    names = ("common, P = .30 and .02", "common, P = .10 and .38", "distinct, P = .60")
    logits = (run.z_common.isel(common_token=0), run.z_common.isel(common_token=1), run.z_own.isel(distinct=-1))
    for z, name, end, color in zip(logits, names, published.UNEQUAL_LOGITS, ("theory", "control", "measured"), strict=False):
        ax.plot(run.t, z, color=plotting.COLORS[color], label=name)
        ax.plot(run.t[-1], end, "o", color=plotting.COLORS[color])
    ax.set(xlabel="time", ylabel="attention logit of the first class")
    ax.legend()


reduced = jd.Study(
    trial=trial,
    quick=RANDOM,
    tested=TESTED,
    seeds=8,
    paper_seeds=64,
    source="arXiv:2305.16380, Theorem 2",
    evidence="reduced",
    bounds="derived: an increment has the right sign or not; known logits agree to their digits",
    rivals={},
    plot=plot_logits,
    caption=r"Attention logits along time by the reduced ODE: of the most and the least probable distinct token of each class "
    r"and of the first common token; median and central 90% over runs and classes.",
)
TABLE = jd.grid(Laws, laws="table", size=6.0, eta_z=1.0, horizon=20.0)
PAPER = jd.grid(
    LawsFlow, ratio=[0.1, 1.0, 10.0, 100.0, 1000.0], common=[0.03, 0.05, 0.1, 0.15], second=[0.0, 0.05], per_query=[1.0, 2.0]
)
flow = jd.Study(
    trial=random_laws_flow.trial,
    quick=FLOW,
    tested=random_laws_flow.TESTED,
    paper=PAPER,
    seeds=4,
    paper_seeds=64,
    source="arXiv:2305.16380, Theorem 2",
    evidence="flow",
    bounds="derived: an increment has the right sign or not",
    assumes=(jd.below("overlap", 1.0),),
    plot=plot_logits,
    caption=r"Attention logits along $\eta_Y t$ in the network's flow: of the most and the least probable distinct token of "
    "each class and of the first common token; median and central 90% over runs and classes.",
)

CLAIMS = (
    flow.claim(
        id="snap.distinct_up",
        talks=("training:snap-distinct-up",),
        title="Tokens of one class alone gain attention throughout training",
        statement=r"In the network's gradient flow with one query for each class and overlap $K\|E\| < 1$ ($K$ classes, "
        r"$E = F^\top F - I$ for the normalised attention $F$ at the start), the attention logit of every distinct token (one that "
        "occurs in a single class) of every class rises between any two records, with one common token or two as frequent in "
        r"one class as in another and $\eta_Y/\eta_Z$ from .1 to 1000.",
        quick=FLOW.replace(per_query=1.0),
        paper=PAPER.replace(per_query=1.0),
        judge=judge_up,
        decides={"any two records": ("direction of distinct tokens, distance from up at all saves", "descent instead of ascent")},
        controls={
            "each distinct token also in the next class, twice as often": {"leak": 2.0},
            "descent instead of ascent": jd.Control(DESCENT, breaks="rises"),
        },
        rivals={"nothing moves": jd.off(STILL)},
    ),
    reduced.claim(
        id="snap.common_down",
        talks=("training:snap-common-down",),
        title="Equally frequent common tokens lose attention (reduced ODE)",
        statement="In the reduced dynamics from zero, the attention logit of a common token falls between any two records if "
        "it is the only one or one of two that are equally frequent in all classes and together at most as frequent as a "
        "class's distinct tokens.",
        quick=jd.grid(Laws, per_query=[1.0, 2.0], second=[0.0, 0.2]),
        holds={"common": (0.03, 0.8), "second": (0.0, 0.2)},
        judge=judge_down,
        decides={"any two records": ("share of increments below 0", "descent instead of ascent")},
        controls={
            "two unequal common tokens": {"unequal": 1.5},
            "three and one times as frequent as the distinct ones": jd.Control(
                {"common": 3.0, "second": 1.0, "eta_z": 1e6},
                why="Two common tokens that drift apart are what changes; they do so where attention learns fast.",
            ),
            "the two common tokens of the table": {"laws": "table"},
            "descent instead of ascent": jd.Control({"ascent": -1.0}, breaks="falls"),
        },
    ),
    flow.claim(
        id="snap.common_down_flow",
        talks=("training:snap-common-down",),
        title="Equally frequent common tokens lose attention throughout training",
        statement=r"In the network's gradient flow with overlap $K\|E\| < 1$ ($K$ classes, $E = F^\top F - I$ for the "
        "normalised attention $F$ at the start), the attention logit of a common token falls between any two "
        "records if it is the only one or if each of the two is equally frequent in all classes.",
        judge=judge_fall,
        decides={"any two records": ("direction of common tokens, distance from down at all saves", "descent instead of ascent")},
        controls={"two unequal common tokens": UNEQUAL, "descent instead of ascent": jd.Control(DESCENT, breaks="falls")},
        rivals={"nothing moves": jd.off(STILL), "all tokens of a class gain": ALL_RISE},
    ),
    reduced.claim(
        id="snap.unequal_commons",
        talks=("training:snap-common-down",),
        title="Of two unequal common tokens one can gain attention (reduced ODE)",
        statement="Theorem 2(b) does not extend to common tokens that are unequally frequent: in the reduced dynamics from zero of "
        r"two classes with $P = (.30,.10,.60,0)$ and $(.02,.38,0,.60)$, a query each, a vocabulary of 6 tokens and $\eta_Y = "
        r"\eta_Z = \rho = 1$, the first class's logit of the first common token rises and that of the second falls between any "
        "two records, to .0045 and -.1448 at $t = 20$.",
        tested=r"The reduced ODE in float64 from zero to $t$ = {horizon}, $\eta_Y$ = {eta_y}, $\eta_Z$ = {eta_z}, $\rho$ = "
        "{rho}, two classes, a vocabulary of {size} tokens; nothing is random.",
        source=f"{reduced.source}(b), beyond its assumption",
        quick=TABLE,
        seeds=1,
        paper_seeds=1,
        judge=judge_unequal,
        decides={
            "any two records": (
                "share of increments below 0, token that is more frequent in the other class",
                "descent instead of ascent",
            )
        },
        controls={
            "equal common tokens": jd.Control(
                {"laws": "random", "second": 0.2}, why="The weight of a second common token acts on random laws alone."
            ),
            "descent instead of ascent": jd.Control({"ascent": -1.0}, breaks="rises"),
        },
        plot=plot_unequal,
        caption="Attention logits of the first class along time by the reduced ODE, a line for each of its three tokens; "
        "dots: the independently integrated values at $t = 20$.",
    ),
)
