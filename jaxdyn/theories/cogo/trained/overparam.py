r"""Networks with more nodes than a solution needs: training is more reliable and faster.

The composed solution has 2d nodes. The prediction is the rate at which potentials relax at the start, which grows with the width q.
Training is by Adam, so that only the direction is compared. All widths share a program: nodes beyond the width are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo.dynamics import flow as theory
from jaxdyn.theories.cogo.training import Training, size, train

SOLVED = 1e-3


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """One over the epochs until the training loss falls below ``SOLVED``, where training ends; 0 if it never does."""
    loss = train(s, key, solved=SOLVED).curves["train_loss"].astype(jnp.float64)
    below, d = loss < SOLVED, parse(s.group).order
    first = jnp.argmax(below)
    rate: Any = theory.start_rate(d, size(s))
    return jd.observables(
        predicted={"rate": rate.astype(jnp.float64)},
        measured={"rate": jnp.where(jnp.any(below), 1 / jnp.maximum(first * s.every, 1), 0.0)},
        recorded={"loss": jd.named(loss, "epoch"), "enough": jnp.float64(3 * (d - 1)), "least": jnp.float64(2 * d)},
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )


WIDTHS = [46.0, 66.0, 256.0, 512.0, 1024.0, 2048.0]  # 2d, 3(d-1), and those of the published sweep
RISING, LARGE, LARGEST = 256, 512, 2048  # beyond some width Adam's step sets the pace; at which depends on its rate
SEEDS = 20
TINY = 1e-9  # in place of a rate that is zero


SOLVES, FEW = "share of runs that solve the task, each width from 3(d-1) on", "share of runs that solve the task, 2d nodes"
STEP, BEYOND = "relative rise of the rate with the width, in the predicted direction", "relative rise from 512 to 2048 nodes"


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Success at 2d nodes and at widths with room for order 6 everywhere; by how much the rate rises from one width to the next."""
    jd.need(ds, width=(RISING, LARGE, LARGEST), seed=8)
    solved = (ds.measured_rate > 0).where(ds.measured_rate.notnull())
    few = ds.measured_rate.sel(width=ds.width <= RISING)
    large, largest = (ds.measured_rate.sel(width=width, drop=True) for width in (LARGE, LARGEST))
    sign = np.sign(ds.predicted_rate.sel(width=few.width).diff("width"))
    rise = -relative(few.shift(width=1).isel(width=slice(1, None)), few.isel(width=slice(1, None)))
    return [
        jd.share_within(SOLVES, solved.sel(width=ds.width >= float(ds.enough.max())), over="seed", low=0.5),
        jd.share_within(FEW, solved.sel(width=ds.width <= float(ds.least.max())), over="seed", high=0.5),
        jd.mean_within(STEP, sign * rise, over="seed", low=0.05),
        jd.mean_within(BEYOND, relative(largest, large), over="seed", high=0.0),
    ]


def relative(values: xr.DataArray, unit: xr.DataArray) -> xr.DataArray:
    """Mean over seeds of values / that of their unit - 1, as pseudo-values: one per seed, with the scatter of the ratio.

    Source: Tukey 1958; with each seed left out in turn, n times the whole minus n - 1 times the rest.
    """
    n = values.sizes["seed"]

    def ratio(a: xr.DataArray, b: xr.DataArray) -> xr.DataArray:
        return a / b.clip(TINY) - 1

    whole = ratio(values.mean("seed"), unit.mean("seed"))
    rest = ratio(*((x.sum("seed") - x) / (n - 1) for x in (values, unit)))
    return n * whole - (n - 1) * rest


def same_width(place: int) -> Callable[[xr.Dataset], xr.Dataset]:
    """A control: the rates of all widths are those of one."""
    return jd.swap(measured_rate=lambda ds: ds.measured_rate.isel(width=place, drop=True))


def keeps_pace(ds: xr.Dataset) -> float:
    """The rise from 512 to 2048 nodes if the rate stays in proportion to that at which potentials relax."""
    rate = ds.predicted_rate.mean("seed")
    return float(rate.sel(width=LARGEST) / rate.sel(width=LARGE) - 1)


NARROW_FIRST = jd.swap(predicted_rate=lambda ds: 1 / ds.predicted_rate)  # the rate falls with the width


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
    tested="A two-layer network with quadratic activation and {width} nodes learns addition modulo {group} by Adam at rate "
    "{lr}, {epochs} epochs; {seeds} seeds. It has solved the task when its training loss is below 0.001.",
    source="arXiv:2410.01779, section 6 (text); direction: rate of the decoupled potentials, its theorem on infinite width",
    quick=jd.grid(Training, width=WIDTHS, hidden=2048, epochs=300, every=5),
    seeds=SEEDS,
    paper_seeds=50,
    evidence="network",
    bounds=jd.tuned(on="0:10", confirmed_on="96000000:96000020"),
    judge=judge,
    plot=plot,
    caption=r"Against the number of nodes: left, epochs until the training loss is below $10^{-3}$, median and central 90% of the "
    r"runs that get there; right, the share of runs that get there, with its 95% interval.",
)

CLAIMS = (
    STUDY.claim(
        id="cogo.overparam",
        title="Networks wider than the composed solution train reliably and faster",
        statement="The composed solution $z_{F4/6}$ of addition modulo $d = 23$ has $2d$ nodes. Networks with quadratic "
        r"activation trained by Adam at rates from .01 to .02 with weight decay $5 \cdot 10^{-5}$ for 300 epochs solve the task "
        "in most runs with $3(d-1)$ nodes or more, at each width, and with $2d$ in at most half of them. One over the epochs "
        "until then rises by 5% or more at each step from $2d$ to 256 nodes, and is lower at 2048 than at 512 nodes, on average "
        "over seeds.",
        holds={"lr": (0.01, 0.02)},
        controls={"all runs have 2d nodes": same_width(0), "all runs have 3(d-1) nodes": same_width(1)},
        rivals={
            "the width makes no difference": jd.off(predicted_rate=1.0),
            "a rate that falls with the width": NARROW_FIRST,
            "the rate keeps pace with that of the potentials": {BEYOND: keeps_pace},
        },
    ),
)
