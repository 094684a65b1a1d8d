"""CoGO's sweep of training runs: group order x hidden nodes x weight decay x seeds, 300 runs at paper scale.

Every run is stored by itself, next to the output folder in ``cogo_runs``: stopped at any moment, the same command resumes with the
run that was being trained, and cogo_table2, cogo_fig4, cogo_fig5 and cogo_carriers load the runs they need from there.
Choose a part with ``--groups 23,71 --hidden 256,512``. Paper: arXiv 2410.01779, section 6.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import experiment
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import classify, training

GROUPS = {"quick": ("23",), "paper": ("23", "71", "127")}
HIDDEN = {"quick": (256, 512), "paper": (256, 512, 1024, 2048)}
DECAYS = (1e-5, 5e-5, 1e-4, 2e-4, 5e-4)
SEEDS = (1, 2, 3, 4, 5)
LR = 0.01
OPTIONS = {
    "--groups": {"default": "", "metavar": "D,D", "help": "groups (default: 23; 23,71,127 at --scale paper)"},
    "--hidden": {"default": "", "metavar": "Q,Q", "help": "hidden nodes (default: 256,512; up to 2048 at --scale paper)"},
}


def networks(
    out: Path, group: str, hidden: int = 512, lrs: Sequence[float] = (LR,), decays: Sequence[float] = DECAYS
) -> xr.Dataset:
    """Trained networks of one size, with records along training: dims lr, decay, seed and those of the weights."""
    device = jax.default_backend() != "cpu"
    grid = jd.grid(training.Training, group=group, hidden=hidden, lr=list(lrs), decay=list(decays), shrink=not device)
    return experiment.sweep(
        out.parent, "cogo_runs", training.trial, grid, SEEDS, chunk=len(lrs) * len(decays) * len(SEEDS) if device else 1
    )


def classes(ds: xr.Dataset, group: str) -> xr.Dataset:
    """Orders and constructions of every network, one value for each pair of frequencies; names as in :mod:`classify`."""
    runs = ds.measured_w.stack(run=("lr", "decay", "seed")).transpose("run", "layer", "element", "node")
    with jax.enable_x64(True):
        classified = jax.jit(lambda w: jax.lax.map(lambda x: classify.classify(x, parse(group)), w))(
            jnp.asarray(runs.values, jnp.float64)
        )
        classified = jax.device_get(classified)
    flat = {name: value for name, value in classified._asdict().items() if name not in ("first", "second")}
    for part in ("first", "second"):
        flat |= {f"{part}_{name}": value for name, value in getattr(classified, part)._asdict().items()}
    shaped = {name: (("run", "frequency"), np.asarray(value)) for name, value in flat.items()}
    return xr.Dataset(shaped, coords={"run": runs.run}).unstack("run")


def shares(classified: xr.Dataset) -> xr.Dataset:
    """Percentages of a network's frequencies: by order, those that do not factorise, and the columns of the published table."""
    four, six = (classified.order == n for n in (4, 6))
    parts = {"order 4": four, "order 6": six, "other orders": ~four & ~six}
    ds = xr.Dataset({name: 100 * x.mean("frequency") for name, x in parts.items()})
    for n, x in ((4, four), (6, six)):
        ds[f"o{n} not factorable"] = 100 * (~classified.factorable).where(x).mean("frequency")
        ds[f"err o{n} (1e-2)"] = 100 * classified.err.where(x & classified.factorable).mean("frequency")
    counted = classified.column.where(classified.column >= 0)
    for i, name in enumerate(classify.COLUMNS):
        ds[name] = 100 * (counted == i).where(counted.notnull()).mean("frequency")
    return ds


def rows(ds: xr.Dataset, classified: xr.Dataset, place: dict) -> list[dict]:
    """One line per cell: means over seeds."""
    mean = shares(classified).mean("seed")
    lines = []
    for lr in ds.lr.values:
        for decay in ds.decay.values:
            end, one = ds.sel(lr=lr, decay=decay).isel(epoch=-1), mean.sel(lr=lr, decay=decay)
            numbers = {"train loss": float(end.train_loss.median()), "test loss": float(end.test_loss.median())}
            numbers |= {"test accuracy": float(end.test_accuracy.min()), "nodes alive": float(end.nodes.mean())}
            shown = ("order 4", "order 6", "other orders", *classify.COLUMNS)
            lines.append(place | {"rate": float(lr), "decay": float(decay)} | numbers | {name: float(one[name]) for name in shown})
    return lines


def run(scale: str, out: Path, groups: str = "", hidden: str = "") -> None:
    """Train the missing networks, smallest first, and print the table of all cells after each size."""
    chosen = [x for x in groups.split(",") if x]
    widths = [int(x) if x.isdigit() else 0 for x in hidden.split(",") if x]
    lines: list[dict] = []
    for group in chosen or GROUPS[scale]:
        for q in widths or HIDDEN[scale]:
            ds = networks(out, group, q)
            lines += rows(ds, classes(ds, group), {"d": parse(group).order, "q": q})
            experiment.table(
                out, "cells", lines, f"Percentages of frequencies (of the factorable ones in the last four), {len(SEEDS)} seeds"
            )


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
