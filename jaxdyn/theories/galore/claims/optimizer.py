r"""Claims on networks trained by GaLore's optimizer: its full-rank limit, its twin in optax, and noise that it takes for signal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.galore.trials.optimizer import (
    Agreement,
    FullRank,
    Noisy,
    Sides,
    agreement_trial,
    full_rank_trial,
    noisy_trial,
    sides_trial,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS"]

ENTRIES = "place row col"
NEAR = 0.003  # of the distance at the start; with singular vectors 0.026 of it are learned


def judge_full_rank(ds: xr.Dataset) -> list[jd.Check]:
    """Changes of the weights against those of SGD, and of Adam in the basis of the first gradient."""
    return [
        jd.at_most("GaLore-SGD against SGD: relative error of the change", jd.relative_error(ds, "sgd", ENTRIES), 1e-9),
        jd.at_most("GaLore-Adam against turned Adam: relative error of the change", jd.relative_error(ds, "adam", ENTRIES), 1e-6),
    ]


def judge_sides(ds: xr.Dataset) -> list[jd.Check]:
    """Changes of the weights on both sides against descent along the nearest matrices of the rank."""
    return [jd.at_most("relative error of the change, left and right", jd.relative_error(ds, "change", ENTRIES), 1e-6)]


def judge_agreement(ds: xr.Dataset) -> list[jd.Check]:
    """Changes of the weights by both implementations."""
    return [jd.at_most("relative error of the change of the weights", jd.relative_error(ds, "change", ENTRIES), 1e-4)]


def judge_noise(ds: xr.Dataset) -> list[jd.Check]:
    """What is left of the distance at the end; with singular vectors against its formula, with random ones on its plateau."""
    jd.need(ds, finder=("svd", "orthonormal"))
    left, law = ds.measured_left, ds.predicted_left
    end, miss = left.isel(time=-1), (left - law).sel(finder="svd").isel(time=-1)
    plateau = (left**2 / law**2).sel(finder="orthonormal").isel(time=slice(ds.sizes["time"] // 2, None)).mean("time")
    return [
        jd.mean_within("distance left with singular vectors", end.sel(finder="svd"), over="seed", low=0.9),
        jd.mean_within("the same, less its prediction", miss, over="seed", low=-NEAR, high=NEAR),
        jd.mean_within("distance left with random directions", end.sel(finder="orthonormal"), over="seed", high=0.35),
        jd.mean_within("its square over its prediction, mean over the second half", plateau, over="seed", low=0.88, high=1.12),
    ]


def judge_rank(ds: xr.Dataset) -> list[jd.Check]:
    """What is left of the distance at every sample, less its formula, by rank and number of rows of noise."""
    miss = ds.measured_left - ds.predicted_left
    return [jd.mean_within("distance left less its prediction", miss, over="seed", low=-0.01, high=0.01)]


def plot_changes(ds: xr.Dataset, fig: Figure) -> None:
    """Entries of the weights' changes, predicted and measured."""
    names = [name for name in ("sgd", "adam", "change") if f"predicted_{name}" in ds]
    axes = np.atleast_1d(fig.subplots(1, len(names)))
    titles = {"sgd": "GaLore-SGD, SGD", "adam": "GaLore-Adam, turned Adam", "change": "changes of the weights"}
    for ax, name in zip(axes, names, strict=True):
        one = ds.isel(seed=slice(0, 8))
        plotting.scatter(ax, one[f"predicted_{name}"], one[f"measured_{name}"], label="changes of the weights", color="measured")
        ax.set(title=titles[name], xlabel="predicted", ylabel="measured")


def plot_noise(ds: xr.Dataset, fig: Figure) -> None:
    """Distance from the target along training, for both kinds of bases."""
    ax = fig.subplots()
    time = np.arange(ds.sizes["time"])
    for finder, color in (("svd", "measured"), ("orthonormal", "third")):
        part = ds.sel(finder=finder)
        label = "singular vectors" if finder == "svd" else "random directions"
        plotting.band(ax, time, part.measured_left.transpose(..., "time"), label, color)
        predicted = part.predicted_left.transpose(..., "time").values.reshape(-1, time.size)[0]
        ax.plot(time, predicted, "--", color=plotting.COLORS["theory"], label="theory" if finder == "svd" else None)
    ax.set(xlabel="sample along training", ylabel=r"$\|w_1 - w^*\|$ over its start")


