"""The claim on suppression: whether Muon's step is smaller in irreps that other nodes of a trained network hold already.

Theorem 8 puts a factor of one half there. What counts as held: ``trials/suppression.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.li2.claims import found
from jaxdyn.theories.li2.trials.suppression import trial
from jaxdyn.theories.li2.trials.training import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS"]


def ratio(ds: xr.Dataset) -> xr.DataArray:
    """The logarithm of the gain in held irreps over that in free ones."""
    gain = np.log(ds.measured_gain)
    return gain.sel(part="held", drop=True) - gain.sel(part="free", drop=True)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """At each record, whether the mean over runs is within a tenth of no suppression."""
    jd.need(ds, seed=16)
    words = "logarithm of the gain in held irreps over free ones, epoch {}, mean"
    return [
        jd.mean_within(words.format(int(epoch)), ratio(ds).sel(epoch=epoch), over="seed", low=-0.1, high=0.1) for epoch in ds.epoch
    ]


def halved(ds: xr.Dataset) -> xr.Dataset:
    """A rival: in irreps that another node holds the gain is half of that in the others."""
    free = ds.measured_gain.sel(part="free", drop=True)
    return ds.assign(measured_gain=xr.where(ds.part == "held", free / 2, free).transpose(*ds.measured_gain.dims))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """The ratio of gains along training, with Theorem 8's factor, and the test accuracy."""
    left, right = fig.subplots(1, 2)
    plotting.band(left, ds.epoch, np.exp(ratio(ds)).transpose(..., "epoch"), "networks", plotting.COLORS["measured"])
    plotting.band(right, ds.epoch, ds.test_accuracy.transpose(..., "epoch"), "networks", plotting.COLORS["measured"])
    left.axhline(0.5, color=plotting.COLORS["theory"], linestyle="--", label="Theorem 8")
    left.set(xlabel="epoch", ylabel="gain in held over free irreps", ylim=(0, None))
    right.set(xlabel="epoch", ylabel="test accuracy")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(
            Training, group="41", optimizer="muon_polar", share=0.6, lr=0.005, decay=5e-5, hidden=24, epochs=300, every=100
        ),
        paper=jd.grid(
            Training, group="71", optimizer="muon_polar", share=0.6, lr=0.005, decay=5e-5, hidden=[48, 64], epochs=2000, every=200
        ),
        seeds=32,
        paper_seeds=32,
        source="arXiv:2509.21519, Lemma 9 and Theorem 8",
        evidence="network",
    ).claim(
        id="li2.muon_suppression",
        statement=r"In networks of 24 nodes on $Z_{41}$ that Muon trains ($\sigma = x^2$), by what factor does the polar factor of "
        r"the gradient shrink a node's part in irreps that other nodes hold, beside its part in irreps that none holds? Theorem 8 "
        r"supposes one half.",
        judge=judge,
        expected="measured",
        rivals={"Theorem 8: held features are halved": halved},
        found=found.SUPPRESSION,
        plot=plot,
        caption="Left: the gain of the polar factor in irreps that another node holds, over that in irreps that none holds, along "
        "training; dashed: the factor of Theorem 8. Right: test accuracy. Median and central 90% of the runs.",
    ),
)
