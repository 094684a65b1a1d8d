r"""Claims on nodes over time: energy and purity beside the flow of each node alone, in the network's own epochs, and until when.

The window is the theory's own: as long as the flow's outputs are below half of the targets, which it takes for the residual. What
is recorded, and what is meant by until when: ``trials/rise.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.li2.claims.found import UNTIL
from jaxdyn.theories.li2.dynamics.rise import END
from jaxdyn.theories.li2.trials.rise import SMALL, trial, until
from jaxdyn.theories.li2.trials.training import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "apart", "explained", "judge", "judge_until", "power", "window"]

GENERAL = 0.95  # test accuracy that counts as generalising
AXES = ("hidden", "lr")  # of the law of until when


def window(ds: xr.Dataset) -> xr.DataArray:
    """The records until the flow's outputs first are no longer small."""
    return (ds.outputs >= SMALL).cumsum("epoch") == 0


def _mean(height: xr.DataArray) -> xr.DataArray:
    return height.mean("node") if "node" in height.dims else height


def _growth(ds: xr.Dataset, name: str) -> xr.DataArray:
    """How much a height has grown at the end of the window, since the network's start."""
    last = window(ds).sum("epoch") - 1
    return ds[name].isel(epoch=last) - ds.measured_height.isel(epoch=0)


def apart(ds: xr.Dataset) -> xr.DataArray:
    """Largest error of the mean over nodes within the window, in parts of the network's change in it, [seed, quantity]."""
    error = abs(_mean(ds.predicted_height) - _mean(ds.measured_height)).where(window(ds)).max("epoch")
    return error / abs(_mean(_growth(ds, "measured_height")))


def explained(ds: xr.Dataset) -> xr.DataArray:
    """The share of the variance over a network's nodes of their growth in the window that the prediction explains."""
    own, told = _growth(ds, "measured_height"), _growth(ds, "predicted_height")
    return 1 - ((own - told) ** 2).sum("node", min_count=1) / ((own - own.mean("node")) ** 2).sum("node", min_count=1)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Networks generalise in the end; in the window the mean curves agree, and so does the growth of single nodes."""
    return [
        jd.gate("final test accuracy, mean", float(ds.curve_test.isel(epoch=-1).mean()), at_least=GENERAL),
        jd.gate("records in the window", window(ds).sum("epoch"), at_least=5),
        jd.mean_within("largest error of the mean over nodes, in parts of its change, mean", apart(ds), over="seed", high=0.1),
        jd.mean_within("share of the nodes' differences in growth explained, mean", explained(ds), over="seed", low=0.9),
    ]


def unmoved(ds: xr.Dataset) -> xr.Dataset:
    """A rival: nodes stay as they are at the start."""
    return ds.assign(predicted_height=xr.zeros_like(ds.predicted_height) + ds.predicted_height.isel(epoch=0, drop=True))


def steady(ds: xr.Dataset) -> xr.Dataset:
    """A rival: linear in time, each node at constant speed from its start to where the flow is at the end of the window."""
    last = window(ds).sum("epoch") - 1
    told, part = ds.predicted_height, ds.epoch / ds.epoch.isel(epoch=last).drop_vars("epoch")
    straight = told.isel(epoch=0, drop=True) * (1 - part) + told.isel(epoch=last).drop_vars("epoch") * part
    return ds.assign(predicted_height=straight.transpose(*told.dims))


def power(time: xr.DataArray, field: str) -> xr.DataArray:
    """The slope of the logarithm of a time over that of a field, averaged over the other one; a number for each seed."""
    slope = jd.stats.loglog_slope(time[field], time.where(time > 0), field)
    return slope.mean([axis for axis in AXES if axis in slope.dims])


def judge_until(ds: xr.Dataset) -> list[jd.Check]:
    """How long nodes are independent: over width, over the rate beside the theory's own end, and against that end."""
    jd.need(ds, seed=2, hidden=3, lr=3)
    told, seen = ds.predicted_until, ds.measured_until
    excess = power(seen, "lr") - power(told, "lr")
    ratio = np.log(seen.where(seen > 0) / told.where(told > 0)).mean(AXES)
    return [
        jd.gate("share of runs with both times", float(((told > 0) & (seen > 0)).mean()), at_least=0.8),
        jd.mean_within("slope of the time in K, mean", power(seen, "hidden"), over="seed", low=-0.1, high=0.1),
        jd.mean_within(
            "slope of the time in the rate, beyond that of the flow's end, mean", excess, over="seed", low=-0.1, high=0.1
        ),
        jd.mean_within("logarithm of the time over the flow's end, mean", ratio, over="seed", low=-np.log(2), high=np.log(2)),
    ]


