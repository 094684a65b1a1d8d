"""JoMA, Table 1: do hidden nodes follow latent variables? Every published cell next to ours, trained, untrained and permuted.

Quick: width 128, 150 steps at rate 1e-4, the 6 configurations whose sets have two members, 5 seeds. Paper scale: all 12, width
1024, 10 000 steps at rates 1e-5 and 1e-4, 5 seeds; a stopped study resumes with the first run that is not done.
Paper: arXiv 2310.00535.
"""

import sys
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.stats import mean_interval
from jaxdyn.theories.joma import published
from jaxdyn.theories.joma.experiments.table1.claims import gain
from jaxdyn.theories.joma.experiments.table1.trial import FULL, Table1, trial

TALKS = ("training:joma-table-1",)

SEEDS = 5
LATENTS = [(10, 20), (20, 30)]
GRIDS = {
    "quick": jd.grid(Table1, classes=[20, 30, 50], latents=LATENTS, members=[2], lr=[1e-4]),
    "paper": FULL.replace(classes=[20, 30, 50], latents=LATENTS, members=[2, 3], lr=[1e-4, 1e-5]),
}


def spread(values: xr.DataArray) -> str:
    """Mean and standard deviation over seeds."""
    return f"{float(values.mean()):.3f} ± {float(values.std(ddof=1)):.3f}"


def ends(values: xr.DataArray) -> str:
    """Mean over seeds and half the width of its 95% interval."""
    mean, low, high = (float(x) for x in mean_interval(values, "seed"))
    return f"{mean:+.3f} ± {(high - low) / 2:.3f}"


def line(one: xr.Dataset, reported: tuple[float, float]) -> dict[str, str]:
    """Scores of one configuration and layer."""
    end = one.isel(record=-1)
    mean, deviation = reported
    return {
        "paper": f"{mean:.2f} ± {deviation:.2f}",
        "trained": spread(end.score),
        "untrained": spread(one.score.isel(record=0)),
        "permuted": spread(end.permuted),
        "one class": spread(end.one_class),
        "trained - untrained": ends(gain(one)),
        "the same, permuted": ends(gain(one, "permuted")),
        "difference": ends(gain(one) - gain(one, "permuted")),
        "within 3 sd": "yes" if abs(float(end.score.mean()) - mean) <= 3 * max(deviation, 0.01) else "no",
        "loss": f"{float(end.loss.mean()):.3g}",
    }


def rows(ds: xr.Dataset) -> list[dict]:
    """One line per configuration, layer and rate."""
    lines = []
    for (classes, members, latents), reported in published.TABLE1.items():
        if members not in ds.members:
            continue
        part = ds.sel(classes=classes, members=members, latents=":".join(map(str, latents)))
        for layer in (1, 0):
            for lr in ds.lr.values:
                name = {"C,k": f"{classes},{members}", "(N0,N1)": str(latents), "s": layer, "rate": f"{lr:g}"}
                lines.append(name | line(part.sel(lr=lr, layer=layer), reported[layer]))
    return lines


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Scores along training at s = 1, a panel for every number of classes; all other axes are runs."""
    first = ds.isel(lr=0, members=0)
    for ax, classes in zip(fig.subplots(1, ds.sizes["classes"], sharey=True), ds.classes.values, strict=True):
        part = first.sel(classes=classes, layer=1, latents="10:20")
        steps = part.step.isel(seed=0).values
        for name, label, color in (
            ("score", "latents", "measured"),
            ("permuted", "latents permuted", "control"),
            ("one_class", "one node per class", "third"),
        ):
            plotting.band(ax, steps, part[name].transpose(..., "record"), label, color)
        reported = published.TABLE1[int(classes), int(ds.members[0]), (10, 20)][1][0]
        ax.axhline(reported, linestyle="--", color=plotting.COLORS["theory"], label="paper, trained")
        ax.set(xlabel="step", ylabel="score at s = 1", title=f"{classes} classes")


def run(scale: str, out: Path) -> None:
    """Train, print, draw, save."""
    ds = experiment.sweep(out, f"table1_{scale}", trial, GRIDS[scale], SEEDS, chunk=1)
    title = "Best node's correlation, mean over latents; mean and standard deviation over seeds; gains: 95% intervals"
    experiment.table(out, f"joma_table1_{scale}", rows(ds), title)
    experiment.figure(out, f"joma_table1_{scale}", lambda fig: draw(ds, fig), (10.0, 3.4))
    experiment.save(out, f"joma_table1_{scale}", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
