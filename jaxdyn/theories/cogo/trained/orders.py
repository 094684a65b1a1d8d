r"""Trained networks: orders of the frequencies, and which constructions their nodes are, against the published table.

All topics on trained networks share the runs of ``decomposed.py``: one network, trained and taken apart.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import published
from jaxdyn.theories.cogo.classify import COLUMNS, NAMES
from jaxdyn.theories.cogo.figures import ticks
from jaxdyn.theories.cogo.trained.decomposed import CONVERGED, PAPER, PAPER_23, QUICK, SEEDS, TESTED, early, trial

MANY = 24  # runs whose standard errors are about those of the published five, or smaller
CELL = "{}: points from the published cell"
EARLY, AMID = 0.2, 0.4  # of decay times epochs, for the shares that were there before
WIDE_APART = (5e-5, 2e-4, 5e-4)  # decays of which a slope is taken

SHARE, EACH = "share with four or six nodes minus the predicted one", "the same in each run"


def judge_orders(ds: xr.Dataset) -> list[jd.Check]:
    """Mean over seeds of the share of frequencies with four or six nodes."""
    gap = ds.measured_orders - ds.predicted_orders
    return [
        jd.mean_within(SHARE, gap, over="seed", low=-0.05, high=0.05),
        jd.at_most(EACH, abs(gap), 0.1),
    ]


def judge_table(ds: xr.Dataset) -> list[jd.Reading]:
    """Every cell of the published row, the standard errors of both taken together."""
    jd.need(ds, decay=(5e-5,), seed=5)
    mean, error, freedom = joint_errors(ds.sel(decay=5e-5))
    half = stats.bonferroni_t(mean.size, freedom + 1, 0.95) * error
    readings = []
    for name in ds.column.values:
        value, reach = (float(x.sel(column=name)) for x in (mean, half))
        readings.append(jd.Reading(CELL.format(name), value, (value - reach, value + reach)))
    return readings


FACTORABLE, CONSTRUCTED = "share of all frequencies that factorise", "share of the factorable ones that are a construction"
NOT = "order {}: share that does not factorise"
ERROR = "order {}: mean error of a factorisation, times 100"


def judge_factorable(ds: xr.Dataset) -> list[jd.Reading]:
    """The summaries and the left half of the published table: what factorises, how well, and what of it is a construction."""
    jd.need(ds, decay=(5e-5,), seed=5)
    ds = ds.sel(decay=5e-5)
    axes = [axis for axis in ds.order.dims if axis not in ("seed", "frequency")]
    known = (ds.factorable > 0).where(ds.order.notnull())
    factored = known.where(ds.order.isin([4, 6]), 0.0).where(ds.order.notnull())
    named = ds.measured_column.isel(column=slice(3)).sum("column", min_count=3) / 100
    found = {FACTORABLE: factored.mean(["frequency", *axes], skipna=False), CONSTRUCTED: named.mean(axes)}
    for order in (4, 6):
        there = ds.order == order
        found[NOT.format(order)] = 1 - known.where(there).mean(["frequency", *axes])
        found[ERROR.format(order)] = 100 * ds.err.where(there & (ds.factorable > 0)).mean(["frequency", *axes])
    return [jd.mean_reading(name, values, over="seed") for name, values in found.items()]


def joint_errors(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Our means minus the published ones, standard errors of both together, and Welch's number of degrees of freedom."""
    gap = ds.measured_column - ds.predicted_column
    theirs = published_errors(ds.predicted_diagonal.isel(seed=0, drop=True) + 1)
    return gap.mean("seed"), *stats.welch(gap, "seed", theirs, published.SEEDS)


def published_errors(order: xr.DataArray) -> xr.DataArray:
    """Standard errors of the published columns for groups of these orders (of the nearest d where there is no such row)."""
    known = xr.DataArray(list(published.TABLE), dims="row")
    errors = xr.DataArray([[error for _, error in row.columns] for row in published.TABLE.values()], dims=("row", "column"))
    return errors.isel(row=abs(known - order).argmin("row"))


