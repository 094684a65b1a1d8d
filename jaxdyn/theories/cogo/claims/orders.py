r"""Claim on the least number of nodes that solve one pair of frequencies: four if another block takes the mean away, else six.

Letters as in ``dynamics/orders.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.cogo.trials.orders import COUNTS, LEAST, MEANS, Search, trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS"]

LATE = slice(100, None)  # steps after which the search of five nodes only follows its valley


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The least order that is solved exactly, what fewer nodes leave, and how five nodes approach zero."""
    late = ds.isel(step=LATE)
    jd.need(late, step=50)
    slope = stats.loglog_slope(late.five_energy, late.five_loss, "step")
    best = ds.measured_left.min(ds.status.dims)
    return [
        jd.at_most("least order, less 6 or 4", abs(ds.measured_order - ds.predicted_order), 0.0),
        jd.at_most("predicted share left by fewer nodes less the share left", ds.predicted_left - ds.measured_left, 1e-9),
        jd.at_most("least share left by fewer nodes less the predicted one", best - ds.predicted_left, 1e-3),
        jd.within("slope of what five nodes leave over their squared norm", slope, -3.1, -2.9),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Least loss and its norm against the number of nodes."""
    left, right = fig.subplots(1, 2)
    for name, color, shift in zip(MEANS, ("measured", "third"), (-0.06, 0.06), strict=True):
        for ax, values in ((left, np.maximum(ds.loss, 1e-33)), (right, ds.energy)):
            values = values.sel(mean=name).transpose("nodes", ...).values.reshape(len(COUNTS), -1)
            place = np.repeat(np.array(COUNTS) + shift, values.shape[1])
            ax.plot(place, values.ravel(), "o", color=plotting.COLORS[color], alpha=0.5, label=f"mean: {name}")
    for order, color in zip(LEAST, ("measured", "third"), strict=True):
        left.axvline(order, color=plotting.COLORS[color], linestyle=":", label=f"predicted: {order}")
    left.set(yscale="log", xlabel="nodes", ylabel="best share of the loss left", xticks=COUNTS)
    right.set(yscale="log", xlabel="nodes", ylabel=r"Fourier norm squared", xticks=COUNTS)


STUDY = jd.Study(
    trial=trial,
    source="numerical finding on arXiv:2410.01779, no theorem",
    quick=jd.grid(Search),
    paper=jd.grid(Search, starts=16, steps=400),
    seeds=4,
    paper_seeds=16,
    evidence="algebra",
    bounds=jd.looked(at="0:8", confirmed="4000:4008"),
    judge=judge,
    plot=plot,
    caption=r"Left: the least loss over all starts, as a share of the loss without nodes, against the number of nodes; right: the "
    r"squared Fourier norm there. One point a run, for a block with a mean of its own and for one whose mean other blocks cancel. "
    r"Dotted: the predicted least orders, 6 and 4.",
)

CLAIMS = (
    STUDY.claim(
        id="cogo.minimal_order",
        statement=r"In searches by least squares from random starts, one pair of frequencies is solved by four nodes if other "
        r"blocks cancel the mean that it leaves; three leave at least a sixth of the loss. With a mean of its own it needs six: "
        r"four leave at least a sixth, and five only approach zero, like the inverse cube of their squared norm as that grows.",
        controls={"potentials of R_* dropped": {"star": 0.0}},
        rivals={
            "the mean takes no nodes: four": jd.swap(predicted_order=4.0),
            "six in any case": jd.swap(predicted_order=6.0),
            "five leave as much as four": jd.swap(predicted_left=1 / 6),
            "few nodes leave nothing in the end": jd.swap(predicted_left=0.0),
        },
    ),
)
