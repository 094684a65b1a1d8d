r"""Trained networks: order-6 groups carry the bias of order-4 groups, and their number is close to that of least norm."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.cogo.figures import ticks
from jaxdyn.theories.cogo.trained.decomposed import CONVERGED, PAPER_23, QUICK, SEEDS, SMALL_DECAYS, TESTED, early, trial

NEAR = (1.0, 1.9)  # times the number of order-6 groups at the least norm


def judge_bias(ds: xr.Dataset) -> list[jd.Check]:
    """At each order-4 frequency: what its own nodes leave, and what the nodes of order-6 groups add."""
    return [
        jd.at_most("own mean + that of order-6 nodes, over the own mean", jd.relative_error(ds, "bias", "part"), 0.08),
        jd.at_most("modulus of the own mean: relative error", jd.relative_error(ds, "own"), 0.08),
    ]


def judge_one(ds: xr.Dataset) -> list[jd.Check]:
    """The loss that is left without the entries of order-6 groups."""
    return [jd.at_most("rise of the loss: relative error", jd.relative_error(ds, "rise"), 0.08)]


def judge_n6(ds: xr.Dataset) -> list[jd.Check]:
    """The number of order-6 groups against that of the least norm, and the norm against that of the composed solution."""
    ratio = ds.measured_n6 / ds.predicted_n6
    return [
        jd.at_least("order-6 groups / their number at the least norm, each run", ratio, 1.0),
        jd.mean_within("order-6 groups / their number at the least norm, mean", ratio, over="seed", low=NEAR[0], high=NEAR[1]),
        jd.at_most("squared norm: relative error", jd.relative_error(ds, "norm"), 0.02),
    ]


def judge_diagonal(ds: xr.Dataset) -> list[jd.Check]:
    """The potentials at the end, and by how much the sum of the diagonal ones falls short of d - 1."""
    missed = (ds.measured_shortfall - ds.predicted_shortfall) / ds.measured_shortfall.mean("seed")
    return [
        jd.at_most("sum of r_kkk: relative error", jd.relative_error(ds, "diagonal"), 0.02),
        jd.at_most("sum of |r|^2 of all others / (d - 1)", ds.others_square / ds.predicted_diagonal, 1e-3),
        jd.at_most("largest |r| of all others", ds.others_largest, 0.02),
        jd.mean_within("shortfall of the sum minus the predicted one / measured", missed, over="seed", low=-0.2, high=0.2),
    ]


# The diagonal before training.
UNTRAINED = jd.swap(
    measured_diagonal=lambda ds: ds.curve_diagonal.isel(epoch=0),
    measured_shortfall=lambda ds: ds.predicted_diagonal - ds.curve_diagonal.isel(epoch=0),
)
# The sum falls short by what the remaining loss leaves, as without weight decay.
WITHOUT_DECAY = jd.swap(predicted_shortfall=lambda ds: (ds.predicted_diagonal + 1) * ds.loss)
# Weight decay leaves the solution with the fewest constraints, order 6 at every frequency.
ONLY_SIXES = jd.swap(predicted_n6=lambda ds: ds.predicted_diagonal / 2, predicted_norm="sixes_norm")
# Potentials of the code's scale are 1, without 2d.
WITHOUT_FACTOR = jd.swap(predicted_diagonal=lambda ds: 2 * (ds.predicted_diagonal + 1) * ds.predicted_diagonal)


def plot_bias(ds: xr.Dataset, fig: Figure) -> None:
    """Means from order-6 nodes against means from the own nodes, and moduli of the latter."""
    left, right = fig.subplots(1, 2)
    four = ds.order == 4
    plotting.scatter(left, ds.predicted_bias.where(four), ds.measured_bias.where(four), label="order-6 nodes, re and im")
    left.set(xlabel="minus the own nodes' mean", ylabel="mean from order-6 nodes")
    own = np.ravel(ds.measured_own.where(four))
    right.hist(own[np.isfinite(own)], bins=20, color=plotting.COLORS["measured"], label="trained")
    right.axvline(2**0.5, color=plotting.COLORS["theory"], label=r"exact block, $\sqrt{2}$")
    right.set(xlabel="modulus of the own nodes' mean", ylabel="order-4 frequencies")


def plot_one(ds: xr.Dataset, fig: Figure) -> None:
    """Rise of the loss without the carriers' entries against the cost of the means that they cancel."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_rise, ds.measured_rise, label="without order-6 nodes' entries")
    plotting.scatter(ax, ds.predicted_rise, ds.rise_four, label="without order-4 nodes' entries", color="control")
    ax.set(xlabel=r"$(2/d) \sum_k |m_k|^2$ over order-4 frequencies", ylabel="rise of the loss")


