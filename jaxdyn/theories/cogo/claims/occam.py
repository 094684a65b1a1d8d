r"""Claims on Occam's razor: the path of zero loss from y * z' to z', their norms, and pruning under weight decay.

Letters as in ``dynamics/occam.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.cogo.trials.occam import Factored, Pruned, path_trial, prune_trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "loss_along"]

THEOREM = "arXiv:2410.01779, Theorem on Occam's razor"


def loss_along(ds: xr.Dataset) -> xr.DataArray:
    """L over all pairs along the path: the squared distance of the centred outputs from their targets."""
    return ((ds.measured_output - ds.predicted_output) ** 2).sum("output", min_count=1).mean("pair", skipna=False)


def judge_path(ds: xr.Dataset) -> list[jd.Check]:
    """The largest loss on the path; and that the path leads from the product's norm to that of z' alone."""
    return [
        jd.at_most("largest loss on the path", loss_along(ds).max("t", skipna=False), 1e-18),
        jd.at_most("norm squared at both ends, relative error", jd.relative_error(ds, "ends"), 1e-12),
    ]


def judge_norm(ds: xr.Dataset) -> list[jd.Check]:
    """The smallest product of all draws against the bound."""
    return [jd.at_least("norm squared of y * z' / bound, smallest", ds.measured_floor / ds.predicted_floor, 1 - 1e-12)]


def judge_tight(ds: xr.Dataset) -> list[jd.Check]:
    """The bound, and how close the smallest of a run's products comes to it."""
    smallest = (ds.measured_floor / ds.predicted_floor).min([*ds.status.dims])
    return [*judge_norm(ds), jd.at_most("the smallest of all products / bound", smallest, 1.01)]


def judge_prune(ds: xr.Dataset) -> list[jd.Check]:
    """As many live nodes as z' has, with its norm, and at the loss of its equilibrium with the decay."""
    return [
        jd.at_most("live nodes above or below those of z'", abs(ds.measured_nodes - ds.predicted_nodes), 0),
        jd.at_most("norm squared over that of z'", ds.measured_energy / ds.whole, 1.01),
        jd.at_most("norm squared at equilibrium, relative error", jd.relative_error(ds, "energy"), 1e-4),
        jd.at_most("loss at equilibrium, relative error", jd.relative_error(ds, "loss"), 1e-4),
    ]


def plot_path(ds: xr.Dataset, fig: Figure) -> None:
    """The loss along the path, for both solutions."""
    ax = fig.subplots()
    loss = loss_along(ds).clip(1e-34)
    for name, color in zip(ds.solution.values, ("measured", "third"), strict=True):
        plotting.band(ax, ds.t, loss.sel(solution=name), str(name), color)
    ax.axhline(1e-18, color=plotting.COLORS["theory"], linestyle="--", label="bound")
    ax.set(yscale="log", xlabel="place on the path (three legs)", ylabel="loss")


def plot_norm(ds: xr.Dataset, fig: Figure) -> None:
    """Norms of products over that of z', in rising order."""
    panels = np.ravel(fig.subplots(1, ds.sizes.get("tilt", 1), sharey=True, squeeze=False))
    floor = ds.predicted_floor
    printed = floor.sel(form="printed") if "form" in floor.dims else floor
    for i, ax in enumerate(panels):
        pick = {"tilt": i} if "tilt" in ds.dims else {}
        values = np.sort(np.ravel((ds.sizes_of_products / printed).isel(pick).isel(solution=0)))  # the other's ratios are the same
        ax.plot((np.arange(values.size) + 0.5) / values.size, values, ".", color=plotting.COLORS["measured"], label="y * z'")
        ax.axhline(1, color=plotting.COLORS["theory"], linestyle="--", label="z' alone")
        ax.set(yscale="log", xlabel="share of the draws below")
        if pick:
            ax.set_title(f"layer a of z' times {float(ds.tilt[i]):g}, c over it")
    panels[0].set_ylabel("norm squared of y * z' over that of z'")


def plot_prune(ds: xr.Dataset, fig: Figure) -> None:
    """Norms of all nodes of one run, and live nodes and norms squared of all runs."""
    left, right = fig.subplots(1, 2)
    one = plotting.first_run(ds)
    plotting.lines(left, one.step, one.sizes_of_nodes)
    left.set(xlabel="step", ylabel="norm of each node")
    plotting.band(right, ds.step, ds.energies, "trained", "measured")
    right.axhline(float(ds.whole.mean()), color=plotting.COLORS["control"], linestyle=":", label="z'")
    right.axhline(float(ds.predicted_energy.mean()), color=plotting.COLORS["theory"], linestyle="--", label="z' at equilibrium")
    right.set(xlabel="step", ylabel="norm squared")


def same_norm(ds: xr.Dataset) -> xr.Dataset:
    """A rival: the norm is the same at both ends of the path."""
    return ds.assign(predicted_ends=ds.predicted_ends.isel(end=0, drop=True).broadcast_like(ds.predicted_ends))


def unmoved(ds: xr.Dataset) -> xr.Dataset:
    """A rival: decay prunes nothing, and the network stays where it starts."""
    live = (ds.sizes_of_nodes.isel(step=0) > 0).sum("node")
    return ds.assign(
        predicted_nodes=live + 0 * ds.predicted_nodes,
        predicted_energy=ds.energies.isel(step=0, drop=True),
        predicted_loss=ds.losses.isel(step=0, drop=True),
    )


