"""MobileLLM: test loss against depth at equal numbers of weights, each shape at its own rate, next to the paper's choice of depth.

Decoders of 33 thousand weights from 1 layer to 12 on the bytes of Python's own manual; `--scale paper` has 1.1 million weights.
`--text DIR --level bpe --vocabulary N` reads a WikiText folder in N byte-pair pieces (needs the extra `text`).
The rate is chosen on the validation part, losses are of the test part. An interrupted run resumes. Paper: arXiv 2402.14905,
section 2.2: among models of 125M weights those with 30 layers or more do better on tasks than those with 12; its numbers are of
another kind and serve as references.
"""

import sys
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.stats import mean_interval
from jaxdyn.theories.mobile.depth import PAPER, Depth, optimum, trial
from jaxdyn.theories.mobile.model import tuned
from jaxdyn.theories.mobile.published import MODELS

QUICK = jd.grid(Depth, shape=["1x48", "2x40", "3x32", "6x24", "12x16"], lr=[4e-3, 8e-3, 1.6e-2], steps=600)
SCALES = {"quick": (QUICK, 4), "paper": (PAPER, 4)}
OPTIONS = {
    "--text": {"default": "topics", "metavar": "PATH", "help": "a WikiText folder or a plain file (default: Python's own manual)"},
    "--level": {"default": "bytes", "choices": ("bytes", "bpe", "words"), "help": "kind of tokens (default: bytes)"},
    "--vocabulary": {"type": int, "metavar": "N", "help": "number of tokens (default: 256, the bytes)"},
    "--weights": {"type": int, "metavar": "N", "help": "weights per shape (default: 33 thousand; 1.1 million at --scale paper)"},
    "--steps": {"type": int, "metavar": "N", "help": "steps of training (default: 600; 4000 at --scale paper)"},
    "--seeds": {"type": int, "metavar": "N", "help": "number of seeds (default: 4)"},
}


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each shape: its rate and loss with half of its 95% interval; and the paper's smallest model."""
    best, lines = tuned(ds), []
    for shape in ds["shape"].values:
        one = best.sel(shape=shape)
        mean, low, _ = (float(x) for x in mean_interval(one.measured_loss, "seed"))
        layers, width = (int(n) for n in str(shape).split("x"))
        line = {"layers": layers, "width": width, "weights": int(one["count"].max()), "rate": float(one.lr)}
        lines.append(line | {"test loss": mean, "+-": mean - low, "perplexity": float(2.718281828459045**mean)})
    small = MODELS["125M"]
    paper = {"layers": small.layers, "width": small.width, "weights": int(1e6 * small.millions), "rate": None}
    return [*lines, paper | {"test loss": None, "+-": None, "perplexity": None}]


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Test loss over depth by rate, and each shape at its own."""
    ax = fig.subplots()
    layers = ds.layers.max([d for d in ds.layers.dims if d != "shape"])
    for lr in ds.lr.values:
        ax.plot(layers, ds.measured_loss.sel(lr=lr).mean("seed"), ":", color=plotting.COLORS["control"], lw=1)
    mean, low, high = mean_interval(tuned(ds).measured_loss, "seed")
    bar = [mean - low, high - mean]
    ax.errorbar(
        layers, mean, yerr=bar, fmt="o-", ms=4, capsize=3, color=plotting.COLORS["measured"], label="own rate, 95% interval"
    )
    ax.axvline(optimum(ds), color=plotting.COLORS["theory"], linestyle="--", label="best by validation loss")
    ax.set(xscale="log", xlabel="layers (equal numbers of weights)", ylabel="test loss, nats per token")
    ax.set_xticks(layers.values, [f"{n:.0f}" for n in layers.values], minor=False)
    ax.minorticks_off()


def run(scale: str, out: Path, seeds: int | None = None, **chosen: object) -> None:
    """Sweep, print, draw and save."""
    grid, usual = SCALES[scale]
    grid = grid.replace(**{k: v for k, v in chosen.items() if v is not None})
    ds = experiment.sweep(out, "runs", trial, grid, seeds or usual)
    title = f"Test loss at each shape's best rate, {ds.sizes['seed']} seeds; last line: the paper's smallest model"
    experiment.table(out, "depth", rows(ds), title)
    experiment.figure(out, "mobile_depth", lambda fig: draw(ds, fig), (6, 4))
    experiment.save(out, "depth", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
