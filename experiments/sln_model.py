"""A decoder learns shortest paths: accuracy on held-out graphs, and its embeddings of edges next to the line graph's spectrum.

Two layers and one, on all connected graphs of 3 to 6 vertices but one in five; `--scale paper` has up to 7 vertices and width 256
(the paper, arXiv 2502.08794: 3 to 10 vertices, width 512, 99% of shortest paths, correlations above 0.9). Any shortest path is
right.
An interrupted run resumes.
"""

import dataclasses
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn import experiment, plotting, train
from jaxdyn.engine.base.progress import Progress
from jaxdyn.stats import mean_interval, wilson
from jaxdyn.text import longrun
from jaxdyn.theories.sln import alignment, model_paths, published
from jaxdyn.theories.sln.model_paths import Learning, distance_correlations, each_graph

TALKS = ("training:sln-task", "training:sln-correlation")

SCALES = {
    "quick": {"steps": 2000, "problems": 600},
    "paper": {"largest": 7, "width": 256, "heads": 8, "batch": 256, "steps": 20_000, "problems": 2000, "looked": 100, "lr": 1e-3},
}
OPTIONS = {
    "--steps": {"type": int, "metavar": "N", "help": "steps of training (default: 2000; 20000 at --scale paper)"},
    "--width": {"type": int, "metavar": "N", "help": "width of the decoder (default: 64; 256 at --scale paper)"},
    "--largest": {"type": int, "metavar": "N", "help": "vertices of the largest graphs (default: 6; 7 at --scale paper)"},
    "--seed": {"type": int, "metavar": "N", "help": "seed of weights and problems (default: 0)"},
}
RECORDS = 20


def trained(out: Path, s: Learning, seed: int) -> tuple[xr.Dataset, longrun.Run]:
    """One network: what the trial records, and its losses along training."""
    keys = jax.random.split(jax.random.key(seed), 4)
    found, net = model_paths.listed(s), model_paths.network(s)
    tx, step = model_paths.training(s, net, found.trained, keys[1])
    problems = model_paths.sample_problem(s, found.held, keys[2], s.problems)
    measure = jax.jit(lambda params: model_paths.loss(net, params, problems))
    about = {f.name: getattr(s, f.name) for f in dataclasses.fields(s)} | {"seed": seed}
    with Progress(f"{s.layers} layers") as progress:
        run_ = longrun.run(
            out / f"layers{s.layers}_seed{seed}.run",
            about,
            step,
            lambda: train.init(tx, net.init(keys[0])),
            lambda state: {"loss": measure(state.params)},
            until=s.steps,
            every=s.steps // RECORDS,
            progress=progress,
        )
    with jax.enable_x64(True):
        out_ = jax.jit(lambda first, last: model_paths.observed(s, net, first, last, problems, keys[3]))(
            net.init(keys[0]), run_.state.params
        )
        values = {name: (x.dims, np.asarray(x.value)) for name, x in out_.items()}
    return xr.Dataset(values, {"metric": list(model_paths.METRICS)}), run_


def accuracy(each: dict[int, xr.Dataset]) -> list[dict]:
    """A line for each network, number of vertices and distance, with Wilson's 95% interval."""
    lines = []
    for layers, ds in each.items():
        for axis in ("vertices", "distance"):
            for value in np.unique(ds[axis]):
                right = ds.right.values[ds[axis].values == value]
                low, high = wilson(int(right.sum()), right.size)
                random = float(ds.random.values[ds[axis].values == value].mean())
                line: dict[str, Any] = {"layers": layers, "by": axis, "value": int(value), "problems": right.size}
                lines.append(line | {"solved": float(right.mean()), "low": low, "high": high, "random neighbours": random})
    return lines


