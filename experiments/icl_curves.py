r"""In-context linear regression: the loss through its plateaus, and errors on prompts of other lengths and laws.

Left: loss of linear attention with separate keys and queries from a small start along gradient flow and along SGD, with the levels
of the theory; with merged keys and queries there is one drop. Right: mean squared error of layers trained by SGD on prompts of 20
examples, by the number of examples shown, on prompts of four laws. Papers: arXiv 2501.16265, 2306.09927.
"""

import sys
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.icl import plateaus, sgd

SEEDS = {"quick": 3, "paper": 16}
NETWORK = {"start": "heads", "size": 0.05, "ratio": 0.5, "lr": 0.01, "span": 6.0}
SIZES = {"length": 50, "records": 50}
NAMES = {"training": "law of training", "inputs": "variances in reverse order", "tasks": "other tasks", "noise": "noise on labels"}


def rests(ds: xr.Dataset) -> list[dict]:
    """A line for each plateau: the theory's loss and those of the flows."""
    part = ds.sel(kind="separate")
    return [
        {
            "learned": m,
            "theory": float(part.predicted_level.isel(seed=0, learned=m)),
            "flow, mean": float(part.measured_level.isel(learned=m).mean()),
            "flow, farthest": float(abs(part.measured_level / part.predicted_level - 1).isel(learned=m).max()),
            "rests at t": float(part.rested.isel(learned=m).median()),
        }
        for m in range(ds.sizes["learned"])
    ]


def errors(ds: xr.Dataset) -> list[dict]:
    """A line for each law and length: errors of trained layers and of the theory."""
    lines = []
    for law in ds.law.values:
        for shown in ds.shown.values:
            part = ds.sel(law=law, shown=shown)
            line = {"law": str(law), "examples": int(shown), "SGD, mean": float(part.measured_risk.mean())}
            spread = float(part.measured_risk.std(ddof=1) / part.sizes["seed"] ** 0.5) if part.sizes["seed"] > 1 else None
            lines.append(line | {"standard error": spread, "theory": float(part.predicted_risk.isel(seed=0))})
    return lines


def draw(flows: xr.Dataset, network: xr.Dataset, tests: xr.Dataset, fig: Figure) -> None:
    """Losses over the levels, and errors by length."""
    left, right = fig.subplots(1, 2)
    time = flows.time.values[1:]
    for keys, color, label in (("separate", "measured", "flow, separate keys and queries"), ("merged", "control", "flow, merged")):
        lines = left.semilogx(
            time, flows.loss.sel(kind=keys).isel(time=slice(1, None)).T, color=plotting.COLORS[color], linewidth=1.2
        )
        lines[0].set_label(label)
    late = network.isel(record=slice(1, None))
    lines = left.plot(late.t.isel(seed=0), late.loss.T, "o", color=plotting.COLORS["third"], markersize=3)
    lines[0].set_label("SGD, separate")
    for level in flows.predicted_level.isel(seed=0, kind=0).values:
        left.axhline(level, linestyle="--", color=plotting.COLORS["theory"], linewidth=1)
    left.plot([], [], "--", color=plotting.COLORS["theory"], label=r"levels $L_m$")
    left.set(xlabel="t", ylabel="loss")
    for law, color in zip(tests.law.values, ("measured", "failed", "third", "fourth"), strict=True):
        part = tests.sel(law=law)
        right.plot(part.shown, part.predicted_risk.isel(seed=0), color=plotting.COLORS[color], label=NAMES[str(law)])
        right.plot(
            part.shown, part.measured_risk.transpose("shown", "seed"), "o", color=plotting.COLORS[color], markersize=3, alpha=0.6
        )
    right.plot([], [], "o", color="black", markersize=3, label="trained by SGD")
    right.plot([], [], color="black", label="theory")
    right.set(xlabel="examples shown", ylabel="mean squared error", xscale="log", yscale="log", ylim=(0.15, None))


def run(scale: str, out: Path) -> None:
    """Solve, train, print, draw and save."""
    seeds = SEEDS[scale]
    grids = {keys: jd.grid(plateaus.Plateaus, keys=keys) for keys in ("separate", "merged")}  # xarray allows no axis called keys
    kinds = [experiment.sweep(out, f"flows_{keys}", plateaus.trial, grid, seeds) for keys, grid in grids.items()]
    flows = xr.concat(kinds, xr.Variable("kind", list(grids)), combine_attrs="override")
    network = experiment.sweep(out, "network", sgd.trial, jd.grid(sgd.Sgd, **NETWORK, **SIZES), seeds)
    tests = experiment.sweep(out, "tests", sgd.trial, jd.grid(sgd.Sgd, lr=0.005, span=0.75), 2 * seeds)
    experiment.table(out, "plateaus", rests(flows), "Losses on the plateaus, eigenvalues 2, 1, 0.5, 50 examples")
    experiment.table(out, "errors", errors(tests), "Mean squared error on new prompts, trained on 20 examples, step size 0.005")
    experiment.figure(out, "icl_curves", lambda fig: draw(flows, network, tests, fig), (11.0, 4.2))
    experiment.save(out, "tests", tests)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