def plot_n6(ds: xr.Dataset, fig: Figure) -> None:
    """Number of order-6 groups by decay, and squared norm against that of the composed solution."""
    left, right = fig.subplots(1, 2)
    part = plotting.first_run(ds, "decay", "seed")
    mean, best = part.measured_n6.mean("seed"), float(np.ravel(part.predicted_n6)[0])
    left.plot(part.decay, mean, "o-", label="mean over seeds")
    left.axhspan(
        NEAR[0] * best, NEAR[1] * best, color=plotting.COLORS["theory"], alpha=0.2, label="1 to 1.9 times the least norm's"
    )
    left.set(xscale="log", xlabel="decay", ylabel="order-6 groups", ylim=(0, None))
    ticks(left, part.decay)
    plotting.scatter(right, ds.predicted_norm, ds.measured_norm, label="trained networks")
    right.set(xlabel="squared norm of the composed solution", ylabel="squared norm, trained")


def plot_diagonal(ds: xr.Dataset, fig: Figure) -> None:
    """Both sums over training, and by how much the diagonal one falls short of d - 1 in the end."""
    left, right = fig.subplots(1, 2)
    for name, label, color in (("diagonal", r"$2d\,\sum_k$ Re $r_{kkk}$", "measured"), ("cross", "all other potentials", "third")):
        curve = ds[f"curve_{name}"]
        plotting.band(left, ds.epoch[:20], curve.isel(epoch=slice(20)), label=label, color=color)
    for value in np.unique(ds.predicted_diagonal):
        left.axhline(value, color=plotting.COLORS["theory"], linestyle="--")
    left.set(xlabel="epoch", ylabel="sum of potentials")
    plotting.scatter(right, ds.predicted_shortfall, ds.measured_shortfall, label="runs")
    right.set(xlabel=r"$d\,(L + \lambda\|w\|^2/6)$", ylabel="d - 1 - sum")


STUDY = jd.Study(
    trial=trial,
    tested=TESTED,
    source="derived from the composed solutions of arXiv:2410.01779",
    quick=QUICK.replace(decay=list(SMALL_DECAYS)),
    paper=PAPER_23.replace(decay=list(SMALL_DECAYS)),
    seeds=SEEDS,
    evidence="network",
    bounds=jd.tuned(on="0:10", confirmed_on="4000:4010"),
)

