"""Deja Vu, after Figures 1 and 4 of arXiv 2310.17157: loss over the share of units and heads left out.

ReLU decoders trained on the bytes of Python's own manual run in parts: by each token's own largest units and heads, by the same
ones for all tokens, by random ones, and by units that predictors of low rank name. The paper's numbers (OPT-175B: 80% of the heads
and 95% of the units can be left out) serve as a reference only. An interrupted run resumes.
"""

import sys
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.stats import mean_interval
from jaxdyn.theories.dejavu.contextual.claims import COLORS, LABELS, plot_recall
from jaxdyn.theories.dejavu.contextual.trial import Parts, trial

SCALES = {
    "quick": {"seeds": 8},
    "paper": {
        "width": 128,
        "hidden": 512,
        "layers": 4,
        "length": 64,
        "batch": 32,
        "steps": 3000,
        "fitted": 128,
        "fits": 1000,
        "texts": 64,
        "seeds": 8,
    },
}
OPTIONS = {"--seeds": {"type": int, "metavar": "N", "help": "number of seeds (default: 8)"}}
SIDES = (("units", "mode", "share"), ("heads", "head_mode", "head_share"))


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each choice and share: loss more than the whole network's with its 95% interval, and recall."""
    lines = []
    for part, axis, share in SIDES:
        more = ds[f"measured_{part}"] - ds.whole
        for mode in map(str, ds[axis].values):
            for s in ds[share].values:
                mean, low, high = (float(x) for x in mean_interval(more.sel({axis: mode, share: s}), "seed"))
                known = part == "units" and mode in ds.predictor.values
                recall = float(ds.measured_recall.sel(predictor=mode, share=s).mean()) if known else None
                line = {"part": part, "chosen": LABELS[mode], "left out": f"{1 - s:.0%}", "nats more": mean}
                lines.append(line | {"low": low, "high": high, "recall": recall})
    return lines


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Losses over what is left out, for units and heads, and recalls."""
    axes = fig.subplots(1, 2)
    for ax, (part, axis, share) in zip(axes, SIDES, strict=True):
        more, out = ds[f"measured_{part}"] - ds.whole, 100 * (1 - ds[share])
        for mode in map(str, ds[axis].values):
            mean, low, high = mean_interval(more.sel({axis: mode}), "seed")
            color, style = plotting.COLORS[COLORS[mode]], ":" if mode == "shuffled" else "-"
            ax.plot(out, mean, style, marker="o", ms=3, color=color, label=LABELS[mode] if part == "units" else None)
            ax.fill_between(out, low, high, color=color, alpha=0.12, linewidth=0)
        ax.set(xlabel=f"{part} left out, %", ylabel="nats per byte more than the whole network")


def run(scale: str, out: Path, **chosen: object) -> None:
    """Sweep, print, draw and save."""
    fields = SCALES[scale] | {k: v for k, v in chosen.items() if v is not None}
    seeds = fields.pop("seeds")
    ds = experiment.sweep(out, "runs", trial, jd.grid(Parts, **fields), seeds)
    experiment.table(out, "parts", rows(ds), f"Loss of parts of the network, {seeds} seeds")
    experiment.figure(out, "dejavu_curve", lambda fig: draw(ds, fig), (10, 4.2))
    experiment.figure(out, "dejavu_recall", lambda fig: plot_recall(ds, fig), (5, 3.5))
    experiment.save(out, "parts", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
