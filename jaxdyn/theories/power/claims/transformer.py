r"""The claim on transformers: the fewer pairs they have, the later they generalise, and on few pairs long after they fit them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.li2.trials.zero_init import KNOWN
from jaxdyn.theories.power.published import PAPER
from jaxdyn.theories.power.trials.transformer import Transformer, trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge"]

POWER = -1.1
DELAY = 3.0


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """How much later than its own pairs a network knows the others, and the power of the share in that time."""
    jd.need(ds, seed=4, share=2)
    time = ds.measured_time.clip(max=float(ds.step[-1]))
    delay = np.log(time / ds.measured_fitted).sel(share=ds.share.min(), drop=True)
    return [
        jd.gate(f"steps until the training accuracy is {KNOWN}", ds.measured_fitted, at_most=float(ds.step[-1])),
        jd.mean_within(
            f"ln of the steps until the test accuracy is {KNOWN} over those until the training accuracy is, smallest share, mean",
            delay,
            over="seed",
            low=np.log(DELAY),
        ),
        jd.mean_within("power of the share, mean", stats.loglog_slope(ds.share, time, "share", least=2), over="seed", high=POWER),
    ]


def times(power: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A rival: the steps are this power of the share, times those on the largest."""

    def rival(ds: xr.Dataset) -> xr.Dataset:
        largest = ds.sortby("share").isel(share=-1)
        law = largest.measured_time.drop_vars("share") * (ds.share / largest.share.item()) ** power
        return ds.assign(measured_time=law.transpose(*ds.measured_time.dims))

    return rival


def at_once(ds: xr.Dataset) -> xr.Dataset:
    """A rival: who knows the pairs of training knows the others."""
    return ds.assign(measured_time=ds.measured_fitted)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Steps against the share, and both accuracies along training on the smallest."""
    left, right = fig.subplots(1, 2)
    for name, label, color in (("fitted", "pairs of training", "third"), ("time", "other pairs", "measured")):
        steps = ds[f"measured_{name}"].clip(max=float(ds.step[-1])).transpose("seed", "share")
        plotting.band(left, ds.share, steps, label, color, marker="o")
    few = ds.sel(share=ds.share.min())
    for name, label, color in (("train", "pairs of training", "third"), ("test", "other pairs", "measured")):
        plotting.band(right, ds.step, few[f"{name}_accuracy"].transpose("seed", "step"), label, color)
    left.set(xlabel="share of all pairs", ylabel=f"steps until the accuracy is {KNOWN}", xscale="log", yscale="log")
    ticks = [float(x) for x in ds.share]
    left.set_xticks(ticks, [f"{x:g}" for x in ticks])
    left.set_yticks(counts := [200, 500, 1000, 2000, 4000], [str(x) for x in counts])
    left.minorticks_off()
    right.set(xlabel="step", ylabel="accuracy, smallest share", ylim=(0, 1.02))


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Transformer, share=[0.45, 0.8]),
        paper=jd.grid(
            Transformer, share=[0.25, 0.3, 0.4, 0.5], group="96", width=128, hidden=352, lr=1e-3, batch=512, steps=50_000, every=100
        ),
        seeds=15,
        paper_seeds=3,
        evidence="network",
        source=f"arXiv:2201.02177, sections 2 and 3 ({PAPER})",
        plot=plot,
        caption="Left: steps until the accuracy on the pairs of training and on all others is .95 against the share that is "
        "trained on. Right: both accuracies along training on the smallest share (networks that have reached .95 on the others are "
        "trained no further). Median and central 90% of the runs.",
    ).claim(
        id="power.transformer",
        bounds=jd.looked(at="8000:8010", confirmed="51000000:51000015"),
        statement="Decoders with two layers of width 32 that AdamW trains on 0.45 of all sums modulo 31 need more steps "
        "until their accuracy on the other pairs is .95 than on 0.8 of them: these steps grow on average at least like the "
        f"inverse 1.1th power of the share, and on the smallest share they are at least {DELAY:g} times those until the accuracy "
        "on their own pairs is .95 (geometric mean). Networks that do not get there count with all 4000 steps.",
        judge=judge,
        controls={"shares in reverse order": jd.rolled(measured_time="share")},
        rivals={
            "the same time for all shares": times(0.0),
            "the same number of samples": times(-1.0),
            "who knows his pairs knows all": at_once,
        },
    ),
)
