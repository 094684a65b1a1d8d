"""The claim on networks trained with a penalty on their (2,3)-norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.morwani.trials.trained import Trained, trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge"]

ROUNDING = 1e-5  # of a margin in float32: outputs of about 10 with a relative error of 1e-7 in each of 64 terms


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Margin over the largest one, on average and in every run; shares of the frequencies; purity of the nodes."""
    jd.need(ds, seed=8)
    ratio = ds.measured_margin / ds.predicted_margin
    uneven = np.abs(ds.measured_share / ds.predicted_share.where(ds.predicted_share > 0) - 1).max("frequency")
    return [
        jd.gate("accuracy", ds.accuracy, at_least=0.999),
        jd.mean_within("margin / largest", ratio, over="seed", low=0.99),
        jd.at_most("margin / largest, each run", ratio, 1 + ROUNDING),
        jd.mean_within("largest |share of a frequency / equal share - 1|", uneven, over="seed", high=0.05),
        jd.mean_within("purity of nodes / predicted", ds.measured_purity / ds.predicted_purity, over="seed", low=0.99, high=1.01),
    ]


def single(ds: xr.Dataset) -> xr.Dataset:
    """One frequency does it all."""
    share = (0 * ds.predicted_share + xr.where(ds.frequency == ds.frequency[0], 1.0, 1e-9)).transpose(*ds.predicted_share.dims)
    return ds.assign(predicted_margin=ds.single, predicted_share=share)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Margin along training; shares of the frequencies at its end."""
    left, right = fig.subplots(1, 2)
    steps = ds.record[1:]
    ratio = (ds.curve / ds.predicted_margin).isel(record=slice(1, None))
    plotting.band(left, steps, ratio.transpose(..., "record"), "trained", "measured")
    left.axhline(1.0, color=plotting.COLORS["theory"], linewidth=0.8, label="largest")
    left.set(xlabel="steps", ylabel="normalised margin / largest", ylim=(0, 1.1))
    plotting.band(right, ds.frequency, ds.measured_share.transpose(..., "frequency"), "trained", "measured", marker="o")
    right.axhline(float(np.ravel(ds.predicted_share)[0]), color=plotting.COLORS["theory"], linewidth=0.8, label="equal shares")
    right.set(xlabel="frequency", ylabel="share of the cubes of norms", ylim=(0, None))


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Trained),
    paper=jd.grid(Trained, modulus=23, nodes=256, steps=40_000, weight=1e-5),
    seeds=16,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2311.07568, theorem 7 and section 5",
)

CLAIMS = (
    STUDY.claim(
        id="morwani.margin",
        bounds=jd.looked(at="0:16", confirmed="6000:6016"),
        statement="Networks of squares trained by Adam on addition modulo 11, on cross-entropy with a small penalty on the sum of "
        r"the cubes of their nodes' norms, end with at least 99% of the margin $\sqrt{2/27}\,/\,\sqrt p\,(p-1)$ over "
        r"$\|\theta\|_{2,3}^3$ on average, and none exceeds it by more than the rounding of float32. They use all $(p-1)/2$ "
        "frequencies in equal shares: the share of the cubes at a frequency differs from the equal one by at most 5% (mean over "
        "runs of the largest difference), and nodes have at least 99% of their power at one frequency (mean weighted with cubes).",
        judge=judge,
        controls={"weight decay": {"power": 2.0}, "no penalty": {"weight": 0.0}},
        rivals={
            "weights stay as they start": jd.swap(
                predicted_margin="initial_margin", predicted_share="initial_share", predicted_purity="initial_purity"
            ),
            "one frequency": single,
        },
        plot=plot,
        caption="Left: margin over the cube of the (2,3)-norm, relative to the largest, against steps. Right: share of the sum of "
        "cubed norms of the nodes at each frequency after training. Lines, dots and bands: median and central 90% of the runs.",
    ),
)
