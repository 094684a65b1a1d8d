"""Scan & Snap, Figure 5: sparsity of attention on Syn-Small under SGD with two learning rates of the decoder, and under Adam.

Also SGD without momentum, which the paper's text seems to describe. Paper: arXiv 2305.16380, which shows pictures; reference
numbers: an independent run in NumPy with 5 seeds.
"""

import sys
from pathlib import Path

import xarray as xr

import jaxdyn as jd
from jaxdyn import experiment, stats
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.synthetic import fig5_not_wta
from jaxdyn.theories.snap.synthetic.syn import Syn, small_trial

SEEDS = {"quick": 10, "paper": 100}


def rows(ds: xr.Dataset) -> list[dict]:
    """Every quantity of every run at the start and at the end, next to the reference."""
    first = ds.curve.isel(optimizer=0, momentum=0, ratio=0)
    blocks = [row("start", first.isel(record=0), published.START)]
    blocks += [row(reference.name, part.measured_numbers, reference.numbers) for reference, part in fig5_not_wta.rows_of(ds)]
    return [line for block in blocks for line in block]


def row(name: str, values: xr.DataArray, reference: tuple[float, ...]) -> list[dict]:
    """One line per quantity: mean over seeds, half of its 95% interval, the reference, and the difference."""
    mean, low, high = stats.mean_interval(values, "seed")
    return [
        {
            "run": name,
            "quantity": quantity,
            "mean": float(mean.sel(quantity=quantity)),
            "+-": float((high - low).sel(quantity=quantity) / 2),
            "reference": number,
            "difference": float(mean.sel(quantity=quantity)) - number,
        }
        for quantity, number in zip(published.QUANTITIES, reference, strict=True)
    ]


def run(scale: str, out: Path) -> None:
    """Train with every optimizer, print the table, draw the curves, and save the data."""
    grid = jd.grid(Syn, optimizer=["sgd", "adam"], momentum=[0.9, 0.0], ratio=[1.0, 10.0])
    ds = experiment.sweep(out, "runs", small_trial, grid, SEEDS[scale])
    experiment.table(out, "numbers", rows(ds), f"Attention after 100 steps, {ds.sizes['seed']} seeds")
    experiment.figure(out, "snap_fig5", lambda fig: fig5_not_wta.plot_fig5(ds, fig), (9.0, 3.8))
    experiment.save(out, "snap_fig5", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
