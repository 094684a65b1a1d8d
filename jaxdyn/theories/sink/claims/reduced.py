r"""Claims on the reduced flow of an idle query: its margin grows with the logarithm of time, at half the slope of the heuristic."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sink.trials.reduced import LATE, Reduced, trial

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Margins late in time against the law, and their slopes."""
    late = ds.sel(t=slice(0.999 * LATE, None))
    jd.need(late, t=3)

    def slope(margin: xr.DataArray) -> xr.DataArray:
        return margin.diff("t") / np.log(late.t).diff("t")

    away = abs(late.measured_margin - late.predicted_margin)
    difference = abs(slope(late.measured_margin) - slope(late.predicted_margin))
    return [
        jd.gate("size of the value at the end, over that at the start", abs(ds["size"].isel(t=-1) / ds.start), at_most=1e-3),
        jd.at_most("margin, largest difference from the law, over the terms that the law leaves out", away / late.error, 1.5),
        jd.at_most("slope in the logarithm of time, largest difference from the law's", difference, 0.025),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Margin, weight of the sink and size of its value along time."""
    axes = fig.subplots(1, 3)
    for ax, name, label, color in (
        (axes[0], "measured_margin", "reduced flow", "measured"),
        (axes[0], "predicted_margin", "late law", "theory"),
        (axes[1], "share", "", "measured"),
        (axes[2], "size", "", "measured"),
    ):
        values = abs(ds[name])
        plotting.band(ax, ds.t, values.transpose(..., "t"), label, color)
    for ax, label in zip(axes, (r"margin $\Delta$", "weight of the sink", r"size of its value $\beta$"), strict=True):
        ax.set(xscale="log", xlabel="time", ylabel=label)


LAW = jd.Study(
    trial=trial,
    quick=jd.grid(Reduced, value=[0.3, 1.0], number=[16.0, 64.0]),
    paper=jd.grid(Reduced, value=[0.1, 0.3, 1.0, 2.0], number=[4.0, 16.0, 64.0, 256.0], others=[0.5, 1.0, 2.0]),
    seeds=8,
    paper_seeds=32,
    evidence="reduced",
    bounds=jd.looked(at="0:8", confirmed="61000000:61000008"),
    source="derived here from the loss of an idle query; its two variables: arXiv:2410.13835, section 2",
    judge=judge,
    plot=plot,
    caption="Margin of the sink's score, its weight and the size of its value along the time of the reduced flow (band: central "
    "90% of the runs), and the late law.",
).claim(
    id="sink.reduced_log",
    form="derived",
    statement=r"In the reduced flow of an idle query's cross-entropy in the margin $\Delta$ of the sink's score over $n$ keys of "
    r"equal scores and in the size $\beta$ of the sink's value, $\beta$ decays and the margin grows with the logarithm of time, "
    r"$\Delta \to \ln n + \frac12 \ln(2\sigma^2 t)$, where $\sigma^2$ is the variance of what the other keys write into the "
    r"logits: within 1.5 times $(3E + 3\ln(nE) + n)/E^2$, $E = \sqrt{2\sigma^2 t}$, which the law leaves out, and with a slope of "
    r"$1/2$ within 0.025, for times from $10^4$ to $10^6$ ($n$ = 16 and 64; no network).",
    controls={"the value is frozen": {"rate": 0.0}, "other keys write nothing": {"others": 0.0}},
    rivals={
        "nothing moves": jd.swap(predicted_margin="still"),
        "growth like the square root of time": jd.swap(predicted_margin="root"),
        "growth linear in time": jd.swap(predicted_margin="linear"),
    },
)

CLAIMS = (
    LAW,
    LAW.as_printed(
        id="sink.reduced_log_naive",
        form="heuristic",
        statement=r"In the reduced flow the loss that is left to gain falls like $e^{-\Delta}$, so that "
        r"$\dot\Delta = c\,e^{-\Delta}$ and the margin grows late with slope 1 in the logarithm of time.",
    ),
)
