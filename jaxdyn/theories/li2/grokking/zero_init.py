"""Initialisation: from a top layer at zero a network generalises sooner, above all when pairs are scarce."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.li2.training import Training
from jaxdyn.theories.li2.zero_start import KNOWN, trial

RATIO = "ln of the epochs from the normal start over zero's, few pairs, mean"
GAINED = "epochs gained on few pairs minus twice those on many, mean"


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """How much sooner the zero start generalises on few pairs, and that it gains fewer epochs on many."""
    jd.need(ds, top=(0.0, 1.0), share=2)
    time = ds.measured_time
    few, many = (time.sel(share=share) for share in (ds.share.min(), ds.share.max()))
    ratio = np.log(few.sel(top=1.0, drop=True) / few.sel(top=0.0, drop=True))
    gained, little = (t.sel(top=1.0, drop=True) - t.sel(top=0.0, drop=True) for t in (few, many))
    return [
        jd.gate("final test accuracy", ds.accuracy.isel(epoch=-1), at_least=KNOWN),
        jd.mean_within(RATIO, ratio, over="seed", low=-np.log(0.95)),
        jd.mean_within(GAINED, gained - 2 * little, over="seed", low=0.0),
    ]


def as_on_many(ds: xr.Dataset) -> float:
    """The epochs gained on many pairs minus twice themselves."""
    many = ds.measured_time.sel(share=ds.share.max(), drop=True)
    return -float((many.sel(top=1.0, drop=True) - many.sel(top=0.0, drop=True)).mean())


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
    seeds=40,
    paper_seeds=15,
    source="arXiv:2509.21519, figures 14-16",
    tested="Networks of {hidden} nodes on {share} of the pairs of residues modulo {group}, Adam at rate {lr}, decay {decay}, "
    "up to {epochs} epochs; {seeds} seeds.",
)

CLAIMS = (
    STUDY.claim(
        id="li2.zero_init",
        title="Starting the top layer at zero helps more where pairs are scarce",
        bounds=jd.tuned(on="0:40", confirmed_on="80000001:80000041"),
        statement=r"Compared with the normal start, a top layer that starts at zero brings networks of 256 nodes with $\sigma = "
        "x^2$ that Adam trains on residues modulo 23 to a test accuracy of .95 in at least 5% fewer epochs (geometric mean) "
        "where pairs are scarce, on .48 of them, and the epochs gained there are on average more than twice those gained on .9 "
        "of the pairs.",
        judge=judge,
        evidence="network",
        holds={"lr": (0.003, 0.008), "decay": (1e-4, 4e-4)},
        controls={"the times on few pairs for those on many": jd.swap(measured_time=on_few_pairs)},
        rivals={
            "the start does not matter": jd.off({RATIO: 0.0}),
            "as many epochs are gained on few pairs as on many": {GAINED: as_on_many},
        },
        plot=plot,
        caption="Test accuracy along training from the normal start and from V = 0, a panel per share of the pairs; median and "
        "central 90% of the runs.",
    ),
)
