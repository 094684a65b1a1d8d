"""The stable rank of the gradient in descent on quadratics: its fall, the bound on it, and up to which step size the bound holds.

How the gradient's stable rank falls in descent on quadratics, the reduced form of GaLore's theory.

The largest step size with which the bound on the stable rank holds, next to that with which descent converges.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.galore.descent import Quadratic, bound_trial, descent_trial

SMALL = 1e-5  # of the gradient at the start: below, rounding errors (1e-16 of it) are no longer small compared with the gradient
TINY = 1e-6  # of the same: below, the difference of the gradient and the part that stays is rounding errors
NORMS = {"rest": "norm of all but the lowest part", "square": "squared norm of the gradient"}
RATE = "rate at which the rest decays over that of its bound, an eigenvalue per entry, mean"
LATE = 1e-3  # of the part that decays, relative to the part that stays, from which a bound should be tight
TIGHT = 0.0041  # the bound over the stable rank, minus 1, at most: (1 + LATE^2) (1 + LATE)^2 / (1 - LATE)^2 = 1.00402


def judge_exact(ds: xr.Dataset) -> list[jd.Check]:
    """The gradient against the closed form, while it is not yet rounding errors."""
    error = jd.relative_error(ds, "gradient", "row col").where(ds.remaining > SMALL)
    return [jd.at_most("relative error of the gradient", error, 1e-9)]


def judge_bound(ds: xr.Dataset) -> list[jd.Check]:
    """The bound and both norms that it is made of while the gradient is not yet rounding errors; how tight they are."""
    judged = ds.remaining > SMALL
    excess = (ds.measured_bound - ds.predicted_bound).where(judged)
    loose = (ds.predicted_bound / ds.measured_bound - 1).where(judged & (ds.delta < LATE))
    over = {name: (ds[f"measured_{name}"] / ds[f"predicted_{name}"] - 1).where(judged & (ds.delta > TINY)) for name in NORMS}
    return [
        jd.at_most("stable rank minus its bound", excess, 1e-9),
        jd.at_most("bound over stable rank minus 1, once all else has decayed to 0.1%", loose, TIGHT),
        *(jd.at_most(f"{text} over its bound minus 1", over[name], 1e-6) for name, text in NORMS.items()),
        *(jd.at_least(f"the same at the start, {name}", over[name].isel(time=0), -1e-9) for name in NORMS),
        jd.mean_within(RATE, decay_ratio(ds), over="seed", low=0.95, high=1.05),
    ]


def decay_ratio(ds: stats.Labelled) -> xr.DataArray:
    """Rate at which the rest decays over that of delta, where each entry has an eigenvalue of its own and delta is small."""
    jd.need(ds, kind=("entries",))
    part = ds.sel(kind="entries", drop=True)
    late = (part.remaining > SMALL) & (part.delta < 10 * LATE) & (part.delta > TINY)
    rest, delta = (np.log(part[f"{side}_rest"]).where(late) for side in ("measured", "predicted"))
    x = delta - delta.mean("time")
    return (x * rest).sum("time", min_count=2) / (x * x).sum("time", min_count=2)


def judge_rate(ds: xr.Dataset) -> list[jd.Check]:
    """The rate at which the stable rank approaches its limit: of first order."""
    return [jd.at_most("rate of the stable rank: relative error", jd.relative_error(ds, "first_order"), 0.001)]


def judge_rank_one(ds: xr.Dataset) -> list[jd.Check]:
    """The rate at which the stable rank approaches its limit: of second order."""
    return [jd.at_most("rate of the stable rank: relative error", jd.relative_error(ds, "second_order"), 0.01)]


def rest_at_start(ds: xr.Dataset) -> xr.DataArray:
    """Squared norm of the rest at the start."""
    return ds.delta.isel(time=0, drop=True) ** 2


def lowest_part(ds: xr.Dataset) -> xr.DataArray:
    """Squared norm of the lowest part."""
    return ds.predicted_square.isel(time=0, drop=True) - rest_at_start(ds)


def whole_over_rest(ds: xr.Dataset) -> xr.DataArray:
    """Norm of the gradient at the start over that of the rest."""
    return (ds.predicted_square.isel(time=0, drop=True) / rest_at_start(ds)) ** 0.5


# The stable rank stays at its start.
AS_AT_START = jd.swap(predicted_bound="rank_start")


def plot_exact(ds: stats.Labelled, fig: Figure) -> None:
    """Norms of the gradients along descent, closed form and differentiation; the largest relative error of every run."""
    left, right = fig.subplots(1, 2)
    part = ds.isel(seed=slice(0, 8))
    part = part if "step" not in part.dims else part.isel(step=0)
    for name, style in (("measured_gradient", "o"), ("predicted_gradient", "-")):
        norms = np.sqrt((part[name] ** 2).sum(("row", "col"))).transpose("time", ...).values.reshape(ds.sizes["time"], -1)
        color = plotting.COLORS["measured" if style == "o" else "theory"]
        left.plot(norms, style, color=color, markersize=3, alpha=0.5)
    left.set(yscale="log", xlabel="sample along descent", ylabel=r"$\|G\|_F$")
    error = jd.relative_error(ds, "gradient", "row col").max("time").values.ravel()
    right.hist(np.log10(error[np.isfinite(error)]), bins=30, color=plotting.COLORS["measured"])
    right.set(xlabel=r"$\log_{10}$ of the largest relative error", ylabel="runs")


def plot_bound(ds: xr.Dataset, fig: Figure) -> None:
    """Stable ranks along descent and the bound, by problem."""
    kinds = np.atleast_1d(ds.kind.values) if "kind" in ds.coords else ["random"]
    axes = np.atleast_1d(fig.subplots(1, len(kinds), sharey=True))
    for ax, kind in zip(axes, kinds, strict=True):
        part = ds.sel(kind=kind) if "kind" in ds.dims else ds
        part = part.isel(step=0) if "step" in part.dims else part
        time = np.arange(part.sizes["time"])
        plotting.band(ax, time, part.measured_bound.transpose(..., "time"), "stable rank", "measured")
        bound = part.predicted_bound if "form" not in part.predicted_bound.dims else part.predicted_bound.isel(form=-1)
        plotting.band(ax, time, bound.transpose(..., "time"), "bound", "theory", linestyle="--")
        ax.set(title=str(kind), xlabel="sample along descent")
    axes[0].set_ylabel("stable rank")


def plot_rate(ds: xr.Dataset, fig: Figure) -> None:
    """Measured rates against predicted ones."""
    ax = fig.subplots()
    name = "first" if "pair" in np.atleast_1d(ds.kind.values if "kind" in ds.coords else "pair") else "second"
    plotting.scatter(ax, ds[f"predicted_{name}_order"], ds[f"measured_{name}_order"], label="one run", color="measured")
    ax.set(xlabel="predicted rate a step", ylabel="measured rate a step")


TESTED = (
    "40 times {every} steps of gradient descent, by differentiation of a quadratic loss, from zero weights of {rows} by {cols} "
    "with PROBLEMS, at step sizes of {step} times the largest, $2 / (\\lambda_2 + \\lambda_{max})$; {seeds} problems."
)


def tested(problems: str) -> str:
    """The set-up with such matrices B and C."""
    return TESTED.replace("PROBLEMS", problems)


ENTRIES = "B and C that give each entry of G an eigenvalue of its own"
PAIR = "two terms of matrices near the counterexample"
STEP = jd.below("step_over_limit", 1.0)
REACHED = jd.above("late_records", 2.5)  # of a stable rank that is near its limit: fewer give no rate
STUDY = jd.Study(
    trial=descent_trial,
    quick=jd.grid(Quadratic, step=[0.5, 0.9]),
    paper=jd.grid(Quadratic, step=[0.2, 0.5, 0.9], rows=[5, 8], cols=[4, 8]),
    seeds=128,
    paper_seeds=512,
    evidence="reduced",
    bounds="derived: float64 rounding over a gradient that has fallen by up to 1e5, and delta at .1%",
    assumes=(STEP, jd.above("kept_share", 1e-6)),
    source="arXiv:2403.03507, lemma 3.4",
    tested=tested("three terms of Wishart matrices B and C"),
)
ALL = jd.grid(Quadratic, step=[0.5, 0.9], kind=["random", "entries", "pair"])

BOUND = dataclasses.replace(STUDY, trial=bound_trial).claim(
    id="galore.stable_rank_bound",
    title="The gradient's stable rank falls at least as fast as a bound",
    tested=tested(f"Wishart matrices B and C, with {ENTRIES}, and with {PAIR}"),
    statement=r"In the reduced dynamics of gradient descent on $G = A - S[W]$, $S[W] = \frac1N\sum_i B_i W C_i$, in the weights "
    r"$W$, with constant $A$ and positive semidefinite $B_i$, $C_i$, the eigenvalues of $S$ being $\lambda_1 < \lambda_2 < \dots "
    r"\le \lambda_{max}$, and with a step size $\eta$ below $2 / (\lambda_2 + "
    r"\lambda_{max})$: the stable rank $\mathrm{sr}(G) = \|G\|_F^2 / \|G\|_2^2$ has "
    r"$\mathrm{sr}(G_t) \le (\|G_\parallel\|_F^2 + \delta_t^2) / (\|G_\parallel\|_2 - \delta_t)^2$ "
    r"while $\delta_t < \|G_\parallel\|_2$, where $G_\parallel$ is the part of $G_0$ in the eigenspace of $\lambda_1$ and "
    r"$\delta_t = [(1-\eta\lambda_2)/(1-\eta\lambda_1)]^t \|G_0 - G_\parallel\|_F$. Once $\delta_t$ is below 0.1% of "
    r"$\|G_\parallel\|_2$ the bound is at most 0.41% above the stable rank. It is made of two, $\|G_t - G_{\parallel,t}\|_F \le "
    r"(1 - \eta\lambda_1)^t \delta_t$ and $\|G_t\|_F^2 \le (1 - \eta\lambda_1)^{2t}(\|G_\parallel\|_F^2 + \delta_t^2)$, which "
    r"are equalities at the start; where each entry of the gradient has an eigenvalue of its own, and $\delta_t$ is below 1% of "
    r"$\|G_\parallel\|_2$, the left side of the first decays at the rate of its right side within 5% on average.",
    source="derived, in place of arXiv:2403.03507, lemma 3.4, with the condition on the step size that it needs",
    quick=ALL,
    paper=ALL,
    form="corrected",
    bounds=jd.tuned(on="0:128", confirmed_on="61000000:61000128"),
    judge=judge_bound,
    controls={r"step sizes above $2 / (\lambda_2 + \lambda_{max})$ that still converge": {"step": 1.14, "kind": "entries"}},
    rivals={
        "nothing moves: the stable rank of the start": jd.off(AS_AT_START),
        "the stable rank may be as large as it can be": jd.swap(
            predicted_bound=lambda ds: ds.predicted_bound.where(ds.delta > 1, 2.0)
        ),
        "the rest decays at twice the rate": jd.swap(
            predicted_rest=lambda ds: ds.predicted_rest**2 / ds.predicted_rest.isel(time=0),
            predicted_square=lambda ds: (ds.predicted_square - lowest_part(ds)) ** 2 / rest_at_start(ds) + lowest_part(ds),
        ),
        "a bound from the norm of the whole gradient": jd.swap(
            predicted_rest=lambda ds: ds.predicted_rest * whole_over_rest(ds),
            predicted_square=lambda ds: (ds.predicted_square - lowest_part(ds)) * whole_over_rest(ds) ** 2 + lowest_part(ds),
        ),
        "the lowest part does not count": jd.swap(predicted_square=lambda ds: ds.predicted_square - lowest_part(ds)),
    },
    plot=plot_bound,
    caption="Stable rank of the gradient along gradient descent and the bound, medians and central 90% of the runs, for three "
    "kinds of problems: Wishart matrices, an eigenvalue for every entry, and pairs of 2 × 2 matrices near the counterexample.",
)

SHARES = [0.8, 0.9, 0.95, 0.98, 1.02, 1.05, 1.1, 1.14]  # step sizes over the limit; descent converges with all of them


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Below the limit the bound holds in every run; 14% above it, nearly all runs exceed it."""
    jd.need(ds, step=SHARES)
    excess = (ds.measured_bound - ds.predicted_bound).where(ds.remaining > SMALL).max("time")
    beyond, name = excess.sel(step=SHARES[-1]), "steps 14% over the limit"
    return [
        jd.at_most("stable rank minus its bound, steps below the limit", excess.sel(step=[s for s in SHARES if s < 1]), 1e-9),
        jd.share_within(
            f"share of runs with a stable rank above its bound by .005, {name}",
            (beyond > 0.005).where(beyond.notnull()),
            over="seed",
            low=0.9,
        ),
        jd.mean_within(f"stable rank minus its bound, mean over runs, {name}", beyond, over="seed", low=0.3),
    ]


