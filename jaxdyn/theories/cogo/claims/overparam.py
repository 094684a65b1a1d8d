r"""More nodes than a solution needs: training is more reliable and faster.

A solution needs 2d nodes. The prediction is the rate at which potentials relax at the start, which grows with the width q: under
gradient flow :math:`\lambda = 2q\kappa/d^2`, with :math:`\kappa` the sum of products of two layers' mean squared coefficients.
Training is by Adam, so that only the direction is compared.
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
from jaxdyn.theories.cogo.training import Training, train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "SOLVED", "trial"]

SOLVED = 1e-3
WIDTHS = [46, 66, 256, 512]  # 2d, 3(d-1), and two of the published sweep
LARGEST = 512  # beyond it Adam's step, not the width, sets the pace
SEEDS = 20


def start_rate(d: int, hidden: int) -> float:
    r""":math:`2q\kappa/d^2` at the start of training; a uniform number within :math:`\pm x` has the mean square :math:`x^2/3`.

    A coefficient of the scaled transform has the mean square of a weight over d. Paper scale: every layer is larger by
    :math:`(2d)^{1/3}`. Source: arXiv:2410.01779, decoupling at infinite width.
    """
    a, c = ((2 * d) ** (2 / 3) / (3 * n * d) for n in (d, hidden))
    return 2 * hidden * (2 * a * c + a * a) / d**2


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """Train, and tell how fast the training loss fell below ``SOLVED``: one over the epochs, 0 if never."""
    loss = train(s, key).curves["train_loss"].astype(jnp.float64)
    below, d = loss < SOLVED, parse(s.group).order
    first = jnp.argmax(below)
    return jd.observables(
        predicted={"rate": jnp.float64(start_rate(d, s.hidden))},
        measured={"rate": jnp.where(jnp.any(below), 1 / jnp.maximum(first * s.every, 1), 0.0)},
        recorded={"loss": jd.named(loss, "epoch"), "enough": jnp.float64(3 * (d - 1))},
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Success at widths that hold a solution of order 6 everywhere, and the rate from one width to the next."""
    if ds.sizes.get("hidden", 1) < 2:
        raise jd.Inconclusive("needs at least two widths")
    solved = (ds.measured_rate > 0).mean("seed")
    few = ds.sel(hidden=ds.hidden <= LARGEST)
    step = few.measured_rate.diff("hidden") * np.sign(few.predicted_rate.diff("hidden"))
    return [
        jd.at_least("share of runs that solve the task, 3(d-1) nodes or more", solved.where(ds.hidden >= ds.enough.max()), 0.95),
        jd.at_least("change of the rate with width in the predicted direction, standard errors", stats.standard_errors(step), 2.0),
        jd.at_most("fall of that share from one width to the next", -solved.diff("hidden"), 0.0),
    ]


def same_width(ds: xr.Dataset) -> xr.Dataset:
    """Runs of one width in place of all."""
    return ds.assign(measured_rate=ds.measured_rate.isel(hidden=1, drop=True).broadcast_like(ds.measured_rate))


def narrow_first(ds: xr.Dataset) -> xr.Dataset:
    """A rate that falls with the width."""
    return ds.assign(predicted_rate=1 / ds.predicted_rate)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Epochs to the goal and share of runs that reach it, against the width."""
    left, right = fig.subplots(1, 2)
    ds = ds.isel({axis: 0 for axis in ds.measured_rate.dims if axis not in ("hidden", "seed")})
    epochs = (1 / ds.measured_rate.where(ds.measured_rate > 0)).transpose("seed", "hidden")
    plotting.band(left, ds.hidden, epochs, label=f"epochs to loss < {SOLVED:g}", marker="o")
    left.set(xscale="log", xlabel="nodes q", ylabel="epochs (runs that get there)")
    solved = (ds.measured_rate > 0).sum("seed")
    bounds = np.array([stats.wilson(int(n), ds.sizes["seed"]) for n in solved])
    share = solved / ds.sizes["seed"]
    right.errorbar(ds.hidden, share, np.abs(bounds.T - share.values), fmt="o", capsize=3, label="share of runs, 95%")
    right.set(xscale="log", xlabel="nodes q", ylabel=f"loss < {SOLVED:g} in time", ylim=(-0.05, 1.05))
    for ax in (left, right):
        ax.set_xticks(ds.hidden.values, [str(q) for q in ds.hidden.values])
        ax.minorticks_off()


CLAIMS = (
    jd.Claim(
        id="cogo.overparam",
        statement=r"With more nodes than a solution needs, training is more reliable and faster: from $2d$ to 512 nodes ($d = "
        r"23$) the rate (one over the epochs until the loss is below $10^{-3}$) rises at every step, and with $3(d-1)$ or more "
        r"every run gets there within 300 epochs. Beyond 512 it rises no further.",
        source="arXiv:2410.01779, section 6 (text); direction: rate of the decoupled potentials, its theorem on infinite width",
        trial=trial,
        quick=jd.grid(Training, hidden=WIDTHS, epochs=300, every=10),
        paper=jd.grid(Training, hidden=[*WIDTHS, 1024], epochs=9900, every=10),
        seeds=SEEDS,
        judge=judge,
        controls={"runs of one width": same_width, "a rate that falls with the width": narrow_first},
        plot=plot,
    ),
)
