"""Claims on the collapse of a perceptron's last hidden layer, trained on digits long after it fits them."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.collapse.trials.network import Perceptron, trial

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Scatter within classes, cosines, duality and the rule of the nearest mean, at the end."""
    over = [str(d) for d in ds.status.dims if d != "classes"]
    end = ds.isel(step=-1)
    away = abs(ds.measured_cosines - ds.predicted_cosines).max("end")
    return [
        jd.gate("training accuracy at the end, every run", end.right, at_least=1.0),
        jd.mean_within("scatter within classes over that between them", end.measured_within, over=over, high=0.05),
        jd.mean_within("largest distance of a cosine of class means from -1/(K - 1)", away, over=over, high=0.1),
        jd.mean_within("distance of classifier and class means, each over its norm", end.measured_dual, over=over, high=0.2),
    ]


def still(ds: xr.Dataset) -> xr.Dataset:
    """A rival: nothing moves."""
    names = ("measured_within", "measured_dual")
    first = {n: ds[n].isel(step=0, drop=True).broadcast_like(ds[n]).transpose(*ds[n].dims) for n in names}
    return ds.assign(first | {"measured_cosines": ds.start_cosines})


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Scatter, cosines and duality along training."""
    axes = fig.subplots(1, 3)
    steps = ds.steps.values.reshape(-1, ds.sizes["step"])[0]
    values = np.atleast_1d(ds.classes.values)
    for value, color in zip(values, ("measured", "theory"), strict=False):
        part = ds.sel(classes=value) if "classes" in ds.dims else ds
        plotting.band(axes[0], steps, part.measured_within.transpose(..., "step"), f"K = {value:g}", color)
        plotting.band(axes[1], steps, part.low.transpose(..., "step"), f"K = {value:g}", color)
        plotting.band(axes[1], steps, part.high.transpose(..., "step"), "", color)
        axes[1].axhline(float(part.predicted_cosines.mean()), linestyle=":", color=plotting.COLORS["control"])
        plotting.band(axes[2], steps, part.measured_dual.transpose(..., "step"), f"K = {value:g}", color)
    axes[0].set(yscale="log", xlabel="step", ylabel="scatter within / between")
    axes[1].set(xlabel="step", ylabel="least and largest cosine")
    axes[2].set(xlabel="step", ylabel="classifier from class means")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Perceptron, classes=[3.0, 10.0]),
        paper=jd.grid(Perceptron, classes=[3.0, 10.0], each=100, hidden=256, every=2000.0),
        seeds=4,
        paper_seeds=8,
        evidence="network",
        source="arXiv:2008.08186 (there deep networks on seven data sets); sizes ours",
        plot=plot,
        caption="Scatter of the last hidden layer within classes over that between them, least and largest cosine of two "
        "centred class "
        "means (dotted: -1/(K - 1)) and distance of the classifier from the class means along training: median and central 90% "
        "of the "
        "runs.",
    ).claim(
        id="collapse.network",
        statement="How far does the last hidden layer of a perceptron (two layers of 64 ReLUs, 3 or 10 classes of 15 "
        "handwritten digits) "
        "collapse in 2000 steps of gradient descent with momentum and weight decay?",
        expected="measured",
        judge=judge,
        controls={"half of the classes 10 times as heavy": {"imbalance": 10.0}},
        rivals={"nothing moves": still},
        found={
            "scatter within classes over that between them": (0.0, 0.05),
            "largest distance of a cosine of class means from -1/(K - 1)": (0.0, 0.1),
            "distance of classifier and class means, each over its norm": (0.0, 0.2),
        },
    ),
)
