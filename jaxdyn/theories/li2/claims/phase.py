r"""Claims on trained networks: which share of the pairs is enough, and that weight decay is what makes them generalise.

Letters as in ``training.py``; p_50 is the share at which the test accuracy is one half at the end of training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
import scipy.optimize
import xarray as xr
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2.dynamics.critical import CONSTANT, critical_share
from jaxdyn.theories.li2.training import Training, train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "grid", "half", "trial"]

SOURCE = "arXiv:2509.21519, Theorem 4 and figure 5"
RATIOS = (0.6, 0.9, 1.0, 1.1, 1.25)
MARGIN = 0.02  # distance from zero and one of accuracies whose logit is taken


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """The accuracies of one network along its training, beside the critical share of its group."""
    curves = train(s, key).curves
    return jd.observables(
        predicted={"critical": jnp.float64(critical_share(parse(s.group)))},
        measured={"critical": jnp.asarray(s.pairs, jnp.float64)},
        recorded={name: jd.named(curve.astype(jnp.float64), "epoch") for name, curve in curves.items()},
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )


def half(share: np.ndarray, accuracy: np.ndarray) -> float:
    """p_50 by a logistic fit of the accuracy in ln p (least squares); NaN if the accuracies do not pass one half."""
    known = np.isfinite(accuracy)
    x, y = np.log(share[known]), accuracy[known]
    if known.sum() < 3 or y.min() > 0.5 or y.max() < 0.5:
        return np.nan
    start = np.interp(0.5, np.maximum.accumulate(y), x)
    logit = np.log((y + MARGIN) / (1 - y + MARGIN))
    width = (x[-1] - x[0]) / max(logit[-1] - logit[0], 1)
    found = scipy.optimize.least_squares(lambda q: 1 / (1 + np.exp(-(x - q[0]) / np.exp(q[1]))) - y, (start, np.log(width)))
    return float(np.exp(found.x[0]))


def halves(ds: xr.Dataset, epoch: int = -1) -> xr.DataArray:
    """p_50 of every seed and group at a record, by default the last."""
    accuracy = ds.test_accuracy.isel(epoch=epoch)
    share = ds.measured_critical.broadcast_like(accuracy)
    return xr.apply_ufunc(half, share, accuracy, input_core_dims=[["share"], ["share"]], vectorize=True)


def judge_phase(ds: xr.Dataset) -> list[jd.Check]:
    """p_50 in units of ln M / M for every group; nothing is learnt with 0.6 of the critical share."""
    if ds.sizes.get("share", 1) < 3 or float(ds.share.min()) > 0.7:
        raise jd.Inconclusive("needs three shares, the least at most 0.7 of the critical one")
    found, said = halves(ds), ds.predicted_critical.isel(share=0, drop=True)
    scarce = ds.test_accuracy.isel(epoch=-1).sel(share=ds.share <= 0.7)
    return [
        jd.within("p_50 M / ln M, mean over seeds", CONSTANT * (found / said).mean("seed", skipna=False), 2.3, 3.3),
        jd.at_most("test accuracy at 0.6 p_c", scarce, 0.05),
    ]


def judge_power(ds: xr.Dataset) -> list[jd.Check]:
    """The power with which p_50 follows ln M / M over groups, at the end and halfway."""
    if ds.sizes.get("group", 1) < 3:
        raise jd.Inconclusive("a power over groups needs three of them")
    said, checks = ds.predicted_critical.isel(share=0, drop=True), []
    for place in (ds.sizes["epoch"] // 2, -1):
        found, low, high = stats.slope_interval(said, halves(ds, place), "group")
        words = f"power of ln M / M in p_50 after {int(ds.epoch[place])} epochs, mean over seeds, 95% from {low:.3g} to {high:.3g}"
        checks.append(jd.within(words, xr.DataArray(found), 0.85, 1.15))
    return checks


def early(ds: xr.Dataset) -> xr.Dataset:
    """Every run as it is after a quarter of its training."""
    quarter = ds.test_accuracy.isel(epoch=ds.sizes["epoch"] // 4)
    return ds.assign(test_accuracy=quarter.broadcast_like(ds.test_accuracy))


def judge_decay(ds: xr.Dataset) -> list[jd.Check]:
    """All runs fit their pairs; those with decay know the others in the end, those without do not."""
    if not {0.0} < set(np.atleast_1d(ds.coords.get("decay", np.nan))):
        raise jd.Inconclusive("needs decay 0 and another one")
    last = ds.isel(epoch=-1)
    return [
        jd.at_least("train accuracy", last.train_accuracy, 0.99),
        jd.at_most("test accuracy without decay", last.test_accuracy.sel(decay=0.0), 0.2),
        jd.at_least("test accuracy with decay", last.test_accuracy.sel(decay=ds.decay > 0), 0.95),
    ]


def plot_phase(ds: xr.Dataset, fig: Figure) -> None:
    """Test accuracy against the share in units of the critical one, and p_50 against M."""
    left, right = fig.subplots(1, 2)
    ds = ds.isel({axis: 0 for axis in ("lr", "decay") if axis in ds.dims})
    for i, name in enumerate(np.atleast_1d(ds.group)):
        part = ds.test_accuracy.sel(group=name).isel(epoch=-1)
        plotting.band(left, ds.share, part.transpose("seed", "share"), f"{name}", plotting.CYCLE[i % len(plotting.CYCLE)])
    left.axvline(1, color=plotting.COLORS["theory"], linestyle="--")
    left.set(xlabel=r"share of pairs / $p_c$", ylabel="test accuracy at the end")
    order = [parse(str(name)).order for name in ds.group.values]
    for place, marker in ((-1, "o"), (ds.sizes["epoch"] // 2, "v")):
        found = halves(ds, place).median("seed")
        right.plot(order, found, marker, color=plotting.COLORS["measured"], label=f"epoch {int(ds.epoch[place])}")
    right.plot(order, ds.predicted_critical.isel(share=0, seed=0), color=plotting.COLORS["theory"], label=r"$2.75\,\ln M / M$")
    right.set(xscale="log", yscale="log", xlabel="M", ylabel=r"$p_{50}$")
    right.set_xticks(order, [f"{m}" for m in order])
    right.minorticks_off()


def plot_decay(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracies along training, with decay and without."""
    ax = fig.subplots()
    for i, decay in enumerate(np.atleast_1d(ds.decay)):
        part = ds.test_accuracy.sel(decay=decay)
        plotting.band(ax, ds.epoch, part.transpose("seed", "epoch"), f"test, decay {decay:g}", plotting.CYCLE[i])
    train_curve = ds.train_accuracy.isel(decay=-1).transpose("seed", "epoch")
    plotting.band(ax, ds.epoch, train_curve, "train", plotting.CYCLE[2])
    ax.set(xlabel="epoch", ylabel="accuracy")


