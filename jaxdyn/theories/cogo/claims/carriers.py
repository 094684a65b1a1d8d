r"""What holds trained networks together: order-6 groups carry the bias of order-4 ones, and their number is that of a low norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.cogo.claims.trained import CONVERGED, PAPER, SEEDS, grid, ticks, trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS"]

HELD = CONVERGED[:3]  # decays that shrink a network by less than 1%


def judge_bias(ds: xr.Dataset) -> list[jd.Check]:
    """Each order-4 frequency: what its own nodes leave, and what the nodes of order-6 groups add."""
    return [
        jd.at_most("|own + order-6 nodes'| / |own|", jd.relative_error(ds, "bias", "part"), 0.05),
        jd.at_most("modulus of the own term: relative error", jd.relative_error(ds, "own"), 0.05),
    ]


def judge_one(ds: xr.Dataset) -> list[jd.Check]:
    """An order-6 group in every network with order-4 ones, and the loss that is left without its entries."""
    has_four = ds.fours > 0
    rise = (ds.measured_rise.where(has_four) / ds.predicted_rise).mean("seed")
    return [
        jd.at_least("order-6 groups in a network that has order-4 ones", ds.measured_n6.where(has_four), 1.0),
        jd.at_most("rise of the loss: relative error, mean over seeds", abs(rise - 1), 0.1),
    ]


def judge_n6(ds: xr.Dataset) -> list[jd.Check]:
    """The number of order-6 groups beside that of the least norm, and the norm beside that of the composed solution."""
    return [
        jd.within("order-6 groups / their number at the least norm", ds.measured_n6 / ds.predicted_n6, 1.0, 2.0),
        jd.at_most("squared norm: relative error", jd.relative_error(ds, "norm"), 0.02),
    ]


def judge_diagonal(ds: xr.Dataset) -> list[jd.Check]:
    """The sums of potentials at the end, and what decay takes from the diagonal one."""
    shortfall = ds.measured_shortfall.mean("seed") / ds.predicted_shortfall.mean("seed")
    return [
        jd.at_most("sum of r_kkk: relative error", jd.relative_error(ds, "diagonal"), 0.02),
        jd.at_most("sum of all other r / sum of r_kkk", abs(ds.curve_cross.isel(epoch=-1)) / ds.predicted_diagonal, 0.02),
        jd.within("what decay and loss take from the sum / predicted, mean over seeds", shortfall, 0.8, 1.2),
    ]


def by_fours(ds: xr.Dataset) -> xr.Dataset:
    """The other order-4 groups in place of the order-6 ones."""
    return ds.assign(measured_bias=ds.from_four)


def dropped(ds: xr.Dataset) -> xr.Dataset:
    """Without c-entries at other frequencies."""
    return ds.assign(measured_bias=0 * ds.measured_bias)


def four_ablated(ds: xr.Dataset) -> xr.Dataset:
    """The c-entries of order-4 nodes taken away instead."""
    return ds.assign(measured_rise=ds.rise_four)


def no_bias(ds: xr.Dataset) -> xr.Dataset:
    """The norm without its bias term is least with as few order-6 groups as possible: one."""
    return ds.assign(predicted_n6=1.0 + 0 * ds.predicted_n6)


def memorised(ds: xr.Dataset) -> xr.Dataset:
    """The norm of the solution that memorises."""
    return ds.assign(predicted_norm=ds.memory_norm)


def untrained(ds: xr.Dataset) -> xr.Dataset:
    """The sums before training."""
    return ds.assign(measured_diagonal=ds.curve_diagonal.isel(epoch=0))


def without_factor(ds: xr.Dataset) -> xr.Dataset:
    """Potentials in the code's scale, without 2d."""
    d = ds.predicted_diagonal + 1
    return ds.assign(measured_diagonal=ds.measured_diagonal / (2 * d))


def plot_bias(ds: xr.Dataset, fig: Figure) -> None:
    """What order-6 nodes add against what the own nodes leave, and their moduli."""
    left, right = fig.subplots(1, 2)
    four = ds.order == 4
    plotting.scatter(left, ds.predicted_bias.where(four), ds.measured_bias.where(four), label="order-6 nodes, re and im")
    left.set(xlabel="minus the own nodes' mean", ylabel="mean from order-6 nodes")
    own = np.ravel(ds.measured_own.where(four))
    right.hist(own[np.isfinite(own)], bins=20, color=plotting.COLORS["measured"], label="trained")
    right.axvline(2**0.5, color=plotting.COLORS["theory"], label=r"exact block, $\sqrt{2}$")
    right.set(xlabel="modulus of the own nodes' mean", ylabel="order-4 frequencies")


