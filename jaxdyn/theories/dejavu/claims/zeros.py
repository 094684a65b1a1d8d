"""Claim on the zeros of ReLU units: they can be left out."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.dejavu.trials.zeros import Pruned, trial

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Outputs by the chosen units against those in full; gate: no input has more active units than are kept."""
    return [
        jd.gate("active units of an input", ds.active, at_most=48),
        jd.at_most("output by the chosen units: relative error", jd.relative_error(ds, "output", "entry"), 1e-12),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Outputs by the chosen units against those in full; how many units are active."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_output, ds.measured_output, label="outputs", color="measured", log=False)
    left.set(xlabel="output by all units", ylabel="output by the chosen units")
    right.hist(ds.active.values.ravel(), bins=20, color=plotting.COLORS["measured"])
    right.set(xlabel="active units of 64", ylabel="inputs")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Pruned),
        paper=jd.grid(Pruned, hidden=64),
        seeds=64,
        paper_seeds=128,
        evidence="algebra",
        bounds="derived",
        source="arXiv:2310.17157, section 3.1 (contextual sparsity of ReLU MLPs)",
    ).claim(
        id="dejavu.relu_zeros",
        statement="A two-layer ReLU MLP of 64 units gives the same output, to rounding, if for every input only the rows of its 48 "
        "largest units are multiplied, as long as no more are active. (An identity at random weights; no training. It is the "
        "input's own units that count: those of another input do not do, nor do 48 GELU units.)",
        judge=judge,
        controls={
            "GELU units": {"unit": "gelu"},
            "the units of another input": {"shuffled": 1.0},
            "more units are active than are kept": {"offset": 1.5},
        },
        rivals={"the chosen units give nothing": jd.swap(predicted_output="none")},
        plot=plot,
        caption="Left: outputs by the 48 largest units against those by all 64. Right: active units by input, all runs.",
    ),
)