def judge_named(ds: xr.Dataset) -> list[jd.Check]:
    """The share of factorable frequencies that are one of the three known constructions."""
    named = ds.measured_column.isel(column=slice(3)).sum("column", min_count=3) / 100
    gap = (named - ds.predicted_orders).mean("decay", skipna=False)
    return [jd.mean_within("share that is a known construction minus the predicted one", gap, over="seed", low=-0.1, high=0.1)]


def share_at(ds: xr.Dataset, epochs: list[float]) -> xr.DataArray:
    """The share of order 4 at the record next to an epoch of each decay's own."""
    shares = [ds.curve_fours.isel(decay=i).sel(epoch=e, method="nearest", drop=True) for i, e in enumerate(epochs)]
    return xr.concat(shares, "decay").assign_coords(decay=ds.decay) / (ds.predicted_diagonal / 2)


SLOPE, LEVEL = "share of order 4 gained by a decade of decay", "share of order 4 / that of the least norm, mean over decays"
GAIN = "share of order 4 gained since a fifth of the epochs, mean over decays"
AHEAD = "share of order 4 gained by a decade of decay, at two fifths of decay times epochs"


def judge_wd(ds: xr.Dataset) -> list[jd.Check]:
    """Share of order 4 at equal decay times epochs: how it changes with decay, early and late, and against the least norm's."""
    jd.need(ds, decay=3, seed=5)
    share, amid, before = (share_at(ds, [part * e for e in equal_products(ds)]) for part in (1, AMID, EARLY))
    decades = np.log10(ds.decay) - np.log10(ds.decay).mean()
    slope, ahead = ((x * decades).sum("decay", skipna=False) / (decades**2).sum() for x in (share, amid))
    level = (share / ds.predicted_share).mean("decay", skipna=False)
    gain = (share - before).mean("decay", skipna=False)
    return [
        jd.mean_within(SLOPE, slope, over="seed", low=-0.12, high=0.12),
        jd.mean_within(AHEAD, ahead, over="seed", high=-0.05),
        jd.mean_within(LEVEL, level, over="seed", low=0.6, high=0.85),
        jd.mean_within(GAIN, gain, over="seed", low=0.3),
    ]


def equal_products(ds: xr.Dataset) -> list[float]:
    """Epochs at which decay times epochs is that of the smallest decay at the end."""
    return [float(ds.epoch[-1] * ds.decay[0] / decay) for decay in ds.decay]


def fold(angle: stats.Labelled | np.ndarray, period: float) -> stats.Labelled | np.ndarray:
    """Angles up to sign and that period, in [0, period / 2]."""
    inside = np.mod(angle, period)
    return np.minimum(inside, period - inside)


def angles(ds: xr.Dataset) -> dict[str, stats.Labelled]:
    """Folded angles: xi in [0, pi/4] and nu in [0, pi/6], in which the pairing of nodes leaves no choice; NaN elsewhere."""
    xi = [ds[f"{f}_angle"].where((ds[f"{f}_label"] == NAMES.index("xi")) & (ds.order == 4)) for f in ("first", "second")]
    nu = ds.first_angle.where(ds.first_label.isin([NAMES.index("nu"), NAMES.index("nu=i")]) & (ds.order == 6))
    return {"xi": fold(xi[0].fillna(xi[1]), np.pi / 2), "nu": fold(nu, np.pi / 3)}


NEAR_XI, NEAR_NU = "share of xi in the 40% next to pi/4", "share of nu in the 20% around pi/12"


def judge_angles(ds: xr.Dataset) -> list[jd.Reading]:
    """Shares of the angles near the values at which they are published to gather, in each network; means over networks."""
    folded = angles(ds)
    near = {NEAR_XI: abs(folded["xi"] - np.pi / 4) < np.pi / 10, NEAR_NU: abs(folded["nu"] - np.pi / 12) < np.pi / 60}
    known = (folded["xi"].notnull(), folded["nu"].notnull())
    axes = [axis for axis in folded["xi"].dims if axis != "seed"]
    return [
        jd.mean_reading(name, flags.where(there).mean(axes), over="seed")
        for (name, flags), there in zip(near.items(), known, strict=True)
    ]