def correlations(each: dict[int, xr.Dataset]) -> list[dict]:
    """A line for each network and quantity, after and before training, with its 95% interval over graphs."""
    lines = []
    for layers, ds in each.items():
        for name, label in (("embedding", "trained"), ("unlearned", "before training")):
            found, far = each_graph(ds, ds[name]), distance_correlations(ds, name)
            table = {"matched correlation": found.isel(quantity=0), "99% quantile, edges permuted": found.isel(quantity=1)}
            table |= {"above the quantile": (found.isel(quantity=0) > found.isel(quantity=1)).astype(float)}
            table |= {f"distances, {m}": far.sel(metric=m) for m in model_paths.METRICS}
            for quantity, values in table.items():
                if not values.isnull().any():
                    mean, low, high = (float(x) for x in mean_interval(values, "graph"))
                    lines.append({"layers": layers, "network": label, "quantity": quantity, "mean": mean, "low": low, "high": high})
    return [
        *lines,
        {"layers": None, "network": "paper", "quantity": "matched correlation, more than", "mean": published.CORRELATION},
    ]


def draw(each: dict[int, xr.Dataset], runs: dict[int, longrun.Run], fig: Figure) -> None:
    """Losses, accuracy by distance, correlations against their null, weights read off."""
    axes = fig.subplots(2, 2).ravel()
    for (layers, ds), color in zip(each.items(), ("measured", "control"), strict=True):
        label = f"{layers} layer" + "s" * (layers > 1)
        axes[0].plot(runs[layers].steps, runs[layers].records["loss"], color=plotting.COLORS[color], label=label)
        distances = np.unique(ds.distance)
        solved = [100 * float(ds.right.where(ds.distance == d).mean()) for d in distances]
        axes[1].plot(distances, solved, "o-", color=plotting.COLORS[color], label=label)
        found = each_graph(ds, ds.embedding)
        axes[2].plot(found.isel(quantity=1), found.isel(quantity=0), "o", ms=4, color=plotting.COLORS[color], label=label)
        axes[3].plot(*weights(ds), "o", ms=3, color=plotting.COLORS[color], label=label)
    first = next(iter(each.values()))
    random = [100 * float(first.random.where(first.distance == d).mean()) for d in np.unique(first.distance)]
    axes[1].plot(np.unique(first.distance), random, "--", color=plotting.COLORS["theory"], label="random neighbours")
    axes[2].plot([0.4, 1], [0.4, 1], "--", color=plotting.COLORS["theory"])
    axes[0].set(xlabel="step", ylabel="loss on held-out graphs, nats per token")
    axes[1].set(xlabel="distance", ylabel="solved on held-out graphs, %", ylim=(0, 102), xticks=np.unique(first.distance))
    axes[2].set(xlabel="99% quantile, edges permuted", ylabel="matched correlation", xlim=(0.4, 1), ylim=(0.2, 1))
    axes[3].set(xlabel=r"eigenvalue $\lambda$", ylabel="weight, of the sum")
    for ax in axes:
        ax.legend()


def weights(ds: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of all graphs, and the fitted weight of each over the graph's sum."""
    values, shares = [], []
    for g in range(ds.sizes["graph"]):
        one = ds.isel(graph=g)
        m = int(one["real"].sum())
        w = alignment.weights(one.embedding.values[:m].astype(float), one.vectors.values[:m, 1:m])
        values.append(one["values"].values[1:m])
        shares.append(w / w.sum())
    return np.concatenate(values), np.concatenate(shares)


def run(scale: str, out: Path, seed: int | None = None, **chosen: int | None) -> None:
    """Train, print, draw and save."""
    fields = SCALES[scale] | {k: v for k, v in chosen.items() if v is not None}
    found = {layers: trained(out, Learning(layers=layers, **fields), seed or 0) for layers in (2, 1)}
    each, runs = ({layers: pair[i] for layers, pair in found.items()} for i in (0, 1))
    experiment.table(out, "accuracy", accuracy(each), "Problems on held-out graphs solved")
    experiment.table(out, "embeddings", correlations(each), "Embeddings of edges next to the line graph's spectrum")
    experiment.figure(out, "sln_model", lambda fig: draw(each, runs, fig), (10, 8))
    for layers, ds in each.items():
        experiment.save(out, f"layers{layers}", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
