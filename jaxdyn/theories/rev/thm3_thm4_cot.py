"""Theorems 3 and 4: how fast facts are learned, what of the reverse and of two steps is not, and the chain of thought.

Theorem 3: trained directions are learned at least as fast as the bound, reversed ones are not learned at all.

Theorem 4: direct facts are learned, their composition is not, and a chain of thought finds it.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.bounds import ASSUMES, CAPTION, LATE, RIVALS, judge_bound, judge_share, late_enough, plot_bound, tightness
from jaxdyn.theories.rev.one_layer import EXPONENT, MODEL, OneLayer, trial

THEOREM3 = "arXiv:2405.04669, Theorem 3"
GRID = jd.grid(OneLayer, vocabulary=[200, 1000], shown=[0.25, 1.0], eta=[0.5, 0.9])
PAPER = jd.grid(OneLayer, vocabulary=[200, 1000, 4000], test_indices=20, shown=[0.25, 0.5, 1.0], eta=[0.1, 0.5, 0.9], steps=100_000)


KNOWN = 0.9  # probability from which on the trained directions are learned


def early(ds: xr.Dataset) -> xr.Dataset:
    """A control: the late times' data are those before .3 N ln M / eta steps."""
    names = ("measured_bound", "measured_missing", "measured_exponent")
    place = int((ds.late < 0.3).sum("record").min()) - 1
    if place < 0:
        raise jd.Inconclusive("no record is early enough: the control needs one before .3 N ln M / eta steps")
    return jd.swap(**{n: lambda ds, n=n: ds[n].isel(record=place) for n in names})(ds)


def judge_test(ds: xr.Dataset) -> list[jd.Check]:
    """The trained directions are learned; every reversed sequence keeps the probability of a guess, at every time."""
    learned = ds.measured_mean.sel(token="target").isel(record=-1)
    return [
        jd.gate("probability of the trained directions at the end, mean of a run", learned, at_least=KNOWN),
        jd.at_most("probability of a reversed sequence against 1/M, relative error", jd.relative_error(ds, "test"), 1e-12),
    ]


# A fact is known in both directions; the reversed one as well as the trained one on average.
AS_TRAINED = jd.swap(predicted_test=lambda ds: ds.predicted_mean.sel(token="target", drop=True))


def plot_test(ds: xr.Dataset, fig: Figure) -> None:
    """Trained and reversed sequences of the same indices along training."""
    ax = fig.subplots()
    ds = ds.isel({axis: 0 for axis in ("vocabulary", "eta", "shown") if axis in ds.dims})
    t, size = ds.t.isel(seed=0), float(ds["size"].isel(seed=0))
    trained = ds.measured_bound.where(ds.of_test).transpose("seed", "sequence", "record").values
    plotting.band(ax, t.values, trained, "trained direction, test indices", "third")
    plotting.band(ax, t.values, ds.measured_test.transpose("seed", "test", "record").values, "reversed direction")
    ax.axhline(1 / size, linestyle="--", color=plotting.COLORS["theory"], label="1/M")
    ax.set(xscale="log", yscale="log", xlabel="steps t", ylabel="probability of the target")


fact_study = jd.Study(
    trial=trial,
    quick=GRID,
    paper=PAPER,
    seeds=4,
    paper_seeds=64,
    evidence="network",
    source=THEOREM3,
    tested=r"One-layer transformer (attention on the first token alone) from zero weights, $\eta$ = {eta}, {steps} steps of SGD "
    r"on one "
    "training sequence at a time, M = {vocabulary} tokens; {train_indices} facts stated in both directions (a share {shown} of "
    "them in training) and {test_indices} in one; {seeds} seeds.",
)
SYMMETRIC = {"symmetric decoder Y + Y^T": {"decoder": "symmetric", "vocabulary": 200, "shown": 0.25}}
TEST_CAPTION = (
    "Probability of the trained and of the reversed direction of a fact along training: median and central 90% of the sequences "
    "of all runs of the first setting; dashed: 1/M."
)

