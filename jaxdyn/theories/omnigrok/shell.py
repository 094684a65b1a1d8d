"""The shell of norms on which a student generalises."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.omnigrok.students import LEVEL, STUDY


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The shapes of the reduced losses; the norm at which decaying students generalise, up to the step between spheres."""
    test, fit = ds.sphere_test, ds.sphere_fit
    best = np.maximum(test.isel(start=slice(1, -1)).min("start"), LEVEL / 10)  # as good as fitted: lower losses count as this
    ends = np.minimum(test.isel(start=0), test.isel(start=-1)) / best
    beyond = fit.where(ds.start >= 1).max("start")
    ratio = ds.measured_edge / ds.predicted_edge
    return [
        jd.gate("training loss at norms from the standard one on", beyond, at_most=LEVEL / 10),
        jd.at_least("test loss at either end / least test loss", ends, 3.0),
        jd.mean_within("norm at generalisation / predicted edge", ratio, over="seed", low=0.85, high=1.15),
        jd.within("norm at generalisation / predicted edge, each student, smallest decay", ratio.isel(decay=-1), 0.8, 1.25),
    ]


def at_norm(start: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """Generalisation at one norm for all students, in units of the standard one."""
    return jd.swap(predicted_edge=lambda ds: 0 * ds.predicted_edge + ds.sphere_norm.sel(start=start, drop=True))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Losses against the norm on spheres; norms at generalisation against the predicted edge."""
    left, right = fig.subplots(1, 2)
    plotting.band(left, ds.start, ds.sphere_test.transpose(..., "start"), "test loss", marker="o")
    plotting.band(left, ds.start, ds.sphere_fit.transpose(..., "start"), "training loss", "third", marker="o")
    left.set(xlabel=r"norm over the standard one, $\alpha$", ylabel="loss on the sphere", yscale="log")
    for i, color in zip(range(ds.sizes["decay"]), ("measured", "third", "fourth", "fifth"), strict=False):
        at = ds.isel(decay=i)
        plotting.scatter(right, at.predicted_edge, at.measured_edge, f"decay {float(at.decay):g}", color)
    right.set(xlabel="edge of the shell, from spheres", ylabel="norm at generalisation")


CLAIMS = (
    STUDY.claim(
        id="omnigrok.shell",
        title="Networks generalise on a shell of weight norms",
        bounds=jd.tuned(on="0:12", confirmed_on="4000:4012"),
        statement="Tanh networks with two hidden layers of 32 nodes that learn 60 samples of a random teacher of their shape (100 "
        "nodes and samples at paper scale), trained with their weights held on a sphere, generalise best on a shell of norms: "
        "their test loss (at least 0.5% of the targets' variance is counted) is at least three times as high at 0.3 and at 2 "
        "times the standard norm as at the best norm between. A student with a weight decay from .25 to .0625 (.03125 at paper "
        "scale) that starts at twice the standard norm generalises when its norm has fallen to the outer edge of that shell, "
        "where the test loss is 5% of the variance: within 15% for each decay (mean over seeds), and for every student with the "
        "smallest decay at 0.8 to 1.25 times its norm.",
        decides={"best": ("test loss at either end / least test loss", "training loss for test loss")},
        judge=judge,
        controls={
            "training loss for test loss": jd.swap(sphere_test="sphere_fit"),
            "no decay": jd.swap(measured_edge="still_norm"),
        },
        rivals={
            "the norm plays no part: students generalise where they start": jd.off(at_norm(2.0)),
            "at the standard norm": at_norm(1.0),
        },
        plot=plot,
        caption="Left: losses over the variance of the teacher's outputs of networks trained on a sphere, against the sphere's "
        "norm in units of the standard start; lines and bands: median and central 90% of the seeds. Right: norm at which each "
        "decaying student generalises against the outer edge of the shell; one dot for each seed and decay, on the line both "
        "agree.",
    ),
)
