"""Descent within subspaces, judged: fixed ones stall, switching ones converge; and what inputs of low rank do."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.galore.projection import Fixed, Span, Switching, fixed_trial, span_trial, switching_trial


def judge_fixed(ds: xr.Dataset) -> list[jd.Check]:
    """The worst ratio of successive norms, the late one, and where the gradient ends."""
    return [
        jd.at_most("largest ratio of successive norms, minus its bound", ds.measured_worst_ratio - ds.predicted_worst_ratio, 1e-9),
        jd.at_most("full gradient at the end: relative error", jd.relative_error(ds, "end", "row col"), 1e-6),
    ]


def judge_switching(ds: xr.Dataset) -> list[jd.Check]:
    """The gradient at the end, and the rank of the accumulated update."""
    missing = abs(ds.measured_rank - ds.predicted_rank)
    return [
        jd.at_most("norm of the gradient at the end over that at the start", ds.measured_end - ds.predicted_end, 1e-10),
        jd.at_most("|rank of the update - rank times subspaces used, or full rank|", missing, 0.0),
        jd.at_most("dimensions that the update lacks at the end", ds.predicted_final_rank - ds.measured_final_rank, 0.0),
    ]


def judge_span(ds: xr.Dataset) -> list[jd.Check]:
    """Singular values beyond the span of the inputs, the part in the null space, and that space's dimension."""
    return [
        jd.at_most("singular value N' + 1 at all steps, over the first at the start", ds.beyond, 1e-12),
        jd.at_most("part of the gradient in the null space of S", ds.in_null, 1e-10),
        jd.at_most(
            "dimension of the null space minus m (n - N')", abs(ds.measured_null_dimensions - ds.predicted_null_dimensions), 0
        ),
    ]


def plot_fixed(ds: xr.Dataset, fig: Figure) -> None:
    """Norms of the projected and of the full gradient along descent."""
    ax = fig.subplots()
    part = ds.isel(step=0) if "step" in ds.dims else ds
    time = np.arange(ds.sizes["time"])
    plotting.band(ax, time, (part.norms / part.norms.isel(time=0)).transpose(..., "time"), "projected gradient", "measured")
    plotting.band(ax, time, (part.full / part.full.isel(time=0)).transpose(..., "time"), "full gradient", "third")
    ax.set(yscale="log", xlabel="step", ylabel="norm over that at the start")


def plot_switching(ds: xr.Dataset, fig: Figure) -> None:
    """Norm of the gradient and rank of the update along training."""
    left, right = fig.subplots(1, 2)
    time = np.arange(ds.sizes["time"])
    plotting.band(left, time, ds.norms.transpose(..., "time"), "switching", "measured")
    left.set(yscale="log", xlabel="sample along training", ylabel="gradient over that at the start")
    plotting.band(right, time, ds.measured_rank.transpose(..., "time"), "rank of the update", "measured")
    plotting.band(right, time, ds.predicted_rank.transpose(..., "time"), "rank times subspaces", "theory", linestyle="--")
    right.set(xlabel="sample along training", ylabel="rank")


def plot_span(ds: xr.Dataset, fig: Figure) -> None:
    """Ratio of the first singular value beyond the span to the largest."""
    ax = fig.subplots()
    values = np.maximum(ds.beyond.max("time").values.ravel(), 1e-18)
    ax.hist(np.log10(values), bins=30, color=plotting.COLORS["measured"])
    ax.set(xlabel=r"$\log_{10}$ of $\sigma_{N'+1} / \sigma_1$, largest along descent", ylabel="runs")


