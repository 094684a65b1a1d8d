"""Claims on finite-sample expressivity: a network of 2n + d weights, written down, through any n points."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.memo.trials.interpolant import Points, trial

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Values at the points, and the number of weights."""
    return [
        jd.at_most("value of the network less that of the point, every point", abs(ds.measured_values - ds.predicted_values), 1e-6),
        jd.at_most("number of weights less 2n + d", abs(ds.measured_weights - ds.predicted_weights), 0.0),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Largest residual against the number of points."""
    ax = fig.subplots()
    x = ds.points.broadcast_like(ds.residual)
    ax.loglog(x.values.ravel(), ds.residual.values.ravel(), "o", color=plotting.COLORS["measured"], alpha=0.6)
    ax.set(xlabel="points", ylabel="largest residual")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Points, points=[50.0, 200.0, 500.0]),
        seeds=8,
        paper_seeds=32,
        evidence="algebra",
        source="arXiv:1611.03530, Theorem 1 (finite-sample expressivity)",
        plot=plot,
        caption="Largest difference between the constructed network and its points against their number, in float64; one point "
        "a run.",
    ).claim(
        id="memo.finite_sample",
        statement="A network with one hidden layer of ReLUs and 2n + d weights, written down, not trained, takes n random "
        "values at n "
        "random points of 10 dimensions to $10^{-6}$ in float64, for n = 50, 200 and 500.",
        judge=judge,
        bounds="derived",
        controls={"one unit less": {"less": 1.0}, "two points in one place": {"equal": 1.0}},
        rivals={"the mean of all values": jd.swap(predicted_values="mean")},
    ),
)
