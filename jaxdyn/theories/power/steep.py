r"""The number of epochs until a network generalises, against the share of pairs that it is trained on.

Runs are Li2's networks, whose shares are in units of the critical share of their group, so that groups can be compared. Division of
nonzero residues modulo 23 is the group :math:`Z_{22}` with the second operands renamed, and a network with one-hot inputs does
not know names. Departure: the paper's networks are transformers with two layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2.dynamics.critical import critical_share
from jaxdyn.theories.li2.training import Training
from jaxdyn.theories.li2.zero_start import KNOWN, trial
from jaxdyn.theories.power.published import PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge", "judge_percent", "per_percent"]


def gate(ds: xr.Dataset) -> jd.Check:
    """Every network generalises."""
    return jd.gate(f"epochs until the test accuracy is {KNOWN}", ds.measured_time, at_most=float(ds.epoch[-1]))


def smallest(ds: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """The runs on the smallest share, and on the next."""
    first, second = np.argsort(ds.share.values)[:2]
    return ds.isel(share=first), ds.isel(share=second)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The power of the share in the epochs, over all shares and over the two smallest."""
    jd.need(ds, seed=8, share=3)
    first, second = smallest(ds)
    near = np.log(second.measured_time / first.measured_time) / np.log(second.share / first.share)
    whole = stats.loglog_slope(ds.share, ds.measured_time, "share")
    return [
        gate(ds),
        jd.mean_within("power of the share, mean", whole, over="seed", high=-3.0),
        jd.mean_within("power of the share, two smallest, mean", near, over="seed", high=-1.5),
    ]


def per_percent(ds: xr.Dataset) -> xr.DataArray:
    """Relative growth of the epochs for each percent of all pairs that is taken away, between the two smallest shares."""
    first, second = smallest(ds)
    apart = 100 * float(second.share - first.share)
    percent = [apart * critical_share(parse(str(name))) for name in ds.group.values]
    return np.exp(np.log(first.measured_time / second.measured_time) / xr.DataArray(percent, {"group": ds.group}, "group")) - 1


def judge_percent(ds: xr.Dataset) -> list[jd.Check]:
    """The growth for each group."""
    jd.need(ds, seed=8, share=2)
    growth = per_percent(ds)
    checks = [gate(ds)]
    for name in map(str, growth.group.values):
        check = f"growth of the epochs for each percent of the pairs of {name} less, mean"
        checks.append(jd.mean_within(check, growth.sel(group=name, drop=True), over="seed", low=0.4, high=0.5))
    return checks


def times(power: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A rival: the epochs are this power of the share."""
    return jd.swap(measured_time=lambda ds: ds.measured_time.isel(share=-1, drop=True) * (ds.share / ds.share[-1]) ** power)


def reverse(ds: xr.Dataset) -> xr.Dataset:
    """A control: the epochs of the shares in reverse order."""
    return ds.assign(measured_time=ds.measured_time.copy(data=ds.measured_time.isel(share=slice(None, None, -1)).values))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Epochs against the share of all pairs, and test accuracy along training on the smallest."""
    left, right = fig.subplots(1, 2)
    for name, color in zip(map(str, np.atleast_1d(ds.group)), ("measured", "third"), strict=False):
        part = ds.sel(group=name) if "group" in ds.dims else ds
        label = rf"$Z_{{{name}}}$" if name.isdigit() else name
        share = part.share * critical_share(parse(name))
        plotting.band(left, share, part.measured_time.transpose("seed", "share"), label, color, marker="o")
        plotting.band(right, ds.epoch, part.accuracy.sel(share=ds.share.min()).transpose("seed", "epoch"), label, color)
    left.set(xlabel="share of all pairs", ylabel=f"epochs until the test accuracy is {KNOWN}", xscale="log", yscale="log")
    right.set(xlabel="epoch", ylabel="test accuracy, smallest share", ylim=(0, 1.02))


GRID = jd.grid(Training, group=["22", "S4"], share=[1.1, 1.2, 1.4, 1.8], critical=True, lr=0.01, decay=5e-4, hidden=128, every=5)
STUDY = jd.Study(
    trial=trial,
    quick=GRID.replace(epochs=1200),
    paper=GRID.replace(group=["96", "S5"], lr=0.001, decay=2e-4, hidden=2048, epochs=10_000, every=20),
    seeds=12,
    paper_seeds=8,
    evidence="network",
    source=f"arXiv:2201.02177, section 3 ({PAPER})",
    plot=plot,
    caption="Left: epochs until the test accuracy is .95 against the share of all pairs that is trained on. Right: test accuracy "
    "along training on the smallest share (networks that have reached .95 are trained no further). Median and central 90% "
    "of the runs.",
)
CLAIMS = (
    STUDY.claim(
        id="power.steep",
        bounds=jd.looked(at="0:12", confirmed="4000:4012"),
        statement="The fewer pairs a two-layer network with quadratic activation is trained on, the longer it takes to generalise, "
        "and far more than in proportion: with weight decay, from 1.8 down to 1.1 times the critical share, the epochs until the "
        "test accuracy is .95 grow on average at least like the inverse third power of the share, for division of nonzero residues "
        "modulo 23 and for products in $S_4$; from 1.2 down to 1.1 times it, at least like the inverse 1.5th power.",
        judge=judge,
        controls={"epochs of the shares in reverse order": reverse},
        rivals={"the same time for all shares": times(0.0), "the same number of samples": times(-1.0)},
    ),
    STUDY.claim(
        id="power.percent",
        expected="measured",
        statement="How many more epochs a two-layer network with quadratic activation needs to generalise for each percent of all "
        "pairs that it is trained on less, from 1.2 down to 1.1 times the critical share.",
        judge=judge_percent,
        found={
            "growth of the epochs for each percent of the pairs of 22 less, mean": (0.03, 0.15),
            "growth of the epochs for each percent of the pairs of S4 less, mean": (0.05, 0.19),
        },
        rivals={"the same time for all shares": times(0.0), "the same number of samples": times(-1.0)},
    ),
)
