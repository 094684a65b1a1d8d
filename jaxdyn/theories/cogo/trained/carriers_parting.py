"""Trained networks: which frequencies get six nodes, when norms tell, and what these nodes carry.

Trained networks: order-6 groups carry the bias of order-4 groups, and their number is close to that of least norm.

When norms tell which frequencies of a trained network end with four nodes and which with six.
"""

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

SPREAD = (5e-5, 2e-4, 5e-4)  # decays: those of cogo.wd_order, whose runs these are
BEFORE, AT, AFTER = 6.0, 1.0, 0.5  # nodes of a frequency beyond those at the end, mean over frequencies
POWER = (-0.8, -0.6)  # of the decay in the epochs until then


def favoured(ds: xr.Dataset) -> xr.DataArray:
    """Of two frequencies of a network of which one ends with six nodes and one with four, how often the former has more energy."""
    four = ds.curve_energy.where(ds.order == 4)
    six = ds.curve_energy.where(ds.order == 6).rename(frequency="other")
    pairs = (six.notnull() & four.notnull()).sum(("frequency", "other"))
    return (six > four).sum(("frequency", "other")) / pairs.where(pairs > 0)


def left(ds: xr.Dataset) -> xr.DataArray:
    """Nodes of a frequency beyond those at the end, mean over the frequencies of a network."""
    mean = ds.curve_order.mean("frequency")
    return mean - mean.isel(epoch=-1)


def last_above(ds: xr.Dataset, mark: float) -> xr.DataArray:
    """The last record at which more nodes are left; the start, at which nodes have no frequency yet, is none."""
    above = (left(ds) > mark) & (ds.epoch > 0)
    return ds.sizes["epoch"] - 1 - above.isel(epoch=slice(None, None, -1)).argmax("epoch")


def parting(ds: xr.Dataset) -> xr.DataArray:
    """Epochs until one node of a frequency is left beyond those at the end; between records on a straight line."""
    more, at = left(ds), last_above(ds, AT)
    after = (at + 1).clip(max=ds.sizes["epoch"] - 1)
    high, low = more.isel(epoch=at), more.isel(epoch=after)
    epoch = xr.DataArray(ds.epoch.values.astype(float), dims="epoch")
    begin, end = epoch.isel(epoch=at), epoch.isel(epoch=after)
    return begin + (end - begin) * (high - AT) / (high - low)


TELLS = "share of pairs in which the frequency that ends with six nodes has more energy, {} above the final mean"
EARLY_ON, LATE_ON = TELLS.format("six nodes"), TELLS.format("half a node")
CLOCK = "power of the decay in the epochs until the mean order is one above its final value"


def judge_parting(ds: xr.Dataset) -> list[jd.Check]:
    """What energies predict before and after, and how the epochs depend on the decay: all by intervals over seeds."""
    jd.need(ds, decay=3, seed=5)
    known, before = favoured(ds), last_above(ds, BEFORE)
    after = (last_above(ds, AFTER) + 1).clip(max=ds.sizes["epoch"] - 1)
    decades = np.log(ds.decay) - np.log(ds.decay).mean()
    power = (np.log(parting(ds)) * decades).sum("decay", skipna=False) / (decades**2).sum()
    return [
        jd.gate(
            "test accuracy with six nodes above the final mean, every run", ds.curve_test_accuracy.isel(epoch=before), at_least=0.95
        ),
        jd.mean_within(EARLY_ON, known.isel(epoch=before).mean("decay"), over="seed", high=0.75),
        jd.mean_within(LATE_ON, known.isel(epoch=after).mean("decay"), over="seed", low=0.9),
        jd.mean_within(CLOCK, power, over="seed", low=POWER[0], high=POWER[1]),
    ]


def plot_parting(ds: xr.Dataset, fig: Figure) -> None:
    """Nodes of each frequency of the first run by their final number; what energies predict, against the nodes that are left."""
    one, both = fig.subplots(1, 2)
    run = ds.isel(decay=0, seed=0)
    colors = {4: plotting.COLORS["measured"], 6: plotting.COLORS["theory"]}
    for order, color in colors.items():
        rows = run.curve_order.where(run.order == order, drop=True).sel(epoch=slice(1, None)).transpose("frequency", "epoch")
        jitter = 0.3 * (np.arange(len(rows)) / max(1, len(rows) - 1) - 0.5)
        for row, shift in zip(rows.values, jitter, strict=True):
            one.plot(rows.epoch, row + shift, color=color, alpha=0.8, label=f"ends with {order}" if shift == jitter[0] else None)
    one.set(xlabel="epoch", ylabel="nodes of a frequency", ylim=(3, 16))
    known, more = favoured(ds).mean("seed"), left(ds).mean("seed")
    for i, decay in enumerate(ds.decay.values):
        shown = more.sel(decay=decay, epoch=slice(1, None))
        both.plot(shown, known.sel(decay=decay, epoch=shown.epoch), color=plotting.CYCLE[i], label=f"decay {decay:g}")
    both.set(
        xlim=(12, -0.2),
        ylim=(0.4, 1.02),
        xlabel="nodes beyond those at the end",
        ylabel="energy tells: share of pairs",
    )


PARTING = jd.Study(
    trial=trial,
    tested=TESTED,
    source="derived; orders: arXiv:2410.01779, section 6",
    quick=QUICK.replace(decay=list(SPREAD)),
    seeds=14,
    paper_seeds=32,
    evidence="network",
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
    PARTING.claim(
        id="cogo.parting",
        title="Which frequency gets six nodes shows long after generalisation",
        statement="In networks with quadratic activation and 512 nodes trained by Adam at rate .01 on 90% of the pairs of "
        r"addition modulo 23 with weight decay from $5 \cdot 10^{-5}$ to $5 \cdot 10^{-4}$ for 9900 epochs, squared norms tell "
        "which frequencies end with four nodes and which with six only long after the network generalises. Of two frequencies, "
        "one of which ends with six nodes and one with four, the former has the larger norm in less than 75% of the pairs while "
        "the mean number of nodes per frequency is six above its final value, and in more than 90% when it is half a node above "
        "(means over decays and seeds). The epochs until it is one above fall with a power of the decay between $-0.8$ and "
        "$-0.6$.",
        bounds=jd.tuned(on="0:14", confirmed_on="5003000:5003014"),
        judge=judge_parting,
        controls={"final orders of another network": jd.rolled(order="seed")},
        rivals={
            "norms never tell": jd.off({EARLY_ON: 0.5, LATE_ON: 0.5}),
            "norms tell from the start": {EARLY_ON: lambda ds: float(favoured(ds).isel(epoch=-1).mean())},
            "decay times epochs is the clock": {CLOCK: -1.0},
            "epochs are the clock, whatever the decay": {CLOCK: 0.0},
        },
        plot=plot_parting,
        caption=r"Left: nodes of each frequency of one network, by the number that it ends with. Right: of two frequencies, one of "
        r"which ends with six nodes and one with four, how often the former has the larger squared norm, against the nodes that "
        r"a frequency has beyond those at the end (means over seeds; training runs from left to right).",
    ),
)
