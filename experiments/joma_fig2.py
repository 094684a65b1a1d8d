"""JoMA, Figures 2 and 3 (attention): correlation (NC) and size of the estimates of the attention logits from the weights.

Twenty classes, softmax attention, full-batch descent for 2000 steps, for gaussian and random data; estimates with the mean
attention held constant (the paper's), as it moves, and by exact bookkeeping; and the same under Adam, where no estimate should
hold. Paper: arXiv 2310.00535, which plots NC only. Reference numbers: an independent run in NumPy with 6 seeds.
"""

import sys
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.joma.invariant.classes import DATA, Classes, fig2_trial
from jaxdyn.theories.joma.invariant.fig2 import ADAM as UNDER_ADAM
from jaxdyn.theories.joma.invariant.fig2 import correlation, relative

TALKS = ("training:joma-figure-2",)

SEEDS = {"quick": 8, "paper": 64}
EVERY = 50  # steps between records
NAMES = ("NC", "NC1", "error", "drift")
REFERENCE = {  # mean over seeds of NC, NC of the first term, relative error, drift of the mean attention
    ("gaussian", 100): (0.999, 0.15, 0.04, 0.015),
    ("gaussian", 500): (0.998, 0.88, 0.18, 0.15),
    ("gaussian", 1000): (0.996, 0.95, 0.70, 1.03),
    ("gaussian", 2000): (0.992, 0.99, 7.7, 2.6),
    ("random", 100): (0.999, 0.30, 0.04, 0.017),
    ("random", 500): (0.989, 0.88, 0.20, 0.07),
    ("random", 1000): (0.991, 0.94, 0.49, 0.28),
    ("random", 2000): (0.944, 0.93, 3.9, 1.8),
}
MOVING = {"gaussian": (0.945, 0.38), "random": (0.918, 0.66)}  # NC and relative error of the moving estimate, last step
ADAM = {"gaussian": (0.96, "> 100"), "random": (0.99, "> 100")}  # NC and relative error of the constant estimate, last step
TERMS = (("NC", "estimate", "measured"), ("NC1", "first term", "third"), ("NC2", "second term", "control"))
LOSS = {"gaussian": 2.52, "random": 2.66}


def curves(ds: xr.Dataset, form: str) -> dict[str, xr.DataArray]:
    """What the figures and tables show of one form of the estimate, for every run and record."""
    part = ds.sel(form=form)
    z = part.measured_z
    return {
        "NC": correlation(z, part.predicted_z),
        "NC1": correlation(z, part.square_term),
        "NC2": correlation(z, part.norm_term),
        "error": relative(part),
        "drift": part.drift,
    }


def spread(values: xr.DataArray, reference: float | str | None) -> dict[str, float | str | None]:
    """Mean and standard deviation over seeds, next to the reference."""
    return {"mean": float(values.mean()), "sd": experiment.deviation(values), "reference": reference}


def paper_rows(ds: xr.Dataset) -> list[dict]:
    """The constant estimate, and the loss, at the reference's steps."""
    estimates = curves(ds, "constant")
    rows = []
    for (kind, step), numbers in REFERENCE.items():
        for name, number in zip(NAMES, numbers, strict=True):
            values = estimates[name].sel(data=kind, record=step // EVERY)
            rows.append({"data": kind, "step": step, "quantity": name} | spread(values, number))
    for kind, loss in LOSS.items():
        rows.append({"data": kind, "step": 2000, "quantity": "loss"} | spread(ds.loss.sel(data=kind).isel(record=-1), loss))
    return rows


def form_rows(ds: xr.Dataset, adam: xr.Dataset) -> list[dict]:
    """All estimates at the last step, under descent and under Adam."""
    rows = []
    for kind in ds.data.values:
        for data, optimizer, form, known in (
            (ds, "gd", "constant", (REFERENCE[kind, 2000][0], REFERENCE[kind, 2000][2])),
            (ds, "gd", "moving", MOVING[kind]),
            (ds, "gd", "exact", (None, None)),
            (adam, "adam", "constant", ADAM[kind]),
            (adam, "adam", "moving", (None, None)),
        ):
            ends = {name: v.sel(data=kind).isel(record=-1) for name, v in curves(data, form).items()}
            for name, number in zip(("NC", "error"), known, strict=True):
                row = {"data": kind, "optimizer": optimizer, "form": form, "quantity": name}
                rows.append(row | spread(ends[name], number))
    return rows


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Above: NC of the estimate and of its two terms; below: relative errors and the drift. Median and 90% of the seeds."""
    above, below = fig.subplots(2, 2, sharex=True)
    steps = ds.record[1:] * EVERY
    constant, moving = curves(ds, "constant"), curves(ds, "moving")
    for kind, top, bottom in zip(ds.data.values, above, below, strict=True):
        pick = lambda values, kind=kind: values.sel(data=kind).isel(record=slice(1, None))  # noqa: E731
        for name, label, color in (
            ("NC", "estimate", "measured"),
            ("NC1", "first term", "third"),
            ("NC2", "second term", "control"),
        ):
            plotting.band(top, steps, pick(constant[name]), label=label, color=color)
        plotting.band(bottom, steps, pick(constant["error"]), label="error, constant mean attention", color="measured")
        plotting.band(bottom, steps, pick(moving["error"]), label="error, moving mean attention", color="theory")
        plotting.band(bottom, steps, pick(constant["drift"]), label="drift of mean attention", color="control")
        points = [step for data, step in REFERENCE if data == kind]
        for ax, column in ((top, 0), (bottom, 2)):
            ax.plot(points, [REFERENCE[kind, s][column] for s in points], "x", color=plotting.COLORS["failed"], label="reference")
            ax.legend()
        top.set_title(f"{kind} data")
        bottom.set_yscale("log")
        bottom.set_xlabel("step")
    above[0].set_ylabel("NC with the logits")
    below[0].set_ylabel("relative")


def run(scale: str, out: Path) -> None:
    """Train under descent and under Adam, print the tables, draw, and save the data."""
    descent = jd.grid(Classes, data=list(DATA), every=EVERY)
    ds = experiment.sweep(out, "descent", fig2_trial, descent, SEEDS[scale])
    adam = experiment.sweep(out, "adam", fig2_trial, descent.replace(**UNDER_ADAM.breach), SEEDS[scale])
    experiment.table(out, "estimate", paper_rows(ds), f"Estimate with constant mean attention, {SEEDS[scale]} seeds")
    experiment.table(out, "forms", form_rows(ds, adam), "Estimates at step 2000")
    experiment.figure(out, "joma_fig2", lambda fig: draw(ds, fig), (8.0, 5.5))
    experiment.save(out, "descent", ds)
    experiment.save(out, "adam", adam)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
