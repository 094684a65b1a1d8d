"""GaLore, ablation: perplexity against the period T, the rank r and the factor alpha, all three crossed in one sweep.

A decoder on the bytes of Python's own manual, GaLore-Adam at one rate, so that alpha is the rate of the projected matrices relative
to that of embeddings and norms. `--text DIR --level bpe` as for galore_ppl. Paper: arXiv 2403.03507, section 5.5.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.stats import mean_interval
from jaxdyn.theories.galore.text.trial import Pretraining, trial

TALKS = ("practical:galore-period",)

SCALES = {
    "quick": {"every": [0.0, 50.0, 10.0], "rank": [2.0, 8.0], "alpha": [0.25, 1.0]},
    "paper": {
        **{"width": 64, "hidden": 172, "most": 16, "batch": 16, "steps": 800, "records": 8, "windows": 32},
        **{"every": [0.0, 400.0, 200.0, 50.0, 10.0, 2.0], "rank": [1.0, 2.0, 4.0, 8.0, 16.0], "alpha": [1 / 16, 0.25, 1.0]},
    },
}
OPTIONS = {
    "--text": {"default": "topics", "metavar": "PATH", "help": "a WikiText folder or a plain file (default: Python's own manual)"},
    "--level": {"default": "bytes", "choices": ("bytes", "bpe", "words"), "help": "kind of tokens (default: bytes)"},
}


def period(t: float) -> str:
    """A period in words."""
    return "never" if t == 0 else f"{t:g}"


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each cell: mean perplexity with half of its 95% interval."""
    mean, low, _ = mean_interval(ds.measured_perplexity, "seed")
    cells = [{"alpha": a, "rank": r, "every": t} for a in ds.alpha.values for r in ds["rank"].values for t in ds.every.values]
    values = [(float(mean.sel(cell)), float((mean - low).sel(cell))) for cell in cells]
    return [
        {"alpha": f"{c['alpha']:g}", "rank": f"{c['rank']:g}", "T": period(c["every"]), "perplexity": m, "+-": h}
        for c, (m, h) in zip(cells, values, strict=True)
    ]


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity over periods, a line for each rank, a panel for each alpha."""
    place = np.arange(ds.sizes["every"])
    panels = np.atleast_1d(fig.subplots(1, ds.sizes["alpha"], sharey=True))
    for ax, alpha in zip(panels, ds.alpha.values, strict=True):
        for i, rank in enumerate(ds["rank"].values):
            mean, low, _ = mean_interval(ds.measured_perplexity.sel(alpha=alpha, rank=rank), "seed")
            color = plotting.RAMP(i / max(1, ds.sizes["rank"] - 1))
            ax.errorbar(place + 0.04 * i, mean, yerr=mean - low, marker="o", ms=4, capsize=3, color=color, label=f"rank {rank:g}")
        ax.set_xticks(place, [period(t) for t in ds.every.values])
        ax.set(title=rf"$\alpha$ = {alpha:g}", xlabel="steps between two bases, T")
    panels[0].set_ylabel("test perplexity")


def run(scale: str, out: Path, **chosen: object) -> None:
    """Sweep, print, draw and save."""
    grid = jd.grid(Pretraining, optimizer="galore", **SCALES[scale], **chosen)
    ds = experiment.sweep(out, "runs", trial, grid, 3, chunk=16)
    experiment.table(out, "ablation", rows(ds), "Test perplexity of GaLore-Adam, 3 seeds, half of the 95% interval")
    experiment.figure(out, "galore_ablation", lambda fig: draw(ds, fig), (4.2 * ds.sizes["alpha"], 3.8))
    experiment.save(out, "ablation", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
