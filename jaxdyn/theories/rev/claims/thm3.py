"""Claims on Theorem 3: trained directions are learned at least as fast as the bound, reversed ones are not learned at all."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.claims.one_layer import EXPONENT, LARGE, SOURCE, OneLayer, trial

__all__ = ["CLAIMS", "early", "exponent_one", "judge_bound", "judge_test", "plot_bound"]

LATE = 10  # the bound is judged from this many N ln M / eta steps on


def judge_bound(ds: xr.Dataset) -> list[jd.Check]:
    """Every sequence obeys the bound once t is late, and the exponent of the mean is near its limit at the last time."""
    late = ds.late >= LATE
    if not bool(late.any()):
        raise jd.Inconclusive(f"the bound is judged from {LATE} N ln M / eta steps on; no reading is so late")
    end = ds.isel(record=-1)
    return [
        jd.at_least("probability minus the bound, every sequence", (ds.measured_bound - ds.predicted_bound).where(late), 0.0),
        jd.at_most(
            "exponent of the mean against 1 - ln 2/ln s, last time", abs(end.measured_exponent - end.predicted_exponent), 0.02
        ),
    ]


def early(ds: xr.Dataset) -> xr.Dataset:
    """A breach: the late times' data are those before .3 N ln M / eta steps."""
    names = ("measured_bound", "predicted_bound", "measured_exponent", "predicted_exponent")
    place = int((ds.late < 0.3).sum("record").min()) - 1
    if place < 0:
        raise jd.Inconclusive("no reading is before .3 N ln M / eta steps")
    return ds.assign({n: ds[n].isel(record=place).broadcast_like(ds[n]).transpose(*ds[n].dims) for n in names})


def exponent_one(ds: xr.Dataset) -> xr.Dataset:
    """A breach: the bound with c = 1."""
    return ds.assign(predicted_bound=1 - (1 - ds.predicted_bound) * ds.s ** (EXPONENT - 1))


def judge_test(ds: xr.Dataset) -> list[jd.Check]:
    """Every reversed sequence keeps the probability of a guess, at every time."""
    return [jd.at_most("probability of a reversed sequence against 1/M, relative error", jd.relative_error(ds, "test"), 1e-12)]


def plot_bound(ds: xr.Dataset, fig: Figure) -> None:
    """What is missing to certainty against the bounds, and the exponents."""
    left, right = fig.subplots(1, 2)
    s, one = ds.s.isel(seed=0), ds.isel(seed=0)
    values = 1 - ds.measured_bound.transpose("seed", "sequence", "record").values
    plotting.band(left, s.values, values, "network, sequences of all runs")
    bounds = {"derived": f"bound, c = {EXPONENT}", "simplified": "bound, c = 1"}
    for form, style in zip(bounds, ("--", ":"), strict=True):
        if "form" in ds.dims and form in ds.form.values:
            missing = 1 - one.predicted_bound.sel(form=form)
            left.plot(s, missing.where(missing < 1), style, color=plotting.COLORS["theory"], label=bounds[form])
    left.set(xscale="log", yscale="log", xlabel=r"$s = M\eta t/N$", ylabel="$1 - p$")
    plotting.band(right, s.values, ds.measured_exponent.transpose("seed", "record").values, "exponent of the mean of a run")
    right.plot(s, one.predicted_exponent, "--", color=plotting.COLORS["theory"], label=r"$1 - \ln 2/\ln s$")
    right.set(xscale="log", xlabel=r"$s = M\eta t/N$", ylabel="exponent c")


def plot_test(ds: xr.Dataset, fig: Figure) -> None:
    """Trained and reversed sequences of the same indices along training."""
    ax = fig.subplots()
    t, size = ds.t.isel(seed=0), float(ds["size"].isel(seed=0))
    trained = ds.measured_bound.where(ds.of_test).transpose("seed", "sequence", "record").values
    plotting.band(ax, t.values, trained, "trained direction, test indices", "third")
    plotting.band(ax, t.values, ds.measured_test.transpose("seed", "test", "record").values, "reversed direction")
    ax.axhline(1 / size, linestyle="--", color=plotting.COLORS["theory"], label="1/M")
    ax.set(xscale="log", yscale="log", xlabel="steps t", ylabel="probability of the target")


_PAPER = jd.grid(OneLayer, vocabulary=1000, train_indices=40, test_indices=20, steps=100_000)
_BOUND = {"trial": trial, "judge": judge_bound, "plot": plot_bound, "seeds": 8, "paper_seeds": 64}
_BOUND |= {"quick": jd.grid(OneLayer, **LARGE), "paper": _PAPER, "source": f"{SOURCE}, Theorem 3"}

CLAIMS = (
    jd.Claim(
        id="rev.thm3_train",
        statement=r"From $t = 10\,N\ln M/\eta$ on every training sequence has "
        rf"$p(x_3|x_1,x_2) \ge 1 - \frac{{M-1}}{{2 (M\eta t/N)^c}}$ with $c = {EXPONENT}$; the exponent of the mean is "
        r"$1 - \ln 2/\ln(M\eta t/N)$ to .02.",
        form="derived",
        controls={"c = 1": exponent_one, "t below .3 N ln M / eta": early},
        **_BOUND,
    ),
    jd.Claim(
        id="rev.thm3_c_one",
        statement=r"The bound of Theorem 3 holds with $c = 1$, the end of the allowed range $0 < c < 1$. (It is violated at late "
        r"times: $1 - p \to (M-1)/s$, twice what it allows.)",
        form="simplified",
        counterpart="derived",
        expected="refuted",
        **_BOUND,
    ),
    jd.Claim(
        id="rev.thm3_test",
        statement=r"The reversal of a fact seen in one direction keeps the probability of a guess: $p = 1/M$, an equality "
        r"(the theorem's bound is $p \le 1/M$), since no step reads or writes its row.",
        source=f"{SOURCE}, Theorem 3; equality derived",
        trial=trial,
        quick=jd.grid(OneLayer),
        paper=_PAPER,
        seeds=64,
        paper_seeds=64,
        judge=judge_test,
        form="derived",
        controls={"symmetric decoder Y + Y^T": {"tied": True}, "reversed sequences in training": {"leak": 1.0}},
        plot=plot_test,
    ),
)
