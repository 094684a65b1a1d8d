"""Claims on encoders written down: one that reads the relevant bits and one that reads others have the same contrastive loss."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.hyper.trials.codes import Codes, trial

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Losses of both codes, and their accuracy."""
    over = [d for d in ds.measured_mean.dims]
    difference = ds.measured_other - ds.measured_mean
    return [
        jd.at_most("loss of g with blocks exchanged less that of f, every batch", abs(ds.measured_tie - ds.predicted_tie), 1e-6),
        jd.mean_within("loss of g less that of f on the same batches", difference, over=over, low=-0.003, high=0.003),
        jd.mean_within("loss of f less its closed form", ds.measured_mean - ds.predicted_mean, over=over, low=-0.003, high=0.003),
        jd.mean_within("downstream accuracy of f", ds.measured_relevant, over=over, low=0.98),
        jd.mean_within("downstream accuracy of g", ds.measured_irrelevant, over=over, low=0.47, high=0.53),
    ]


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    """A control: both accuracies exchanged."""
    return ds.assign(measured_relevant=ds.measured_irrelevant, measured_irrelevant=ds.measured_relevant)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Losses of g over those of f, batch by batch, and accuracies."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_tie, ds.measured_tie, label="batches", color="measured", log=False)
    left.set(xlabel="loss of f", ylabel="loss of g, blocks exchanged")
    for place, (name, color) in enumerate((("measured_relevant", "measured"), ("measured_irrelevant", "theory"))):
        values = ds[name].values.ravel()
        right.plot([place] * values.size, values, "o", color=plotting.COLORS[color], alpha=0.5)
    right.set_xticks([0, 1], ["f", "g"])
    right.set(ylabel="downstream accuracy", ylim=(0.4, 1.05))


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Codes),
    seeds=8,
    paper_seeds=32,
    evidence="algebra",
    judge=judge,
    source="arXiv:2202.14037 (why the same loss may mean different accuracies); closed form derived",
    plot=plot,
    caption="Left: loss of g, blocks exchanged, against that of f, one point a batch. Right: accuracy of linear probes, one "
    "point a run.",
)

CLAIMS = (
    STUDY.claim(
        id="hyper.tie",
        statement=r"Two encoders written down, not trained: f reads the 10 relevant bits of 50, g the signs of 10 others, both at "
        r"the scale of the paper (temperature 0.5, batches of 512). On every batch of which the two blocks of bits are exchanged, "
        r"the contrastive loss of g is that of f to $10^{-6}$. On average over runs, the losses of both on the same batches "
        r"differ by less than 0.003, that of f is within 0.003 of the closed form $\ln(n \cosh(1/Tk)^k + e^{1/T}) - 1/T$ less "
        r"Jensen's term (0.0004, which this bound does not decide), "
        "and linear probes have an accuracy of 98% at least on f, of 47% to 53% on g.",
        seeds=12,
        bounds=jd.looked(at="0:8", confirmed="9000:9008"),
        controls={"f reads 9 of the 10 bits": {"first": 9.0}, "accuracies exchanged": exchanged},
        rivals={},
    ),
)
