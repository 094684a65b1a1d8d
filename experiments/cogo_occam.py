"""CoGO: Occam's razor. Loss and norm along the path from y * z' to z', and pruning under weight decay.

The path for a solution with six nodes a pair of frequencies and for the memorising one, the straight line, and the path where z'
is a solution through cancellation; then gradient descent from y * z' with 24 nodes, with and without decay, and from the saddle at
which both nodes of y are equal. Paper: arXiv 2410.01779, which gives no numbers; the columns "check" hold those of an independent
computation.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.cogo.flow import occam
from jaxdyn.theories.cogo.flow.occam import loss_along

ROUTES = {"path": {}, "straight line": {"route": "straight"}, "path, z' by cancellation": {"base": "cancelling"}}
TRAINED = {
    "decay 1e-3": {"decay": 1e-3},
    "no decay": {"decay": 0.0},
    "saddle, no noise": {"second": 1.0, "noise": 0.0, "lr": 0.1},
    "saddle, noise 1e-3": {"second": 1.0, "lr": 0.1},
    "saddle, noise 1e-3, rate 0.5": {"second": 1.0},
}
CHECK = {"decay 1e-3": (12, 21.47, 4e-4), "no decay": (24, 27.147, None), "saddle, no noise": (24, None, None)}
SEEDS = {"quick": 8, "paper": 64}
STEPS = {"quick": 20_000, "paper": 60_000}


def squeezed(ds: xr.Dataset) -> xr.Dataset:
    """Without the axes of the grid, which have one value each."""
    return ds.squeeze([dim for dim in ds.status.dims if dim != "seed"], drop=True)


def path_rows(runs: dict[str, xr.Dataset]) -> list[dict]:
    """Largest loss and norms at both ends, a line for each route and solution."""
    rows = []
    for name, ds in runs.items():
        loss = loss_along(ds)
        for solution in ds.solution.values:
            if "cancellation" in name and solution != ds.solution.values[0]:
                continue  # the memorising solution is the same there
            one = ds.norms.sel(solution=solution).median("seed")
            row = {"route": name, "z'": str(solution), "largest loss, median": float(loss.sel(solution=solution).max("t").median())}
            row["largest loss"] = float(loss.sel(solution=solution).max())
            rows.append(row | {"norm squared of y * z'": float(one[0]), "of z'": float(one[-1])})
    return rows


def train_rows(runs: dict[str, xr.Dataset]) -> list[dict]:
    """Live nodes, norm squared and loss after training, and at the equilibrium of z' with the decay."""
    rows = []
    for name, ds in runs.items():
        nodes, energy, loss = CHECK.get(name, (None, None, None))
        row = {
            "start": name,
            "live nodes": f"{int(ds.measured_nodes.min())} to {int(ds.measured_nodes.max())}",
            "check: nodes": nodes,
        }
        row |= {"norm squared": float(ds.measured_energy.mean()), "check: norm squared": energy}
        row |= {"at equilibrium": float(ds.predicted_energy.mean()), "of z'": float(ds.whole.mean())}
        row |= {"loss": float(ds.measured_loss.mean()), "loss at equilibrium": float(ds.predicted_loss.mean()), "check: loss": loss}
        rows.append(row)
    return rows


def draw_path(runs: dict[str, xr.Dataset], fig: Figure) -> None:
    """Loss and norm along the routes."""
    left, right = fig.subplots(1, 2)
    whole = runs["path"].isel(solution=0)
    for (name, ds), color in zip(runs.items(), ("measured", "control", "fourth"), strict=True):
        one = ds.isel(solution=0)
        plotting.band(left, one.t, loss_along(one).clip(1e-34), name, color)
        plotting.band(right, one.t, one.norms / whole.norms.isel(t=-1), name, color)
    plotting.band(left, whole.t, loss_along(runs["path"].isel(solution=1)).clip(1e-34), "path, memorising z'", "third")
    left.set(yscale="log", xlabel="place on the path (three legs)", ylabel="loss")
    right.set(yscale="log", xlabel="place on the path (three legs)", ylabel="norm squared over that of z'")
    left.legend(loc="center")


def draw_training(runs: dict[str, xr.Dataset], fig: Figure) -> None:
    """Live nodes, norm squared and loss over steps for each start."""
    panels = fig.subplots(1, 3)
    for (name, ds), color in zip(runs.items(), ("measured", "control", "third", "fourth", "fifth"), strict=True):
        alive = (ds.sizes_of_nodes > occam.LIVE * ds.sizes_of_nodes.max("node")).sum("node")
        for ax, values in zip(panels, (alive, ds.energies, ds.losses.clip(1e-12)), strict=True):
            plotting.band(ax, ds.step, values, name, color)
    ends = runs["decay 1e-3"]
    for ax, level in zip(panels[1:], (ends.predicted_energy, ends.predicted_loss), strict=True):
        ax.axhline(float(level.mean()), color=plotting.COLORS["theory"], linestyle="--", label="equilibrium of z'")
    panels[0].set(xlabel="step", ylabel="live nodes", ylim=(0, 26))
    panels[1].set(xlabel="step", ylabel="norm squared")
    panels[2].set(xlabel="step", ylabel="loss", yscale="log")
    for ax in panels:
        ax.set_xticks(np.linspace(0, float(ends.step[-1]), 3))
        ax.legend().set_visible(False)
    panels[0].legend(*panels[1].get_legend_handles_labels(), loc="lower left")


def run(scale: str, out: Path) -> None:
    """Both studies, their tables, figures and data."""
    seeds = SEEDS[scale]
    paths = {
        name: squeezed(experiment.sweep(out, f"path{i}", occam.path_trial, jd.grid(occam.Factored, **fields), seeds))
        for i, (name, fields) in enumerate(ROUTES.items())
    }
    trained = {
        name: squeezed(
            experiment.sweep(out, f"training{i}", occam.prune_trial, jd.grid(occam.Pruned, steps=STEPS[scale], **fields), seeds)
        )
        for i, (name, fields) in enumerate(TRAINED.items())
    }
    experiment.table(out, "path", path_rows(paths), f"Loss on the way from y * z' to z', d = 5, {seeds} random y with 3 nodes")
    experiment.table(out, "training", train_rows(trained), f"After {STEPS[scale]} steps from y * z', d = 5, {seeds} starts")
    experiment.figure(out, "cogo_occam_path", lambda fig: draw_path(paths, fig), (9.0, 3.6))
    experiment.figure(out, "cogo_occam_training", lambda fig: draw_training(trained, fig), (11.0, 3.6))
    for name, runs in (("path", paths), ("training", trained)):
        whole = xr.concat(list(runs.values()), "route", coords="minimal", compat="override").assign_coords(route=list(runs))
        experiment.save(out, f"cogo_occam_{name}", whole)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