CLAIMS = (
    STUDY.claim(
        id="cogo.bias_carrier",
        talks=("training:cogo-figure-solution",),
        title="Order-6 groups cancel the mean that order-4 frequencies leave",
        bounds=jd.tuned(on="0:10", confirmed_on="51000000:51000010"),
        statement="In networks with quadratic activation and 512 nodes trained by Adam at rate .01 on 90% of the pairs of "
        r"addition modulo 23 with weight decay from $5 \cdot 10^{-5}$ to $2 \cdot 10^{-4}$ for 9900 epochs, the mean that the "
        r"nodes $j$ of an order-4 frequency $k$ leave in the output, $\sum_j (|a_{kj}|^2 + |b_{kj}|^2) c_{kj}$ over their "
        r"coefficients $a, b, c$ in the three layers, has modulus $\sqrt2$ (in the scale of the paper) and is cancelled by "
        r"$\sum_j \sum_{k'>0} (|a_{k'j}|^2 + |b_{k'j}|^2) c_{kj}$ over the nodes of order-6 groups, both within 8% at every such "
        "frequency.",
        source="derived; arXiv:2410.01779 composes solutions of orders 4 and 6 without saying where trained networks keep the bias",
        judge=judge_bias,
        controls={
            "other order-4 groups carry it": jd.swap(measured_bias="from_four"),
            "no entries at other frequencies": jd.swap(measured_bias=0.0),
        },
        rivals={"order-4 groups leave no mean": jd.off(predicted_own=0.0, predicted_bias=0.0)},
        plot=plot_bias,
        caption=r"One point for each order-4 frequency of each run. Left: the mean from order-6 nodes against minus the mean from "
        r"the frequency's own nodes, real and imaginary parts; line: equality. Right: histogram of the moduli of the own means, "
        r"with the exact block's $\sqrt2$.",
    ),
    STUDY.claim(
        id="cogo.one_o6",
        title="Networks of order-4 frequencies need order-6 groups as well",
        bounds=jd.tuned(on="0:10", confirmed_on="51000000:51000010"),
        statement="In networks with quadratic activation and 512 nodes trained by Adam at rate .01 on 90% of the pairs of "
        r"addition modulo $d = 23$ with weight decay from $5 \cdot 10^{-5}$ to $2 \cdot 10^{-4}$ for 9900 epochs, the loss "
        "without the output coefficients of order-6 nodes at order-4 frequencies $k$ rises by $2|m_k|^2/d$ for each of these, "
        "within 8% in all in every run, where $m_k$ is the mean in the output that its own nodes leave.",
        judge=judge_one,
        controls={"entries of order-4 nodes removed": jd.swap(measured_rise="rise_four")},
        rivals={"order-4 groups need no others": jd.off(predicted_rise=0.0)},
        plot=plot_one,
        caption=r"Rise of the loss over all pairs without certain c-entries at order-4 frequencies against $(2/d) \sum_k |m_k|^2$ "
        r"over these frequencies, one point per run: entries of order-6 nodes, and (grey) of other order-4 nodes. Line: equality.",
    ),
    STUDY.claim(
        id="cogo.n6_trained",
        title="Trained networks have more order-6 groups than the least norm asks",
        bounds=jd.tuned(on="0:10", confirmed_on="52000000:52000010"),
        statement="Networks with quadratic activation and 512 nodes trained by Adam at rate .01 on 90% of the pairs of addition "
        r"modulo $d = 23$ with weight decay from $5 \cdot 10^{-5}$ to $5 \cdot 10^{-4}$ for 9900 epochs end with more order-6 "
        r"groups than the solution of least norm, which has $n_6^* = \sqrt{n\,6^{1/3} / (6 \cdot 6^{1/3} - 6 \cdot 4^{1/3})}$ "
        "among $n = (d-1)/2$ frequencies: never fewer, and on average at each decay more, up to 1.9 times as many. Their squared "
        r"norm is that of the composed solution with as many, $d\,(2d)^{-2/3} E(n_6)$ with $E$ as in cogo.n6_opt, within 2%.",
        source="derived; growing share of order 4: arXiv:2410.01779, figure 4",
        quick=QUICK.replace(decay=list(CONVERGED)),
        paper=PAPER_23.replace(decay=list(CONVERGED)),
        judge=judge_n6,
        decides={"never": ("order-6 groups / their number at the least norm, each run", "a tenth of the epochs")},
        controls={"a tenth of the epochs": early},
        rivals={
            "decay makes no difference: order 6 everywhere": jd.off(ONLY_SIXES),
            "the bias costs nothing: one group": jd.swap(predicted_n6=1.0),
            "decay keeps the memorising solution": jd.swap(predicted_norm="memory_norm"),
        },
        plot=plot_n6,
        caption=r"Left: number of order-6 groups against weight decay, mean over seeds; shaded: $n_6^*$ to $1.9\,n_6^*$. "
        r"Right: squared norm of the trained weights against that of the composed solution, one point per run; line: equality.",
    ),
    STUDY.claim(
        id="cogo.diag_sum",
        talks=("training:cogo-figure-solution",),
        title="At the end all cross potentials but the diagonal vanish",
        statement="After 9900 epochs of training networks with quadratic activation and 512 nodes by Adam at rate .01 on 90% of "
        r"the pairs of addition modulo $d = 23$ with weight decay $\lambda$ from $5 \cdot 10^{-5}$ to $2 \cdot 10^{-4}$, the sum "
        r"$2d \sum_{k\ne0} \mathrm{Re}\,r_{kkk}$ of diagonal potentials is $d - 1$ within 2%; the squares of all other "
        r"$2d\,r_{k_1k_2k}$, with one factor from each layer, add up to less than 0.1% of $d - 1$, and none has a modulus above "
        r"0.02. Over the last tenth of the epochs the sum falls short by $d\,(L + \lambda \|w\|^2 / 6)$ with the remaining loss "
        "$L$ and the norm of the composed solution, within 20% of the shortfall on average over seeds.",
        source="arXiv:2410.01779, figure 3; the shortfall: derived",
        judge=judge_diagonal,
        decides={"all cross potentials": ("largest |r| of all others", "c-entries of other nodes")},
        controls={
            "before training": UNTRAINED,
            "c-entries of other nodes": jd.swap(others_square="shuffled_square", others_largest="shuffled_largest"),
        },
        rivals={
            "decay leaves no shortfall": jd.off(WITHOUT_DECAY),
            "no shortfall at all": jd.swap(predicted_shortfall=0.0),
            "without the factor 2d": WITHOUT_FACTOR,
        },
        plot=plot_diagonal,
        caption=r"Left: both sums of potentials during the first epochs, median and central 90% of the runs; dashed: $d - 1$. "
        r"Right: by how much the diagonal sum falls short of $d - 1$, mean over the last tenth of the epochs, against the "
        r"prediction, one point per run; line: equality.",
    ),
)
