"""Claims on Theorem 4: direct facts are learned, their composition is not, and a chain of thought finds it."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.bounds import CAPTION, LATE, judge_bound, late_enough, plot_bound
from jaxdyn.theories.rev.trials.one_layer import OneLayer, trial

__all__ = ["CLAIMS", "judge_chain", "judge_direct", "judge_indirect"]

SOURCE = "arXiv:2405.04669"
CERTAIN, CERTAIN_AT = 0.98, 20  # a chain's mean probability, and from how many N ln M / eta steps on


def judge_direct(ds: xr.Dataset) -> list[jd.Check]:
    """The bound for the two direct sequences of every test index."""
    return judge_bound(ds.assign(measured_bound=ds.measured_bound.where(ds.of_test)))


def judge_indirect(ds: xr.Dataset) -> list[jd.Check]:
    """Below a guess once t is late, and at all times equal to what the clock leaves each token."""
    above = (ds.measured_test * ds["size"]).where(late_enough(ds))
    return [
        jd.at_most("probability of the indirect answer times M, late", above, 1.0),
        jd.at_most("against 1/(M - 1 + exp u_k), relative error", jd.relative_error(ds, "test"), 1e-12),
    ]


def judge_chain(ds: xr.Dataset) -> list[jd.Check]:
    """Two greedy steps find what one cannot: the product of the clocks, above the bound's square, and nearly 1 at late times."""
    late = ds.late >= LATE
    mean = ds.measured_chain.mean([d for d in ("seed", "test") if d in ds.dims])
    certain = mean.where((ds.late >= CERTAIN_AT).all("seed"))
    if not bool(certain.notnull().any()):
        raise jd.Inconclusive(f"no record is late enough: a chain is judged from {CERTAIN_AT} N ln M / eta steps on")
    return [
        jd.at_most("chain against the product of clocks, relative error", jd.relative_error(ds, "chain").where(late), 1e-12),
        jd.at_least("chain minus the bound's square", (ds.measured_chain - ds.predicted_bound**2).where(late), 0.0),
        jd.at_least(f"mean chain from {CERTAIN_AT} N ln M / eta steps on", certain, CERTAIN),
        jd.at_most("direct answer times M", (ds.measured_test * ds["size"]).where(late), 1.0),
    ]


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


LEAK = {"indirect sequences of test indices in training": {"leak": 1.0}}

study = jd.Study(
    trial=trial,
    quick=jd.grid(OneLayer, task="cot", train_indices=6),
    paper=jd.grid(OneLayer, task="cot", vocabulary=1000, train_indices=20, test_indices=20, steps=100_000),
    seeds=16,
    paper_seeds=64,
    form="derived",
    source=f"{SOURCE}, Theorem 4",
)

direct = study.claim(
    id="rev.thm4_direct",
    statement=r"In the one-layer model trained by batch-1 SGD, the direct facts of test indices, $p(B_i|A_i \to)$ and "
    r"$p(C_i|B_i \to)$, obey the bound $1 - \frac{M-1}{2 (M\eta t/N)^{.85}}$ from $t = 10\,N\ln M/\eta$ on.",
    quick=study.quick.replace(vocabulary=1000, steps=5000),
    seeds=8,
    judge=judge_direct,
    controls=LEAK,
    plot=plot_bound,
    caption=CAPTION,
)
indirect = study.claim(
    id="rev.thm4_indirect",
    statement=r"In the one-layer model, the indirect fact of a test index is not learned: $p(C_i|A_i \leadsto) = 1/(M-1+e^{u_k})$, "
    r"with k the visits of $A_i$'s row, and it is below $1/M$ from $t = 10\,N\ln M/\eta$ on.",
    source=f"{SOURCE}, Theorem 4; equality derived",
    judge=judge_indirect,
    controls=LEAK | {"transitive closure Y + Y Y": jd.swap(measured_test="closed")},
    plot=plot_indirect,
    caption="Left: probability of C after A along training, in one step and by a chain of two; median and central 90% of the test "
    "indices of all runs; dashed: 1/M. Right: the same in one step against the clock of its row, per test index and time.",
)
tight = indirect.as_printed(
    id="rev.thm4_tight",
    statement=r"In the one-layer model, the bound $p(C_i|A_i \leadsto) \le 1/M$ of Theorem 4 is attained.",
    source=f"{SOURCE}, Theorem 4, read as an equality",
    form="simplified",
)
chain = study.claim(
    id="rev.cot",
    bounds="chosen after a look; upheld on seeds 1000:1032",
    statement=r"In the one-layer model, a chain of thought of two greedy steps finds what one step does not: from "
    r"$t = 10\,N\ln M/\eta$ on its probability $p(B_i|A_i\to)\,p(C_i|B_i\to)$ is the product of two clocks and at least the square "
    rf"of the bound of Theorem 3, and its mean is above {CERTAIN} from $t = {CERTAIN_AT}\,N\ln M/\eta$ on.",
    source=f"{SOURCE}, section 4.2",
    quick=study.quick.replace(eta=[0.5, 0.9]),
    judge=judge_chain,
    controls={"intermediate tokens shuffled": jd.swap(measured_chain="shuffled")},
    plot=plot_chain,
    caption=r"Probability of C after A against $\eta t/(N\ln M)$, by a chain of two steps for each step size, with shuffled "
    "intermediate tokens, and without a chain: median and central 90% of the test indices of all runs.",
)

CLAIMS = (direct, indirect, tight, chain)
