"""Claims on Theorem 4: direct facts are learned, their composition is not, and a chain of thought finds it."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.claims.one_layer import LARGE, SOURCE, OneLayer, trial
from jaxdyn.theories.rev.claims.thm3 import LATE, judge_bound, plot_bound

__all__ = ["CLAIMS", "closure", "judge_chain", "judge_direct", "judge_indirect", "shuffled"]

CERTAIN, CERTAIN_AT = 0.98, 20  # a chain's mean probability, and from how many N ln M / eta steps on


def judge_direct(ds: xr.Dataset) -> list[jd.Check]:
    """The bound for the two direct sequences of every test index."""
    return judge_bound(ds.assign(measured_bound=ds.measured_bound.where(ds.of_test)))


def judge_indirect(ds: xr.Dataset) -> list[jd.Check]:
    """Below a guess once t is late, and at all times equal to what the clock leaves each token."""
    if not bool((ds.late >= LATE).any()):
        raise jd.Inconclusive(f"the bound is judged from {LATE} N ln M / eta steps on; no reading is so late")
    above = (ds.measured_test * ds["size"]).where(ds.late >= LATE)
    return [
        jd.at_most("probability of the indirect answer times M, late", above, 1.0),
        jd.at_most("against 1/(M - 1 + exp u_k), relative error", jd.relative_error(ds, "test"), 1e-12),
    ]


def judge_chain(ds: xr.Dataset) -> list[jd.Check]:
    """Two greedy steps find what one cannot: the product of the clocks, above the bound's square, near certainty late on."""
    late = ds.late >= LATE
    mean = ds.measured_chain.mean([d for d in ("seed", "test") if d in ds.dims])
    surely = mean.where((ds.late >= CERTAIN_AT).all("seed"))
    if not bool(surely.notnull().any()):
        raise jd.Inconclusive(f"a chain is near certainty from {CERTAIN_AT} N ln M / eta steps on; no reading is so late")
    return [
        jd.at_most("chain against the product of clocks, relative error", jd.relative_error(ds, "chain").where(late), 1e-12),
        jd.at_least("chain minus the bound's square", (ds.measured_chain - ds.predicted_bound**2).where(late), 0.0),
        jd.at_least(f"mean chain from {CERTAIN_AT} N ln M / eta steps on", surely, CERTAIN),
        jd.at_most("direct answer times M", (ds.measured_test * ds["size"]).where(late), 1.0),
    ]


def closure(ds: xr.Dataset) -> xr.Dataset:
    """A breach: the answer read off the transitive closure Y + Y Y of the trained decoder."""
    return ds.assign(measured_test=ds.closed.where(np.isfinite(ds.closed)))


def shuffled(ds: xr.Dataset) -> xr.Dataset:
    """A breach: the intermediate token of another chain."""
    return ds.assign(measured_chain=ds.shuffled.where(np.isfinite(ds.shuffled)))


def plot_indirect(ds: xr.Dataset, fig: Figure) -> None:
    """Probability of the indirect answer along training, and against the clock."""
    left, right = fig.subplots(1, 2)
    t, size = ds.t.isel(seed=0).values, float(ds["size"].isel(seed=0))
    plotting.band(left, t, ds.measured_test.transpose("seed", "test", "record").values, "indirect answer, one step")
    plotting.band(left, t, ds.measured_chain.transpose("seed", "test", "record").values, "by a chain of two steps", "third")
    left.axhline(1 / size, linestyle="--", color=plotting.COLORS["theory"], label="1/M")
    left.set(xscale="log", yscale="log", xlabel="steps t", ylabel=r"probability of C after A")
    predicted = ds.predicted_test.sel(form="derived") if "form" in ds.dims else ds.predicted_test
    plotting.scatter(right, predicted, ds.measured_test, "test indices of all runs", log=True)
    right.set(xlabel=r"$1/(M - 1 + e^{u_k})$", ylabel="probability of the network")