CLAIMS = (
    jd.Study(
        trial=fixed_trial,
        quick=jd.grid(Fixed, step=[0.3, 0.6, 0.95]),
        paper=jd.grid(Fixed, step=[0.3, 0.6, 0.95], size=[8, 16], rank=[3, 6]),
        seeds=128,
        paper_seeds=256,
        evidence="reduced",
        bounds="derived: float64 rounding, and the decay of the projected gradient over 2000 steps",
        assumes=(jd.below("step_over_limit", 1.0), jd.above("kappa", 0.0)),
        source=r"arXiv:2403.03507, theorem 3.8 for constant $A$, $B$, $C$; its condition on the step size and where $G$ ends: "
        "derived",
    ).claim(
        id="galore.fixed_proj",
        title="Descent within a fixed subspace converges, but the gradient stays",
        tested="{steps} steps of gradient descent, by differentiation of a quadratic loss, and 2000 for the end: matrices of "
        "{size} by {size}, {terms} terms with eigenvalues from .5 to 1.5, random subspaces of {rank} dimensions on both sides, "
        "step sizes of {step} times the largest; {seeds} problems.",
        statement=r"In the reduced dynamics of gradient descent within fixed subspaces of orthonormal bases $P$, $Q$, $W "
        r"\leftarrow W + \eta P P^\top G\, Q Q^\top$ on $G = A - S[W]$, $S[W] = \frac1N\sum_i B_i W C_i$, with constant $A$, "
        r"symmetric positive definite $B_i$, $C_i$ and $\eta < 2 / (\kappa + \lambda_{max}(\hat S))$, the norm of the projected "
        r"gradient $P^\top G\, Q$ falls to $1 - \eta\kappa$ of itself at most in every step, $\kappa = \frac1N\sum_i "
        r"\lambda_{min}(P^\top B_i P)\, \lambda_{min}(Q^\top C_i Q)$ and $\hat S[X] = P^\top S[PXQ^\top]\, Q$. In random problems "
        r"the full gradient does not vanish: it ends at $G_0 - S[PXQ^\top]$ with $\hat S[X] = P^\top G_0 Q$.",
        holds={"rank": (1, 3), "terms": (1, 3)},
        judge=judge_fixed,
        controls={r"step sizes above $2 / (\kappa + \lambda_{max})$": {"step": 1.06}},
        rivals={
            "the full gradient vanishes": jd.swap(predicted_end="none"),
            r"decay at twice the rate $\kappa$": jd.swap(predicted_worst_ratio=lambda ds: 2 * ds.predicted_worst_ratio - 1),
            "nothing moves": jd.swap(predicted_end="start"),
        },
        plot=plot_fixed,
        caption="Norm of the projected and of the full gradient along descent within fixed subspaces, relative to the start; "
        "medians and central 90% of the runs at the smallest step size.",
    ),
    jd.Study(
        trial=switching_trial,
        quick=jd.grid(Switching),
        paper=jd.grid(Switching, size=[10, 16], steps=3000),
        seeds=128,
        paper_seeds=256,
        evidence="reduced",
        bounds="derived: the decay of the gradient over all steps; ranks are counted",
        source="arXiv:2403.03507, section 4.1 and theorem 3.8; the pair of runs: ours",
    ).claim(
        id="galore.switching",
        title="Switching low-rank subspaces lets the whole gradient vanish",
        tested="{steps} steps of GaLore's optimizer without moments at the rate {step} over the largest eigenvalue: matrices of "
        "{size} by {size}, {terms} terms with eigenvalues from .5 to 1.5, a subspace of {rank} dimensions on one side, found "
        "again every {every} steps; {seeds} problems.",
        statement=r"In the reduced dynamics of gradient descent on $G = A - \frac1N\sum_i B_i W C_i$ in the weights $W$, with "
        "constant $A$ and $N$ of 2 to 4 terms, symmetric $B_i$, $C_i$ with eigenvalues from .5 to 1.5, by GaLore's optimizer "
        "without moments, at a rate of .3 to 1.5 over the largest eigenvalue, a one-sided subspace of 4 of 10 dimensions that is "
        "found again every 10 to 30 of 600 steps lets the whole gradient vanish, to "
        "$10^{-10}$ of its start. The accumulated update has the rank of one subspace times the number of subspaces used, until "
        "it has full rank, and has it at the end.",
        holds={"every": (10.0, 30.0), "step": (0.3, 1.5), "terms": (2, 4)},
        talks=("practical:galore-update",),
        judge=judge_switching,
        controls={"the first subspace is kept": {"every": 0.0}},
        rivals={"the update keeps the rank of one subspace": jd.swap(predicted_rank="one_subspace")},
        plot=plot_switching,
        caption="Left: norm of the gradient over that at the start, along training. Right: rank of the accumulated update, and "
        "the rank of a subspace times the number of subspaces used. Medians and central 90% of the runs; 10 steps a sample.",
    ),
    jd.Study(
        trial=span_trial,
        quick=jd.grid(Span),
        paper=jd.grid(Span, span=[2, 3, 5], size=[8, 12]),
        seeds=128,
        paper_seeds=256,
        evidence="algebra",
        bounds="derived: float64 rounding; dimensions are counted",
        source="arXiv:2403.03507, corollary to lemma 3.4 (low-rank parametric gradients), corrected: derived",
    ).claim(
        id="galore.cor_rank",
        title="Inputs that span few dimensions leave a gradient of as low a rank",
        tested="{steps} steps of gradient descent, by differentiation of a quadratic loss: weights of {rows} by {size}, inputs "
        "that span {span} dimensions, symmetric $B_i$ with eigenvalues from .5 to 1.5; {seeds} problems.",
        statement=r"Where the negative gradient of weights W, m by n, is $\frac1N\sum_i (a_i - B_i W f_i) f_i^\top$, with "
        r"vectors $a_i$, symmetric positive definite $B_i$ and inputs $f_i$ that span $N' < n$ dimensions, it has rank $N'$ at "
        r"most at every step of gradient descent. The operator $S[W] = \frac1N\sum_i B_i W f_i f_i^\top$ has a null space of "
        r"dimension $m(n-N')$, in which the "
        "gradient has no part at any step, so that no bound by that part, as in the paper's corollary, says anything of its rank. "
        "(An identity, along the reduced dynamics.)",
        judge=judge_span,
        controls={"$A$ not of this form": jd.Control({"free": 0.1}, breaks="span $N' < n$ dimensions")},
        rivals={"no direction of the weights is free: S is invertible": jd.swap(predicted_null_dimensions=0.0)},
        plot=plot_span,
        caption=r"Singular value $N' + 1$ of the gradient, the largest along descent, over the first at the start, one count "
        r"per run "
        r"(below $10^{-18}$ counted there).",
    ),
)