def scattered(ds: xr.Dataset) -> xr.Dataset:
    """A rival: nodes are spread over the frequencies at random; the share that gets four or six."""
    nodes, n = ds.order.sum("frequency"), ds.sizes["frequency"]
    share = sum(scipy.stats.binom.pmf(k, nodes, 1 / n) for k in (4, 6))
    return ds.assign(predicted_orders=share + 0 * ds.predicted_orders)


def free_sixes(ds: xr.Dataset) -> xr.DataArray:
    """Columns if order-6 groups need no exact form, since others can carry the mean that they leave."""
    free = xr.where(ds.column == COLUMNS[-1], 100 - ds.predicted_column.sel(column=COLUMNS[0], drop=True), 0.0)
    return ds.predicted_column.where(ds.column == COLUMNS[0], free)


def equal_epochs(ds: xr.Dataset) -> xr.DataArray:
    """Numbers of order 4 after as many epochs at every decay; those after which the largest decay is read."""
    share = share_at(ds, [float(ds.epoch[-1] * ds.decay[0] / ds.decay[-1])] * ds.sizes["decay"])
    return share * ds.predicted_diagonal / 2


def chance(*orders: int) -> Callable[[xr.Dataset], float]:
    """A rival: the share of all frequencies whose groups are of these orders and factorise with random spectra."""

    def share(ds: xr.Dataset) -> float:
        known = (ds.random_factorable > 0).where(ds.order.isin(orders), 0.0).where(ds.order.notnull())
        return float(known.mean())

    return share


def unfactored(order: int) -> Callable[[xr.Dataset], float]:
    """A rival: the share of the groups of an order that do not factorise with random spectra."""
    return lambda ds: float(1 - (ds.random_factorable > 0).where(ds.order == order).mean())


def rough(ds: xr.Dataset) -> float:
    """A rival: the error of the groups of order 6, in hundredths."""
    return float(100 * ds.err.where((ds.order == 6) & (ds.factorable > 0)).mean())


def by_chance(ds: xr.Dataset) -> xr.DataArray:
    """A rival: the share that is a known construction among groups of the same sizes with random spectra."""
    return ds.random_column.isel(column=slice(3)).sum("column", min_count=3) / 100


FREE_SIXES = jd.swap(predicted_column=free_sixes)
# All factorable frequencies are others.
NONE = {
    CELL.format(name): lambda ds, name=name: float((100.0 * (name == COLUMNS[-1]) - ds.predicted_column.sel(column=name)).mean())
    for name in COLUMNS
}
EQUAL_EPOCHS = jd.swap(curve_fours=equal_epochs)


def plot_orders(ds: xr.Dataset, fig: Figure) -> None:
    """Share of the frequencies that have each order, by decay."""
    ax = fig.subplots()
    orders = np.arange(1, 10)
    decays = np.atleast_1d(ds.decay) if "decay" in ds.dims else [None]
    for i, decay in enumerate(decays):
        part = ds if decay is None else ds.sel(decay=decay)
        values = np.ravel(part.order)
        values = values[np.isfinite(values)]
        counts = np.array([np.sum(values == o) for o in orders]) / max(values.size, 1)
        ax.bar(
            orders + 0.8 * ((i + 0.5) / len(decays) - 0.5), counts, 0.8 / len(decays), label=f"decay {decay:g}" if decay else None
        )
    ax.set(xlabel="order (nodes at a frequency)", ylabel="share of all frequencies", xticks=orders)


def plot_table(ds: xr.Dataset, fig: Figure) -> None:
    """Our percentages and the published ones with standard errors."""
    ax = fig.subplots()
    ds = plotting.first_run(ds, "decay", "seed")
    group = str(ds.coords["group"].values) if "group" in ds.coords else "23"
    row = published.TABLE.get(parse(group).order, published.TABLE[23])
    x = np.arange(len(COLUMNS))
    mean, error = zip(*row.columns, strict=True)
    ax.errorbar(x - 0.25, mean, error, fmt="s", color=plotting.COLORS["theory"], capsize=3, label="published, decay 5e-5")
    for i, decay in enumerate(ds.decay.values):
        part = ds.measured_column.sel(decay=decay)
        sem = part.std("seed", ddof=1) / np.sqrt(part.count("seed"))
        where = x - 0.1 + 0.35 * i / max(1, ds.sizes["decay"] - 1)
        ax.errorbar(
            where, part.mean("seed"), sem, fmt="o", color=plotting.CYCLE[(0, 2, 3, 4)[i % 4]], capsize=3, label=f"decay {decay:g}"
        )
    ax.set_xticks(x, COLUMNS)
    ax.set_ylabel("% of factorable frequencies")


