"""Claim on the start: a top layer that begins at zero makes a network generalise sooner, most of all when pairs are scarce."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.li2.training import Training, train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "reached", "trial"]

KNOWN = 0.95  # test accuracy that counts as generalising


def reached(curve: jnp.ndarray, every: int, level: float = KNOWN) -> jnp.ndarray:
    """The epoch at which a curve first reaches the level; twice the length of the training if it does not."""
    hit = curve >= level
    return jnp.where(jnp.any(hit), jnp.argmax(hit), 2 * (len(curve) - 1)).astype(jnp.float64) * every


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """When one network generalises."""
    curves = train(s, key).curves
    return jd.observables(
        measured={"time": reached(curves["test_accuracy"], s.every)},
        recorded={"accuracy": jd.named(curves["test_accuracy"].astype(jnp.float64), "epoch")},
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The normal start takes longer in most runs, and loses fewer epochs where pairs abound."""
    if not {0.0, 1.0} <= set(np.atleast_1d(ds.coords.get("top", np.nan))) or ds.sizes.get("share", 1) < 2:
        raise jd.Inconclusive("needs the starts top=0 and top=1, and two shares")
    lost = ds.measured_time.sel(top=1.0) - ds.measured_time.sel(top=0.0)
    few, many = lost.sel(share=ds.share.min()), lost.sel(share=ds.share.max())
    return [
        jd.at_least("share of seeds in which the zero start is ahead, pairs scarce", (few > 0).mean("seed"), 0.8),
        jd.at_most("epochs that it gains where pairs abound over those where they are scarce", many.mean() / few.mean(), 0.25),
    ]


def same(ds: xr.Dataset) -> xr.Dataset:
    """The normal start in place of the zero one, of another seed."""
    other = ds.measured_time.sel(top=1.0).roll(seed=1, roll_coords=False)
    return ds.assign(measured_time=xr.where(ds.top == 0, other, ds.measured_time).transpose(*ds.measured_time.dims))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Test accuracy along training from both starts."""
    shares = np.atleast_1d(ds.share)
    for ax, share in zip(np.atleast_1d(fig.subplots(1, len(shares), sharey=True)), shares, strict=True):
        for top, label, color in ((1.0, "normal start", "measured"), (0.0, "V = 0", "third")):
            part = ds.accuracy.sel(share=share, top=top).transpose("seed", "epoch")
            plotting.band(ax, ds.epoch, part, label, plotting.COLORS[color])
        ax.set(xlabel="epoch", ylabel="test accuracy", title=f"{share:.0%} of the pairs")


CLAIMS = (
    jd.Claim(
        id="li2.zero_init",
        statement=r"Starting from $V = 0$ brings test accuracy to .95 sooner in at least 80% of the runs where pairs are scarce, "
        r"and where they abound the gain is at most a quarter of that.",
        source="arXiv:2509.21519, figures 14-16",
        trial=trial,
        quick=jd.grid(Training, share=[0.7, 0.9], top=[0.0, 1.0], lr=0.005, decay=5e-5, epochs=700, every=5),
        paper=jd.grid(
            Training, group="89", share=[0.2, 0.9], top=[0.0, 1.0], lr=0.005, decay=5e-5, hidden=1024, epochs=3000, every=10
        ),
        seeds=8,
        paper_seeds=15,
        judge=judge,
        controls={"a normal start in place of the zero one": same},
        plot=plot,
    ),
)
