r"""Claims on what the simplest case leaves out: coefficients that change, parts that no weight feels, how loose bounds are."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.galore.trials.decay import Quadratic, bound_trial
from jaxdyn.theories.galore.trials.varying import Free, Spread, Varying, free_trial, spread_trial, varying_trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge_free", "judge_limit", "judge_spread", "judge_varying"]

SMALL = 1e-5  # of the gradient at the start: below, rounding errors are no longer small beside the gradient
BOUND, TIGHT = "kappa over the smallest eigenvalue, less 1", "smallest eigenvalue over kappa, less 1, one term"
SHARES = [0.8, 0.9, 0.95, 0.98, 1.02, 1.05, 1.1, 1.14]  # step sizes over the limit; descent converges with all of them


def judge_varying(ds: xr.Dataset) -> list[jd.Check]:
    """Growth of the projected gradient's norm in every step against its bound; and how much room the steep case leaves."""
    excess = (ds.measured_shrink - ds.predicted_shrink).where(ds.inside > 0).max("time")
    checks = [jd.at_most("relative growth of |R| over the step size, less its bound", excess, 1e-9)]
    if "kind" in ds.dims and "steep" in ds.kind.values:
        room = -excess.sel(kind="steep")
        checks.append(jd.at_most("room below the bound in the steepest step of steep coefficients, in units of L_B L_C", room, 0.5))
    return checks


def judge_free(ds: xr.Dataset) -> list[jd.Check]:
    """The gradient at the end against the part of A that no weight feels, and its stable rank."""
    return [
        jd.at_most("gradient at the end: relative error", jd.relative_error(ds, "end", "row col"), 1e-6),
        jd.at_most("stable rank at the end over n - N'", ds.measured_rank / ds.predicted_rank, 1.0),
    ]


def judge_spread(ds: xr.Dataset) -> list[jd.Check]:
    """How far the rate of decay lies above kappa, by the number of terms."""
    jd.need(ds, terms=[1.0, 3.0, 10.0])
    over = ds.measured_rate / ds.predicted_rate
    return [
        jd.at_most(BOUND, ds.predicted_rate / ds.measured_rate - 1, 1e-12),
        jd.at_most(TIGHT, abs(over.sel(terms=1) - 1), 1e-12),
        *(jd.mean_within(_loose(n), over.sel(terms=n), over="seed", low=1.05) for n in (3, 10)),
    ]


def _loose(terms: int) -> str:
    return f"smallest eigenvalue over kappa, {terms} terms"


def judge_limit(ds: xr.Dataset) -> list[jd.Check]:
    """Below the limit the bound holds in every run; 14% above it, nearly all runs exceed it."""
    jd.need(ds, step=SHARES)
    excess = (ds.measured_bound - ds.predicted_bound).where(ds.remaining > SMALL).max("time")
    beyond, name = excess.sel(step=SHARES[-1]), "steps 14% over the limit"
    return [
        jd.at_most("stable rank less its bound, steps below the limit", excess.sel(step=[s for s in SHARES if s < 1]), 1e-9),
        jd.share_within(
            f"share of runs with a stable rank above its bound by .005, {name}",
            (beyond > 0.005).where(beyond.notnull()),
            over="seed",
            low=0.9,
        ),
        jd.mean_within(f"stable rank less its bound, mean over runs, {name}", beyond, over="seed", low=0.3),
    ]


def reversed_steps(ds: xr.Dataset) -> xr.Dataset:
    """A control: stable ranks of the smallest step sizes at the largest, and the other way round."""
    return ds.assign(measured_bound=ds.measured_bound.isel(step=slice(None, None, -1)).assign_coords(step=ds.step))


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    """A control: rates of problems with other numbers of terms."""
    return ds.assign(measured_rate=ds.measured_rate.roll(terms=1, roll_coords=False))


def as_at_start(ds: xr.Dataset) -> xr.Dataset:
    """A rival: the stable rank stays at its start."""
    return ds.assign(predicted_bound=ds.rank_start.broadcast_like(ds.predicted_bound).transpose(*ds.predicted_bound.dims))


def never(ds: xr.Dataset) -> xr.Dataset:
    """A rival: any step size with which descent converges will do; the bound holds up to the largest stable rank there is."""
    return ds.assign(predicted_bound=ds.predicted_bound.where(ds.step < 1, 4.0))


def plot_varying(ds: xr.Dataset, fig: Figure) -> None:
    """Growth of the norm over the step size along descent, and its bounds, by kind of coefficients."""
    kinds = [str(k) for k in np.atleast_1d(ds.kind.values)]
    for ax, kind in zip(np.atleast_1d(fig.subplots(1, len(kinds))), kinds, strict=True):
        part = ds.sel(kind=kind) if "kind" in ds.dims else ds
        part = part.isel(step=0) if "step" in part.dims else part
        time = np.arange(part.sizes["time"])
        plotting.band(ax, time, part.measured_shrink.where(part.inside > 0).transpose(..., "time"), "measured", "measured")
        plotting.band(ax, time, part.held.transpose(..., "time"), r"$-\kappa$", "third", linestyle=":")
        for form in (str(f) for f in np.atleast_1d(ds.form.values)):
            color = "theory" if form == "corrected" else "failed"
            bound = part.predicted_shrink.sel(form=form) if "form" in part.predicted_shrink.dims else part.predicted_shrink
            plotting.band(ax, time, bound.transpose(..., "time"), f"bound, {form}", color, linestyle="--")
        ax.set(title=kind, xlabel="step", ylabel=r"$(\|R_t\| / \|R_{t-1}\| - 1) / \eta$")


