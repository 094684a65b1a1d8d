r"""Features of trained nodes: how many irreps they hold with Muon and with Adam, and the effect of the learning rate.

When a node holds an irrep, and which nodes are counted: ``trained_features.py``. Quick scale is too small to refute the paper, so
both are measured. Its own sizes take about 2 hours of one core for Muon (:math:`4 \cdot 10^{13}` operations), and for the rates
about 150 (:math:`3 \cdot 10^{15}`): a task for an accelerator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.li2 import findings
from jaxdyn.theories.li2.interaction.trained_features import trial
from jaxdyn.theories.li2.training import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS"]

GENERAL = 0.95  # test accuracy that counts as generalising


def paired(ds: xr.Dataset, name: str) -> tuple[xr.DataArray, xr.DataArray]:
    """A quantity with Muon and with Adam, from the same start and pairs."""
    jd.need(ds, optimizer=("adam", "muon"), seed=16)
    return ds[name].sel(optimizer="muon", drop=True), ds[name].sel(optimizer="adam", drop=True)


def judge_held(ds: xr.Dataset) -> list[jd.Check]:
    """Whether Muon's nodes hold more irreps, by half of one on average, and its networks have the lower test loss, by 5%."""
    with_muon, with_adam = paired(ds, "measured_held")
    muon, adam = paired(ds, "measured_loss")
    return [
        jd.mean_within("irreps that Muon's nodes hold beyond Adam's, mean", with_muon - with_adam, over="seed", low=0.5),
        jd.mean_within("logarithm of Adam's test loss over Muon's, mean", np.log(adam / muon), over="seed", low=0.05),
    ]


def judge_boundary(ds: xr.Dataset) -> list[jd.Check]:
    """The share of runs that generalise at each rate, and the energy of nodes at the largest rate over that at the others."""
    jd.need(ds, lr=3)
    general = ds.test_accuracy.isel(epoch=-1) >= GENERAL
    checks = [
        jd.share_within(f"share of runs that generalise, rate {float(lr):g}", general.sel(lr=lr), over="seed", low=0.6)
        for lr in ds.lr
    ]
    ratio = np.log(ds.energy.isel(lr=-1) / ds.energy.isel(lr=slice(1, -1)).mean("lr"))
    words = "logarithm of nodes' energy at the largest rate over that at the ones between"
    return [*checks, jd.mean_within(words, ratio, over="seed", low=0.05)]


def plot_held(ds: xr.Dataset, fig: Figure) -> None:
    """The number of irreps that each run holds, and its test loss."""
    left, right = fig.subplots(1, 2)
    for i, name in enumerate(np.atleast_1d(ds.optimizer)):
        part = ds.sel(optimizer=name)
        counts = np.ravel(part.measured_held)
        bins = np.arange(-0.5, float(ds.irreps.max()) + 1)
        left.hist(counts[np.isfinite(counts)], bins, alpha=0.6, label=f"{name}", color=plotting.CYCLE[i])
        right.plot(np.sort(np.ravel(part.measured_loss)), ".-", color=plotting.CYCLE[i], label=f"{name}")
    left.set(xlabel="irreps held", ylabel="runs")
    right.set(xlabel="run, in order", ylabel="test loss")


def plot_boundary(ds: xr.Dataset, fig: Figure) -> None:
    """Test accuracy along training for each rate, and the energy of nodes at the end."""
    left, right = fig.subplots(1, 2)
    for i, lr in enumerate(ds.lr.values):
        part = ds.test_accuracy.sel(lr=lr).transpose("seed", "epoch")
        plotting.band(left, ds.epoch, part, f"rate {lr:g}", plotting.CYCLE[i % len(plotting.CYCLE)])
    left.set(xlabel="epoch", ylabel="test accuracy")
    plotting.band(right, ds.lr, ds.energy.transpose("seed", "lr"), "nodes", plotting.COLORS["measured"])
    right.set(xscale="log", xlabel="learning rate", ylabel="E of nodes of norm one")


MUON = jd.grid(Training, optimizer=["adam", "muon"], share=0.6, lr=0.005, decay=5e-5)
RATES = jd.grid(Training, critical=True)

CLAIMS = (
    jd.Study(
        trial=trial,
        quick=MUON.replace(hidden=24, epochs=600, every=50),
        paper=MUON.replace(group="71", hidden=[48, 64], epochs=3000, every=100),
        seeds=48,
        paper_seeds=48,
        source="arXiv:2509.21519, Theorem 8 and figure 8",
        evidence="network",
    ).claim(
        id="li2.muon_diversity",
        statement=r"With few nodes and $\sigma = x^2$, do Muon's hold more different irreps than Adam's after the same training, "
        r"and is the test loss lower? Means over pairs of networks of 24 nodes on $Z_{23}$ (11 pairs of frequencies).",
        judge=judge_held,
        expected="measured",
        rivals={
            "Muon changes nothing": jd.swap(
                measured_held=lambda ds: ds.measured_held.sel(optimizer="adam"),
                measured_loss=lambda ds: ds.measured_loss.sel(optimizer="adam"),
            )
        },
        found=findings.DIVERSITY,
        plot=plot_held,
        caption="Left: number of runs by the number of irreps that their nodes hold, with Adam and with Muon. Right: test losses "
        "at the end of training, in order.",
    ),
    jd.Study(
        trial=trial,
        quick=RATES.replace(share=1.1, lr=[0.0005, 0.002, 0.01, 0.05, 0.2], epochs=2000, every=50),
        paper=RATES.replace(
            group=["71", "127"],
            share=[1.1, 1.9],
            lr=[0.0005, 0.001, 0.002, 0.005, 0.01],
            hidden=1024,
            epochs=10000,
            every=100,
        ),
        seeds=6,
        paper_seeds=15,
        source="arXiv:2509.21519, figures 6 and 7",
        evidence="network",
    ).claim(
        id="li2.lr_boundary",
        statement=r"At 1.1 of the critical share, which learning rates lead to networks with $\sigma = x^2$ that generalise, and "
        r"the mean energy of their nodes; published: small rates generalise, large ones end in solutions of higher energy that do "
        "not.",
        judge=judge_boundary,
        expected="measured",
        rivals={
            "nothing but the training pairs is learned at any rate": jd.initial("lr", "energy", test_accuracy=0.0),
        },
        found=findings.BOUNDARY,
        plot=plot_boundary,
        caption="Left: test accuracy along training, a colour per learning rate. Right: mean energy of the live nodes, scaled to "
        "norm 1, at the end, over the rate. Median and central 90% of the runs.",
    ),
)
