"""StreamingLLM, figures 1 and 3, tables 2 and 3: perplexity over the position in a text by policy, in a decoder trained here.

A decoder of 0.04M weights on the bytes of Python's own manual, plain, with a zero sink and with a learnable sink token, reads texts
of 50 lengths of its training; `--scale paper` has d = 64, three layers and sequences of 64. `--text DIR --level bpe` reads a
WikiText folder (needs the extra `text`). The published numbers are of models of 160M to 13B weights, which have sinks: references,
not targets. An interrupted run resumes. Paper: arXiv 2309.17453.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.stats import mean_interval
from jaxdyn.theories.sink.language import Language, trial
from jaxdyn.theories.stream import published
from jaxdyn.theories.stream.text import mean_ratio, perplexity

TALKS = (
    "practical:stream-table-linebreak",
    "practical:stream-figure-stable",
    "practical:stream-table-pretraining",
    "practical:stream-pretraining-vanilla",
    "practical:stream-pretraining-zero-sink",
    "practical:stream-pretraining-sink-token",
)

SCALES = {
    "quick": {"seeds": 3},
    "paper": {"width": 64, "hidden": 172, "layers": 3, "length": 64, "batch": 16, "steps": 1000, "streams": 4, "seeds": 3},
}
OPTIONS = {
    "--text": {"default": "topics", "metavar": "PATH", "help": "a WikiText folder or a plain file (default: Python's own manual)"},
    "--level": {"default": "bytes", "choices": ("bytes", "bpe", "words"), "help": "kind of tokens (default: bytes)"},
    "--seeds": {"type": int, "metavar": "N", "help": "number of seeds (default: 3)"},
    "--steps": {"type": int, "metavar": "N", "help": "steps of training (default: 800; 1000 at --scale paper)"},
}
CURVES = {"dense": ("control", 2), "window": ("theory", 6), "recomputed": ("third", 3.5), "4 sinks": ("measured", 1.5)}
KINDS = {"vanilla": {}, "zero sink": {"attention": "zero_sink"}, "sink token": {"sink_token": True}}


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each kind of network and policy: perplexity after two lengths, its ratio to recomputation, published ones."""
    lines = []
    for name in KINDS:
        one = ds.sel(network=name)
        largest = float(one.measured_alpha.isel(step=-1).max(["layer", "head"]).mean())
        for policy in ds.policy.values:
            mean, low, _ = (float(x) for x in mean_interval(perplexity(one, policy), "seed"))
            ratio, below, _ = (float(x) for x in mean_interval(mean_ratio(one, policy, "recomputed"), "seed"))
            line = {"network": name, "policy": str(policy), "perplexity": mean, "+-": mean - low, "over recomputed": ratio}
            line |= {"+- ratio": ratio - below, "largest weight on the first token": largest}
            lines.append(line | {f"paper, {model}": column.get(str(policy)) for model, column in published.columns(name).items()})
    return lines


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity over the position for the four curves of the paper's figures 1 and 3; lines of one value lie upon one another."""
    panels = fig.subplots(1, len(KINDS), sharey=True)
    for ax, name in zip(panels, KINDS, strict=True):
        one = ds.sel(network=name)
        x = one.place.values.reshape(-1, ds.sizes["stretch"])[0]
        for policy, (color, wide) in CURVES.items():
            y = np.exp(one.measured_loss.sel(policy=policy)).mean("seed")
            ax.plot(x, y, color=plotting.COLORS[color], linewidth=wide, label=policy)
        ax.axvline(x[0] * 2, linestyle=":", color=plotting.COLORS["control"])
        ax.set(title=name, xscale="log", xlabel="position in the text")
    panels[0].set(ylabel="perplexity, mean over seeds")


def run(scale: str, out: Path, **chosen: object) -> None:
    """Sweep, print, draw and save."""
    fields = SCALES[scale] | {k: v for k, v in chosen.items() if v is not None}
    seeds = fields.pop("seeds")
    parts = [
        experiment.sweep(out, name.replace(" ", "_"), trial, jd.grid(Language, **kind, **fields), seeds, chunk=2)
        for name, kind in KINDS.items()
    ]
    ds = xr.concat(parts, xr.DataArray(list(KINDS), dims="network", name="network"))
    experiment.table(out, "perplexity", rows(ds), f"Perplexity by policy after two lengths of training, {seeds} seeds")
    experiment.figure(out, "stream_table", lambda fig: draw(ds, fig), (9, 3.8))
    experiment.save(out, "perplexity", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
