r"""The share of pairs from which trained networks generalise, next to the critical share, and that they need weight decay.

The trial records the accuracies of a network along its training. Letters as in ``training.py``; p_50 is the share at which the test
accuracy is one half at the end of training.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import scipy.optimize
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.dynamics.retention import critical_share, order_share
from jaxdyn.theories.li2.training import Training, train


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """The accuracies of one network along its training, which ends when all pairs are right, and its group's critical share."""
    curves = train(s, key, known=1.0).curves
    group = parse(s.group)
    return jd.observables(
        predicted={"critical": jnp.float64(critical_share(group))},
        measured={"critical": jnp.asarray(s.pairs, jnp.float64)},
        recorded={name: jd.named(curve.astype(jnp.float64), "epoch") for name, curve in curves.items()}
        | {"order": jnp.float64(group.order)},
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )


SOURCE = "arXiv:2509.21519, Theorem 4 and figure 5"
TUNED = jd.tuned(on="0:8", confirmed_on="4000:4008")
WHEN = ("a quarter of the epochs", "half of the epochs", "all epochs")
ALL, LARGEST = "", ", three largest orders"
POWER = "power of M in p_50 after {}{}, mean"
LONGER = "ln p_50 after four times the epochs, change, mean"
OTHER = "ln p_50/p_c of {} minus that of a cyclic group, mean"
NEITHER, TOP, BOTH, HIDDEN = (
    f"test accuracy {which}"
    for which in (
        "without decay",
        "with decay of the top layer alone",
        "with decay of both layers",
        "with decay of the hidden layer alone",
    )
)
MARGIN = 0.02  # keeps the logit of an accuracy of zero or one finite


def half(share: np.ndarray, accuracy: np.ndarray) -> float:
    """p_50 by a logistic fit of the accuracy in ln p (least squares); NaN if the accuracies do not pass one half."""
    known = np.isfinite(accuracy)
    if known.sum() < 3 or accuracy[known].min() > 0.5 or accuracy[known].max() < 0.5:
        return np.nan
    return _fitted(tuple(share[known]), tuple(accuracy[known]))


@functools.lru_cache(4096)
def _fitted(share: tuple[float, ...], accuracy: tuple[float, ...]) -> float:
    """The fit, made once for the data and for the rivals that leave accuracies as they are."""
    x, y = np.log(share), np.array(accuracy)
    start = np.interp(0.5, np.maximum.accumulate(y), x)
    logit = np.log((y + MARGIN) / (1 - y + MARGIN))
    width = (x[-1] - x[0]) / max(logit[-1] - logit[0], 1)
    fit = scipy.optimize.least_squares(lambda q: 1 / (1 + np.exp(-(x - q[0]) / np.exp(q[1]))) - y, (start, np.log(width)))
    return float(np.exp(fit.x[0]))


def halves(ds: xr.Dataset, epoch: int = -1) -> stats.Labelled:
    """p_50 of every seed and group at a record, by default the last."""
    accuracy = ds.test_accuracy.isel(epoch=epoch)
    return xr.apply_ufunc(half, ds.measured_critical, accuracy, input_core_dims=[["share"], ["share"]], vectorize=True)


