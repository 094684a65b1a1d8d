"""Claim on a cache of heavy hitters without a budget for recent tokens: it freezes."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.h2o.trials.frozen import Stream, trial

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The share of runs in which exactly the predicted tokens are left."""
    there = ds.measured_kept.notnull()  # smaller caches are padded
    same = ((ds.measured_kept == ds.predicted_kept) | ~there).all("place").where(there.any("place"))
    return [jd.share_within("share of runs in which the first tokens are left", same, over="seed", low=0.95)]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Numbers of the kept tokens at the end."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_kept, ds.measured_kept, label="kept tokens", color="measured", log=False)
    ax.set(xlabel="number of a kept token, frozen cache", ylabel="number of a kept token at the end")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Stream, spread=[0.0, 0.2]),
        paper=jd.grid(Stream, spread=[0.0, 0.2], size=[8, 32], tokens=256),
        seeds=512,
        paper_seeds=1024,
        evidence="algebra",
        source="derived; arXiv:2306.14048 keeps recent tokens beside heavy hitters",
    ).claim(
        id="h2o.frozen_cache",
        statement="A cache of 8 keys that evicts the token with the least summed attention, and protects no recent token but the "
        "current one, is frozen: after 96 tokens with uniform attention, or random logits of standard deviation 0.2, it still "
        "holds the first 7 tokens, in at least 95% of runs. (The policy on random queries and keys; no training.)",
        bounds=jd.looked(at="7000:7512", confirmed="8000:8512"),
        judge=judge,
        controls={"the last 4 tokens are kept": {"recent": 4.0}, "logits of standard deviation 3": {"spread": 3.0}},
        rivals={"the last 8 tokens are left": jd.swap(predicted_kept="newest")},
        plot=plot,
        caption="Numbers of the 8 tokens in the cache after 96 tokens, against those of a cache that froze; all runs.",
    ),
)