PATH = jd.Study(
    trial=path_trial,
    source=THEOREM,
    evidence="algebra",
    bounds="derived",  # rounding errors in double precision
    quick=jd.grid(Factored),
    seeds=8,
    paper_seeds=32,
)
NORM = jd.Study(
    trial=path_trial,
    source="talks on arXiv:2410.01779; the condition is ours",
    evidence="algebra",
    bounds="derived",  # rounding errors; factors y are drawn at shares of their distance from e down to 0, where the bound is met
    quick=jd.grid(Factored),
    seeds=8,
    paper_seeds=32,
    judge=judge_norm,
    form="printed",
    plot=plot_norm,
    caption=r"Squared norm of $y * z'$ over that of $z'$ for random factors $y$ of all runs, in rising order; dashed: $z'$ alone. "
    r"With several panels, the title says how the layers of $z'$ are unbalanced.",
)
PRUNE = jd.Study(
    trial=prune_trial,
    source=f"{THEOREM}; talks; the equilibrium is ours",
    evidence="network",
    bounds="derived",  # the equilibrium is exact; a distance from it shrinks like exp(-lr decay t) at the slowest
    quick=jd.grid(Pruned),
    paper=jd.grid(Pruned, second=[0.6, 0.8, 0.9], steps=40_000),
    seeds=8,
    paper_seeds=32,
)

CLAIMS = (
    PATH.claim(
        id="cogo.occam_path",
        statement=r"On $\mathbb{Z}_d$ with odd $d$, from $y * z'$, where $z'$ is a solution in which all potentials but $r_{kkk} "
        r"= 1$ vanish and $y$ a random factor with $r_{kkk}(y) = 1$, a path of zero loss leads to $z'$: first c of $y$ goes to "
        r"$(1/(a_1b_1), 0, \dots)$, then $a_j, b_j$ shrink, then $a_1, b_1$ go to 1 through their powers. The squared norm ends "
        r"at that of $z'$ alone.",
        source=f"{THEOREM}; the path is ours",
        paper=jd.grid(Factored, group="9", order=[2, 3]),
        judge=judge_path,
        form="derived",
        controls={"z' optimal through cancellation": {"base": "cancelling"}, "straight line": {"route": "straight"}},
        rivals={"the norm is kept along the path": same_norm},
        plot=plot_path,
        caption=r"Loss over all pairs along the three legs of the path, for $z'$ with six nodes at each pair of frequencies and "
        r"for the memorising $z'$: median and central 90% of the runs (zeros are drawn at $10^{-34}$). Dashed: the bound.",
    ),
    NORM.claim(
        id="cogo.occam_norm",
        statement=r"On $\mathbb{Z}_d$ with odd $d$, the simpler network is the smaller one, $\|e * z'\| \le \|y * z'\|$, for "
        r"random $y$ with $r_{kkk}(y) = 1$, if the three layers of the solution $z'$ have equal norms at each frequency; factors "
        r"close to $e$ come within 1% of it.",
        judge=judge_tight,
        paper=jd.grid(Factored, group="9", order=[1, 2, 3], draws=64),
        controls={"layer a of z' doubled, c halved": {"tilt": 2.0}},
        rivals={"a third of the bound: no mean over the layers": jd.scaled(predicted_floor=1 / 3)},
    ),
    NORM.claim(
        id="cogo.occam_norm_as_printed",
        statement=r"$\|e * z'\| \le \|y * z'\|$ for any solution $z'$ and any $y$ with $r_{kkk}(y) = 1$, whether or not the layers "
        r"of $z'$ have equal norms.",
        printed=r"talks: $\|e * z'\| \le \|y * z'\|$ for optimal $z = y * z'$ and $z'$ (the bound for any $z'$ is $3 \sum_k "
        r"\prod_p \|z'_{pk}\|^{2/3}$)",
        rivals={},
        source="talks on arXiv:2410.01779",
        quick=jd.grid(Factored, tilt=[1.0, 2.0]),
        paper=jd.grid(Factored, tilt=[0.5, 1.0, 2.0], order=[1, 2, 3], draws=64),
        expected="refuted",
        counterpart="derived",
    ),
    PRUNE.claim(
        id="cogo.occam_wd",
        statement=r"On $\mathbb{Z}_d$ with odd $d$, gradient descent with weight decay $\lambda$ from $y * z'$, two nodes for "
        r"each of $z'$, ends with as many nodes as $z'$ and the norm and loss of $z'$ shrunk by $s$ with $6\frac{d-1}{d} s(1-s^3) "
        r"= \lambda d \|z'\|^2$.",
        judge=judge_prune,
        controls={"no weight decay": {"decay": 0.0}, "both nodes of y equal, no noise": {"second": 1.0, "noise": 0.0}},
        rivals={"nothing is pruned": unmoved, "z' is not shrunk": jd.swap(predicted_energy="whole", predicted_loss=0.0)},
        plot=plot_prune,
        caption=r"Left: norm of each of the 24 nodes during training, one run. Right: squared norm of the weights, median and "
        r"central 90% of the runs; dotted: that of $z'$; dashed: that of $z'$ at its equilibrium with the decay.",
    ),
)
