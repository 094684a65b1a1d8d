r"""Claims on single nodes of networks that train until they generalise: which irrep each ends in, forecast from the start.

Forms, as in ``dynamics/nodes.py``: ``node`` follows both layers of a node from where they start, ``energy`` lets w climb E(w) from its
start, as if the top layer had none. What is recorded: ``trials/nodes.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.li2.trials.nodes import trial
from jaxdyn.theories.li2.trials.training import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge", "judge_use", "right"]

GENERAL = 0.95  # test accuracy that counts as generalising
TOP = 3  # irreps that are counted as the most used


def right(ds: xr.Dataset, name: str = "predicted_place") -> xr.DataArray:
    """The share of a network's nodes that end in the irrep named."""
    return (ds[name] == ds.measured_place).where(ds.measured_place.notnull()).mean("node")


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Networks generalise; half of the nodes are forecast, more than by the largest irrep of the start."""
    own = right(ds)
    return [
        jd.gate("final test accuracy, mean", float(ds.test_accuracy.mean()), at_least=GENERAL),
        jd.mean_within("share of a network's nodes forecast rightly, mean", own, over="seed", low=0.5),
        jd.mean_within(
            "its excess over the largest irrep of the start, mean", own - right(ds, "start_place"), over="seed", low=0.1
        ),
    ]


def hits(ds: xr.Dataset) -> xr.DataArray:
    """The share of the most used irreps that are among those forecast as the most used; equal ones in the order of the irreps."""

    def best(values: xr.DataArray) -> xr.DataArray:
        return (-values).argsort(values.get_axis_num("irrep")).argsort(values.get_axis_num("irrep")) < TOP

    return (best(ds.predicted_use) & best(ds.measured_use)).sum("irrep") / TOP


def judge_use(ds: xr.Dataset) -> list[jd.Check]:
    """Rank correlation over the irreps of a network, and hits among the most used beyond chance."""
    jd.need(ds, seed=16)
    rank = stats.spearman(ds.predicted_use, ds.measured_use, "irrep")
    rank = rank.fillna(0.0)  # a constant forecast ranks nothing
    return [
        jd.gate("final test accuracy, mean", float(ds.test_accuracy.mean()), at_least=GENERAL),
        jd.mean_within("rank correlation of the forecast and the use, mean", rank, over="seed", low=0.1),
        jd.mean_within(
            f"share of the {TOP} most used irreps that are forecast, beyond chance, mean",
            hits(ds) - TOP / ds.sizes["irrep"],
            over="seed",
            low=0.0,
        ),
    ]


def frequent(ds: xr.Dataset) -> xr.Dataset:
    """A rival: every node is in the irrep that most nodes of its trained network hold."""
    counts = (ds.measured_place == ds.irrep).sum("node")
    return ds.assign(predicted_place=(counts.argmax("irrep") + 0 * ds.measured_place).transpose(*ds.measured_place.dims))


def common(ds: xr.Dataset) -> xr.Dataset:
    """A rival: every network uses the irreps as much as networks do on average."""
    return ds.assign(predicted_use=(ds.measured_use.mean("seed") + 0 * ds.measured_use).transpose(*ds.measured_use.dims))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Left: share of nodes that are where the theory puts them, along training; right: energy over the maximum, test accuracy."""
    left, side = fig.subplots(1, 2)
    for form, color in (("node", "theory"), ("energy", "third")):
        one = ds.curve_right.sel(form=form) if "form" in ds.curve_right.dims else ds.curve_right
        plotting.band(left, ds.epoch, one.transpose("seed", "epoch"), form, plotting.COLORS[color])
        if "form" not in ds.curve_right.dims:
            break
    chance = float(right(ds, "start_place").mean())
    left.axhline(chance, color=plotting.COLORS["control"], linestyle=":", label="largest irrep of the start")
    left.set(xlabel="epoch", ylabel="share of nodes forecast rightly", ylim=(0, 1))
    plotting.band(side, ds.epoch, ds.curve_energy.mean("node").transpose("seed", "epoch"), "energy", plotting.COLORS["measured"])
    plotting.band(side, ds.epoch, ds.curve_test.transpose("seed", "epoch"), "test accuracy", plotting.COLORS["third"])
    side.set(xlabel="epoch", ylabel="energy over the exact maximum; accuracy", ylim=(-0.03, 1.03))


def plot_use(ds: xr.Dataset, fig: Figure) -> None:
    """Rank correlations of all networks, for the theory and its rivals."""
    ax = fig.subplots()
    for name, color in (("predicted_use", "theory"), ("start_use", "third"), ("other_use", "control")):
        rank = np.sort(stats.spearman(ds[name], ds.measured_use, "irrep").values.ravel())
        label = {"predicted_use": "theory", "start_use": "spectrum of the start", "other_use": "other landscape"}[name]
        ax.plot(rank, np.linspace(0, 1, len(rank)), color=plotting.COLORS[color], label=label)
    ax.set(xlabel="rank correlation with the use", ylabel="share of networks below")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Training, share=0.8, lr=1.0, decay=1e-4, hidden=64, epochs=200, every=5, optimizer="sgd"),
    paper=jd.grid(Training, group="41", share=0.8, lr=1.0, decay=1e-4, hidden=512, epochs=600, every=10, optimizer="sgd"),
    seeds=64,
    paper_seeds=64,
    judge=judge,
    form="node",
    evidence="network",
    source="arXiv:2509.21519, section 4",
    plot=plot,
    rivals={
        "every node keeps the largest irrep of its start": jd.swap(predicted_place="start_place"),
        "the climb on targets of permuted pairs": jd.swap(predicted_place="other_place"),
        "the irrep that most nodes of the network hold": frequent,
    },
    caption="Left: share of nodes whose largest irrep along training is the one forecast from the start; dotted: mean share that "
    "ends in the largest irrep of its start. Right: energy of nodes on the unit sphere over the maximum in their irrep, mean over the "
    "nodes, and test accuracy. Median and central 90% of the runs.",
)
