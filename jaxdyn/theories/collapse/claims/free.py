"""Claims on the unconstrained-features model: where gradient flow and gradient descent end, and what room a simplex needs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.collapse.trials.free import Unconstrained, trial

__all__ = ["CLAIMS", "judge", "judge_crosses", "judge_descent"]

SETTLED = 1e-4


def checks(ds: xr.Dataset, how: str) -> list[jd.Check]:
    """Collapse, cosines, gaps of logits, lengths, duality and loss at the end."""
    error = {n: abs(ds[f"measured_{n}{how}"] - ds[f"predicted_{n}{how}"]) for n in ("cosines", "gaps", "sizes", "objective")}
    return [
        jd.at_most("scatter within classes over that between them", ds[f"measured_within{how}"], SETTLED),
        jd.at_most("cosines of centred class means, all pairs, against -1/(K - 1)", error["cosines"], SETTLED),
        jd.at_most("right logit less every other one, against ln(1/decay - K + 1)", error["gaps"], SETTLED),
        jd.at_most("squared lengths of class means and rows of W, against (1 - 1/K) ln(1/decay - K + 1)", error["sizes"], SETTLED),
        jd.at_most("distance of classifier and class means, each over its norm", ds[f"measured_dual{how}"], SETTLED),
        jd.at_most("loss less its minimum", error["objective"], SETTLED),
    ]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The end of the flow."""
    return checks(ds, "")


def judge_descent(ds: xr.Dataset) -> list[jd.Check]:
    """The end of gradient descent."""
    return checks(ds, "_descent")


def judge_crosses(ds: xr.Dataset) -> list[jd.Check]:
    """Cosines where the simplex has no room: least and largest of all pairs."""
    ends = ds.measured_cosines
    return [
        jd.at_most("largest cosine of two class means, less 0", abs(ends.sel(end="largest")), SETTLED),
        jd.at_most("least cosine of two class means, less -1", abs(ends.sel(end="least") + 1), SETTLED),
    ]


def still(ds: xr.Dataset) -> xr.Dataset:
    """A rival: nothing moves."""
    return started(ds, "")


def still_descent(ds: xr.Dataset) -> xr.Dataset:
    """The same for gradient descent."""
    return started(ds, "_descent")


def started(ds: xr.Dataset, how: str) -> xr.Dataset:
    """The start in the place of the end."""
    names = ("cosines", "gaps", "sizes", "within", "dual", "objective")
    return ds.assign({f"measured_{n}{how}": ds[f"start_{n}"] for n in names})


def other(cosine: float, how: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A rival: another angle between class means."""
    return lambda ds: ds.assign({f"predicted_cosines{how}": xr.full_like(ds[f"predicted_cosines{how}"], cosine)})


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Scatter within classes and cosines along the flow."""
    left, right = fig.subplots(1, 2)
    time = ds.time.values[1:]
    axis = "classes" if "classes" in ds.dims else "seed"
    for value, color in zip(np.atleast_1d(ds[axis].values), ("measured", "theory"), strict=False):
        part = ds.sel({axis: value}).isel(time=slice(1, None))
        label = f"K = {value:g}" if axis == "classes" else "runs"
        plotting.band(left, time, np.maximum(part.path_within.transpose(..., "time"), 1e-20), label, color)
        plotting.band(right, time, part.path_low.transpose(..., "time"), label, color)
        plotting.band(right, time, part.path_high.transpose(..., "time"), "", color)
        right.axhline(float(part.predicted_cosines.mean()), linestyle=":", color=plotting.COLORS["control"])
    left.set(xscale="log", yscale="log", xlabel="t", ylabel="scatter within / between")
    right.set(xscale="log", xlabel="t", ylabel="least and largest cosine")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Unconstrained, classes=[3.0, 10.0]),
    seeds=8,
    paper_seeds=32,
    evidence="flow",
    bounds="derived",  # the time left to settle
    assumes=(jd.above("room", -0.5), jd.below("threshold", 1.0)),
    source="arXiv:2008.08186 (the shape); the gap of the logits and the minimum derived",
    plot=plot,
    caption="Scatter of features within classes over that between class means, and least and largest cosine of two centred class "
    "means along the gradient flow (dotted: -1/(K - 1)): median and central 90% of the runs.",
)
MODEL = "the unconstrained-features model (3 or 10 classes of 4 features in 12 dimensions, weight decay 0.01), from a random start"
END = (
    r"the features of a class coincide, all cosines of two centred class means are $-1/(K-1)$, the classifier is proportional "
    r"to the class "
    r"means, every right logit exceeds every other one by $c = \ln(1/\lambda - K + 1)$, class means and rows of the "
    r"classifier have the squared length $c\,(K - 1)/K$, and the loss is its minimum: each to $10^{-4}$."
)
BREACHES = {
    "half of the classes 10 times as heavy": {"imbalance": 10.0},
    "no room for a simplex of 10 classes: 5 dimensions": {"dim": 5.0, "classes": 10.0},
}

CLAIMS = (
    STUDY.claim(
        id="collapse.flow",
        statement=f"At t = 3000 of the gradient flow of {MODEL}, {END}",
        judge=judge,
        controls=BREACHES,
        rivals={"nothing moves": still, "class means are orthogonal once centred": other(0.0, "")},
    ),
    STUDY.claim(
        id="collapse.descent",
        statement=f"After 6000 steps of gradient descent on {MODEL}, {END}",
        evidence="network",
        judge=judge_descent,
        controls=BREACHES,
        rivals={"nothing moves": still_descent, "class means are orthogonal once centred": other(0.0, "_descent")},
    ),
    STUDY.claim(
        id="collapse.narrow",
        statement="Where a simplex of 10 class means has no room, in 5 dimensions, what does the gradient flow of the "
        "unconstrained-features model (4 features a class, weight decay 0.01) end at? A cross-polytope: the least cosine of "
        "two class "
        "means is -1 "
        "and the largest 0.",
        expected="measured",
        quick=jd.grid(Unconstrained, classes=10.0, dim=5.0),
        judge=judge_crosses,
        assumes=(jd.below("threshold", 1.0),),
        controls={"12 dimensions": {"dim": 12.0}},
        rivals={"nothing moves": still},
        found={"largest cosine of two class means, less 0": (0.0, 1e-4), "least cosine of two class means, less -1": (0.0, 1e-4)},
    ),
)