train = fact_study.claim(
    id="rev.thm3_train",
    talks=("training:rev-theorem-3",),
    title="Facts are learned at least as fast as the bound, where trained",
    statement=rf"In {MODEL}, from $t = 10\,N\ln M/\eta$ SGD steps of size $\eta$ on, each on one of N facts that are equally "
    rf"likely, with $M > 100$ tokens and $\eta < 1$, 95% or more of the trained "
    rf"facts are answered with the probability $p \ge 1 - \frac{{M-1}}{{2 s^c}}$, $s = M\eta t/N$, $c = {EXPONENT}$. The "
    r"mean of $1-p$ in a run is that of `rev.clock` to 2%, and the largest c that it allows is that of gradient flow, "
    r"$\ln\frac{M-1+e^u}{2}/\ln s$ with $(M-1)u + e^u - 1 = s$, to .004.",
    bounds=jd.tuned(on="0:8", confirmed_on="97000000:97000004"),
    judge=judge_bound,
    assumes=ASSUMES,
    controls={
        "t below .3 N ln M / eta": jd.Control(early, breaks=r"From $t = 10\,N\ln M/\eta$ SGD steps"),
        "symmetric decoder Y + Y^T": {"decoder": "symmetric", "vocabulary": 200, "shown": 0.25},
    },
    rivals=RIVALS,
    plot=plot_bound,
    caption=CAPTION,
)
test = fact_study.claim(
    id="rev.thm3_test",
    talks=("training:rev-theorem-3",),
    title="The reverse of a fact stated in one direction stays a guess",
    statement=r"By construction of the one-layer model, whose logits are the row of its decoder at the first token, the reverse "
    r"of a fact that is stated in one direction keeps the probability of a guess, $p = 1/M$ with M tokens, at all times, while "
    rf"the stated directions are learned (mean probability {KNOWN:g} or more at the end): no training sequence reads or writes its "
    "row.",
    evidence="algebra",
    bounds="derived: float64 rounding of the softmax of a row that does not move",
    source=f"{THEOREM3}; equality derived",
    judge=judge_test,
    controls=SYMMETRIC | {"reversed sequences in training": {"leak": 1.0, "vocabulary": 200, "shown": 0.25}},
    rivals={"the reversed direction as probable as the trained one": AS_TRAINED},
    plot=plot_test,
    caption=TEST_CAPTION,
)


SOURCE = "arXiv:2405.04669"
FEWER, CHAINS = 0.85, 0.75  # shares of the direct sequences of test indices, and of their chains, that obey the bound; they are few
NEAR = 0.05  # how far from its law 1 - p may be, mean over runs: rows with two targets, which take draws, are not in it
APART = 0.008  # how far from the flow's the exponent may be, mean over runs
UNLEARNED = 0.1  # probability of an answer that is not learned, at most, times M: that of a guess is 1
CERTAIN, CERTAIN_AT = 0.97, 20  # a chain's mean probability, and from how many N ln M / eta steps on


def judge_direct(ds: xr.Dataset) -> list[jd.Check]:
    """The bound for the two direct sequences of every test index, and how tight it is on average over all rows of one target."""
    missing, off = map(_late_cells, tightness(ds))
    return [
        judge_share(ds.assign(measured_bound=ds.measured_bound.where(ds.of_test)), FEWER),
        jd.mean_within("mean of 1 - p over its law, mean over runs", missing, over="seed", low=1 - NEAR, high=1 + NEAR),
        jd.mean_within("exponent minus the flow's, mean over runs", off, over="seed", low=-APART, high=APART),
    ]


def _late_cells(values: xr.DataArray) -> xr.DataArray:
    """All settings and records as one axis, without records that are not late."""
    cells = [d for d in values.dims if d != "seed"]
    return values.stack(cell=cells, create_index=False).dropna("cell", how="all")


def judge_indirect(ds: xr.Dataset) -> list[jd.Check]:
    """Below a guess once t is late, and at all times equal to what the clock leaves each token."""
    above = (ds.measured_test * ds["size"]).where(late_enough(ds))
    return [
        jd.at_most("probability of the indirect answer times M, late", above, UNLEARNED),
        jd.at_most("against 1/(M - 1 + exp u_k), relative error", jd.relative_error(ds, "test"), 1e-12),
    ]