# Stable ranks of the smallest step sizes at the largest, and the other way round.
REVERSED = jd.swap(measured_bound=lambda ds: ds.measured_bound.isel(step=slice(None, None, -1)).assign_coords(step=ds.step))
# Any step size with which descent converges will do: the bound holds up to the largest stable rank there is.
NEVER = jd.swap(predicted_bound=lambda ds: ds.predicted_bound.where(ds.step < 1, 4.0))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """The largest excess of the stable rank over its bound, by step size."""
    ax = fig.subplots()
    excess = (ds.measured_bound - ds.predicted_bound).where(ds.remaining > SMALL).max("time")
    plotting.band(ax, ds.step.values, excess.transpose(..., "step"), "largest excess along descent", "measured")
    ax.axvline(1, color=plotting.COLORS["theory"], linestyle="--", label=r"$\eta = 2/(\lambda_2 + \lambda_{max})$")
    ax.axhline(0, color="gray", linewidth=0.6)
    ax.set(xlabel=r"$\eta\,(\lambda_2 + \lambda_{max}) / 2$", ylabel="stable rank minus its bound")
    ax.legend()


CLAIMS = (
    STUDY.claim(
        id="galore.gd_exact",
        title="Gradients of a quadratic decay mode by mode under descent",
        statement=r"In the reduced dynamics of gradient descent at a rate $\eta$ on $G = A - \frac1N\sum_i B_i W C_i$ in the "
        r"weights $W$, with constant $A$ and symmetric positive semidefinite $B_i$, $C_i$, "
        r"$\mathrm{vec}\,G_t = (I - \eta S)^t\, \mathrm{vec}\,G_0$ with $S = \frac1N \sum_i C_i \otimes B_i$ (vec: columns one "
        r"below the other), to a relative precision of $10^{-9}$ "
        r"until the norm of $G$ has fallen by $10^5$.",
        judge=judge_exact,
        controls={"$A$ depends on the weights": {"bend": 0.1}},
        rivals={
            "nothing moves": jd.off(predicted_gradient="still"),
            "gradient flow: exp(-ηSt)": jd.swap(predicted_gradient="flow"),
        },
        plot=plot_exact,
        caption="Left: norm of the gradient along descent, by differentiation (points) and closed form (lines), 8 runs. Right: "
        "the largest relative error along each run.",
    ),
    BOUND,
    BOUND.as_printed(
        id="galore.stable_rank_bound_as_printed",
        title="The published bound on the gradient's stable rank",
        form="printed",
        printed=r"arXiv:2403.03507, Lemma 3.4: $\mathrm{sr}(G_t) \le \mathrm{sr}(G_{t_0}^\parallel) + "
        r"\left(\frac{1-\eta\lambda_2}{1-\eta\lambda_1}"
        r"\right)^{2(t-t_0)} \frac{\|G_0 - G_{t_0}^\parallel\|_F^2}{\|G_{t_0}^\parallel\|_2^2}$",
        statement=r"In the reduced dynamics of gradient descent on $G = A - S[W]$, $S[W] = \frac1N\sum_i B_i W C_i$, in the "
        r"weights $W$, with constant $A$ and positive semidefinite $B_i$, $C_i$, distinct eigenvalues $\lambda_1 < \lambda_2 < "
        r"\dots < \lambda_{max}$ of $S$ and a step size $\eta$ below $2 / (\lambda_2 + \lambda_{max})$, the stable rank "
        r"$\mathrm{sr}(G) = \|G\|_F^2 / \|G\|_2^2$ has, with the part $G_\parallel$ of $G_0$ in the eigenspace of $\lambda_1$, "
        r"$\mathrm{sr}(G_t) \le \mathrm{sr}(G_\parallel) + [(1-\eta\lambda_2)/(1-\eta\lambda_1)]^{2t} \|G_0 - "
        r"G_\parallel\|_F^2 / \|G_\parallel\|_2^2$.",
        source="arXiv:2403.03507, lemma 3.4",
    ),
    STUDY.claim(
        id="galore.stable_rank_rate",
        title="The stable rank can approach its limit half as fast as published",
        tested=tested(PAIR),
        statement=r"In the reduced dynamics of gradient descent at a rate $\eta$ on problems of two rows and columns, near the "
        r"counterexample to the published bound, whose gradient has a part $G_\parallel$ of rank 2 in the lowest eigenspace and a "
        r"rest of one eigenvalue $\lambda$ with $u^\top (G_0 - G_\parallel) v \ne 0$, $u$ and $v$ the leading singular vectors of "
        r"$G_\parallel$, the stable rank approaches that of $G_\parallel$ like $[(1-\eta\lambda)/(1-\eta\lambda_1)]^{t}$ "
        r"within .1% of that rate, with $\lambda_1$ the lowest eigenvalue: the exponent is $t$, not the $2t$ of the published "
        "bound.",
        source="derived; the exponent compared with: arXiv:2403.03507, lemma 3.4",
        quick=jd.grid(Quadratic, kind="pair", step=[0.4, 0.9], every=1, flip=[0.0, 1.0]),
        paper=jd.grid(Quadratic, kind="pair", step=[0.3, 0.4, 0.45], every=1, flip=[0.0, 1.0]),
        assumes=(STEP, jd.above("kept_share", 1e-6), REACHED),
        judge=judge_rate,
        bounds=jd.tuned(on="0:128", confirmed_on="57000000:57000128"),
        controls={
            "a lowest eigenvector of rank 1": jd.Control(
                {"kind": "entries", "every": 3}, why="these problems decay more slowly, so that records lie further apart"
            )
        },
        rivals={"nothing moves": jd.off(predicted_first_order=0.0), "exponent 2t": jd.scaled(predicted_first_order=2.0)},
        plot=plot_rate,
        caption="Slope of the logarithm of the stable rank's distance from its limit over steps, against its prediction; one "
        "point per run.",
    ),
    STUDY.claim(
        id="galore.rank1",
        title="A gradient whose slowest mode has rank 1 becomes one of rank 1",
        tested=tested(ENTRIES),
        statement=r"In the reduced dynamics of gradient descent on weights $W$ at a rate $\eta$, with $G = A - S[W]$ for a fixed "
        r"matrix $A$ and $S[W] = \frac1N\sum_{i=1}^N B_i W C_i$, where the eigenvectors of the lowest eigenvalues $\lambda_1 < "
        r"\lambda_2$ of $S$ are products $yz^\top$ and "
        r"$uv^\top$ of vectors that are orthogonal, $y$ to $u$ and $z$ to $v$, and $G_0$ has a part along each, the stable rank of "
        r"$G$ approaches 1 like "
        r"$[(1-\eta\lambda_2)/(1-\eta\lambda_1)]^{2t}$ within 1% of that rate, for $\eta$ from .3 to .9 of $2 / (\lambda_2 + "
        r"\lambda_{max})$ (closer to it or farther from it, other parts are still there when the rate is read).",
        holds={"step": (0.3, 0.9)},
        source="arXiv:2403.03507, corollary to lemma 3.4 (low rank); the condition on the second eigenvector: derived",
        quick=jd.grid(Quadratic, kind="entries", step=[0.5, 0.9]),
        paper=jd.grid(Quadratic, kind="entries", step=[0.3, 0.5, 0.9], rows=[5, 8], every=6),
        assumes=(STEP, jd.above("second_share", 0.03), jd.above("kept_share", 0.03), REACHED),
        judge=judge_rank_one,
        bounds=jd.tuned(on="0:128", confirmed_on="57000000:57000128"),
        controls={
            "a lowest eigenvector of rank 2": jd.Control(
                {"kind": "pair", "every": 1, "step": 0.4}, why="this rate is read at each step and at a step size of its own"
            )
        },
        rivals={"nothing moves": jd.off(predicted_second_order=0.0), "exponent t": jd.scaled(predicted_second_order=0.5)},
        plot=plot_rate,
        caption="Slope of the logarithm of the stable rank's distance from 1 over steps, against its prediction; one "
        "point per run.",
    ),
    jd.Study(
        trial=bound_trial,
        quick=jd.grid(Quadratic, kind="entries", step=SHARES),
        paper=jd.grid(Quadratic, kind="entries", step=SHARES, rows=[5, 8]),
        seeds=256,
        paper_seeds=256,
        evidence="reduced",
        bounds=jd.tuned(on="0:128", confirmed_on="18000000:18000256"),
        assumes=(jd.above("kept_share", 0.03),),
        source="derived: the condition that arXiv:2403.03507, lemma 3.4, needs",
    ).claim(
        id="galore.step_limit",
        title="Above a step size the bound on the stable rank can fail",
        tested="40 times {every} steps of gradient descent, by differentiation of a quadratic loss, from zero weights of {rows} "
        "by {cols}; each entry of the gradient has an eigenvalue of its own; {seeds} problems.",
        statement=r"In the reduced dynamics of gradient descent on $G = A - \frac1N\sum_i B_i W C_i$ in the weights $W$, with "
        "constant $A$ and $N$ terms of constant positive semidefinite $B_i$, $C_i$, of random problems of 5 by 4 in which each "
        "entry of $G$ has, in turned coordinates, an eigenvalue of its own (.05 and .5, about 3 on the diagonal and about 1 "
        r"elsewhere), the bound on the stable rank of `galore.stable_rank_bound` holds at .8 to .98 of $\eta = 2/(\lambda_2 + "
        r"\lambda_{max})$ in every run with 3% or more of the gradient in the lowest eigenspace at the start; at 1.14 of it, "
        r"where descent still converges, the stable rank exceeds the bound in more "
        "than 90% of such runs, and by at least 0.3 on average.",
        form="corrected",
        judge=judge,
        controls={"step sizes and stable ranks in reverse order": REVERSED},
        rivals={
            "nothing moves: the stable rank of the start": jd.swap(predicted_bound="rank_start"),
            "no condition beyond convergence": NEVER,
        },
        excused={
            "law": "a bound from above, which at most records lies far above the stable rank: the limit on the step size does not "
            "depend on how fast the bound falls, which galore.stable_rank_bound decides"
        },
        plot=plot,
        caption="Largest excess of the stable rank over its bound along descent, against the step size over the limit; medians "
        "and central 90% of the runs.",
    ),
)