def plot_free(ds: xr.Dataset, fig: Figure) -> None:
    """Entries of the gradient at the end, and its stable rank."""
    left, right = fig.subplots(1, 2)
    one = ds.isel(seed=slice(0, 16))
    plotting.scatter(left, one.predicted_end, one.measured_end, label="entries of the gradient", color="measured")
    left.set(xlabel=r"$A(I - \Pi)$", ylabel="end of descent")
    right.hist(ds.measured_rank.values.ravel(), bins=24, color=plotting.COLORS["measured"])
    right.axvline(float(ds.predicted_rank.max()), color=plotting.COLORS["theory"], linestyle="--", label="$n - N'$")
    right.set(xlabel="stable rank at the end", ylabel="runs")
    right.legend()


def plot_spread(ds: xr.Dataset, fig: Figure) -> None:
    """The smallest eigenvalue over kappa, by the number of terms."""
    ax = fig.subplots()
    over = ds.measured_rate / ds.predicted_rate
    for i, terms in enumerate(ds.terms.values):
        values = over.sel(terms=terms).values.ravel()
        ax.plot(np.full(values.size, i), values, "o", color=plotting.COLORS["measured"], alpha=0.2)
    ax.axhline(1, color=plotting.COLORS["theory"], linestyle="--")
    ax.set_xticks(range(ds.sizes["terms"]), [str(n) for n in ds.terms.values])
    ax.set(xlabel="terms N", ylabel=r"$\lambda_{min}(\hat S) / \kappa$")


def plot_limit(ds: xr.Dataset, fig: Figure) -> None:
    """The largest excess of the stable rank over its bound, by step size."""
    ax = fig.subplots()
    excess = (ds.measured_bound - ds.predicted_bound).where(ds.remaining > SMALL).max("time")
    plotting.band(ax, ds.step.values, excess.transpose(..., "step"), "largest excess along descent", "measured")
    ax.axvline(1, color=plotting.COLORS["theory"], linestyle="--", label=r"$\eta = 2/(\lambda_2 + \lambda_{max})$")
    ax.axhline(0, color="gray", linewidth=0.6)
    ax.set(xlabel=r"$\eta\,(\lambda_2 + \lambda_{max}) / 2$", ylabel="stable rank less its bound")
    ax.legend()


STUDY = jd.Study(
    trial=varying_trial,
    quick=jd.grid(Varying, kind=["wave", "steep"], step=[0.02, 0.1]),
    paper=jd.grid(Varying, kind=["wave", "steep"], step=[0.02, 0.1, 0.3], size=[5, 10], terms=[1, 3, 10]),
    seeds=128,
    paper_seeds=512,
    evidence="reduced",
    bounds="derived",
    assumes=(jd.below("step_over_limit", 1.0), jd.below("coefficients_over_bound", 1.0 + 1e-12)),
    source="arXiv:2403.03507, theorem 3.8",
)

VARYING = STUDY.claim(
    id="galore.fixed_proj_varying",
    statement=r"In the reduced dynamics of gradient descent within fixed subspaces on $G = A(W) - \frac1N\sum_i B_i(W) W C_i(W)$ "
    r"with Lipschitz constants $L_A, L_B, L_C$, $\|W\| \le D$, $\|B_i\| \le L_B D$, $\|C_i\| \le L_C D$ and $\eta\lambda_{max} < "
    r"1$: $\|R_t\| \le [1 - \eta(\kappa_{t-1} - L_A - 2 L_B L_C D^2)]\,\|R_{t-1}\|$ in every step. Where $B$ and $C$ fall as "
    r"steeply as they may, the room below the bound is at most $0.5\,\eta L_B L_C D^2$.",
    source="derived, in place of arXiv:2403.03507, theorem 3.8, with the bounds on B and C that its last term needs",
    form="corrected",
    judge=judge_varying,
    controls={r"coefficients larger than $L_B D$ and $L_C D$": {"offset": 1.0}},
    rivals={
        "the coefficients do not change: $1 - \\eta\\kappa$": jd.swap(predicted_shrink="held"),
        "changes count four times": lambda ds: ds.assign(predicted_shrink=ds.predicted_shrink + 2.0),
    },
    plot=plot_varying,
    caption=r"Change of $\|R\|$ in a step, relative and over the step size, along descent, with its bounds, for coefficients that "
    r"wave (left) and that fall as steeply as they may while $W$ grows (right); medians and central 90% of the runs.",
)

