"""Mean |cos| of embeddings, streams and what MLPs write, along training and over widths, next to random directions and Pythia."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.orth.dynamics import directions
from jaxdyn.theories.orth.model import LEVEL
from jaxdyn.theories.orth.published import PYTHIA
from jaxdyn.theories.orth.trained import Watched, excess, trial

WIDE = jd.grid(
    Watched, width=[64, 128, 256, 512, 1024], vectors=64, layers=4, max_words=0, columns=20, length=35, steps=12_000, every=500
)
SCALES = {  # grid, networks, seeds
    "quick": (jd.grid(Watched, width=[64, 128, 256, 512], vectors=64, steps=150, every=25), ["encoder"], 2),
    "paper": (WIDE, ["encoder", "rotary"], 8),
}


def formula(d: float) -> float:
    """Mean |cos| of random directions."""
    return float(directions.mean_absolute_cosine(float(d)))


def rows(ds: xr.Dataset) -> list[dict]:
    """One line for each width and group of vectors: start, largest and end, means over seeds."""
    lines = []
    for width in ds.width.values:
        at = ds.sel(width=width)
        for group in ds.group.values:
            cosine, ratio = (x.sel(group=group).mean("seed") for x in (at.measured_cosine, excess(at)))
            end = at.sel(group=group).isel(step=-1).mean("seed")
            line = {"d": int(width), "vectors": str(group), "random": round(formula(width), 4)}
            line |= {"start": float(cosine[0]), "largest": float(cosine.max()), "end": float(cosine[-1])}
            line |= {"largest / random": float(ratio.max()), "end / random": float(ratio[-1])}
            line |= {"rms, end x sqrt(d)": float(end.rms * width**0.5)}
            line |= {"99%, end": float(end.high), "99%, random": directions.cosine_quantile(width, LEVEL)}
            lines.append(line | {"largest eigenvalue / trace, end": float(end.top)})
    return lines


def published() -> list[dict]:
    """The ranges of the published figure's axes next to random directions of the same width."""
    lines = []
    for name, (layers, d, low, high) in PYTHIA.items():
        random = formula(d)
        line = {"model": name, "layers": layers, "d": d, "random": round(random, 4)}
        line |= {"sqrt(2/(pi d))": directions.approximate_mean(d), "paper least": low, "paper largest": high}
        lines.append(line | {"least / random": low / random, "largest / random": high / random})
    return lines


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """A panel for each width along training, and one over widths with Pythia's ranges."""
    count = ds.sizes["width"] + 1
    *panels, last = (fig.add_subplot(2, -(-count // 2), i + 1) for i in range(count))
    colors = ("measured", "third", "fourth", "fifth", "failed")
    for ax, width in zip(panels, ds.width.values, strict=True):
        at = ds.measured_cosine.sel(width=width)
        for kind, color in zip(("embedding", "written", "centred", "input"), colors, strict=False):
            for i, group in enumerate(g for g in ds.group.values if g.startswith(kind)):
                runs = at.sel(group=group).transpose(..., "step")
                style = ("-", "--", "-.", ":", (0, (1, 3)))[i % 5]
                plotting.band(ax, ds.step, runs, str(group) if ax is panels[0] else "", color, linestyle=style)
        ax.axhline(formula(width), color=plotting.COLORS["theory"], label="random directions" if ax is panels[0] else None)
        ax.set(xlabel="step", ylabel="mean |cos|", yscale="log", title=f"d = {width}")
    for name, (_, d, low, high) in PYTHIA.items():
        shift = d * {"1B": 0.95, "1.4B": 1.05}.get(name, 1.0)
        last.plot(
            [shift, shift], [low, high], color=plotting.COLORS["control"], label="Pythia, axis ranges" if name == "70M" else None
        )
    for kind, color in (("embedding", "measured"), ("written", "third"), ("centred", "fourth")):
        at = ds.measured_cosine.isel(step=-1).sel(group=[g for g in ds.group.values if g.startswith(kind)])
        last.plot(ds.width, at.mean(["seed", "group"]), "o", color=plotting.COLORS[color], label=f"{kind}, end")
    d = np.geomspace(64, 2560, 50)
    last.plot(d, [formula(x) for x in d], color=plotting.COLORS["theory"])
    last.set(xscale="log", yscale="log", xlabel="width d", ylabel="mean |cos|")


def run(scale: str, out: Path) -> None:
    """Train over widths, print both tables, draw, save."""
    base, networks, seeds = SCALES[scale]
    for network in networks:
        grid = base.replace(network=network)
        ds = experiment.sweep(out, f"{network}_{scale}", trial, grid, seeds, chunk=1).sel(form="all")
        title = f"{network}, text {grid.base.text}: cosines between vectors of different words, mean over {seeds} seeds"
        experiment.table(out, f"{network}_{scale}", rows(ds), title)
        experiment.figure(out, f"{network}_{scale}", lambda fig, ds=ds: draw(ds, fig), (13.0, 6.5))
        experiment.save(out, f"{network}_{scale}", ds)
    experiment.table(out, "pythia", published(), "Pythia, as published: least and largest value on the axis, not exact extremes")


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