def goes_as(field: str, exponent: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A rival: the time is a power of a field."""

    def rival(ds: xr.Dataset) -> xr.Dataset:
        first = ds.measured_until.isel({field: 0}, drop=True)
        time = first * (ds[field] / float(ds[field][0])) ** exponent
        return ds.assign(measured_until=time.transpose(*ds.measured_until.dims))

    return rival


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Mean energy and purity of the nodes along the window and beyond: network, flow, and momentum as a factor."""
    ds = ds.isel(epoch=slice(0, int((ds.outputs < END).sum("epoch").max())))
    last = float(ds.epoch.isel(epoch=window(ds).sum("epoch") - 1).mean())
    for ax, name in zip(fig.subplots(1, 2), ds["quantity"].values, strict=True):
        told, seen = (_mean(ds[key]).sel(quantity=name) for key in ("predicted_height", "measured_height"))
        plotting.band(ax, ds.epoch, seen.transpose("seed", "epoch"), "network", plotting.COLORS["measured"])
        within = ds.outputs < END
        plotting.band(ax, ds.epoch, told.where(within).transpose("seed", "epoch"), "flow of each node", plotting.COLORS["theory"])
        other = ds.factor.sel(quantity=name)
        other = other.where(other.diff("epoch", label="lower") != 0).median("seed")  # until its end
        ax.plot(other.epoch, other, ":", color=plotting.COLORS["control"], label="momentum a factor")
        ax.axvline(last, color="0.5", linewidth=0.8)
        ax.set(xlabel="epoch", ylabel={"energy": "energy over its maximum", "purity": "purity"}[str(name)])


def plot_until(ds: xr.Dataset, fig: Figure) -> None:
    """Left: until when, against the number of nodes, at each rate; right: the share of nodes in the irrep forecast over time."""
    left, right = fig.subplots(1, 2)
    for i, lr in enumerate(ds.lr.values):
        part, color = ds.sel(lr=lr), plotting.CYCLE[i % len(plotting.CYCLE)]
        seen = part.measured_until.where(part.measured_until > 0)
        plotting.band(left, ds.hidden, seen.transpose("seed", "hidden"), f"rate {lr:g}", color)
        left.plot(ds.hidden, part.predicted_until.median("seed"), ":", color=color)
        curve = part.curve_right.isel(hidden=-1).transpose("seed", "epoch")
        plotting.band(right, ds.epoch * lr, curve, f"rate {lr:g}", color)
    left.set(xlabel="nodes K", ylabel="epochs times rate", xscale="log", yscale="log")
    right.set(xlabel="epochs times rate", ylabel="share of nodes in the irrep forecast")


GRID = jd.grid(Training, share=0.8, lr=1.0, decay=1e-4, hidden=64, epochs=120, every=3, optimizer="sgd")
LARGE = GRID.replace(group="41", hidden=512, epochs=600, every=5)

CURVES = jd.Study(
    trial=trial,
    quick=GRID,
    paper=LARGE,
    seeds=16,
    paper_seeds=32,
    judge=judge,
    evidence="network",
    source="arXiv:2509.21519, section 4",
).claim(
    id="li2.stage2_curves",
    statement=r"In networks of 64 nodes with $\sigma = x^2$ on $Z_{23}$ that gradient descent with momentum trains until they "
    r"generalise, energy and purity of the nodes over time are those of the flow of each node alone, from the same start, with "
    r"the trainer's rate and decay, and momentum as inertia, as long as the flow's outputs are below half of the targets: averaged "
    r"over nodes they agree within 10% of the change in that time, on average over networks, and the flow explains over 90% of the "
    r"variance between nodes of their growth.",
    bounds=jd.looked(at="0:16", confirmed="31000000:31000016"),
    controls={"the nodes of another network": jd.rolled(measured_height="seed")},
    rivals={
        "nothing moves": unmoved,
        "the flow on targets of permuted pairs": jd.swap(predicted_height="other"),
        "momentum is a factor of the rate": jd.swap(predicted_height="factor"),
        "linear in time, to where the flow is at the end": steady,
    },
    plot=plot,
    caption="Energy of nodes on the unit sphere over the maximum in their irrep, and share of that irrep, means over the nodes of "
    "a network and of the flow of each node alone, until its outputs are twice the targets; dotted: the flow with momentum as a "
    "factor of the rate. Vertical: end of the window. Median and central 90% of the runs.",
)
UNTIL_WHEN = jd.Study(
    trial=until,
    quick=GRID.replace(hidden=[32, 96, 256], lr=[0.4, 0.7, 1.2]),
    paper=LARGE.replace(hidden=[32, 64, 128, 256, 512], lr=[0.4, 0.7, 1.2]),
    seeds=6,
    paper_seeds=8,
    judge=judge_until,
    evidence="network",
    source="arXiv:2509.21519, section 4",
).claim(
    id="li2.stage2_until",
    statement=r"In such networks on $Z_{23}$, until what training time, epochs times rate, do ever more nodes turn to the irrep in "
    r"which the flow of the node alone ends, and how does that depend on the number of nodes K, from 32 to 256, and on the rate, "
    r"from 0.4 to 1.2, beside the time at which the flow's own outputs are half of the targets?",
    expected="measured",
    rivals={
        "outputs are sums over nodes: inverse in K": goes_as("hidden", -1.0),
        "momentum is a factor: the same training time at all rates": goes_as("lr", 0.0),
        "nodes stay independent to the last epoch": jd.swap(measured_until="last"),
    },
    found=UNTIL,
    plot=plot_until,
    caption="Left: training time at which most nodes are in the irrep forecast for them, against the number of nodes, of the runs "
    "in which there is one; dotted: median of the time at which the flow's outputs are half of the targets. Right: share of nodes "
    "in the irrep forecast along training, at the largest K. Median and central 90% of the runs.",
)

CLAIMS = (CURVES, UNTIL_WHEN)