def plot_one(ds: xr.Dataset, fig: Figure) -> None:
    """Rise of the loss without the carriers' entries against 4/d for each order-4 frequency."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_rise, ds.measured_rise, label="without order-6 nodes' entries")
    plotting.scatter(ax, ds.predicted_rise, ds.rise_four, label="without order-4 nodes' entries", color="control")
    ax.set(xlabel="4/d for each order-4 frequency", ylabel="rise of the loss")


def plot_n6(ds: xr.Dataset, fig: Figure) -> None:
    """Number of order-6 groups by decay, and squared norm against that of the composed solution."""
    left, right = fig.subplots(1, 2)
    part = ds.isel({axis: 0 for axis in ds.measured_n6.dims if axis not in ("decay", "seed")})
    mean, best = part.measured_n6.mean("seed"), float(np.ravel(part.predicted_n6)[0])
    left.plot(part.decay, mean, "o-", label="mean over seeds")
    left.axhspan(best, 2 * best, color=plotting.COLORS["theory"], alpha=0.2, label="least norm's number to twice that")
    left.set(xscale="log", xlabel="decay", ylabel="order-6 groups", ylim=(0, None))
    ticks(left, part.decay)
    plotting.scatter(right, ds.predicted_norm, ds.measured_norm, label="trained networks")
    right.set(xlabel="squared norm of the composed solution", ylabel="squared norm, trained")


def plot_diagonal(ds: xr.Dataset, fig: Figure) -> None:
    """Both sums over training, and what decay takes from the diagonal one."""
    left, right = fig.subplots(1, 2)
    for name, label, color in (("diagonal", r"$2d\,\sum_k$ Re $r_{kkk}$", "measured"), ("cross", "all other potentials", "third")):
        curve = ds[f"curve_{name}"]
        plotting.band(left, ds.epoch[:20], curve.isel(epoch=slice(20)), label=label, color=color)
    for value in np.unique(ds.predicted_diagonal):
        left.axhline(value, color=plotting.COLORS["theory"], linestyle="--")
    left.set(xlabel="epoch", ylabel="sum of potentials")
    plotting.scatter(right, ds.predicted_shortfall, ds.measured_shortfall, label="runs")
    right.set(xlabel=r"$d\,(L + \lambda\|w\|^2/6)$", ylabel="d - 1 - sum")


_SHARED = {"trial": trial, "seeds": SEEDS}

CLAIMS = (
    jd.Claim(
        id="cogo.bias_carrier",
        statement=r"In trained networks the mean that an order-4 frequency k leaves, $\sum_j (|a_{kj}|^2 + |b_{kj}|^2) c_{kj}$ "
        r"of modulus $\sqrt2$ (paper's scale), is cancelled within 5% by $\sum_j \sum_{k'>0} (|a_{k'j}|^2 + |b_{k'j}|^2) "
        r"c_{kj}$ over the nodes j of order-6 groups; other order-4 groups add next to nothing.",
        source="derived; arXiv:2410.01779 composes solutions of orders 4 and 6 without saying where trained networks keep the bias",
        quick=grid(decay=list(HELD)),
        paper=grid(decay=list(HELD), **PAPER),
        judge=judge_bias,
        controls={"other order-4 groups carry it": by_fours, "no entries at other frequencies": dropped},
        plot=plot_bias,
        **_SHARED,
    ),
    jd.Claim(
        id="cogo.one_o6",
        statement=r"A trained network with order-4 groups has an order-6 one, and needs it: without the c-entries of order-6 "
        r"nodes at order-4 frequencies the loss rises by $4/d$ for each of these, within 10% in the mean over seeds (less, as "
        r"the means that trained nodes leave are 3% short of $\sqrt2$).",
        source="derived from the composed solutions of arXiv:2410.01779",
        quick=grid(decay=list(HELD)),
        paper=grid(decay=list(HELD), **PAPER),
        judge=judge_one,
        controls={"entries of order-4 nodes taken away": four_ablated},
        plot=plot_one,
        **_SHARED,
    ),
    jd.Claim(
        id="cogo.n6_trained",
        statement=r"Trained networks lie close to the least norm: they keep between $n_6^*$ and $2 n_6^*$ order-6 groups, "
        r"$n_6^* = \sqrt{n\,6^{1/3} / (6 \cdot 6^{1/3} - 6 \cdot 4^{1/3})}$, and their squared norm is that of the composed "
        r"solution with as many, $d\,(2d)^{-2/3} E(n_6)$, within 2%.",
        source="derived; growing share of order 4: arXiv:2410.01779, figure 4",
        quick=grid(decay=list(CONVERGED)),
        paper=grid(decay=list(CONVERGED), **PAPER),
        judge=judge_n6,
        controls={"norm without the bias term: one group": no_bias, "norm of the memorising solution": memorised},
        plot=plot_n6,
        **_SHARED,
    ),
    jd.Claim(
        id="cogo.diag_sum",
        statement=r"At the end of training $2d \sum_{k\ne0} \mathrm{Re}\,r_{kkk}$ is $d - 1$ and the sum of all other "
        r"potentials 0, within 2% of $d - 1$ (code scale). What decay $\lambda$ and a remaining loss L take from the "
        r"former is $d\,(L + \lambda \|w\|^2 / 6)$ with the norm of the composed solution.",
        source="arXiv:2410.01779, figure 3; what decay takes: derived",
        quick=grid(decay=list(HELD)),
        paper=grid(decay=list(HELD), **PAPER),
        judge=judge_diagonal,
        controls={"before training": untrained, "without the factor 2d": without_factor},
        plot=plot_diagonal,
        **_SHARED,
    ),
)
