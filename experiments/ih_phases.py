r"""Statistical induction heads: loss and divergences from three predictors along training, and attention at the end.

Networks of two layers of attention on Markov chains whose transition matrix differs from sequence to sequence. Left: loss, with
those of the predictors by counts. Then: divergences of the predictions, for two layers and for one. Right: attention of both
layers on one sequence of 3 states (rows: queries); dots: tokens that come right after one equal to the query's.
Paper: arXiv 2402.11004.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.ih.phases import Phases, end, excess, trial

SEEDS = {"quick": 4, "paper": 16}
SCALES = {"quick": {}, "paper": {"lr": 3e-3, "length": 100, "batch": 64, "every": 50, "samples": 120}}
SHOWN = 24  # tokens of the attention maps


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each depth: losses, what is left of the gap, and attention, means over runs."""
    names = {"divergence from tokens": "measured_from_unigram", "from pairs": "measured_from_bigram"}
    names |= {"layer 1, token before": "measured_before", "layer 2, after equal tokens": "measured_induced"}
    lines = []
    for first, layers in ((1.0, 2), (0.0, 1)):
        part = ds.sel(first=first)
        line = {"layers": layers, "loss": float(end(part, "measured_loss").mean())}
        line |= {"by tokens": float(part.unigram_loss.mean()), "by pairs": float(part.bigram_loss.mean())}
        lines.append(line | {"gap left": float(excess(part).mean())} | {k: float(end(part, v).mean()) for k, v in names.items()})
    return lines


def divergences(ds: xr.Dataset, title: str, ax: object) -> None:
    """Divergences from three predictors along training."""
    steps = ds.steps.values[0] + 1
    for name, label, color in (
        ("from_uniform", "uniform", "control"),
        ("measured_from_unigram", "counts of tokens", "third"),
        ("measured_from_bigram", "counts of pairs", "theory"),
    ):
        plotting.band(ax, steps, ds[name].transpose(..., "step"), label, color)
    ax.set(xlabel="step + 1", ylabel="divergence of predictions from", xscale="log", yscale="log", title=title)


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Loss, divergences, and attention maps."""
    loss, two, one, map1, map2 = fig.subplots(1, 5)
    full = ds.sel(first=1.0)
    steps = full.steps.values[0] + 1
    lines = loss.semilogx(steps, full.measured_loss.transpose("step", "seed"), color=plotting.COLORS["measured"], linewidth=1)
    lines[0].set_label("two layers")
    lines = loss.semilogx(
        steps, ds.sel(first=0.0).measured_loss.transpose("step", "seed"), color=plotting.COLORS["control"], linewidth=1
    )
    lines[0].set_label("one layer")
    for name, label, color in (("unigram_loss", "counts of tokens", "third"), ("bigram_loss", "counts of pairs", "theory")):
        loss.axhline(float(full[name].mean()), linestyle="--", color=plotting.COLORS[color], label=label)
    loss.set(xlabel="step + 1", ylabel="loss", ylim=(0.85, 1.2))
    divergences(full, "two layers", two)
    divergences(ds.sel(first=0.0), "one layer", one)
    best = full.isel(seed=int(np.argmax(end(full, "measured_before").values)))
    text = best.text.values[:SHOWN].astype(int)
    for layer, ax in ((0, map1), (1, map2)):
        ax.imshow(best.pattern.isel(layer=layer).values[:SHOWN, :SHOWN], cmap="magma_r", vmin=0, vmax=1, interpolation="nearest")
        ax.set(title=f"layer {layer + 1}", xlabel="key", ylabel="query", xticks=range(SHOWN), yticks=range(SHOWN))
        ax.set_xticklabels(text, fontsize=5)
        ax.set_yticklabels(text, fontsize=5)
        ax.grid(visible=False)
    after = (text[:, None] == np.roll(text, 1)[None]) & (np.arange(SHOWN) >= 1) & np.tri(SHOWN, dtype=bool)
    map2.plot(*np.nonzero(after.T), ".", color=plotting.COLORS["theory"], markersize=2)


def run(scale: str, out: Path) -> None:
    """Train, print, draw and save."""
    ds = experiment.sweep(out, "runs", trial, jd.grid(Phases, first=[1.0, 0.0], **SCALES[scale]), SEEDS[scale])
    experiment.table(out, "phases", rows(ds), f"Networks at the end of training, {SEEDS[scale]} seeds")
    experiment.figure(out, "ih_phases", lambda fig: draw(ds, fig), (17.0, 3.8))
    experiment.save(out, "runs", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
