"""The claim on the delay from fitting the data to generalising."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.omnigrok.trials.students import LEVEL, STUDY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The power of the decay in the delay, and the length of the delay."""
    jd.need(ds, seed=8)
    measured, predicted = ds.measured_delay, ds.predicted_delay
    span = np.log(ds.decay[-1] / ds.decay[0])
    slope = np.log(measured.isel(decay=-1) / measured.isel(decay=0)) / span
    ratio = (measured / predicted).isel(decay=-1)
    return [
        jd.within("power of the decay in the delay, mean over seeds", slope.mean("seed"), -1.1, -0.9),
        jd.within("delay / predicted, smallest decay, geometric mean", np.exp(np.log(ratio).mean("seed")), 0.85, 1.15),
        jd.within("delay / predicted, smallest decay, each student", ratio, 0.6, 1.6),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Losses of one seed's students against steps; delays against the decay."""
    left, right = fig.subplots(1, 2)
    first = plotting.first_run(ds)
    for i, color in zip(range(ds.sizes["decay"]), ("measured", "third", "fourth", "fifth"), strict=False):
        at = first.isel(student=i, record=slice(1, None))
        left.plot(at.steps, at.curve, color=plotting.COLORS[color], label=f"decay {float(ds.decay[i]):g}")
    still = first.isel(student=ds.sizes["decay"], record=slice(1, None))
    left.plot(still.steps, still.curve, color=plotting.COLORS["control"], label="no decay")
    left.axhline(LEVEL, color=plotting.COLORS["theory"], linewidth=0.8)
    left.set(xlabel="steps", ylabel="test loss", xscale="log", yscale="log")
    plotting.band(right, ds.decay, ds.measured_delay.transpose(..., "decay"), "measured", marker="o")
    plotting.band(right, ds.decay, ds.predicted_delay.transpose(..., "decay"), "predicted", "theory")
    right.set(xlabel="weight decay", ylabel="delay in steps", xscale="log", yscale="log")


CLAIMS = (
    STUDY.claim(
        id="omnigrok.delay",
        statement=r"A tanh network whose weights start at twice the standard size, with norm $w_0$, and that learns from a teacher "
        r"by AdamW with learning rate $\eta$ and weight decay $\gamma$, generalises $\ln(w_0/w_c)/\eta\gamma$ steps after it has "
        r"fitted its data, where $w_c$ is the largest norm at which networks trained on a sphere of weights generalise: the delay "
        r"goes like $1/\gamma$, and for the smallest decay its geometric mean over seeds is within 15% of the prediction.",
        judge=judge,
        controls={"no decay": jd.swap(measured_delay="still"), "standard start": jd.swap(measured_delay="small")},
        plot=plot,
        caption="Left: test loss over the variance of the teacher's outputs against steps, students of the first seed with each "
        "weight decay and without; the horizontal line is the level at which they count as generalising. Right: steps from fitting "
        "to generalising against the weight decay; lines and bands: median and central 90% of the seeds.",
    ),
)
