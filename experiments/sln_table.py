"""Navigation by the line graph's spectrum: the table of embeddings, rates over the number of eigenvectors and over size, one walk.

All connected graphs of 4 to 7 vertices, each with the same weight, random ones of 8 to 10, trees with 3 more edges, and trees;
share of ordered pairs for which the path is a shortest one, exact under ties, of all pairs and of those that are not adjacent, with
95% intervals over random graphs, next to an earlier computation. The paper (arXiv 2502.08794) reports more than 99% for fewer than
10 vertices, without weights or number of eigenvectors. `--scale paper` has more graphs and up to 50 vertices. Nothing is trained.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.data import graphs
from jaxdyn.stats import mean_interval
from jaxdyn.theories.sln import dynamics, exact, model, published
from jaxdyn.theories.sln.exact import shares
from jaxdyn.theories.sln.rates import BEST, Random, trial

TALKS = ("training:sln-99",)

FAMILIES = {
    "G(8,.5)": {"kind": "random", "nodes": 8.0},
    "G(9,.5)": {"kind": "random", "nodes": 9.0},
    "G(10,.5)": {"kind": "random", "nodes": 10.0},
    "tree+3, 8": {"kind": "tree+3", "nodes": 8.0},
    "tree+3, 10": {"kind": "tree+3", "nodes": 10.0},
    "tree, 10": {"kind": "tree", "nodes": 10.0},
}
GRAPHS = {"quick": 60, "paper": 1000}
LARGE = {
    "quick": {"nodes": [10.0, 20.0, 30.0], "graphs": 15, "largest": 30, "most": 32},
    "paper": {"nodes": [10.0, 20.0, 30.0, 40.0, 50.0], "graphs": 100, "largest": 50, "most": 52},
}
STYLES = {0.0: "o--", 1.0: "s-"}


def families(out: Path, scale: str) -> dict[str, xr.Dataset]:
    """Shares by method of all graphs of a family: ``every`` and ``far``, along ``graph``."""
    found = {}
    ds = experiment.sweep(out, "atlas", exact.trial, jd.grid(exact.Atlas), 1).isel(seed=0)
    both = xr.Dataset({"every": shares(ds, "pair"), "far": shares(ds, "far")})
    for n in (4, 5, 6, 7):
        found[f"n={n}"] = both.isel(graph=np.flatnonzero(ds.vertices.values == n))
    settings = jd.grid(Random, kind=["random", "tree", "tree+3"], nodes=[8.0, 9.0, 10.0], graphs=GRAPHS[scale])
    ds = experiment.sweep(out, "random", trial, settings, 2)
    for name, where in FAMILIES.items():
        part = ds.sel(where).stack(run=("seed", "graph")).transpose("run", ...)
        kept = part.isel(run=np.flatnonzero(part.counted.values > 0))
        found[name] = xr.Dataset(
            {v: (("graph", "embedding"), kept[v].values) for v in ("every", "far")}, {"embedding": ds.embedding}
        )
    return found


def rows(found: dict[str, xr.Dataset]) -> list[dict]:
    """A line an embedding and family."""
    lines = []
    for method in model.METHODS:
        for column, (name, ds) in enumerate(found.items()):
            one = ds.sel(embedding=method)
            line_ = {"embedding": method, "graphs": name, "count": ds.sizes["graph"]}
            for pairs in ("every", "far"):
                mean, *ends = (100 * float(x) for x in mean_interval(one[pairs], "graph"))
                low, high = (None, None) if name.startswith("n=") else (ends[0], min(ends[1], 100.0))
                line_ |= {f"{pairs}, %": mean, f"{pairs} low": low, f"{pairs} high": high}
            lines.append(line_ | {"earlier, every": published.TABLE.get(method, (None,) * 10)[column]})
    return lines


def by_count(found: tuple[np.ndarray, ...], powers: tuple[float, ...] = (0.0, 0.5, 1.0)) -> xr.DataArray:
    """Mean share of pairs that are not adjacent over k, by division and power, on the given graphs."""
    size = max(len(a) for a in found)
    most = max(int(a.sum()) // 2 for a in found)
    counts = [*range(1, 11), 99]
    cells = [(w, p, k) for w in (0.0, 1.0) for p in powers for k in counts]
    with jax.enable_x64(True):
        rows_ = dynamics.Embedding(*jnp.asarray(cells, jnp.float64).T, jnp.ones(len(cells)))
        one = lambda g: model.share(model.routed(g, rows_, most).success, model.targets(g)[1])  # noqa: E731
        values = np.asarray(jax.jit(lambda t: jax.lax.map(one, t))(jnp.asarray(graphs.stacked(found, size))))
    shaped = values[:, : len(cells)].mean(0).reshape(2, len(powers), len(counts))
    return xr.DataArray(shaped, {"walk": [0.0, 1.0], "power": list(powers), "vectors": counts}, ("walk", "power", "vectors"))


def walked(seed: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """A graph, the leading two coordinates of its edges, their ends, and a walk between vertices that are farthest apart."""
    with jax.enable_x64(True):
        graph = graphs.draw(jax.random.key(seed), 2, 12.0, 0.5, size=12)
        edges, away = graphs.edges_of(graph, 14), np.asarray(graphs.distances(graph))
        s = dynamics.spectrum(edges, 12)
        choice = np.asarray(dynamics.tied(dynamics.costs(dynamics.squared_distances(s, dynamics.EMBEDDINGS[BEST]), edges, 12)))
        x = np.asarray(s.vectors[:, 1:3] / s.values[1:3] / np.sqrt(s.degree)[:, None])
    at, target = (int(v) for v in np.unravel_index(np.argmax(away), away.shape))
    path = [at]
    for _ in range(int(away.max())):
        path.append(int(np.flatnonzero(choice[path[-1], :, target])[0]))
    return np.asarray(graph), x, np.asarray(edges.ends), path


def draw_counts(counts: xr.DataArray, fig: Figure) -> None:
    """Rate over the number of eigenvectors."""
    ax = fig.subplots()
    for walk, name in ((0.0, "sym"), (1.0, "rw")):
        for power, color in zip(counts.power.values, ("control", "theory", "measured"), strict=True):
            y = 100 * counts.sel(walk=walk, power=power)
            ax.plot(range(y.size), y, STYLES[walk], ms=4, color=plotting.COLORS[color], label=f"{name}, power {power:g}")
    ax.set_xticks(range(counts.vectors.size), [*map(str, counts.vectors.values[:-1]), "all"])
    ax.set(xlabel="eigenvectors, clusters completed", ylabel="shortest path taken, %, pairs that are not adjacent")
    ax.legend()


def draw_sizes(ds: xr.Dataset, fig: Figure) -> None:
    """Rate over size, on trees and trees with 3 more edges."""
    for ax, kind in zip(fig.subplots(1, 2, sharey=True), ("tree", "tree+3"), strict=True):
        for name in (BEST, "rw, 1/sqrt, all", "sym, 1/lam, all", "sym, 1, 4", model.GROUND, model.CHANCE):
            part = ds.far.sel(embedding=name, kind=kind).stack(run=("seed", "graph"))
            mean, low, high = (100 * x for x in mean_interval(part, "run"))
            ax.errorbar(ds.nodes, mean, [mean - low, high - mean], fmt="o-", ms=4, capsize=2, label=name)
        ax.set(xlabel="vertices", title={"tree": "trees", "tree+3": "trees with 3 more edges"}[kind], ylim=(0, 103))
        ax.set_xticks(ds.nodes)
    fig.axes[0].set(ylabel="shortest path taken, %, pairs that are not adjacent")
    fig.axes[0].legend()


def draw_walk(one: tuple[np.ndarray, np.ndarray, np.ndarray, list[int]], fig: Figure) -> None:
    """The graph with its walk, and its edges in the embedding."""
    import networkx as nx

    graph, x, ends, path = one
    left, right = fig.subplots(1, 2)
    at = nx.kamada_kawai_layout(nx.from_numpy_array(graph))
    on = {frozenset(p) for p in zip(path, path[1:], strict=False)}
    for (u, v), place in zip(ends.tolist(), x, strict=True):
        taken = frozenset((u, v)) in on
        color = plotting.COLORS["measured" if taken else "control"]
        left.plot(*zip(at[u], at[v], strict=True), color=color, lw=3 if taken else 1, zorder=1)
        right.plot(*place, "o", color=color, ms=8 if taken else 5)
    for place in np.unique(x.round(6), axis=0):  # edges that coincide share a label
        names = [f"{u}-{v}" for (u, v), other in zip(ends.tolist(), x, strict=True) if np.allclose(other, place, atol=1e-5)]
        right.annotate(", ".join(names), place, textcoords="offset points", xytext=(-5, 4), fontsize=8, ha="right")
    for v, place in at.items():
        left.text(*place, str(v), ha="center", va="center", fontsize=8, bbox={"boxstyle": "circle", "fc": "white", "ec": "grey"})
    left.set_axis_off()
    right.margins(x=0.12)
    left.set(title=f"walk from {path[0]} to {path[-1]}: {' '.join(map(str, path))}")
    places = np.array([x[[set(e) == set(p) for e in ends.tolist()]][0] for p in zip(path, path[1:], strict=False)])
    right.plot(*places.T, color=plotting.COLORS["measured"], lw=1)
    right.set(xlabel="first coordinate", ylabel="second coordinate", title=r"edges, random walk, weights $1/\lambda$")


def run(scale: str, out: Path) -> None:
    """Sweep, print, draw and save."""
    found = families(out, scale)
    experiment.table(out, "table", rows(found), "Shortest paths taken, % of ordered pairs: every pair, and far (not adjacent) ones")
    counts = by_count(graphs.connected(6))
    experiment.figure(out, "sln_eigenvectors", lambda fig: draw_counts(counts, fig), (7, 4.5))
    sizes = experiment.sweep(out, "sizes", trial, jd.grid(Random, kind=["tree", "tree+3"], **LARGE[scale]), 2)
    experiment.figure(out, "sln_sizes", lambda fig: draw_sizes(sizes, fig), (10, 4.5))
    experiment.figure(out, "sln_walk", lambda fig: draw_walk(walked(), fig), (11, 5))
    experiment.save(out, "sizes", sizes)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
