"""GaLore, Table 2: perplexity of full Adam, GaLore, adaptors and factorisations, each at its best rate, next to the paper's of 60M.

A decoder of 0.04M weights on the bytes of Python's own manual; `--scale paper` has the shape d = 64, f = 172, L = 2 and 800 steps.
`--text DIR --level bpe` reads a WikiText folder in 1024 byte-pair pieces (needs the extra `text`). The rate is chosen on the
validation part, perplexities are of the test part. An interrupted run resumes. Paper: arXiv 2403.03507.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.stats import mean_interval
from jaxdyn.theories.galore.text.claims import LABELS, ratios, tuned
from jaxdyn.theories.galore.text.trial import METHODS, Pretraining, trial

TALKS = ("practical:galore-table-pretraining",)

SCALES = {
    "quick": {"seeds": 3},
    "paper": {
        "width": 64,
        "hidden": 172,
        "most": 16,
        "rank": 16.0,
        "batch": 16,
        "steps": 800,
        "records": 8,
        "windows": 32,
        "seeds": 3,
    },
}
FACTORS = {"quick": [1 / 3, 1.0, 3.0], "paper": [1 / 10, 1 / 3, 1.0, 3.0]}
OPTIONS = {
    "--text": {"default": "topics", "metavar": "PATH", "help": "a WikiText folder or a plain file (default: Python's own manual)"},
    "--level": {"default": "bytes", "choices": ("bytes", "bpe", "words"), "help": "kind of tokens (default: bytes)"},
    "--seeds": {"type": int, "metavar": "N", "help": "number of seeds (default: 3)"},
    "--steps": {"type": int, "metavar": "N", "help": "steps of training (default: 160; 800 at --scale paper)"},
}
COLORS = ("theory", "theory", "measured", "measured", "measured", "third", "third", "fourth", "fourth", "fifth")


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each method: its rate, its perplexity, and that over full Adam's, with half of their 95% intervals."""
    best, over, paper = tuned(ds), ratios(ds), []
    for name in METHODS:
        one = best.sel(optimizer=name)
        mean, low, _ = (float(x) for x in mean_interval(one.measured_perplexity, "seed"))
        ratio, below, _ = (float(x) for x in mean_interval(over.sel(optimizer=name), "seed"))
        published = float(one.predicted_perplexity.mean()) / float(best.predicted_perplexity.sel(optimizer="full").mean())
        line = {"method": LABELS[name], "rate": float(one.lr.mean()), "perplexity": mean, "+-": mean - low}
        paper.append(line | {"over full Adam": ratio, "+- ratio": ratio - below, "paper, 60M, over full": published})
    return paper


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity over rates, and over full Adam's at the best rate, next to the paper's."""
    left, right = fig.subplots(1, 2)
    for name, color in zip(METHODS, COLORS, strict=True):
        one = ds.sel(optimizer=name)
        style = "--" if name in ("scaled", "galore_quarter", "fixed", "relora") else ":" if name == "galore_double" else "-"
        rate = one.lr.mean("seed")
        left.plot(
            rate, one.measured_perplexity.mean("seed"), style, marker="o", ms=3, color=plotting.COLORS[color], label=LABELS[name]
        )
    left.set(xscale="log", yscale="log", xlabel="peak rate", ylabel="test perplexity")
    lines, place = rows(ds), np.arange(len(METHODS))
    value, half, paper = (np.array([r[k] for r in lines]) for k in ("over full Adam", "+- ratio", "paper, 60M, over full"))
    right.errorbar(value, place, xerr=half, fmt="o", ms=4, capsize=3, color=plotting.COLORS["measured"], label="here, 95% interval")
    right.plot(paper, place, "x", color=plotting.COLORS["theory"], label="paper, 60M")
    right.axvline(1, linestyle=":", color=plotting.COLORS["control"])
    right.set_yticks(place, [LABELS[name] for name in METHODS])
    right.set(xscale="log", xlabel="perplexity / full Adam's")
    right.invert_yaxis()


def run(scale: str, out: Path, **chosen: object) -> None:
    """Sweep, print, draw and save."""
    fields = SCALES[scale] | {k: v for k, v in chosen.items() if v is not None}
    seeds = fields.pop("seeds")
    grid = jd.grid(Pretraining, optimizer=list(METHODS), factor=FACTORS[scale], **fields)
    ds = experiment.sweep(out, "runs", trial, grid, seeds, chunk=len(FACTORS[scale]) * len(METHODS))
    experiment.table(out, "perplexity", rows(ds), f"Test perplexity at each method's best rate, {seeds} seeds")
    experiment.figure(out, "galore_ppl", lambda fig: draw(ds, fig), (10, 4.2))
    experiment.save(out, "perplexity", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