def plot_rank(ds: xr.Dataset, fig: Figure) -> None:
    """Distance left at the end against the number of rows of noise, a colour for each rank."""
    ax = fig.subplots()
    rows = np.atleast_1d(ds.noisy)
    for rank, color in zip(np.atleast_1d(ds["rank"]), plotting.CYCLE, strict=False):
        part = (ds.sel(rank=rank) if "rank" in ds.dims else ds).isel(time=-1)
        left, law = (
            part[name].transpose(..., "seed").values.reshape(rows.size, -1) for name in ("measured_left", "predicted_left")
        )
        ax.errorbar(rows, left.mean(1), left.std(1), fmt="o", color=color, capsize=3, label=f"rank {rank}")
        ax.plot(rows, law[:, 0], "--", color=color)
    ax.set(xlabel="rows of noise", ylabel=r"$\|w_1 - w^*\|$ over its start", xticks=rows)


CLAIMS = (
    jd.Study(
        trial=full_rank_trial,
        quick=jd.grid(FullRank),
        paper=jd.grid(FullRank, depth=[2, 3, 5], steps=200),
        seeds=128,
        paper_seeds=128,
        evidence="network",
        bounds="derived",
        source="arXiv:2403.03507, section 4.1 (full-rank projections); that Adam's basis turns: derived",
    ).claim(
        id="galore.full_rank_limit",
        statement="A network of three layers of leaky ReLUs trained by GaLore with bases of full rank takes the path of SGD if the "
        "inner transformation is the identity, whenever bases are found. With Adam inside, it takes the path of Adam in the basis "
        "of the first gradient's singular vectors, which is another one than Adam's.",
        judge=judge_full_rank,
        controls={"bases that lack one dimension": {"rank": 5}},
        rivals={
            "nothing moves": jd.swap(predicted_sgd=0.0, predicted_adam=0.0),
            "Adam itself": jd.swap(predicted_adam="plain_adam"),
        },
        plot=plot_changes,
        caption="Entries of the change of all weights after training: GaLore-SGD against SGD (left), GaLore-Adam against Adam in "
        "the basis of the first gradient (right); 8 runs.",
    ),
    jd.Study(
        trial=sides_trial,
        quick=jd.grid(Sides),
        paper=jd.grid(Sides, rank=[1, 2, 4], depth=[2, 3, 5]),
        seeds=128,
        paper_seeds=128,
        evidence="network",
        bounds="derived",
        source="derived, by Eckart and Young's theorem; the sides: arXiv:2403.03507, section 4.2",
    ).claim(
        id="galore.sides",
        statement="A network of three layers of leaky ReLUs trained by GaLore of rank 2 of 6 without moments takes the same path "
        "whether rows or columns are projected, if the basis is found in every step: that of descent along the nearest matrix of "
        "rank 2 to the gradient. (With longer periods the sides differ.)",
        judge=judge_sides,
        controls={"bases found every 5 steps": {"every": 5.0}},
        rivals={"nothing moves": jd.swap(predicted_change=0.0), "SGD: all of the gradient": jd.swap(predicted_change="sgd")},
        plot=plot_changes,
        caption="Entries of the change of all weights, GaLore on either side against descent along the nearest matrices; 8 runs.",
    ),
    jd.Study(
        trial=agreement_trial,
        quick=jd.grid(Agreement),
        paper=jd.grid(Agreement, rank=[1, 2, 4], periods=10),
        seeds=128,
        paper_seeds=128,
        evidence="network",
        bounds="derived",
        source="optax.contrib.scale_by_galore, an independent implementation of arXiv:2403.03507",
    ).claim(
        id="galore.optax_agree",
        statement="On a ReLU network, over four periods of the basis, GaLore-Adam that projects the long side changes the weights "
        "as the implementation in optax does, within 1e-4 of the change (float32). Projecting the short side, the paper's rule, "
        "does not.",
        judge=judge_agreement,
        controls={"the short side": {"side": "short"}},
        rivals={"nothing moves": jd.swap(predicted_change=0.0), "Adam without projection": jd.swap(predicted_change="adam")},
        plot=plot_changes,
        caption="Entries of the change of all weights, our implementation against optax's; 8 runs.",
    ),
    jd.Study(
        trial=noisy_trial,
        quick=jd.grid(Noisy, finder=["svd", "orthonormal"]),
        paper=jd.grid(Noisy, finder=["svd", "orthonormal"], lr=2e-4, steps=50_000),
        seeds=128,
        paper_seeds=128,
        evidence="network",
        bounds=jd.looked(at="0:128", confirmed="4000:4128"),
        source="arXiv:2410.11289 (GoLore), section 4: the example; formulas and numbers: derived",
    ).claim(
        id="galore.noise_counterexample",
        statement=r"Trained on $\frac12\|w_1 - w^*\|^2 + \xi^\top w_2$ with noise $\|\xi\| = 5\sqrt n$, $n = 20$, a matrix of two "
        r"rows learns its first row by less than 10% in 10 000 steps if GaLore's basis is the gradient's leading singular vector, "
        r"and by more than 65% if it is random: $\|w_1 - w^*\|^2$ is $\exp(-\frac{2\eta k}{T}[\frac1n + \frac{T-1}{\sigma^2n^2}])$ "
        r"and $e^{-\eta k} + \frac18\eta n\sigma^2(1 - e^{-\eta k})$ of its start, on average: the distance within 0.003 of its "
        r"start at the end of the one, its square within 12% in the second half of the other.",
        judge=judge_noise,
        controls={
            "a batch of 10 000: noise 100 times smaller": {"noise": 0.05},
            "a step size 50 times as large: noise in the first row": {"lr": 0.05},
        },
        rivals={
            "nothing moves": jd.swap(predicted_left=1.0),
            "half of the gradient passes, and no noise": lambda ds: ds.assign(
                predicted_left=0 * ds.predicted_left + np.exp(-0.5 * 1e-3 * 500 * np.arange(ds.sizes["time"]))
            ),
        },
        plot=plot_noise,
        caption="Distance of the first row from its target over that at the start, along training with bases of singular vectors "
        "and of random directions (median and central 90% of the runs), and the formulas (dashed); 500 steps a sample.",
    ),
    jd.Study(
        trial=noisy_trial,
        quick=jd.grid(Noisy, rows=6, rank=[2, 3], noisy=[1.0, 2.0, 3.0], lr=1.5e-3, steps=5000),
        paper=jd.grid(Noisy, rows=6, rank=[1, 2, 3, 4, 5], noisy=[1.0, 2.0, 3.0, 4.0], lr=1.5e-4, steps=50_000),
        seeds=100,
        paper_seeds=100,
        evidence="network",
        bounds=jd.looked(at="0:100", confirmed="17000:17100"),
        source="arXiv:2410.11289 (GoLore), section 4: the example, of two rows; the rest derived",
    ).claim(
        id="galore.noise_rank",
        statement=r"Trained on $\frac12\|w_1 - w^*\|^2 + \sum_{j=2}^{q+1} \xi_j^\top w_j$ with noise $\|\xi_j\| = 5\sqrt n$, $n = "
        r"20$, a matrix of six rows, $q$ of them noise, learns its first row by GaLore's leading singular vectors if and only if "
        r"there are more of them than rows of noise: after $k$ steps the distance is $e^{-\eta k}$ of its start for $r > q$, and "
        r"$\exp(-\frac{r\eta k}{T}[\frac1n + \frac{T-1}{\sigma^2n^2}])$ for $r \le q$ (0.9 or more in 5000 steps of rate 0.0015, "
        r"$q \le 3$), within 0.01 on average.",
        judge=judge_rank,
        controls={"a batch of 10 000: noise 100 times smaller": {"noise": 0.05}},
        rivals={
            "nothing moves": jd.swap(predicted_left=1.0),
            "the basis lets r of the m dimensions pass": lambda ds: ds.assign(
                predicted_left=0 * ds.predicted_left
                + np.exp(-0.375 * xr.DataArray(np.arange(ds.sizes["time"]), dims="time") * ds["rank"] / 6)
            ),
            "any rank learns as little as one direction": lambda ds: ds.assign(
                predicted_left=ds.predicted_left.where(ds["rank"] > ds.noisy, ds.predicted_left ** (1 / ds["rank"]))
            ),
            "a row of noise takes two directions": lambda ds: ds.assign(
                predicted_left=ds.predicted_left.where(ds["rank"] > 2 * ds.noisy, 1.0)
            ),
        },
        plot=plot_rank,
        caption="Distance of the first row from its target at the end of training over that at the start, against the number of "
        "rows of noise among six, a colour for each rank of the basis (mean and standard deviation of the runs), and the formulas "
        "(dashed).",
    ),
)