def plot_chain(ds: xr.Dataset, fig: Figure) -> None:
    """The chain's answer at every step size, its shuffled control, and the answer without a chain."""
    ax = fig.subplots()
    for eta, color in zip(np.atleast_1d(ds.eta.values), ("measured", "third", "fourth"), strict=False):
        part = ds.sel(eta=eta) if "eta" in ds.dims else ds
        x = part.late.isel(seed=0).values
        plotting.band(ax, x, part.measured_chain.transpose("seed", "test", "record").values, rf"chain, $\eta$ = {eta:g}", color)
        plotting.band(ax, x, part.shuffled.transpose("seed", "test", "record").values, "", "control")
        plotting.band(ax, x, part.measured_test.transpose("seed", "test", "record").values, "", "theory", linestyle="--")
    ax.plot([], [], color=plotting.COLORS["control"], label="chain with shuffled intermediate tokens")
    ax.plot([], [], "--", color=plotting.COLORS["theory"], label="without a chain")
    ax.set(xscale="log", yscale="log", xlabel=r"$\eta t/(N \ln M)$", ylabel="probability of C after A")


_COT = {"task": "cot", "train_indices": 6}
_PAPER = {"task": "cot", "vocabulary": 1000, "train_indices": 20, "test_indices": 20, "steps": 100_000}
_SMALL = {"trial": trial, "seeds": 16, "paper_seeds": 64, "quick": jd.grid(OneLayer, **_COT), "paper": jd.grid(OneLayer, **_PAPER)}
_INDIRECT = {**_SMALL, "judge": judge_indirect, "plot": plot_indirect}
_LEAK = {"indirect sequences of test indices in training": {"leak": 1.0}}

CLAIMS = (
    jd.Claim(
        id="rev.thm4_direct",
        statement=r"The direct facts of test indices, $p(B_i|A_i \to)$ and $p(C_i|B_i \to)$, obey the bound of Theorem 3 from "
        r"$t = 10\,N\ln M/\eta$ on.",
        source=f"{SOURCE}, Theorem 4",
        trial=trial,
        quick=jd.grid(OneLayer, **_COT, **LARGE),
        paper=jd.grid(OneLayer, **_PAPER),
        seeds=8,
        paper_seeds=64,
        judge=judge_direct,
        form="derived",
        controls=_LEAK,
        plot=plot_bound,
    ),
    jd.Claim(
        id="rev.thm4_indirect",
        statement=r"The indirect fact of a test index is not learned: $p(C_i|A_i \leadsto) = 1/(M-1+e^{u_k}) < 1/M$, with k the "
        r"visits of $A_i$'s row.",
        source=f"{SOURCE}, Theorem 4; equality derived",
        form="derived",
        controls=_LEAK | {"transitive closure Y + Y Y": closure},
        **_INDIRECT,
    ),
    jd.Claim(
        id="rev.thm4_tight",
        statement=r"The bound $p(C_i|A_i \leadsto) \le 1/M$ of Theorem 4 is attained. (It is loose by the factor $(M-1+e^{u})/M$: "
        r"the answer is pushed down whenever $A_i \to B_i$ is seen.)",
        source=f"{SOURCE}, Theorem 4, read as an equality",
        form="simplified",
        counterpart="derived",
        expected="refuted",
        **_INDIRECT,
    ),
    jd.Claim(
        id="rev.cot",
        statement=r"A chain of thought of two greedy steps finds what one step cannot: $p(B_i|A_i\to)\,p(C_i|B_i\to) \to 1$, the "
        rf"product of two clocks; its mean is above {CERTAIN} from $t = {CERTAIN_AT}\,N\ln M/\eta$ on.",
        source=f"{SOURCE}, section 4.2",
        judge=judge_chain,
        form="derived",
        controls={"intermediate tokens shuffled": shuffled},
        plot=plot_chain,
        **(_SMALL | {"quick": jd.grid(OneLayer, eta=[0.5, 0.9], **_COT)}),
    ),
)
