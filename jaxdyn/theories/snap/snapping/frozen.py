"""The end of Scan & Snap: attention almost stops while the decoder still learns, and it stays on several tokens.

Both claims are about the reduced dynamics (``common_pair.py``, ``random_laws.py``); the second evaluates Theorem 3's identity.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.snap import random_laws
from jaxdyn.theories.snap.snapping import common_pair

STILL = 0.01  # of 2, the largest L1 distance: movement of frozen attention while time doubles
LEARNING = 0.01  # the decoder's error while it still learns


def judge_frozen(ds: xr.Dataset) -> list[jd.Check]:
    """After 2K ln M / eta_Y: movement as predicted, falling, small; at its beginning the decoder's error is not yet small."""
    t0 = common_pair.SETTLED * ds.settles
    late = ds.double > t0
    move = ds.measured_move.where(late)
    first = ds.error.where(ds.time > t0).max("time")
    return [
        jd.at_most("movement while t doubles, against the law", jd.relative_error(ds, "move").where(late), 0.02),
        jd.at_most("movement over that of the doubling before", move / move.shift(double=1), 1.0),
        jd.at_most("movement while t doubles", move, STILL),
        jd.gate("the decoder's error after the transition", first, at_least=LEARNING),
    ]


def first_entropy(ds: xr.Dataset) -> xr.DataArray:
    """Entropy of the attention among a class's distinct tokens at the start, where it follows their probabilities."""
    share = ds.p_own / ds.p_own.sum("distinct")
    return -(share * np.log(share.where(share > 0, 1.0))).sum("distinct", min_count=1)


def judge_not_wta(ds: xr.Dataset) -> list[jd.Check]:
    """The final attention on distinct tokens: the identity, how many have some, fewer than at the start, and their order by P."""
    tokens = np.exp(ds.measured_entropy)
    return [
        jd.at_most("entropy of the attention against the identity, relative error", jd.relative_error(ds, "entropy"), 1e-8),
        jd.at_least("tokens that keep attention, exp(entropy)", tokens, 1.3),
        jd.at_most("tokens that keep attention, over those at the start", tokens / np.exp(first_entropy(ds)), 1 - 1e-6),
        jd.at_least("rank correlation of attention with P", stats.spearman(ds.p_own, ds.c_own, "distinct"), 1.0 - 1e-12),
    ]


NOTHING_MOVES = jd.swap(predicted_move=0.0)  # the attention stays where it starts
ONE_WINNER = jd.scaled(predicted_entropy=0.0)  # all attention of a class goes to its most probable distinct token
AS_IT_STARTS = jd.swap(predicted_entropy=first_entropy)  # attention stays on the distinct tokens by their probabilities


def plot_frozen(ds: xr.Dataset, fig: Figure) -> None:
    """Movement of the attention while time doubles, and the decoder's error."""
    left, right = fig.subplots(1, 2)
    part = plotting.first_run(ds, "eta_z")
    rows = [part.isel(eta_z=i) for i in range(part.sizes["eta_z"])] if "eta_z" in part.dims else [part]
    for run, color in zip(rows, ("measured", "third", "fourth"), strict=False):
        label = rf"ODE, $\eta_Z$ = {float(run.eta_z):g}" if "eta_z" in run.coords else "ODE"
        left.loglog(run.double, run.measured_move, color=plotting.COLORS[color], linewidth=3, alpha=0.6, label=label)
        left.loglog(run.double, run.predicted_move, "--", color=plotting.COLORS["theory"], linewidth=1.2)
        right.loglog(run.time, run.c, color=plotting.COLORS[color], label=label.replace("ODE", "common token"))
    left.plot([], [], "--", color=plotting.COLORS["theory"], label="law")
    right.loglog(run.time, run.error, ":", color=plotting.COLORS["control"], label="decoder's error")
    left.set(ylabel=r"$\|c(2t) - c(t)\|_1$", ylim=(1e-6, 2))
    right.set(ylabel="attention on the common token; error")
    for ax in (left, right):
        ax.axvline(common_pair.SETTLED * float(run.settles), color=plotting.COLORS["control"], linewidth=0.8)
        ax.set_xlabel(r"time (line: $2K\ln M/\eta_Y$)")
        ax.legend()


def plot_not_wta(ds: xr.Dataset, fig: Figure) -> None:
    """Final attention on the distinct tokens against P, and its entropy against the prediction."""
    left, right = fig.subplots(1, 2)
    parts = [ds.isel(eta_z=[i]) for i in range(ds.sizes["eta_z"])] if "eta_z" in ds.dims else [ds]
    for part, color in zip(parts, ("measured", "third"), strict=False):
        share = part.c_own / part.c_own.sum("distinct")
        label = rf"$\eta_Z$ = {float(part.eta_z.squeeze()):g}" if "eta_z" in part.coords else "classes of all runs"
        left.plot(np.ravel(part.p_own), np.ravel(share), ".", color=plotting.COLORS[color], label=label)
    plotting.scatter(right, ds.predicted_entropy, ds.measured_entropy, "classes of all runs", log=False)
    left.set(xlabel="P of a distinct token", ylabel="share of attention at the end")
    right.set(xlabel="entropy from the dominant token's logit", ylabel="entropy (nats)")
    left.legend()
    right.legend()


