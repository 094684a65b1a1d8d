r"""Max-margin token selection: directions of normalised gradient descent next to those of support vector machines.

Left: in two dimensions, the path of p among the tokens (circles: optimal ones), with the direction of the largest margin and the
attention at the end. Middle: 1 - cosine against the norm in six dimensions, for vectors p and matrices W, with runs in which an
optimal token is not picked. Right: the same for W = K Q^T, factors trained apart, with the solutions of least nuclear norm and of
least Frobenius norm. Papers: arXiv 2306.13596, 2308.16898.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.margin import factored
from jaxdyn.theories.margin.vector_matrix import Select, trial

SEEDS = {"quick": 24, "paper": 128}
PLANE = {"inputs": 2, "sequences": 2, "shown": 3, "every": 40, "records": 16}


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each kind of weights: how many runs pick every optimal token, and their cosines."""
    lines = []
    for kind in ds.weights.values:
        part = ds.sel(weights=kind)
        picked = part.assumed_selected.values > 0.99
        cosine = 1 - part.away.isel(record=-1).values
        line = {"weights": str(kind), "runs": picked.size, "pick every optimal token": int(picked.sum())}
        line["a largest margin exists"] = int((part.assumed_optimality.values < 1e-6).sum())
        lines.append(
            line | {"least cosine of those": float(cosine[picked].min()), "norm": float(part["size"].isel(record=-1).mean())}
        )
    return lines


def plane(ds: xr.Dataset, ax: object) -> None:
    """One run in the plane: tokens by their attention at the end, and directions."""
    usable = (ds.assumed_optimality < 1e-6) & (ds.assumed_selected > 0.99)
    run = ds.isel(seed=int(np.argmin(np.where(usable, ds.assumed_hardness, np.inf))))
    tokens, weight = run.tokens.values[..., :, 0], run.attention.values
    for color, x, a, best in zip(("measured", "third"), tokens, weight, run.best.values.astype(int), strict=True):
        ax.scatter(x[:, 0], x[:, 1], s=20 + 120 * a, color=plotting.COLORS[color], alpha=0.8)
        ax.scatter(*x[best], s=260, facecolors="none", edgecolors=plotting.COLORS[color], linewidth=1.5)
    reach = 1.1 * abs(tokens).max()
    for values, color, style, label in (
        (run.measured_direction.values, "control", "-", "p after 640 steps"),
        (run.predicted_direction.values, "theory", "--", "largest margin"),
        (run["first"].values, "failed", ":", "first step"),
    ):
        d = values.reshape(2, 2)[:, 0]
        ax.plot([0, reach * d[0]], [0, reach * d[1]], style, color=plotting.COLORS[color], linewidth=2, label=label)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(xlabel=r"$x_1$", ylabel=r"$x_2$", title="tokens of 2 sequences (by colour) and directions")


def apart(ds: xr.Dataset, ax: object) -> None:
    """1 - cosine of products of factors with both solutions."""
    nuclear = (ds.measured_direction * ds.predicted_direction).sum(["row", "column"])
    picked = ds.assumed_selected.values > 0.99
    for values, color, label in ((nuclear, "measured", "least nuclear norm"), (ds.to_frobenius, "third", "least Frobenius norm")):
        for chosen, style in ((picked, "-"), (~picked, ":")):
            x, y = (v.transpose("record", "seed").values[:, chosen] for v in (ds["norm"], 1 - values))
            ax.loglog(x, y, style, color=plotting.COLORS[color], linewidth=1, alpha=0.7)
        ax.plot([], [], color=plotting.COLORS[color], label=label)
    ax.set(xlabel="nuclear norm of W = K Q^T", ylabel="1 - cosine with the solution of", title="keys and queries apart")


def draw(flat: xr.Dataset, ds: xr.Dataset, products: xr.Dataset, fig: Figure) -> None:
    """The plane, and 1 - cosine against the norm."""
    left, right, last = fig.subplots(1, 3)
    plane(flat, left)
    apart(products, last)
    for kind, color in zip(ds.weights.values, ("measured", "third"), strict=True):
        part = ds.sel(weights=kind)
        for picked, style in ((True, "-"), (False, ":")):
            chosen = (part.assumed_selected.values > 0.99) == picked
            if chosen.any():
                shown = "" if picked else ", an optimal token not picked"
                size, away = (part[n].transpose("record", "seed").values[:, chosen] for n in ("size", "away"))
                right.loglog(size, away, style, color=plotting.COLORS[color], linewidth=1, alpha=0.7)
                right.plot([], [], style, color=plotting.COLORS[color], label=f"{kind}{shown}")
    x = np.array([30.0, 256.0])
    right.loglog(x, 3 / x**2, "--", color="black", label="slope -2")
    right.set(xlabel="norm of the weights", ylabel="1 - cosine with the largest margin", title="4 sequences, 6 dimensions")


def run(scale: str, out: Path) -> None:
    """Train, print, draw and save."""
    seeds = SEEDS[scale]
    ds = experiment.sweep(out, "runs", trial, jd.grid(Select, weights=["vector", "matrix"]), seeds)
    products = experiment.sweep(out, "factored", factored.trial, jd.grid(factored.Factored), seeds)
    flat = experiment.sweep(out, "plane", trial, jd.grid(Select, **PLANE), 12)
    experiment.table(out, "cosines", rows(ds), f"Cosine with the largest margin after 2560 steps, {seeds} seeds")
    experiment.figure(out, "margin_directions", lambda fig: draw(flat, ds, products, fig), (15.0, 4.4))
    experiment.save(out, "runs", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
