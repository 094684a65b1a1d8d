"""Claims on the accuracy of the constructed network against its width, and on the width that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.gromov.trials.constructed import STUDY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge_accuracy", "judge_width", "width"]

GOAL = 0.9  # accuracy at which widths are compared
FREE = {"output phases of their own": {"top": "free"}}


def accuracies(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Measured and predicted accuracy, mean over seeds."""
    jd.need(ds, seed=8)
    return ds.measured_accuracy.mean("seed"), ds.predicted_accuracy.mean("seed")


def judge_accuracy(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy at every width from 16 nodes on, and at the largest width."""
    measured, predicted = accuracies(ds)
    error = abs(measured - predicted).where(ds.nodes >= 16)
    return [
        jd.at_most("|accuracy - predicted accuracy|, from 16 nodes on", error, 0.05),
        jd.at_least("accuracy at the largest width", measured.isel(nodes=-1), 0.999),
    ]


def width(nodes: xr.DataArray | list[int], accuracy: xr.DataArray, goal: float = GOAL) -> xr.DataArray:
    """The width at which the accuracy first reaches the goal, linear between recorded widths; NaN where it never does."""

    def cross(y: np.ndarray) -> float:
        above = np.flatnonzero(y >= goal)
        if len(above) == 0 or above[0] == 0:
            return np.nan
        i = above[0]
        return float(np.interp(goal, y[i - 1 : i + 1], np.asarray(nodes, float)[i - 1 : i + 1]))

    return xr.apply_ufunc(cross, accuracy, input_core_dims=[["nodes"]], vectorize=True)


def judge_width(ds: xr.Dataset) -> list[jd.Check]:
    """The width that reaches the goal, for every modulus, and how it grows from the smallest to the largest."""
    jd.need(ds, modulus=3)
    measured, predicted = (width(ds.nodes, a) for a in accuracies(ds))
    growth = [w.isel(modulus=-1, drop=True) / w.isel(modulus=0, drop=True) for w in (measured, predicted)]
    return [
        jd.at_most("moduli that never reach the goal", float(measured.isnull().sum()), 0.0),
        jd.within("width / predicted width", measured / predicted, 0.9, 1.1),
        jd.within("growth of the width / predicted growth", growth[0] / growth[1], 0.9, 1.1),
    ]


def proportional(ds: xr.Dataset) -> xr.Dataset:
    """Predicted accuracies whose widths grow in proportion to the modulus, from those of the smallest modulus."""
    first = ds.predicted_accuracy.isel(modulus=0, drop=True)
    rows = [first.interp(nodes=ds.nodes * int(ds.modulus[0]) / int(m), kwargs={"fill_value": 0.0}) for m in ds.modulus]
    return ds.assign(predicted_accuracy=xr.concat(rows, ds.modulus).assign_coords(nodes=ds.nodes))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracy against the width for every modulus; the width that reaches the goal against the modulus."""
    left, right = fig.subplots(1, 2)
    measured, predicted = ds.measured_accuracy, ds.predicted_accuracy.mean("seed")
    for i, color in zip(range(ds.sizes["modulus"]), ("measured", "third", "fourth", "fifth", "control"), strict=False):
        name = f"M = {int(ds.modulus[i])}"
        plotting.band(left, ds.nodes, measured.isel(modulus=i), name, color, marker="o", linestyle="")
        left.plot(ds.nodes, predicted.isel(modulus=i), color=plotting.COLORS["theory"], label=None if i else "predicted")
    left.set(xlabel="nodes K", ylabel="accuracy on all pairs", ylim=(0, 1.02))
    right.plot(ds.modulus, width(ds.nodes, measured.mean("seed")), "o", color=plotting.COLORS["measured"], label="measured")
    right.plot(ds.modulus, width(ds.nodes, predicted), color=plotting.COLORS["theory"], label="predicted")
    right.set(xlabel="modulus M", ylabel=f"nodes for accuracy {GOAL}", xscale="log", ylim=(0, None))
    right.set_xticks(ds.modulus.values, [str(m) for m in ds.modulus.values])
    right.set_xticks([], minor=True)


CAPTION = (
    "Left: accuracy on all pairs against the number of nodes, for each modulus M; dots and bands: median and central 90% of the "
    f"networks, lines: predicted. Right: nodes at which the mean accuracy reaches {GOAL}, against the modulus."
)

CLAIMS = (
    STUDY.claim(
        id="gromov.analytic",
        bounds="bounds on variances were chosen after a look; upheld on seeds not used before",
        statement=r"The constructed network with K random frequencies and phases classifies a share $\int\varphi(z)\,"
        r"\Phi\bigl(\sqrt{M/(M-1)}\,(\sqrt{2K}/3 + \sqrt{2305/5832}\,z)\bigr)^{M-1}dz$ of all pairs correctly, within 0.05 for "
        r"$K \ge 16$ (mean over networks), and at least 99.9% of them at the largest width. The variance 2305/5832 is that of "
        "logits of right and wrong classes that fluctuate together.",
        judge=judge_accuracy,
        controls=FREE | {"independent fluctuations": jd.swap(predicted_accuracy="independent")},
        plot=plot,
        caption=CAPTION,
    ),
    STUDY.claim(
        id="gromov.width",
        statement="The number of nodes with which the constructed network classifies 90% of all pairs correctly grows with the "
        "modulus as a normal approximation of the margins predicts, like a logarithm and not in proportion: within 10% from the "
        "smallest modulus to the largest (11 to 59 at small scale).",
        judge=judge_width,
        controls=FREE | {"in proportion to the modulus": proportional},
        plot=plot,
        caption=CAPTION,
    ),
)