CLAIMS = (
    jd.Study(
        trial=common_pair.trial,
        quick=jd.grid(common_pair.Pair, per_query=[1.0, 2.0, 4.0], odds=0.05, eta_z=[1e3, 2e6]),
        paper=jd.grid(common_pair.Pair, per_query=[1.0, 2.0, 4.0], odds=[0.02, 0.05], eta_z=[1e3, 1e4, 1e5, 2e6], size=[1e3, 1e4]),
        source="arXiv:2305.16380, abstract and Theorem 4",
    ).claim(
        id="snap.frozen",
        talks=("training:snap-snapping",),
        title="Attention freezes while the decoder still learns (reduced ODE)",
        statement="In the reduced dynamics of $K$ classes, with one common and one distinct token per class and $M$ tokens in "
        r"the vocabulary, attention freezes after $2K\ln M/\eta_Y$ if $\eta_Z/\eta_Y$ is 1000 or more and the pressure $B$ has "
        r"grown by then (the argument of the logarithm in the law of `snap.B_law` is above 2): from then on $\|c(2t) - "
        r"c(t)\|_1$, the movement of attention while time doubles, is at most .01, does not rise, and is within 2% that of "
        "this law, while the decoder's error is at first still above 1%. The common token is at most a fifth as probable as "
        "the distinct one.",
        tested=r"The reduced ODE in float64 from zero to $t = 10^7$, $\eta_Y$ = {eta_y}, $\eta_Z$ of {eta_z}, $\rho$ = {rho}: "
        "{classes} classes, {per_query} per query, a vocabulary of {size} tokens, $P_c/P_d$ = {odds}; nothing is random.",
        assumes=(jd.above("grown", 1.0),),
        form="derived",
        evidence="reduced",
        # nothing is random, so seeds confirm nothing; the bounds hold at P_c/P_d of .1 and .2 and at eta_Z of 1e4, too
        bounds=jd.tuned(on="0:1", confirmed_on="61000000:61000001"),
        holds={"eta_z": (1e3, 2e6), "odds": (0.02, 0.2)},
        rivals={"nothing moves": NOTHING_MOVES, "the law for one class a query, q = 4": jd.swap(predicted_move="four_move")},
        judge=judge_frozen,
        controls={
            "slower attention with a common token as probable as the distinct one": jd.Control(
                {"odds": 1.0, "eta_z": [10.0, 100.0]},
                why="With a rare common token attention that learns so slowly has not grown by then, and hardly moves.",
            ),
            "the decoder starts anew": {"restart": 100.0},
            "a decoder that never saturates": {"steady": 1.0},
            "attention that has hardly moved": {"eta_z": [1.0, 2.0]},
        },
        plot=plot_frozen,
        caption=r"Left: movement of the attention while time doubles, by the reduced ODE (a colour for each $\eta_Z$) and by "
        "the law (dashed). Right: attention on the common token, and the decoder's error (dotted). One class per query; the "
        r"vertical line is $2K\ln M/\eta_Y$.",
    ),
    jd.Study(
        trial=random_laws.trial,
        quick=jd.grid(
            random_laws.Laws, per_query=[1.0, 2.0, 4.0], eta_z=[1.0, 1000.0], size=[30.0, 1000.0, 1e5]
        ),  # snap.rel_gain's
        seeds=4,
        paper_seeds=64,
        source="arXiv:2305.16380, abstract and Theorem 3",
    ).claim(
        id="snap.not_wta_reduced",
        title="Long after the transition attention is still shared (reduced ODE)",
        statement="In the reduced dynamics of up to four classes attention on a class's distinct tokens has the entropy that "
        "follows from the logit of its most frequent one, since $(1 - e^{-2z_l})/P_l^2$ is the same for all of them (Theorem "
        r"3). At $t = 10^7$, with $\eta_Z$ between $\eta_Y$ and $1000\,\eta_Y$ four distinct tokens or more, none with above "
        ".52 of their joint probability, and a common token of at most .3 of it, it is sharper than at the start and in the "
        r"order of the probabilities $P_l$, but still shared by at least 1.3 tokens ($e^{\mathrm{entropy}}$).",
        tested=r"The reduced ODE in float64 from zero to $t$ = {horizon}, $\eta_Y$ = {eta_y}, $\eta_Z$ of {eta_z}, $\rho$ = "
        "{rho}: {classes} classes with {distinct} distinct tokens of random probabilities and one common token of weight "
        "{common} (all distinct tokens of a class: 1), {per_query} classes per query, vocabularies of {size} tokens; {seeds} "
        "seeds.",
        evidence="algebra",
        bounds=jd.tuned(on="0:4", confirmed_on="31000000:31000004"),
        judge=judge_not_wta,
        decides={"order": ("rank correlation of attention with P", "a start that reverses the order")},
        # of four random weights the largest has at most .51 of their sum
        holds={"eta_z": (1.0, 1e3), "distinct": (4, 10), "common": (0.03, 0.3), "classes": (2, 4)},
        controls={
            "a start that reverses the order": {"tilt": 2.0},
            "attention that learns ten million times as fast": {"eta_z": 1e10},
            "attention that stays as it starts": jd.swap(measured_entropy=first_entropy),
        },
        rivals={"one winner takes all": ONE_WINNER, "attention as it starts": AS_IT_STARTS},
        plot=plot_not_wta,
        caption=r"Left: final share of attention of each distinct token against its probability P, a colour for each $\eta_Z$. "
        "Right: entropy of the final attention among a class's distinct tokens against that from the dominant token's logit, "
        "with the line of equality. A point for each token or class of each run.",
    ),
)
