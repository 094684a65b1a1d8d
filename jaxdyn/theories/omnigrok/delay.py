"""The delay from fitting the data to generalising, and how the weight decay sets it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.omnigrok.students import LEVEL, STUDY


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The power of the decay in the delay, and the length of the delay."""
    jd.need(ds, seed=8)
    ratio = np.log(ds.measured_delay / ds.predicted_delay).clip(-10, 10)  # finite for a prediction of no delay at all
    first, last = ratio.isel(decay=0, drop=True), ratio.isel(decay=-1, drop=True)
    power = (last - first) / np.log(float(ds.decay[-1] / ds.decay[0]))
    return [
        jd.mean_within("power of the decay in the delay, minus the predicted power", power, over="seed", low=-0.1, high=0.1),
        jd.mean_within("ln(delay / predicted), smallest decay", last, over="seed", low=np.log(0.8), high=np.log(1.25)),
    ]


def like(power: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A delay that goes like a power of the decay, right for the largest one."""
    return jd.swap(predicted_delay=lambda ds: ds.predicted_delay.isel(decay=0, drop=True) * (ds.decay / ds.decay[0]) ** power)


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
        title="The delay of generalisation is inverse to the weight decay",
        bounds=jd.tuned(on="0:12", confirmed_on="70000001:70000015"),
        statement="A tanh network with two hidden layers of 32 nodes that starts at twice the standard norm, $w_0$, and learns 60 "
        r"samples of a random teacher of its shape (100 nodes and samples at paper scale) by AdamW with learning rate $\eta$ = "
        r".001 and weight decay $\gamma$ from .25 to .0625 (.03125 at paper scale) generalises $\ln(w_0/w_c)/\eta\gamma$ steps "
        "after it has fitted its data, where $w_c$ is the largest norm at which networks trained on a sphere of weights "
        "generalise (a test loss of 5% of the variance): from the largest decay to the smallest, a quarter of it (an eighth at "
        r"paper scale), the delay goes like $1/\gamma$ (power within 0.1), and for the smallest its geometric mean over seeds is "
        "between 0.8 and 1.25 times the prediction.",
        judge=judge,
        controls={"no decay": jd.swap(measured_delay="still"), "standard start": jd.swap(measured_delay="small")},
        rivals={"the decay plays no part": jd.off(like(0.0)), "the root of the decay": like(-0.5)},
        plot=plot,
        caption="Left: test loss over the variance of the teacher's outputs against steps, students of the first seed with "
        "each weight decay and without; the horizontal line is the level at which they count as generalising. Right: steps "
        "from fitting to generalising against the weight decay; lines and bands: median and central 90% of the seeds.",
    ),
)