def judge_chain(ds: xr.Dataset) -> list[jd.Check]:
    """Two greedy steps find what one cannot: the product of the clocks, above the bound's square, and nearly 1 at late times."""
    late = ds.late >= LATE
    certain = _late_cells(ds.measured_chain.where(ds.late >= CERTAIN_AT).mean("test").min("record"))
    if not certain.size:
        raise jd.Inconclusive(f"no record is late enough: a chain is judged from {CERTAIN_AT} N ln M / eta steps on")
    counted = late & ds.measured_chain.notnull()
    above = (ds.measured_chain >= ds.predicted_bound**2).where(counted).min("record")
    return [
        jd.at_most("chain against the product of clocks, relative error", jd.relative_error(ds, "chain").where(late), 1e-12),
        jd.share_within("share of chains above the bound's square at all late times", above, over=list(above.dims), low=CHAINS),
        jd.mean_within(f"mean chain from {CERTAIN_AT} N ln M / eta steps on, least over time", certain, over="seed", low=CERTAIN),
        jd.at_most("probability of the answer without a chain, times M", (ds.measured_test * ds["size"]).where(late), UNLEARNED),
    ]


# Nothing is learned, and every answer is a guess; a chain is two.
GUESSED = jd.swap(predicted_test=lambda ds: 1 / ds["size"], predicted_chain=lambda ds: (1 / ds["size"]) ** 2)
ONE_STEP_ENOUGH = jd.swap(predicted_test="predicted_chain")
ONE_CLOCK = jd.swap(predicted_chain=lambda ds: ds.predicted_chain**0.5)  # a chain is as certain as one of its steps


def plot_indirect(ds: xr.Dataset, fig: Figure) -> None:
    """Probability of the indirect answer along training, and against the clock."""
    left, right = fig.subplots(1, 2)
    ds = ds.isel({axis: 0 for axis in ("vocabulary", "eta", "shown") if axis in ds.dims})
    t, size = ds.t.isel(seed=0).values, float(ds["size"].isel(seed=0))
    plotting.band(left, t, ds.measured_test.transpose("seed", "test", "record").values, "indirect answer, one step")
    plotting.band(left, t, ds.measured_chain.transpose("seed", "test", "record").values, "by a chain of two steps", "third")
    left.axhline(1 / size, linestyle="--", color=plotting.COLORS["theory"], label="1/M")
    left.set(xscale="log", yscale="log", xlabel="steps t", ylabel=r"probability of C after A")
    plotting.scatter(right, ds.predicted_test, ds.measured_test, "test indices of all runs", log=True)
    right.set(xlabel=r"$1/(M - 1 + e^{u_k})$", ylabel="probability of the network")


def plot_chain(ds: xr.Dataset, fig: Figure) -> None:
    """The chain's answer at every step size, its shuffled control, and the answer without a chain."""
    ax = fig.subplots()
    ds = ds.isel({axis: 0 for axis in ("vocabulary", "shown") if axis in ds.dims})
    for eta, color in zip(np.atleast_1d(ds.eta.values), ("measured", "third", "fourth"), strict=False):
        part = ds.sel(eta=eta) if "eta" in ds.dims else ds
        x = part.late.isel(seed=0).values
        plotting.band(ax, x, part.measured_chain.transpose("seed", "test", "record").values, rf"chain, $\eta$ = {eta:g}", color)
        plotting.band(ax, x, part.shuffled.transpose("seed", "test", "record").values, "", "control")
        plotting.band(ax, x, part.measured_test.transpose("seed", "test", "record").values, "", "theory", linestyle="--")
    ax.plot([], [], color=plotting.COLORS["control"], label="chain with shuffled intermediate tokens")
    ax.plot([], [], "--", color=plotting.COLORS["theory"], label="without a chain")
    ax.set(xscale="log", yscale="log", xlabel=r"$\eta t/(N \ln M)$", ylabel="probability of C after A")


LEAK = {"indirect sequences of test indices in training": {"leak": 1.0, "vocabulary": 200, "shown": 0.25}}

chain_study = jd.Study(
    trial=trial,
    quick=jd.grid(OneLayer, task="cot", train_indices=24, vocabulary=[200, 1000], shown=[0.25, 1.0], eta=[0.5, 0.9]),
    paper=jd.grid(
        OneLayer, task="cot", train_indices=24, vocabulary=[200, 1000, 4000], shown=[0.25, 1.0], eta=[0.1, 0.5, 0.9], steps=100_000
    ),
    seeds=6,
    paper_seeds=64,
    evidence="network",
    bounds=jd.tuned(on="0:8", confirmed_on="96000000:96000006"),
    assumes=ASSUMES,
    source=f"{SOURCE}, Theorem 4",
    tested=r"One-layer transformer (attention on the first token alone) from zero weights, $\eta$ = {eta}, {steps} steps of SGD "
    r"on one "
    "training sequence at a time, M = {vocabulary} tokens; {train_indices} chains A to B to C with the shortcut A to C (a share "
    "{shown} of them in training) and {test_indices} without it; {seeds} seeds.",
)