def plot_errors(ds: xr.Dataset, fig: Figure) -> None:
    """How the errors of factorisations are spread, by order, and the published means."""
    ax = fig.subplots()
    for order, color, (mean, _) in zip((4, 6), ("measured", "third"), published.TABLE[23].error, strict=True):
        values = np.ravel(ds.err.where(ds.order == order))
        values = np.sort(values[np.isfinite(values)])
        ax.step(values, np.arange(1, values.size + 1) / max(values.size, 1), color=plotting.COLORS[color], label=f"order {order}")
        ax.axvline(mean / 100, color=plotting.COLORS[color], linestyle=":")
    ax.set(xscale="log", xlabel="error of the factorisation", ylabel="share of frequencies")


def plot_wd(ds: xr.Dataset, fig: Figure) -> None:
    """Share of order 4 against decay, a line for each seed, and the share at the least norm."""
    ax = fig.subplots()
    share = plotting.first_run(ds, "decay", "seed").measured_share.where(ds.decay > 0, drop=True)
    plotting.lines(ax, share.decay, share.transpose("seed", "decay"))
    ax.plot(share.decay, share.mean("seed"), "o-", color=plotting.COLORS["measured"], label=f"mean of {share.sizes['seed']} seeds")
    ax.axhline(float(np.ravel(ds.predicted_share)[0]), color=plotting.COLORS["theory"], linestyle="--", label="least norm")
    ax.set(xscale="log", xlabel="decay", ylabel="share of frequencies with four nodes", ylim=(0, 1))
    ticks(ax, share.decay)


def plot_angles(ds: xr.Dataset, fig: Figure) -> None:
    """Histograms of the folded angles."""
    for ax, (name, values) in zip(fig.subplots(1, 2), angles(ds).items(), strict=True):
        top = np.pi / 4 if name == "xi" else np.pi / 6
        flat = np.ravel(values)
        ax.hist(flat[np.isfinite(flat)] / np.pi, bins=np.linspace(0, top / np.pi, 11), color=plotting.COLORS["measured"])
        ax.set(xlabel=rf"$\arg\{name}\,/\,\pi$, up to its symmetries", ylabel="frequencies")


STUDY = jd.Study(
    trial=trial,
    tested=TESTED,
    source="arXiv:2410.01779, section 6: table of factorised networks and figures 4-5",
    quick=QUICK.replace(decay=list(CONVERGED)),
    paper=PAPER_23.replace(decay=list(CONVERGED)),
    seeds=SEEDS,
    evidence="network",
    bounds=jd.tuned(on="0:10", confirmed_on="4000:4010"),
)

