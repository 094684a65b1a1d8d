"""Initialisation: from a top layer at zero a network generalises sooner, above all when pairs are scarce."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.li2.training import Training
from jaxdyn.theories.li2.zero_start import KNOWN, trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """How much sooner the zero start generalises on few pairs, and that it gains fewer epochs on many."""
    jd.need(ds, top=(0.0, 1.0), share=2)
    time = ds.measured_time
    few, many = (time.sel(share=share) for share in (ds.share.min(), ds.share.max()))
    ratio = np.log(few.sel(top=1.0, drop=True) / few.sel(top=0.0, drop=True))
    gained, little = (t.sel(top=1.0, drop=True) - t.sel(top=0.0, drop=True) for t in (few, many))
    return [
        jd.gate("final test accuracy", ds.accuracy.isel(epoch=-1), at_least=KNOWN),
        jd.mean_within("ln of the epochs from the normal start over zero's, few pairs, mean", ratio, over="seed", low=0.05),
        jd.mean_within(
            "epochs gained on few pairs minus three times those on many, mean", gained - 3 * little, over="seed", low=0.0
        ),
    ]


def on_few_pairs(ds: xr.Dataset) -> xr.DataArray:
    """The times on few pairs: in place of those on many, the gain is the same."""
    return ds.measured_time.sel(share=ds.share.min().item(), drop=True)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Test accuracy along training from both starts, a panel per share."""
    shares = np.atleast_1d(ds.share)
    for ax, share in zip(np.atleast_1d(fig.subplots(1, len(shares), sharey=True)), shares, strict=True):
        for top, label, color in ((1.0, "normal start", "measured"), (0.0, "V = 0", "third")):
            part = ds.accuracy.sel(share=share, top=top).transpose("seed", "epoch")
            plotting.band(ax, ds.epoch, part, label, plotting.COLORS[color])
        ax.set(xlabel="epoch", ylabel="test accuracy", title=f"{share:.0%} of the pairs")


BASE = jd.grid(Training, top=[0.0, 1.0], lr=0.005)
STUDY = jd.Study(
    trial=trial,
    quick=BASE.replace(share=[0.48, 0.9], epochs=1000, every=5),
    paper=BASE.replace(group="89", share=[0.2, 0.9], decay=5e-5, hidden=1024, epochs=3000, every=10),
    seeds=24,
    paper_seeds=15,
    source="arXiv:2509.21519, figures 14-16",
)

CLAIMS = (
    STUDY.claim(
        id="li2.zero_init",
        bounds=jd.looked(at="0:24", confirmed="20000000:20000024"),
        statement=r"Compared with the normal start, $V = 0$ brings the test accuracy of networks with $\sigma = x^2$ to .95 "
        r"sooner: not far above the critical share, on 0.48 of the pairs of $Z_{23}$ ($1.28 p_c$), in at least 5% fewer epochs on "
        r"average, and there the epochs gained are on average more than three times those on 0.9 of the pairs.",
        judge=judge,
        evidence="network",
        controls={"the times on few pairs for those on many": jd.swap(measured_time=on_few_pairs)},
        rivals={"the start does not matter": jd.swap(measured_time=lambda ds: ds.measured_time.sel(top=1.0))},
        plot=plot,
        caption="Test accuracy along training from the normal start and from V = 0, a panel per share of the pairs; median and "
        "central 90% of the runs.",
    ),
)
