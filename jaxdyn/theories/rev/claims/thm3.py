"""Claims on Theorem 3: trained directions are learned at least as fast as the bound, reversed ones are not learned at all."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.bounds import CAPTION, judge_bound, plot_bound
from jaxdyn.theories.rev.trials.one_layer import EXPONENT, OneLayer, trial

__all__ = ["CLAIMS", "early", "exponent_one", "judge_test"]

SOURCE = "arXiv:2405.04669, Theorem 3"


def early(ds: xr.Dataset) -> xr.Dataset:
    """A breach: the late times' data are those before .3 N ln M / eta steps."""
    names = ("measured_bound", "predicted_bound", "measured_exponent", "predicted_exponent")
    place = int((ds.late < 0.3).sum("record").min()) - 1
    if place < 0:
        raise jd.Inconclusive("no record is early enough: the breach needs one before .3 N ln M / eta steps")
    return ds.assign({n: ds[n].isel(record=place).broadcast_like(ds[n]).transpose(*ds[n].dims) for n in names})


def exponent_one(ds: xr.Dataset) -> xr.Dataset:
    """A breach: the bound with c = 1."""
    return ds.assign(predicted_bound=1 - (1 - ds.predicted_bound) * ds.s ** (EXPONENT - 1))


def judge_test(ds: xr.Dataset) -> list[jd.Check]:
    """Every reversed sequence keeps the probability of a guess, at every time."""
    return [jd.at_most("probability of a reversed sequence against 1/M, relative error", jd.relative_error(ds, "test"), 1e-12)]


def plot_test(ds: xr.Dataset, fig: Figure) -> None:
    """Trained and reversed sequences of the same indices along training."""
    ax = fig.subplots()
    t, size = ds.t.isel(seed=0), float(ds["size"].isel(seed=0))
    trained = ds.measured_bound.where(ds.of_test).transpose("seed", "sequence", "record").values
    plotting.band(ax, t.values, trained, "trained direction, test indices", "third")
    plotting.band(ax, t.values, ds.measured_test.transpose("seed", "test", "record").values, "reversed direction")
    ax.axhline(1 / size, linestyle="--", color=plotting.COLORS["theory"], label="1/M")
    ax.set(xscale="log", yscale="log", xlabel="steps t", ylabel="probability of the target")


study = jd.Study(
    trial=trial,
    quick=jd.grid(OneLayer, vocabulary=1000, steps=5000),
    paper=jd.grid(OneLayer, vocabulary=1000, train_indices=40, test_indices=20, steps=100_000),
    seeds=8,
    paper_seeds=64,
    judge=judge_bound,
    plot=plot_bound,
    caption=CAPTION,
    source=SOURCE,
)

train = study.claim(
    id="rev.thm3_train",
    statement=r"In the one-layer model trained by batch-1 SGD, from $t = 10\,N\ln M/\eta$ on every training sequence has "
    rf"$p(x_3|x_1,x_2) \ge 1 - \frac{{M-1}}{{2 (M\eta t/N)^c}}$ with $c = {EXPONENT}$; at the last time the exponent of the mean "
    r"is $1 - \ln 2/\ln(M\eta t/N)$ to .02.",
    form="derived",
    controls={"c = 1": exponent_one, "t below .3 N ln M / eta": early},
)
c_one = train.as_printed(
    id="rev.thm3_c_one",
    statement=r"In the one-layer model, from $t = 10\,N\ln M/\eta$ on every training sequence has "
    r"$p(x_3|x_1,x_2) \ge 1 - \frac{M-1}{2 (M\eta t/N)^c}$ with $c = 1$, the end of the theorem's range $0 < c < 1$.",
    form="simplified",
)
test = study.claim(
    id="rev.thm3_test",
    statement=r"In the one-layer model, the reversal of a fact that is trained in one direction keeps the probability of a guess: "
    r"$p = 1/M$, an equality (the theorem's bound is $p \le 1/M$), since no step reads or writes its row.",
    source=f"{SOURCE}; equality derived",
    quick=jd.grid(OneLayer),
    seeds=64,
    judge=judge_test,
    form="derived",
    controls={"symmetric decoder Y + Y^T": {"decoder": "symmetric"}, "reversed sequences in training": {"leak": 1.0}},
    plot=plot_test,
    caption="Probability of the trained and of the reversed direction of a fact along training: median and central 90% of the "
    "sequences of all runs; dashed: 1/M.",
)

CLAIMS = (train, c_one, test)
