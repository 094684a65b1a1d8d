"""Claims on attention sinks that networks learn: the head of the Bigram-Backcopy task, with several forms of attention."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sink.model import FORMS
from jaxdyn.theories.sink.trials.backcopy import Backcopy, trial

__all__ = ["CLAIMS", "judge_emerge", "judge_forms", "judge_own"]

MOVED = ("idle", "copying", "drain", "margin")


def trained(ds: xr.Dataset) -> list[jd.Check]:
    """Gates: both tasks are learned, on average over runs."""
    end = ds.isel(step=-1)
    return [
        jd.gate("cross-entropy at triggers, mean over runs", end.copy_loss.mean("seed"), at_most=0.5),
        jd.gate("cross-entropy elsewhere less its floor, mean over runs", end.excess.mean("seed"), at_most=0.3),
    ]


def judge_emerge(ds: xr.Dataset) -> list[jd.Check]:
    """Weights on token 0 at the end, where the head is idle and where it copies, and the size of its value."""
    end = ds.isel(step=-1)
    return [
        *trained(ds),
        jd.mean_within("weight on token 0 at idle queries over that of uniform attention", end.measured_idle / end.uniform,
                       over="seed", low=2.0),
        jd.mean_within("weight on token 0 at triggers over that of uniform attention", end.measured_copying / end.uniform,
                       over="seed", high=0.5),
        jd.mean_within("size of the value of token 0 over the mean of others", end.measured_drain, over="seed", high=0.6),
    ]  # fmt: skip


def judge_own(ds: xr.Dataset) -> list[jd.Check]:
    """Weights on token 0 at idle queries at the end, in networks whose attention has a sink of its own."""
    end = ds.isel(step=-1)
    ratio = end.measured_idle / end.uniform
    return [
        *trained(ds),
        jd.mean_within("weight on token 0 at idle queries over that of uniform attention", ratio, over="seed", low=1.8),
    ]


def judge_forms(ds: xr.Dataset) -> list[jd.Check]:
    """Share of the weight on token 0 at idle queries, for every form of attention, over that of uniform attention."""
    end = ds.isel(step=-1)
    jd.need(ds, attention=FORMS)
    ratio = end.share / end.uniform
    return [
        jd.mean_within(f"share of token 0 over that of uniform attention, {form}", ratio.sel(attention=form), over="seed", low=1.0)
        for form in FORMS
    ]


def still(ds: xr.Dataset) -> xr.Dataset:
    """A rival: nothing moves, and all is as at the start."""
    changed = {f"measured_{name}": ds[f"measured_{name}"].isel(step=0) + 0 * ds[f"measured_{name}"] for name in MOVED}
    changed = {name: value.transpose(*ds[name].dims) for name, value in changed.items()}
    return ds.assign(changed)


def no_need(ds: xr.Dataset) -> xr.Dataset:
    """A rival: whoever has a sink of its own leaves token 0 at the weight of uniform attention."""
    return ds.assign(measured_idle=(ds.uniform + 0 * ds.measured_idle).transpose(*ds.measured_idle.dims))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Weights on token 0, the margin and the drain along training, by form of attention."""
    axes = fig.subplots(1, 3)
    forms = [str(f) for f in np.atleast_1d(ds.attention.values)]
    steps = ds.steps.values.reshape(-1, ds.sizes["step"])[0]
    for form, color in zip(forms, ("measured", "third", "theory", "control", "rival"), strict=False):
        part = ds.sel(attention=form) if "attention" in ds.dims else ds
        for ax, name in zip(axes, ("measured_idle", "measured_margin", "measured_drain"), strict=True):
            plotting.band(ax, steps, part[name].transpose(..., "step"), form, color if color in plotting.COLORS else None)
    for ax, label in zip(axes, ("weight on token 0, idle", r"margin $\Delta$", "size of its value / others"), strict=True):
        ax.set(xlabel="step", ylabel=label)
    axes[0].axhline(float(ds.uniform.mean()), linestyle="--", color=plotting.COLORS["theory"])


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Backcopy, attention=list(FORMS)),
    paper=jd.grid(Backcopy, attention=list(FORMS), vocabulary=33, length=48, width=64, hidden=256, batch=64, every=100),
    seeds=8,
    paper_seeds=32,
    evidence="network",
    source="arXiv:2410.13835, section 2 (task and mechanism); arXiv:2410.10781 (forms of attention); sizes and bounds ours",
    rivals={"nothing moves": still},
    plot=plot,
    caption="Weight on token 0 at idle queries (dashed: uniform attention), margin of its score and size of its value along "
    "training, by form of attention: median and central 90% of the runs.",
)
