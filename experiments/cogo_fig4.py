"""CoGO, Figure 4: how many nodes the frequencies of trained networks have, over group order and weight decay (512 nodes, rate .01).

Mass at four and six; larger decay moves it from six to four, towards the share of the least norm. Paper: arXiv 2410.01779.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from cogo_sweep import DECAYS, GROUPS, SEEDS, classes, networks
from matplotlib.figure import Figure

from jaxdyn import experiment, plotting
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo.dynamics import solutions

TALKS = ("training:cogo-figure-weight-decay",)

TOP = 12


def rows(order: xr.DataArray, d: int) -> list[dict]:
    """Percentage of every order, a line for each decay; the last line is the share of the least norm."""
    lines = []
    for decay in order.decay.values:
        one = order.sel(decay=decay)
        line = {"d": d, "decay": float(decay)} | {f"order {n}": 100 * float((one == n).mean()) for n in range(TOP)}
        lines.append(line | {f"{TOP} or more": 100 * float((one >= TOP).mean())})
    n = (d - 1) // 2
    six = 100 * solutions.best_carriers(n) / n
    empty = {name: None for name in lines[0]}
    return [*lines, empty | {"d": d, "decay": "least norm", "order 4": 100 - six, "order 6": six}]


def draw(orders: dict[int, xr.DataArray], fig: Figure) -> None:
    """A histogram for every group order and decay."""
    panels = fig.subplots(len(orders), len(DECAYS), sharex=True, sharey=True, squeeze=False)
    for line, (d, order) in zip(panels, orders.items(), strict=True):
        for ax, decay in zip(line, DECAYS, strict=True):
            values = np.minimum(order.sel(decay=decay).values.ravel(), TOP)
            ax.hist(
                values, np.arange(-0.5, TOP + 1), weights=np.full(values.size, 100 / values.size), color=plotting.COLORS["measured"]
            )
            ax.set_title(f"d = {d}, decay {decay:g}", fontsize=9)
            ax.set_xticks(range(0, TOP + 1, 2))
    for ax in panels[-1]:
        ax.set_xlabel("nodes of a frequency")
    for line in panels:
        line[0].set_ylabel("frequencies (%)")


def run(scale: str, out: Path) -> None:
    """Train or load all networks, count, draw."""
    lines, orders = [], {}
    for group in GROUPS[scale]:
        d = parse(group).order
        orders[d] = classes(networks(out, group), group).order
        lines += rows(orders[d], d)
        experiment.table(out, "orders", lines, f"Percentage of frequencies by number of nodes, {len(SEEDS)} seeds")
        experiment.save(out, f"cogo_fig4_{d}", orders[d].to_dataset())
    experiment.figure(out, "cogo_fig4", lambda fig: draw(orders, fig), (12.0, 1.0 + 2.0 * len(orders)))


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
