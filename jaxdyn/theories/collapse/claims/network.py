"""Claims on the collapse of a perceptron's last hidden layer, trained on digits long after it fits them."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.collapse.trials.network import Perceptron, trial

__all__ = ["CLAIMS", "judge"]

WITHIN, COSINE = "scatter within classes over that between them", "largest distance of a cosine from -1/(K - 1)"
DUAL = "distance of classifier and class means"
FEW = {WITHIN: 0.1, COSINE: 0.3, DUAL: 0.3}  # at most, for 3 classes
MANY = {WITHIN: 0.05, COSINE: 0.2, DUAL: 0.15}  # at least, for 10


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Scatter within classes, cosines and duality at the end: collapsed with 3 classes, not with 10."""
    jd.need(ds, classes=(3.0, 10.0))
    end, checks = ds.isel(step=-1), [jd.gate("training accuracy at the end, every run", ds.right.isel(step=-1), at_least=1.0)]
    away = abs(ds.measured_cosines - ds.predicted_cosines).max("end")
    for name, values in {WITHIN: end.measured_within, COSINE: away, DUAL: end.measured_dual}.items():
        few, many = values.sel(classes=3.0), values.sel(classes=10.0)
        checks.append(jd.mean_within(f"{name}, K = 3", few, over=list(few.dims), high=FEW[name]))
        checks.append(jd.mean_within(f"{name}, K = 10", many, over=list(many.dims), low=MANY[name]))
    return checks


def still(ds: xr.Dataset) -> xr.Dataset:
    """A rival: nothing moves."""
    names = ("measured_within", "measured_dual")
    first = {n: ds[n].isel(step=0, drop=True).broadcast_like(ds[n]).transpose(*ds[n].dims) for n in names}
    return ds.assign(first | {"measured_cosines": ds.start_cosines})


def collapsed(ds: xr.Dataset) -> xr.Dataset:
    """A rival: the hidden layer collapses like free features."""
    zero = {n: xr.zeros_like(ds[n]) for n in ("measured_within", "measured_dual")}
    return ds.assign(zero | {"measured_cosines": ds.predicted_cosines.transpose(*ds.measured_cosines.dims)})


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
        seeds=8,
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
        statement="How far does the last hidden layer of a perceptron (two layers of 64 ReLUs, 15 handwritten digits a class, "
        "2000 steps "
        "of gradient descent with momentum and weight decay) collapse? With 3 classes far: scatter within classes is 3% to 6% "
        "of that "
        "between them, and cosines of class means are within 0.2 of -1/2. With 10 classes not: scatter is 15% to 25%, and some "
        "cosines "
        "are 0.4 to 0.9 away from -1/9.",
        expected="measured",
        judge=judge,
        controls={"numbers of classes exchanged": jd.rolled(measured_within="classes", measured_cosines="classes")},
        rivals={"nothing moves": still, "collapse like that of free features": collapsed},
        found={
            f"{WITHIN}, K = 3": (0.03, 0.06),
            f"{WITHIN}, K = 10": (0.15, 0.25),
            f"{COSINE}, K = 3": (0.05, 0.2),
            f"{COSINE}, K = 10": (0.4, 0.9),
            f"{DUAL}, K = 3": (0.1, 0.25),
            f"{DUAL}, K = 10": (0.3, 0.5),
        },
    ),
)
