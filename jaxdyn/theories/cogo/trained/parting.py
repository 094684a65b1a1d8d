"""When norms tell which frequencies of a trained network end with four nodes and which with six."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.cogo.trained.decomposed import QUICK, TESTED, trial

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


STUDY = jd.Study(
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
