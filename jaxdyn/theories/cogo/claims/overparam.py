r"""Claim on networks with more nodes than a solution needs: training is more reliable and faster.

A solution needs 2d nodes. The prediction is the rate at which potentials relax at the start, which grows with the width q.
Training is by Adam, so that only the direction is compared. All widths share a program: nodes beyond the width are zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo.dynamics import relax as theory
from jaxdyn.theories.cogo.training import Training, size, train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "SOLVED", "trial"]

SOLVED = 1e-3
WIDTHS = [46.0, 66.0, 256.0, 512.0]  # 2d, 3(d-1), and two of the published sweep
LARGEST = 512  # beyond it Adam's step, not the width, sets the pace
SEEDS = 20


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """One over the epochs until the training loss falls below ``SOLVED``, where training ends; 0 if it never does."""
    loss = train(s, key, solved=SOLVED).curves["train_loss"].astype(jnp.float64)
    below, d = loss < SOLVED, parse(s.group).order
    first = jnp.argmax(below)
    return jd.observables(
        predicted={"rate": theory.start_rate(d, size(s)).astype(jnp.float64)},
        measured={"rate": jnp.where(jnp.any(below), 1 / jnp.maximum(first * s.every, 1), 0.0)},
        recorded={"loss": jd.named(loss, "epoch"), "enough": jnp.float64(3 * (d - 1))},
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Success at widths that hold a solution of order 6 everywhere, and the rate from one width to the next."""
    jd.need(ds, width=2)
    solved = (ds.measured_rate > 0).mean("seed")
    few = ds.sel(width=ds.width <= LARGEST)
    step = few.measured_rate.diff("width") * np.sign(few.predicted_rate.diff("width"))
    return [
        jd.at_least("share of runs that solve the task, 3(d-1) nodes or more", solved.where(ds.width >= ds.enough.max()), 0.95),
        jd.at_least("change of the rate with width in the predicted direction, standard errors", stats.standard_errors(step), 2.0),
        jd.at_most("fall of the share of runs from one width to the next", -solved.diff("width"), 0.0),
    ]


def same_width(ds: xr.Dataset) -> xr.Dataset:
    """A breach: the rates of all widths are those of one."""
    return ds.assign(measured_rate=ds.measured_rate.isel(width=1, drop=True).broadcast_like(ds.measured_rate))


def narrow_first(ds: xr.Dataset) -> xr.Dataset:
    """A breach: the predicted rate falls with the width."""
    return ds.assign(predicted_rate=1 / ds.predicted_rate)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Epochs to the goal and share of runs that reach it, against the width."""
    left, right = fig.subplots(1, 2)
    ds = plotting.first_run(ds, "width", "seed")
    epochs = (1 / ds.measured_rate.where(ds.measured_rate > 0)).transpose("seed", "width")
    plotting.band(left, ds.width, epochs, label=f"epochs to loss < {SOLVED:g}", marker="o")
    left.set(xscale="log", xlabel="nodes q", ylabel="epochs (runs that get there)")
    solved = (ds.measured_rate > 0).sum("seed")
    bounds = np.array([stats.wilson(int(n), ds.sizes["seed"]) for n in solved])
    share = solved / ds.sizes["seed"]
    right.errorbar(ds.width, share, np.abs(bounds.T - share.values), fmt="o", capsize=3, label="share of runs, 95%")
    right.set(xscale="log", xlabel="nodes q", ylabel=f"loss < {SOLVED:g} in time", ylim=(-0.05, 1.05))
    for ax in (left, right):
        ax.set_xticks(ds.width.values, [f"{q:g}" for q in ds.width.values])
        ax.minorticks_off()


STUDY = jd.Study(
    trial=trial,
    source="arXiv:2410.01779, section 6 (text); direction: rate of the decoupled potentials, its theorem on infinite width",
    quick=jd.grid(Training, width=WIDTHS, epochs=300, every=10),
    paper=jd.grid(Training, width=[*WIDTHS, 1024.0], hidden=1024, epochs=9900, every=10),
    seeds=SEEDS,
    judge=judge,
    plot=plot,
    caption=r"Against the number of nodes: left, epochs until the training loss is below $10^{-3}$, median and central 90% of the "
    r"runs that get there; right, the share of runs that get there, with its 95% interval.",
)

CLAIMS = (
    STUDY.claim(
        id="cogo.overparam",
        statement=r"With more nodes than a solution needs, training by Adam is more reliable and faster: from $2d$ to 512 nodes "
        r"($d = 23$) the rate (one over the epochs until the training loss is below $10^{-3}$) rises at each step, the share of "
        r"runs that get there does not fall, and with $3(d-1)$ or more nodes at least 95% get there.",
        controls={"runs of one width": same_width, "a rate that falls with the width": narrow_first},
    ),
)