CLAIMS = (
    VARYING,
    VARYING.as_printed(
        id="galore.fixed_proj_varying_as_printed",
        form="printed",
        printed=r"Theorem 3.8: $\|R_t\|_F \le [1 - \eta(\kappa_{t-1} - L_A - L_B L_C D^2)]\,\|R_{t-1}\|_F$",
        statement=r"In the reduced dynamics of gradient descent within fixed subspaces on $G = A(W) - \frac1N\sum_i B_i(W) W "
        r"C_i(W)$ with Lipschitz constants $L_A, L_B, L_C$ and $\|W\| \le D$, $\|R_t\| \le [1 - \eta(\kappa_{t-1} - L_A - L_B L_C "
        r"D^2)]\, \|R_{t-1}\|$ in every step.",
        source="arXiv:2403.03507, theorem 3.8",
    ),
    dataclasses.replace(STUDY, trial=free_trial, quick=jd.grid(Free), paper=jd.grid(Free, span=[2, 3, 5]), assumes=()).claim(
        id="galore.parallel_part",
        statement=r"In the reduced dynamics of gradient descent on $A - \frac1N\sum_i B_i W f_i f_i^\top$ with positive definite "
        r"$B_i$, any $A$ and inputs that span $N' < n$ dimensions, the gradient does not vanish: it ends at $A(I - \Pi)$, $\Pi$ "
        r"the projection on the inputs' span, and its stable rank is at most $n - N'$.",
        source="arXiv:2403.03507, corollary to lemma 3.4, for A that is not of the parametric form; where it ends: derived",
        judge=judge_free,
        controls={
            "inputs that span all dimensions": {"leak": 0.5},
            "stable rank taken from singular values made equal": lambda ds: ds.assign(measured_rank=0 * ds.measured_rank + 8.0),
        },
        rivals={
            "the gradient vanishes": jd.swap(predicted_end="none"),
            "nothing moves": jd.swap(predicted_end="start"),
        },
        plot=plot_free,
        caption=r"Left: entries of the gradient at the end of descent against $A(I - \Pi)$, 16 runs. Right: its stable rank; "
        r"dashed: $n - N'$.",
    ),
    jd.Study(
        trial=spread_trial,
        quick=jd.grid(Spread, terms=[1, 3, 10]),
        paper=jd.grid(Spread, terms=[1, 3, 10], spread=[0.2, 0.5, 0.9]),
        seeds=128,
        paper_seeds=512,
        evidence="algebra",
        source="arXiv:2403.03507, theorem 3.8; the question: ours",
    ).claim(
        id="galore.kappa_loose",
        statement=r"How far does the rate $\kappa = \frac1N\sum_i \lambda_{min}(\hat B_i)\lambda_{min}(\hat C_i)$ of the bound on "
        r"$\|R_t\|$ lie below the true one, $\lambda_{min}(\hat S)$, for matrices with eigenvalues from .5 to 1.5? (Not at all for "
        r"one term; mark: 5%. An algebraic question.)",
        expected="measured",
        judge=judge_spread,
        found={
            BOUND: (-1e-12, 1e-12),
            TIGHT: (0.0, 1e-12),
            _loose(3): (1.15, 1.24),
            _loose(10): (1.29, 1.39),
        },
        controls={"all eigenvalues equal": {"spread": 0.0}, "numbers of terms exchanged": exchanged},
        rivals={"the smallest eigenvalues of the mean matrices": jd.swap(predicted_rate="of_means")},
        plot=plot_spread,
        caption=r"True rate of decay of the projected gradient over the bound's $\kappa$, by the number of terms; one point a run.",
    ),
    jd.Study(
        trial=bound_trial,
        quick=jd.grid(Quadratic, kind="entries", step=SHARES),
        paper=jd.grid(Quadratic, kind="entries", step=SHARES, rows=[5, 8]),
        seeds=256,
        paper_seeds=256,
        evidence="reduced",
        bounds=jd.looked(at="0:128", confirmed="18000000:18000256"),
        assumes=(jd.above("kept_share", 0.03),),
        source="derived: the condition that arXiv:2403.03507, lemma 3.4, needs",
    ).claim(
        id="galore.step_limit",
        statement=r"In the reduced dynamics of gradient descent on $G = A - \frac1N\sum_i B_i W C_i$ whose largest eigenvectors "
        r"have full rank together, the bound on the stable rank holds at .8 to .98 of $\eta = 2/(\lambda_2 + \lambda_{max})$ in "
        r"every run; at 1.14 of it, where descent still converges, the stable rank exceeds the bound in more than 90% of the "
        r"runs, and by at least 0.3 on average.",
        form="corrected",
        judge=judge_limit,
        controls={"step sizes and stable ranks in reverse order": reversed_steps},
        rivals={
            "nothing moves: the stable rank of the start": as_at_start,
            "no condition beyond convergence": never,
        },
        plot=plot_limit,
        caption="Largest excess of the stable rank over its bound along descent, against the step size over the limit; medians and "
        "central 90% of the runs.",
    ),
)