CLAIMS = (
    STUDY.claim(
        id="cogo.train_orders",
        talks=(
            "training:cogo-fourier-basis",
            "training:cogo-figure-orders",
            "training:cogo-order-4-6-share",
        ),
        title="Trained networks give each frequency four or six nodes",
        statement="In networks with quadratic activation and 512 nodes trained by Adam at rate .01 on 90% of the pairs of "
        r"addition modulo 23 with weight decay from $5 \cdot 10^{-5}$ to $5 \cdot 10^{-4}$ for 9900 epochs, at least 95% of the "
        "frequencies end with four or six nodes on average at each decay, and at least 90% in every run.",
        judge=judge_orders,
        controls={"a tenth of the epochs": early},
        rivals={"nodes spread over frequencies at random": jd.off(scattered)},
        plot=plot_orders,
        caption=r"Share of all frequencies of all runs that have each order (number of nodes), a bar for each decay.",
    ),
    STUDY.claim(
        id="cogo.train_named",
        talks=(
            "training:cogo-figure-solution",
            "training:cogo-constructed",
        ),
        title="Trained networks are made of the three known constructions",
        statement="In networks with quadratic activation and 512 nodes trained by Adam at rate .01 on 90% of the pairs of "
        r"addition modulo 23 with weight decay from $10^{-4}$ to $5 \cdot 10^{-4}$ for 9900 epochs, at least 90% of the "
        "frequencies whose four or six nodes factorise are one of the three known constructions, on average over seeds and "
        "decays.",
        quick=QUICK.replace(decay=list(CONVERGED[1:])),
        paper=PAPER_23.replace(decay=list(CONVERGED[1:])),
        judge=judge_named,
        controls={"random groups of the same sizes": jd.swap(measured_column="random_column")},
        rivals={
            "by chance": jd.off(predicted_orders=by_chance),
            "only order-4 groups are exact": jd.swap(predicted_orders="measured_share"),
        },
        plot=plot_table,
        caption=r"Percentage of the factorable frequencies that are each construction: squares are the published means with their "
        r"standard errors, circles our means over seeds with standard errors, a colour for each decay.",
    ),
    STUDY.claim(
        id="cogo.train_table",
        talks=("training:cogo-table",),
        title="How frequent each construction is in trained networks, against print",
        statement="In networks with quadratic activation and 512 nodes trained by Adam at rate .01 on 90% of the pairs of "
        r"addition modulo 23 with weight decay $5 \cdot 10^{-5}$, how frequent is each construction among the factorable "
        "frequencies, in percentage points from the published value? Intervals hold the standard errors of both (95% for all "
        "four together, with the degrees of freedom of Welch).",
        expected="measured",
        recorded={
            "nu=i * xi: points from the published cell": (-9.98, -2.259, 5.46),
            "nu=i * syn,alpha,beta: points from the published cell": (-3.14, 4.41, 12),
            "nu * syn: points from the published cell": (-23.2, -14.19, -5.26),
            "others: points from the published cell": (4.12, 12.04, 20),
        },
        quick=QUICK.replace(decay=[5e-5]),
        seeds=MANY,
        paper_seeds=SEEDS,
        paper=PAPER.replace(decay=[5e-5]),
        judge=judge_table,
        controls={"random groups of the same sizes": jd.swap(measured_column="random_column")},
        rivals={"no network finds a construction": jd.off(NONE), "order-6 groups need no exact form": FREE_SIXES},
        plot=plot_table,
        caption=r"Percentage of the factorable frequencies that are each construction: squares are the published means with their "
        r"standard errors, circles our means over seeds with standard errors.",
    ),
    STUDY.claim(
        id="cogo.train_factorable",
        talks=(
            "training:cogo-factorable",
            "training:cogo-error",
            "training:cogo-constructed",
            "training:cogo-table",
        ),
        title="How many frequencies of trained networks factorise, and how well",
        statement="In networks with quadratic activation and 512 nodes trained by Adam at rate .01 on 90% of the pairs of "
        r"addition modulo 23 with weight decay $5 \cdot 10^{-5}$, which share of the frequencies factorises, which share of those "
        "is one of the three known constructions, and how large is the error of the factorisation for four and for six nodes? "
        "Published: 95% and 98%; modulo 23 errors of .05 and 4.80 hundredths, and 0% and 5.71% of order 4 and order 6 that do "
        "not factorise.",
        expected="measured",
        recorded={
            FACTORABLE: (0.968, 0.9886, 1.009),
            CONSTRUCTED: (0.787, 0.8572, 0.927),
            NOT.format(4): (0.0, 0.0, 0.0),
            ERROR.format(4): (0.0353, 0.045, 0.0547),
            NOT.format(6): (-0.0158, 0.01885, 0.0535),
            ERROR.format(6): (4.56, 6.278, 8.0),
        },
        quick=QUICK.replace(decay=[5e-5]),
        seeds=MANY,
        paper_seeds=SEEDS,
        paper=PAPER.replace(decay=[5e-5]),
        judge=judge_factorable,
        controls={"random groups of the same sizes": jd.swap(measured_column="random_column")},
        rivals={
            "every frequency is a construction": {FACTORABLE: 1.0, CONSTRUCTED: 1.0, ERROR.format(6): 0.0},
            "nothing is learned: spectra at random": jd.off({CONSTRUCTED: lambda ds: float(by_chance(ds).mean())}),
            "groups with random spectra factorise as often": {
                FACTORABLE: chance(4, 6),
                NOT.format(4): unfactored(4),
                NOT.format(6): unfactored(6),
            },
            "four nodes factorise as roughly as six": {ERROR.format(4): rough},
        },
        plot=plot_errors,
        caption=r"Share of the frequencies of all runs whose factorisation has at most this error, for four and for six nodes; "
        r"dotted: the published mean errors modulo 23.",
    ),
    STUDY.claim(
        id="cogo.wd_order",
        talks=("training:cogo-figure-weight-decay",),
        title="More decay leaves no more order 4 at equal decay times epochs",
        statement="In networks with quadratic activation and 512 nodes trained by Adam at rate .01 on 90% of the pairs of "
        r"addition modulo 23 with weight decay from $5 \cdot 10^{-5}$ to $5 \cdot 10^{-4}$, more decay leaves no more frequencies "
        "with four nodes once weight decay times epochs is equal: when that product is .495, a decade of decay changes their "
        "mean share by less than 0.12, and when it is two fifths of that, a decade lowers the share by more than 0.05. Averaged "
        "over decays, the share at .495 has gained more than 0.3 since a fifth of the product, and is 60% to 85% of that at the "
        r"least norm, $1 - n_6^*/n$ with $n = 11$ frequencies and $n_6^* = \sqrt{n\,6^{1/3} / (6 \cdot 6^{1/3} - 6 \cdot "
        "4^{1/3})}$.",
        source="arXiv:2410.01779, figure 4 (equal epochs); decay times epochs and the limit: derived",
        quick=QUICK.replace(decay=list(WIDE_APART)),
        paper=PAPER_23.replace(decay=list(WIDE_APART)),
        seeds=14,
        max_seeds=28,
        paper_seeds=SEEDS,
        bounds=jd.tuned(on="0:14", confirmed_on="98000000:98000028"),
        judge=judge_wd,
        controls={"as many epochs at every decay": EQUAL_EPOCHS},
        rivals={
            "the share never changes": jd.off({GAIN: 0.0}),
            "decay times epochs is the clock": {AHEAD: 0.0},
            "a plateau at the share of the least norm": {LEVEL: 1.0},
            "decay makes no order 4": {LEVEL: 0.0, GAIN: 0.0},
            "decay makes order 4 at every frequency": jd.swap(predicted_share=1.0),
        },
        plot=plot_wd,
        caption=r"Share of the frequencies that have four nodes after 9900 epochs against weight decay: a thin line for each seed, "
        r"circles for the mean over seeds. Dashed: the share at the least norm.",
    ),
    STUDY.claim(
        id="cogo.angles",
        title="How the free angles of trained networks are spread",
        statement="How are the free angles of the constructions spread in networks with quadratic activation and 512 nodes "
        r"trained by Adam at rate .01 on 90% of the pairs of addition modulo 23 with weight decay $5 \cdot 10^{-5}$? Up to the "
        r"symmetries of a pairing, $\arg\xi$ lies in $[0, \pi/4]$ and is published to gather at $\pi/4$; $\arg\nu$ lies in $[0, "
        r"\pi/6]$ and is published to gather at 0. Shares in each network, means over networks; an even spread has 0.4 and 0.2.",
        expected="measured",
        recorded={
            "share of xi in the 40% next to pi/4": (0.64, 0.7729, 0.906),
            "share of nu in the 20% around pi/12": (0.00938, 0.08036, 0.152),
        },
        quick=QUICK.replace(decay=[5e-5]),
        seeds=MANY,
        paper_seeds=SEEDS,
        paper=PAPER.replace(decay=[5e-5]),
        judge=judge_angles,
        rivals={"spread evenly": jd.off({NEAR_XI: 0.4, NEAR_NU: 0.2}), "all at the published values": {NEAR_XI: 1.0, NEAR_NU: 0.0}},
        plot=plot_angles,
        caption=r"Histograms over the frequencies of all runs: $\arg\xi$ of order-4 frequencies (left) and $\arg\nu$ of order-6 "
        r"frequencies (right), folded by their symmetries.",
    ),
)
