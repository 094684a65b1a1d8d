"""Attention sinks on the Bigram-Backcopy task: weight, margin and drain of token 0 over log steps, by form and optimizer.

The last panel is the reduced flow of an idle query next to the margin under SGD; the table is next to the single run of a larger
network (V = 33, T = 48, d = 64, batch 64) at 800 steps. `--scale paper` trains that network. An interrupted run resumes.
Papers: arXiv 2410.13835, 2410.10781.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.stats import mean_interval
from jaxdyn.theories.sink import backcopy, reduced_log
from jaxdyn.theories.sink.model import FORMS
from jaxdyn.theories.sink.published import LARGER, SIZES

SEEDS = {"quick": 8, "paper": 8}
SGD = (1.0, 0.3)
COLORS = ("measured", "third", "theory", "control", "fourth")


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each form: what its head does at the end, with half of the 95% interval of the weight."""
    end, lines = ds.isel(step=-1), []
    for form in FORMS:
        one = end.sel(attention=form)
        mean, low, _ = (float(x) for x in mean_interval(one.measured_idle, "seed"))
        rest = {name: float(one[f"measured_{name}"].mean()) for name in ("copying", "margin", "drain")}
        line = {"attention": form, "idle": mean, "+-": mean - low} | rest
        lines.append(line | {f"larger, {name}": value for name, value in LARGER[form].items()})
    return lines


def curve(ax: object, ds: xr.Dataset, name: str, label: str, color: str) -> None:
    """A quantity along training, from the first record after the start on."""
    steps = ds.steps.values.reshape(-1, ds.sizes["step"])[0]
    plotting.band(ax, steps[1:], ds[name].transpose(..., "step").values[..., 1:], label, color)


def draw(forms: xr.Dataset, sgd: xr.Dataset, flow: xr.Dataset, fig: Figure) -> None:
    """Weight, margin and drain by form; the margin under SGD, and the reduced flow."""
    axes = fig.subplots(2, 3).ravel()
    names = {"idle": "weight, idle queries", "margin": r"margin $\Delta$", "drain": "drain"}
    for ax, (name, label) in zip(axes[:3], names.items(), strict=True):
        for form, color in zip(FORMS, COLORS, strict=True):
            curve(ax, forms.sel(attention=form), f"measured_{name}", form, color)
        ax.set(xscale="log", xlabel="step (Adam)", ylabel=label)
        ax.xaxis.set_minor_formatter(NullFormatter())
    axes[0].axhline(float(forms.uniform.mean()), linestyle="--", color=plotting.COLORS["control"], label="uniform")
    for ax, name, label in ((axes[3], "margin", r"margin $\Delta$"), (axes[4], "drain", "drain")):
        for rate, color in zip(SGD, COLORS, strict=False):
            curve(ax, sgd.sel(lr=rate), f"measured_{name}", f"rate {rate:g}", color)
        ax.set(xscale="log", xlabel="step (SGD, softmax)", ylabel=label)
    plotting.band(axes[5], flow.t, flow.measured_margin.transpose(..., "t"), "reduced flow", "measured")
    law = flow.predicted_margin.sel(form="derived").transpose(..., "t").where(flow.t > 1)
    middle = np.median(law.values.reshape(-1, flow.sizes["t"]), 0)
    axes[5].plot(flow.t, middle, "--", color=plotting.COLORS["theory"], label="late law")
    axes[5].set(xscale="log", xlabel="time", ylabel=r"margin $\Delta$, reduced")


def run(scale: str, out: Path) -> None:
    """Sweep, print, draw and save."""
    fields, seeds = (SIZES if scale == "paper" else {}), SEEDS[scale]
    forms = jd.grid(backcopy.Backcopy, attention=list(FORMS), **fields)
    rates = fields | {"lr": list(SGD), "every": 60.0}
    descent = jd.grid(backcopy.Backcopy, optimizer="sgd", **rates)
    adam = experiment.sweep(out, "forms", backcopy.trial, forms, seeds)
    sgd = experiment.sweep(out, "sgd", backcopy.trial, descent, seeds)
    flow = experiment.sweep(out, "reduced", reduced_log.trial, jd.grid(reduced_log.Reduced), seeds)
    experiment.table(out, "forms", rows(adam), f"The head after {float(adam.steps.max()):g} steps of Adam, {seeds} seeds")
    experiment.figure(out, "sink_emergence", lambda fig: draw(adam, sgd, flow, fig), (10, 6))
    experiment.save(out, "forms", adam)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