def budgets(ds: xr.Dataset) -> list[int]:
    """The records after a quarter, half and all of the training."""
    last = ds.sizes["epoch"] - 1
    return [last // 4, last // 2, last]


def _kinds(ds: xr.Dataset) -> tuple[list[str], list[str]]:
    """Cyclic groups of prime order, and all others."""
    names = [str(name) for name in ds.group.values]
    return [n for n in names if n.isdigit()], [n for n in names if not n.isdigit()]


def _like(ds: xr.Dataset, names: list[str], name: str) -> str:
    """The cyclic group whose order is nearest to another group's."""
    return min(names, key=lambda n: abs(int(n) - parse(name).order))


def judge_phase(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """The power of M in p_50 over all cyclic groups and the largest; other groups; longer training."""
    # p_50 after a quarter, half and all of the training
    jd.need(ds, share=3)
    cyclic, others = _kinds(ds)
    jd.need(ds.sel(group=cyclic), group=3)
    order = ds.order.isel(share=0, drop=True)
    shares = {when: halves(ds, place) for when, place in zip(WHEN, budgets(ds), strict=True)}
    outside = np.mean([np.isnan(p).mean() for p in shares.values()])
    gate = jd.gate("share of p_50 that lie beyond the shares, which are passed over", xr.DataArray(outside), at_most=0.05)
    # its power of M, over all cyclic groups and the largest
    readings = []
    for when, p in shares.items():
        for names, which in ((cyclic, ALL), (_largest(cyclic), LARGEST)):
            power = stats.loglog_slope(order.sel(group=names), p.sel(group=names), "group")
            readings.append(jd.mean_reading(POWER.format(when, which), power, over="seed"))
    # longer training, and other groups
    first, last = shares[WHEN[0]], shares[WHEN[-1]]
    readings.append(jd.mean_reading(LONGER, np.log(last / first).sel(group=cyclic), over=["seed", "group"]))
    whole = np.log(last / ds.predicted_critical.isel(share=0, drop=True))
    for name in others:
        apart = whole.sel(group=name, drop=True) - whole.sel(group=_like(ds, cyclic, name), drop=True)
        readings.append(jd.mean_reading(OTHER.format(name), apart, over="seed"))
    return [gate, *readings]


def _largest(cyclic: list[str]) -> list[str]:
    """The three cyclic groups of largest order."""
    return sorted(cyclic, key=int)[-3:]


def powers(exponent: float) -> dict[str, float]:
    """A rival: the share falls with this power of M."""
    return {POWER.format(when, which): exponent for when in WHEN for which in (ALL, LARGEST)}


def theorem(which: str) -> Callable[[xr.Dataset], float]:
    """A rival: the power of M that ln M / M has over these groups."""

    def power(ds: xr.Dataset) -> float:
        cyclic = _kinds(ds)[0]
        names = cyclic if which == ALL else _largest(cyclic)
        order = np.array([float(name) for name in names])
        return float(np.polyfit(np.log(order), np.log(np.log(order) / order), 1)[0])

    return power


THEOREM = {POWER.format(when, which): theorem(which) for when in WHEN for which in (ALL, LARGEST)}


def squares(name: str) -> float:
    """Irreps of degree d need d^2 times as many pairs."""
    return 2 * float(np.log(decompose(parse(name)).degrees.max()))


def cyclic_part(name: str) -> float:
    """The order of the largest cyclic subgroup decides."""
    group = parse(name)
    return float(np.log(order_share(int(group.element_orders.max())) / order_share(group.order)))


def judge_decay(ds: xr.Dataset) -> list[jd.Check]:
    """Train accuracy of all runs as a gate; test accuracy at the end with decay on both layers, on one, and on neither."""
    jd.need(ds, decayed=("both", "top", "hidden", "neither"))
    last = ds.isel(epoch=-1)
    test = last.test_accuracy
    return [
        jd.gate("train accuracy", last.train_accuracy, at_least=0.99),
        jd.at_most(NEITHER, test.sel(decayed="neither"), 0.2),
        jd.at_most(TOP, test.sel(decayed="top"), 0.5),
        jd.at_least(BOTH, test.sel(decayed="both"), 0.95),
        jd.at_least(HIDDEN, test.sel(decayed="hidden"), 0.9),
    ]


def judge_longer(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Train accuracy at the end as a gate; test accuracy at its highest without decay, and with the top's early and late."""
    jd.need(ds, decayed=("top", "neither"))
    test, early = ds.test_accuracy, ds.epoch <= ds.epoch.max() // 8
    top = test.sel(decayed="top")
    return [
        jd.gate("train accuracy", ds.train_accuracy.isel(epoch=-1), at_least=0.99),
        jd.at_most(f"highest {NEITHER}", test.sel(decayed="neither").max("epoch"), 0.2),
        jd.at_most(f"highest {TOP}, in the first eighth", top.where(early).max("epoch"), 0.5),
        jd.at_least(TOP, top.isel(epoch=-1), 0.75),
    ]


def plot_phase(ds: xr.Dataset, fig: Figure) -> None:
    """Test accuracy against the share in units of the critical one, and p_50 against M."""
    # test accuracies
    left, right = fig.subplots(1, 2)
    ds = ds.isel({axis: 0 for axis in ("lr", "decay") if axis in ds.dims})
    names = np.atleast_1d(ds.group)
    for name, shade in zip(names, np.linspace(0, 1, len(names)), strict=True):
        part = ds.test_accuracy.sel(group=name).isel(epoch=-1)
        plotting.band(left, ds.share, part.transpose("seed", "share"), f"{name}", to_hex(plotting.RAMP(shade)))
    left.axvline(1, color=plotting.COLORS["theory"], linestyle="--")
    left.set(xlabel=r"share of pairs / $p_c$", ylabel="test accuracy at the end")
    order = [parse(str(name)).order for name in ds.group.values]
    for place, marker in ((-1, "o"), (ds.sizes["epoch"] // 2, "v")):
        share = halves(ds, place).median("seed")
        right.plot(order, share, marker, color=plotting.COLORS["measured"], label=f"epoch {int(ds.epoch[place])}")
    right.plot(order, ds.predicted_critical.isel(share=0, seed=0), color=plotting.COLORS["theory"], label=r"$2.75\,\ln M / M$")
    right.set(xscale="log", yscale="log", xlabel="M", ylabel=r"$p_{50}$")
    apart = [m for i, m in enumerate(sorted(order)) if i == 0 or m > 1.15 * sorted(order)[i - 1]]  # others' labels would overlap
    right.set_xticks(apart, [f"{m}" for m in apart])
    right.minorticks_off()


def plot_decay(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracies along training, for each choice of layers with decay."""
    ax = fig.subplots()
    for i, layers in enumerate(np.atleast_1d(ds.decayed)):
        part = ds.test_accuracy.sel(decayed=layers)
        plotting.band(ax, ds.epoch, part.transpose("seed", "epoch"), f"test, decay of {layers}", plotting.CYCLE[i])
    train_curve = ds.train_accuracy.isel(decayed=-1).transpose("seed", "epoch")
    plotting.band(ax, ds.epoch, train_curve, "train", plotting.CYCLE[4])
    ax.set(xlabel="epoch", ylabel="accuracy")


def ended(layers: str) -> Callable[[xr.Dataset], float]:
    """The mean test accuracy at the end with decay of these layers."""
    return lambda ds: float(ds.test_accuracy.isel(epoch=-1).sel(decayed=layers).mean())


GRID = jd.grid(Training, critical=True, hidden=512, epochs=1200, every=100)  # shares in units of the critical one

PHASE = jd.Study(
    trial=trial,
    quick=GRID.replace(
        group=["13", "17", "23", "37", "53", "5x5", "D12"], share=[0.7, 0.9, 1.15, 1.45, 1.8], hidden=256, lr=0.01, epochs=800
    ),
    paper=GRID.replace(
        group=["13", "23", "41", "71", "113", "5x5", "7x7", "D12", "D24"],
        share=[0.7, 0.8, 0.9, 1.03, 1.17, 1.34, 1.53, 1.8],
        hidden=256,
        lr=0.01,
        epochs=800,
    ),
    seeds=6,
    paper_seeds=8,
    source=SOURCE,
    evidence="network",
    tested="Networks of {hidden} nodes trained by Adam at rate {lr}, decay {decay}, for {epochs} epochs, on groups {group} (a "
    r"number is the group of residues), on {share} of $p_c = 2.75 \ln M / M$ of the pairs; {seeds} seeds.",
    plot=plot_phase,
    caption=r"Left: test accuracy at the end of training over the share of pairs, in units of $p_c = 2.75 \ln M / M$, a colour "
    "per group, median and central 90% of the runs. Right: the share $p_{50}$ at which it is one half over M, median of the "
    "runs, halfway and at the end of training; the line is $p_c$.",
)
DECAY = jd.Study(
    trial=trial,
    quick=jd.grid(Training, share=0.6, decayed=["both", "top", "hidden", "neither"], epochs=800, every=20),
    paper=jd.grid(
        Training,
        group="71",
        share=0.4,
        lr=[5e-4, 2e-3],
        decayed=["both", "top", "hidden", "neither"],
        hidden=2048,
        epochs=1000,
        every=20,
    ),
    seeds=5,
    paper_seeds=15,
    source="arXiv:2509.21519, Lemma 1 and figure 3",
    evidence="network",
    tested="Networks of {hidden} nodes on {share} of the pairs of residues modulo {group}, Adam at rate {lr}, decay {decay} of "
    "both layers, one or neither, {epochs} epochs; {seeds} seeds.",
)
LONGER_DECAY = jd.Study(
    trial=trial,
    quick=jd.grid(Training, share=0.6, decayed=["top", "neither"], epochs=6400, every=200),
    seeds=6,
    paper_seeds=24,
    source="arXiv:2509.21519, Lemma 1 and figure 3 (no length of training is given there)",
    evidence="network",
    tested="Networks of {hidden} nodes on {share} of the pairs of residues modulo {group}, Adam at rate {lr}, decay {decay} of "
    "the top layer or of none, {epochs} epochs; {seeds} seeds.",
)

CLAIMS = (
    PHASE.claim(
        id="li2.phase",
        talks=("grokking:li2-figure-boundary", "grokking:li2-theorem-4"),
        title="From which share of pairs networks generalise, by group order",
        statement=r"Networks with $\sigma = x^2$ train on a share of the pairs of a group of order M. Measured: $p_{50}$, the "
        "share at which their test accuracy is one half. With what power of M does it fall for cyclic groups, over all orders "
        r"and over the three largest, after a quarter, half and all of the epochs (Theorem 4: as $\ln M / M$ does); how much do "
        "four times the epochs lower it; do a product of cyclic groups and a dihedral group need as many pairs as a cyclic "
        "group of like order?",
        judge=judge_phase,
        expected="measured",
        rivals={
            "the same share for all M": jd.off(powers(0.0)),
            "Theorem 4: as ln M / M": THEOREM,
            "one over the square root of M": powers(-0.5),
            "one over M": powers(-1.0),
            "d^2 times the pairs for degree d": {OTHER.format("D12"): squares("D12")},
            "the largest cyclic subgroup decides": {OTHER.format(name): cyclic_part(name) for name in ("5x5", "D12")},
            "the length of training does not matter": {LONGER: 0.0},
        },
        recorded_seeds=12,
        recorded={
            "power of M in p_50 after a quarter of the epochs, mean": (-0.591, -0.5665, -0.542),
            "power of M in p_50 after a quarter of the epochs, three largest orders, mean": (-0.665, -0.6167, -0.569),
            "power of M in p_50 after half of the epochs, mean": (-0.455, -0.435, -0.415),
            "power of M in p_50 after half of the epochs, three largest orders, mean": (-0.424, -0.4028, -0.381),
            "power of M in p_50 after all epochs, mean": (-0.372, -0.3542, -0.336),
            "power of M in p_50 after all epochs, three largest orders, mean": (-0.22, -0.1724, -0.124),
            "ln p_50 after four times the epochs, change, mean": (-0.333, -0.3181, -0.304),
            "ln p_50/p_c of 5x5 minus that of a cyclic group, mean": (-0.0455, 0.01401, 0.0735),
            "ln p_50/p_c of D12 minus that of a cyclic group, mean": (-0.0883, -0.05306, -0.0179),
        },
    ),
    DECAY.claim(
        id="li2.no_decay",
        talks=("grokking:li2-no-features",),
        title="Hidden-layer decay generalises sooner than top decay on modulus 23",
        bounds=TUNED,
        statement=r"Networks of 256 nodes with $\sigma = x^2$ that Adam trains on .6 of the pairs of residues modulo 23, at a "
        "rate of .002 to .004, fit these pairs and have after 800 epochs a test accuracy below .2 without weight decay, above "
        ".95 with a decay of 2e-4 of both layers, and above .9 with it on the hidden layer alone; with it on the top layer "
        "alone, the theory's ridge, they are still below .5.",
        judge=judge_decay,
        holds={"lr": (0.002, 0.004)},
        controls={"accuracy on the training pairs for that on the others": jd.swap(test_accuracy="train_accuracy")},
        rivals={
            "decay changes nothing": jd.off({BOTH: ended("neither"), HIDDEN: ended("neither")}),
            "decay of the top layer holds the network back, whatever the hidden layer's": {BOTH: ended("top")},
            "the ridge of the top layer is what counts": {TOP: ended("both"), HIDDEN: ended("neither")},
        },
        plot=plot_decay,
        caption="Test accuracy along training, a colour for each choice of layers with weight decay, and train accuracy; median "
        "and central 90% of the runs.",
    ),
    LONGER_DECAY.claim(
        id="li2.no_decay_longer",
        talks=("grokking:li2-no-features",),
        title="Eight times as long: nothing without decay, all with the top's alone",
        bounds=jd.tuned(on="0:24", confirmed_on="4000:4024"),
        statement=r"Networks of 256 nodes with $\sigma = x^2$ that Adam trains on .6 of the pairs of residues modulo 23 at a rate "
        "of .002, eight times as long as those of `li2.no_decay`: without weight decay their test accuracy is below .2 throughout. "
        "With a decay of 2e-4 of the top layer alone, the theory's ridge, it is below .5 in the first eighth of the 6400 epochs, "
        "and above .75 at the end: given time, this decay makes networks generalise, too.",
        judge=judge_longer,
        controls={"accuracy on the training pairs for that on the others": jd.swap(test_accuracy="train_accuracy")},
        rivals={
            "decay of the top layer changes nothing": jd.off({TOP: ended("neither")}),
            "without decay networks generalise as with the top's": {f"highest {NEITHER}": ended("top")},
            "decay of the top layer alone ends where an eighth of the training does": {
                TOP: lambda ds: float(ds.test_accuracy.sel(decayed="top", epoch=int(ds.epoch.max()) // 8).mean())
            },
        },
        plot=plot_decay,
        caption="Test accuracy along training with decay of the top layer and without any, and train accuracy; median and central "
        "90% of the runs.",
    ),
)