def grid(**fields: object) -> jd.Grid:
    """Runs on shares in units of the critical one: rate .002, decay 2e-4, 512 nodes, 1200 epochs, but for the fields given."""
    return jd.grid(Training, **{"critical": True, "hidden": 512, "epochs": 1200, "every": 100} | fields)


_PHASE = {
    "source": SOURCE,
    "trial": trial,
    "quick": grid(group=["23", "31", "41"], share=list(RATIOS)),
    "paper": grid(
        group=["23", "41", "71", "89", "127"],
        share=[0.6, *np.linspace(0.8, 1.4, 7).tolist()],
        hidden=2048,
        lr=5e-4,
        epochs=10000,
        every=200,
    ),
    "seeds": 8,
    "paper_seeds": 20,
    "plot": plot_phase,
}

CLAIMS = (
    jd.Claim(
        id="li2.phase",
        statement=r"Networks trained on a share $p$ of all pairs know the others from $p \approx 2.75 \ln M / M$ on: the share at "
        r"which test accuracy is one half is $c \ln M / M$ with $c$ in $[2.3, 3.3]$ for every group, and with $0.6 p_c$ nothing is "
        r"learnt (test accuracy below .05). At 1200 epochs: the transition moves to smaller shares with longer training.",
        judge=judge_phase,
        controls={
            "a quarter of the epochs": early,
            "half of the critical share": lambda ds: ds.assign(predicted_critical=ds.predicted_critical / 2),
        },
        **_PHASE,
    ),
    jd.Claim(
        id="li2.phase_power",
        statement=r"The power of $\ln M / M$ in the share at which test accuracy is one half, at a fixed number of epochs; theory: "
        r"1.",
        judge=judge_power,
        expected="measured",
        **_PHASE,
    ),
    jd.Claim(
        id="li2.no_decay",
        statement=r"Without weight decay ($\eta = 0$) a network fits its pairs and stays at chance on the others: with 0.6 of the "
        r"pairs of $Z_{23}$, test accuracy ends below .2, and above .95 with decay 2e-4.",
        source="arXiv:2509.21519, Lemma 1 and figure 3",
        trial=trial,
        quick=jd.grid(Training, share=0.6, decay=[0.0, 2e-4], epochs=800, every=20),
        paper=jd.grid(Training, group="71", share=0.4, lr=[5e-4, 2e-3], decay=[0.0, 2e-4], hidden=2048, epochs=1000, every=20),
        seeds=8,
        paper_seeds=15,
        judge=judge_decay,
        controls={
            "the runs without decay called those with it": lambda ds: ds.assign(
                test_accuracy=ds.test_accuracy.sel(decay=0.0).broadcast_like(ds.test_accuracy)
            )
        },
        plot=plot_decay,
    ),
)