direct = chain_study.claim(
    id="rev.thm4_direct",
    talks=("training:rev-theorem-4",),
    title="Steps of a chain of facts are learned at least as fast as the bound",
    statement=rf"In {MODEL}, from $t = 10\,N\ln M/\eta$ SGD steps of size $\eta$ on, each drawing a given fact with the odds "
    r"1/N, with $M > 100$ tokens and $\eta < 1$, 85% or more of the facts $A_i \to B_i$ and $B_i \to C_i$ are answered with "
    r"the probability $p \ge 1 - \frac{M-1}{2 s^{.85}}$, $s = M\eta t/N$. The "
    r"mean of $1-p$ over all facts with a first token of their own is that of `rev.clock` to 5%, and the largest exponent that it "
    r"allows is that of gradient flow (`rev.thm3_train`) to .008, both on average over runs.",
    seeds=16,
    bounds=jd.tuned(on="96000000:96000016", confirmed_on="97000000:97000016"),
    judge=judge_direct,
    controls=LEAK,
    rivals=RIVALS,
    plot=plot_bound,
    caption=CAPTION,
)
indirect = chain_study.claim(
    id="rev.thm4_indirect",
    talks=("training:rev-theorem-4",),
    title="Two learned facts do not give their composition",
    statement=rf"Trained on $A_i \to B_i$ and $B_i \to C_i$ alone, {MODEL}, unlearns the answer $C_i$ after $A_i$: its "
    r"probability is $1/(M-1+e^{u_k})$ with M tokens, $u_k$ the clock of `rev.clock` and k the draws of $A_i \to B_i$, and below "
    rf"a fraction {UNLEARNED:g} of a guess, $1/M$, from $t = 10\,N\ln M/\eta$ steps of size $\eta$ on, where a "
    "step draws a given fact with the odds 1/N. (Two steps find it: `rev.cot`.)",
    source=f"{SOURCE}, Theorem 4; equality derived",
    bounds="derived: float64 rounding, and the law, by which a third of the late draws leaves a tenth of a guess",
    judge=judge_indirect,
    controls=LEAK | {"transitive closure Y + Y Y": jd.swap(measured_test="closed")},
    rivals={"nothing is learned: 1/M": jd.off(GUESSED), "one step finds what two find": ONE_STEP_ENOUGH},
    plot=plot_indirect,
    caption="Left: probability of C after A along training, in one step and by a chain of two; median and central 90% of the "
    "test indices of all runs of the first setting; dashed: 1/M. Right: the same in one step against the clock of its row, per "
    "test index and time.",
)
chain = chain_study.claim(
    id="rev.cot",
    talks=("training:rev-cot",),
    title="A chain of thought of two steps finds what one step does not",
    statement=rf"In {MODEL}, from $t = 10\,N\ln M/\eta$ SGD steps of size $\eta$ on, each drawing a given fact with the odds "
    r"1/N, with M tokens, two greedy steps find $C_i$ after $A_i$ with the probability $p(B_i|A_i\to)\,p(C_i|B_i\to)$, the "
    r"product of the two laws of `rev.clock`; in 75% of "
    r"cases or more it is at least the square of the bound of `rev.thm3_train`, and its mean is above "
    rf"{CERTAIN} from $t = {CERTAIN_AT}\,N\ln M/\eta$ on. In one step the probability of $C_i$ is below {UNLEARNED:g}/M.",
    source=f"{SOURCE}, section 4.2",
    judge=judge_chain,
    controls=LEAK | {"intermediate tokens shuffled": jd.swap(measured_chain="shuffled")},
    rivals={"nothing is learned: two guesses": jd.off(GUESSED), "as certain as one step": ONE_CLOCK},
    plot=plot_chain,
    caption=r"Probability of C after A against $\eta t/(N\ln M)$, by a chain of two steps for each step size, with shuffled "
    "intermediate tokens, and without a chain: median and central 90% of the test indices of all runs of the first M and N.",
)


CLAIMS = (
    train,
    test,
    direct,
    indirect,
    chain,
)
