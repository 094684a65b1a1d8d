"""Claim on the mechanism by which a window breaks: all other weights grow when a sink is lost."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.stream.trials.lost import Lost, trial

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Growth of every weight and of the output."""
    return [
        jd.at_most("growth of the other weights: relative error", jd.relative_error(ds, "weights"), 1e-11),
        jd.at_most("growth of the output: relative error", jd.relative_error(ds, "output"), 1e-11),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Growth of weights and output, predicted and measured."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_weights, ds.measured_weights, label="weights", color="measured")
    plotting.scatter(ax, ds.predicted_output, ds.measured_output, label="output", color="third")
    ax.set(xlabel=r"$1 / (1 - s)$", ylabel="growth")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Lost, mass=[0.03, 0.5, 0.9, 0.99]),
        paper=jd.grid(Lost, mass=[0.03, 0.1, 0.5, 0.9, 0.99], keys=[12, 100]),
        seeds=64,
        paper_seeds=256,
        evidence="algebra",
        bounds="derived",  # rounding errors in double precision
        source="derived; it is the reason that arXiv:2309.17453, section 3.1, gives in words",
    ).claim(
        id="stream.lost_sink",
        statement=r"If a key with the softmax weight $s \in \{0.03, 0.5, 0.9, 0.99\}$ leaves the cache, every other weight grows "
        r"by the factor $1/(1-s)$, and so does the norm of the output if the value of that key was 0. (An identity; no training. "
        r"At $s = 0.03$ that is 3%: a window breaks nothing where no sink is.)",
        judge=judge,
        controls={"the key has a value": {"value": 1.0}, "attention has a zero sink": {"attention": "zero_sink"}},
        rivals={"nothing grows": jd.swap(predicted_weights=1.0, predicted_output=1.0)},
        plot=plot,
        caption="Growth of the weights and of the output's norm when a key of weight s leaves, against 1 / (1 - s); one point a "
        "weight and run.",
    ),
)
