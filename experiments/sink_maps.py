"""Attention maps of one-block networks trained on the Bigram-Backcopy task, every form of attention on the same text.

Rows are queries, columns keys; triggers are marked on the left. The first column is the sink. `--scale paper` trains the
larger network of `sink_emergence.py`. An interrupted run resumes. Papers: arXiv 2410.13835, 2410.10781.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment
from jaxdyn.theories.sink.backcopy import MOST, Backcopy, trial
from jaxdyn.theories.sink.model import FORMS
from jaxdyn.theories.sink.published import SIZES

TALKS = ("practical:sink-figure-maps",)


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each form: weights at idle queries, at the end."""
    end = ds.isel(step=-1).mean("seed")
    names = {"token 0": "measured_idle", "share of token 0": "measured_share", "itself": "own", "the one before": "before"}
    return [
        {"attention": form}
        | {label: float(end[name].sel(attention=form)) for label, name in names.items()}
        | {"token 0, at triggers": float(end.measured_copying.sel(attention=form))}
        for form in FORMS
    ]


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """One map a form; weights of ReLU and sigmoid, which do not sum to one, over their largest sum."""
    axes = fig.subplots(1, len(FORMS), sharey=True)
    for form, ax in zip(FORMS, axes, strict=True):
        one = ds.sel(attention=form).isel(seed=0)
        weights = one.pattern.values
        shown = weights / max(1.0, float(weights.sum(-1).max()))
        ax.imshow(shown, cmap="magma_r", vmin=0, vmax=1, interpolation="nearest")
        ax.grid(visible=False)
        copies = np.flatnonzero((one.text.values >= 1) & (one.text.values <= MOST))
        ax.plot(np.full(len(copies), -1.2), copies, ">", ms=4, clip_on=False, color="black")
        ax.set(title=form.replace("_", " "), xlabel="key", xticks=[0, 10, 20, 30])
    axes[0].set_ylabel("query (triangles: triggers)")


def run(scale: str, out: Path) -> None:
    """Sweep, print, draw and save."""
    fields = SIZES if scale == "paper" else {}
    ds = experiment.sweep(out, "runs", trial, jd.grid(Backcopy, attention=list(FORMS), **fields), 4)
    experiment.table(out, "weights", rows(ds), f"Weights at idle queries after {float(ds.steps.max()):g} steps of Adam, 4 seeds")
    experiment.figure(out, "sink_maps", lambda fig: draw(ds, fig), (12, 3))
    experiment.save(out, "maps", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
