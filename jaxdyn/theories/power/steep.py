r"""The number of epochs until a network generalises, against the share of pairs that it is trained on.

Runs are Li2's networks, whose shares are in units of the critical share of their group, so that groups can be compared. Division of
nonzero residues modulo 23 is the group :math:`Z_{22}` with the second operands renamed, and a network with one-hot inputs does
not know names. Departure: the paper's networks are transformers with two layers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2.dynamics.retention import critical_share
from jaxdyn.theories.li2.training import Training
from jaxdyn.theories.li2.zero_start import KNOWN, trial
from jaxdyn.theories.power.published import PAPER, PER_PERCENT

POWERS = ("power of the share, mean", "power of the share, two smallest, mean")
GROWTH = "growth of the epochs for each percent of all pairs less, {} group, mean"
KINDS = ("cyclic", "symmetric")


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
        jd.mean_within(POWERS[0], whole, over="seed", high=-2.0),
        jd.mean_within(POWERS[1], near, over="seed", high=-1.5),
    ]


def per_percent(ds: xr.Dataset) -> xr.DataArray:
    """Relative growth of the epochs for each percent of all pairs that is taken away, between the two smallest shares."""
    first, second = smallest(ds)
    apart = 100 * float(second.share - first.share)
    percent = [apart * critical_share(parse(str(name))) for name in ds.group.values]
    return np.exp(np.log(first.measured_time / second.measured_time) / xr.DataArray(percent, {"group": ds.group}, "group")) - 1


def judge_percent(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """The growth for each group."""
    jd.need(ds, seed=8, share=2)
    growth = per_percent(ds)
    kinds = {kind: of_kind(growth, kind) for kind in KINDS}
    return [
        gate(ds),
        *(jd.mean_reading(GROWTH.format(kind), part.mean("group"), over="seed") for kind, part in kinds.items() if part.size),
    ]


def of_kind(growth: xr.DataArray, kind: str) -> xr.DataArray:
    """The part on cyclic groups, whose names are numbers, or on symmetric ones."""
    return growth.isel(group=np.flatnonzero([str(name).isdigit() == (kind == KINDS[0]) for name in growth.group.values]))


def same_samples(kind: str) -> Callable[[xr.Dataset], float]:
    """The growth if the epochs were inversely proportional to the share."""
    return lambda ds: float(of_kind(per_percent(ds.assign(measured_time=1 / ds.share)), kind).mean())


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
    tested="Two-layer networks with quadratic activation and {hidden} hidden units, full-batch training at rate {lr} with "
    "weight decay {decay}, at most {epochs} epochs: division of nonzero residues modulo 23 (the group of 22) and products in "
    "$S_4$, trained on {share} times the critical share of all pairs (.39 and .55); {seeds} seeds.",
    plot=plot,
    caption="Left: epochs until the test accuracy is .95 against the share of all pairs that is trained on. Right: test "
    "accuracy along training on the smallest share (networks that have reached .95 are trained no further). Median and "
    "central 90% of the runs.",
)
CLAIMS = (
    STUDY.claim(
        id="power.steep",
        talks=("grokking:li2-figure-grokking",),
        title="Fewer training pairs delay generalisation more than in proportion",
        bounds=jd.tuned(on="0:12", confirmed_on="4000:4012"),
        statement="Trained with weight decay on a share of the table of a group that is 1.1 to 1.8 times its critical share, "
        "two-layer networks with quadratic activation (128 to 256 units, decay .0005 to .001) need the longer for a test "
        "accuracy of .95 the fewer pairs they have: on average over runs the epochs grow at least like the inverse square of "
        "the share, and between the two smallest shares at least like its inverse 1.5th power, for each of two groups.",
        decides={"more than in proportion": ("power of the share, mean", "the same number of samples")},
        holds={"decay": (5e-4, 1e-3), "hidden": (128, 256)},
        judge=judge,
        controls={"epochs of the shares in reverse order": reverse},
        rivals={
            "the same time for all shares": jd.off(dict.fromkeys(POWERS, 0.0)),
            "the same number of samples": dict.fromkeys(POWERS, -1.0),
        },
    ),
    STUDY.claim(
        id="power.percent",
        title="How much longer generalisation takes with one percent fewer pairs",
        expected="measured",
        statement="How many more epochs does a network with quadratic activation need to generalise for each percent of all pairs "
        "that it is trained on less, between 1.2 and 1.1 of the critical share? The reading is the mean over runs for each group.",
        judge=judge_percent,
        recorded={
            GROWTH.format("cyclic"): (0.0657, 0.09026, 0.115),
            GROWTH.format("symmetric"): (0.089, 0.1175, 0.146),
        },
        rivals={
            "the same time for all shares": jd.off({GROWTH.format(kind): 0.0 for kind in KINDS}),
            "the same number of samples": {GROWTH.format(kind): same_samples(kind) for kind in KINDS},
            "the paper's growth, for transformers on S5": {GROWTH.format(kind): PER_PERCENT[0] for kind in KINDS},
        },
    ),
)
