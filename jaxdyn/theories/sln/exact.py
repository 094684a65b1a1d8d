"""Navigation on all small graphs and trees, up to isomorphism: where it is exact, and that labels do not matter.

The probability of a shortest path is recorded for every ordered pair, with the labels of the collection ("predicted", as the theory
says that labels do not matter) and with random ones, brought back to those of the collection.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data import graphs
from jaxdyn.theories.sln import dynamics, model

COUNTEREXAMPLES = (  # 8 vertices; edges of the graphs with the fewest on which weights 1/lambda fail for some pair
    "01 12 13 14 25 26 47 56 57 67",
    "01 12 13 14 25 26 37 47 56 67",
    "01 02 04 05 14 17 23 36 37 47",
    "01 04 12 14 23 27 36 45 57 67",
    "04 07 12 13 25 26 34 56 57 67",
)


def counterexamples(vertices: int) -> tuple[np.ndarray, ...]:
    """Graphs with 8 vertices and 10 edges, by their edges."""
    listed = np.zeros((len(COUNTEREXAMPLES), 8, 8), bool)
    for graph, edges in zip(listed, COUNTEREXAMPLES, strict=True):
        for edge in edges.split():
            u, v = map(int, edge)
            graph[u, v] = graph[v, u] = True
    return tuple(listed) if vertices == 8 else ()


COLLECTIONS = {"connected": graphs.connected, "trees": graphs.trees, "counterexamples": counterexamples}


@jd.setting
class Atlas:
    """Which graphs.

    Args:
        complete: 1: cuts after k eigenvectors are completed to whole clusters of eigenvalues; 0: they are not.
        graphs: "connected", "trees" or "counterexamples".
        least: fewest vertices of a graph.
        largest: most vertices.
    """

    complete: jd.Swept = 1.0
    graphs: str = "connected"
    least: int = 4
    largest: int = 7
    dtype: str = "float64"

    def __post_init__(self) -> None:
        """Refuse collections that there are not."""
        jd.require(self, self.graphs in COLLECTIONS, f"graphs is one of {', '.join(COLLECTIONS)}", "graphs")
        most = 12 if self.graphs == "trees" else 8
        ordered = 3 <= self.least <= self.largest <= most
        some = self.graphs != "counterexamples" or self.largest == 8
        jd.require(self, some, "counterexamples have 8 vertices: largest=8", "graphs", "largest")
        jd.require(self, ordered, f"3 <= least <= largest <= {most}", "least", "largest")


def collection(s: Atlas) -> tuple[np.ndarray, ...]:
    """The graphs."""
    return tuple(a for n in range(s.least, s.largest + 1) for a in COLLECTIONS[s.graphs](n))


@jd.imports("networkx", install="jaxdyn[suite]", when=lambda s: s.graphs != "counterexamples")
def trial(s: Atlas, key: PRNGKeyArray) -> jd.Observables:
    """Probabilities of shortest paths by both labellings, and whether every choice leads along one."""
    # graphs, and embeddings of their edges
    listed = collection(s)
    table = jnp.asarray(graphs.stacked(listed, s.largest))
    sizes = np.array([len(a) for a in listed])
    most = max(int(a.sum()) // 2 for a in listed)
    rows = model.stack(list(dynamics.EMBEDDINGS.values()), s.dtype)
    rows = rows._replace(complete=jnp.broadcast_to(jnp.asarray(s.complete, s.dtype), jnp.shape(rows.complete)))

    def one(graph: Bool[Array, "N N"], n: Array, k: PRNGKeyArray) -> tuple[Array, Array, Array, Array]:
        u = jax.random.uniform(k, (s.largest,), jnp.float32) + (jnp.arange(s.largest) >= n)
        order = jnp.argsort(u)  # vertices that are none stay last
        there, back = graphs.relabelled(graph, order), jnp.argsort(order)
        plain, other = model.routed(graph, rows, most, s.dtype), model.routed(there, rows, most, s.dtype)
        far = model.targets(graph)[1].astype(s.dtype)
        return plain.success, other.success[:, back][:, :, back], other.sure[:, back][:, :, back], far

    # with the labels of the collection, and with random ones
    keys = jax.random.split(key, len(listed))
    plain, other, sure, far = jax.lax.map(lambda x: one(*x), (table, jnp.asarray(sizes), keys), batch_size=32)
    axes = "graph embedding source target"
    real = np.array([[[i < n and t < n and i != t for t in range(s.largest)] for i in range(s.largest)] for n in sizes])
    cut = lambda x: jd.named(jnp.where(real[:, None], x, 1.0), axes)  # noqa: E731
    return jd.observables(
        predicted={"success": cut(plain)},
        measured={"success": cut(other)},
        recorded={
            "sure": cut(sure),
            "pair": jd.named(jnp.asarray(real, s.dtype), "graph source target"),
            "far": jd.named(far, "graph source target"),
            "vertices": jd.named(jnp.asarray(sizes, s.dtype), "graph"),
        },
        coords={"embedding": model.METHODS},
    )


BEST = "rw, 1/lam, all"
TREE = (BEST, "rw, 1/sqrt, all")
PAIRS = 39_678


def instead(name: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """All edges are embedded, or the next vertex is chosen, as this row says."""

    def of(variable: str) -> Callable[[xr.Dataset], xr.DataArray]:
        return lambda ds: ds[variable].sel(embedding=name, drop=True) + 0 * ds[variable]

    return jd.swap(measured_success=of("measured_success"), sure=of("sure"))


def failing(ds: xr.Dataset, names: tuple[str, ...]) -> xr.DataArray:
    """One minus the probability of a shortest path, of the pair for which it is smallest."""
    return (1 - ds.measured_success.sel(embedding=list(names))).max(("graph", "source", "target"))


def unsure(ds: xr.Dataset, names: tuple[str, ...]) -> xr.DataArray:
    """Pairs for which a choice among ties leads astray."""
    return (1 - ds.sure.sel(embedding=list(names))).sum(("graph", "source", "target"))


DETOUR, TIED = "probability of a detour, worst pair", "pairs with a tied choice that is a detour"


def says(name: str, *checks: str) -> dict[str, Callable[..., float]]:
    """What these checks would find if navigation were as this row says."""
    measures = {DETOUR: failing, TIED: unsure}
    return {check: lambda ds, of=measures[check]: float(of(ds, (name,)).max()) for check in checks}


def judge_graphs(ds: xr.Dataset) -> list[jd.Check]:
    """Every pair of every graph."""
    count = ds["pair"].sum(("graph", "source", "target"))
    return [
        jd.gate("ordered pairs", count, at_least=PAIRS, at_most=PAIRS),
        jd.at_most(DETOUR, failing(ds, (BEST,)), 1e-12),
        jd.at_most(TIED, unsure(ds, (BEST,)), 0),
    ]


def judge_trees(ds: xr.Dataset) -> list[jd.Check]:
    """Every pair of every tree, by both embeddings."""
    return [
        jd.gate("trees", ds["pair"].sizes["graph"], at_least=92, at_most=92),
        jd.at_most(DETOUR, failing(ds, TREE), 1e-12),
    ]


WORST = "probability of a shortest path, worst pair of a graph"


def judge_failures(ds: xr.Dataset) -> list[jd.Check]:
    """The worst pair of each graph, which is never routed well."""
    worst = ds.measured_success.sel(embedding=BEST).min(("source", "target"))
    return [jd.at_most(WORST, worst, 1e-12)]


def judge_labels(ds: xr.Dataset) -> list[jd.Check]:
    """All embeddings, with other labels."""
    error = abs(ds.measured_success - ds.predicted_success)
    return [jd.at_most("probability minus that with other labels, absolutely", error, 1e-9)]


def shares(ds: xr.Dataset, pairs: str) -> xr.DataArray:
    """Mean over graphs of the share of pairs ("pair" or "far") that take a shortest path; 1 for a graph without any."""
    within = ("source", "target")
    count = ds[pairs].sum(within)
    return ((ds.measured_success * ds[pairs]).sum(within) / count.where(count > 0)).fillna(1.0)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Share of pairs that are not adjacent, by method and number of vertices."""
    ax = fig.subplots()
    one = shares(ds, "far").mean([d for d in ds["far"].dims if d not in ("graph", "source", "target")])
    sizes = ds.vertices.mean([d for d in ds.vertices.dims if d != "graph"])
    names = [str(e) for e in ds.embedding.values]
    for name in names:
        ns = sorted(set(sizes.values.tolist()))
        values = [float(100 * one.sel(embedding=name).where(sizes == n).mean()) for n in ns]
        shown = name in (BEST, "sym, 1, 3", "sym, 1, all", model.GROUND, "rw, 1/sqrt, all")
        ax.plot(ns, values, "o-", lw=1.5 if shown else 0.6, alpha=1 if shown else 0.4, label=name if shown else None)
    ax.set(xlabel="vertices", ylabel="shortest path taken, %, pairs that are not adjacent", xticks=np.unique(sizes))
    ax.legend()


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Atlas),
    seeds=1,
    evidence="algebra",
    bounds="derived: float64 rounding of a probability; tied choices are counted",
    plot=plot,
    source="derived",
)
CAPTION = (
    "Pairs that are not adjacent for which a shortest path is taken, over the number of vertices: mean over graphs, by embedding."
)
WORLDS = {
    "normalised Laplacian, no weights, all eigenvectors": instead("sym, 1, all"),
    r"normalised Laplacian, weights $1/\lambda$": instead("sym, 1/lam, all"),
    "the next vertex is any neighbour": instead(model.CHANCE),
}

EMBEDDED = r"Let the edges of a graph be embedded by all eigenvectors of the line graph's random-walk Laplacian with weights "
ALONG = ", and let each step go to the neighbour whose edge is nearest to an edge at the target."

CLAIMS = (
    STUDY.claim(
        id="sln.exact_small",
        talks=("training:sln-algorithm",),
        title="Spectral navigation is exact on all connected graphs of 4 to 7 nodes",
        statement=rf"{EMBEDDED}$1/\lambda${ALONG} On all 992 connected graphs with 4 to 7 vertices this is a shortest path for "
        "all 39,678 ordered pairs of vertices, whichever of tied vertices is next.",
        source="arXiv:2502.08794, section 4, with weights that it does not state; enumeration: ours",
        tested="Enumeration of all connected graphs with {least} to {largest} vertices up to isomorphism, vertices renamed at "
        "random; no training.",
        judge=judge_graphs,
        controls=WORLDS,
        rivals={"ground states without the target (Steinerberger)": says(model.GROUND, DETOUR)},
        caption=CAPTION,
    ),
    STUDY.claim(
        id="sln.counterexamples",
        talks=("training:sln-algorithm",),
        title="Spectral navigation is not exact on all graphs of 8 nodes",
        statement=rf"{EMBEDDED}$1/\lambda${ALONG} On each of five connected graphs with 8 vertices and 10 edges this never is a "
        "shortest path for some pair of vertices, whichever of tied vertices is next.",
        quick=jd.grid(Atlas, graphs="counterexamples", least=8, largest=8),
        tested="The five graphs are listed with the trial; vertices renamed at random; no training.",
        judge=judge_failures,
        decides={"never": (WORST, r"weights $1/\sqrt\lambda$")},
        controls={r"weights $1/\sqrt\lambda$": instead("rw, 1/sqrt, all")},
        rivals={r"weights $1/\lambda$ are exact": {WORST: 1.0}},
        caption=CAPTION,
    ),
    STUDY.claim(
        id="sln.tree_exact",
        title="On small trees spectral navigation is exact",
        statement=rf"{EMBEDDED}$1/\lambda$ or $1/\sqrt\lambda${ALONG} On all 92 trees with 4 to 9 vertices this is the path "
        "between any two vertices.",
        quick=jd.grid(Atlas, graphs="trees", largest=9),
        tested="Enumeration of all trees with {least} to {largest} vertices up to isomorphism, vertices renamed at random; no "
        "training.",
        judge=judge_trees,
        decides={"any two vertices": (DETOUR, "the next vertex is any neighbour")},
        controls=WORLDS,
        rivals={r"the normalised Laplacian with weights $1/\sqrt\lambda$ does as well": says("sym, 1/sqrt, all", DETOUR)},
        caption=CAPTION,
    ),
    STUDY.claim(
        id="sln.label_invariance",
        title="Spectral navigation does not depend on the names of nodes",
        statement="On all connected graphs with 4 to 7 vertices the probability that navigation takes a shortest path, vertices "
        "that tie being equally likely, stays the same to $10^{-9}$ if vertices get other names, with which a solver also picks "
        "other eigenvectors within an eigenspace, if a cut after $k$ eigenvectors is moved on to the end of its eigenspace.",
        tested="13 embeddings, all ordered pairs of all connected graphs with {least} to {largest} vertices, each renamed at "
        "random; no training.",
        judge=judge_labels,
        controls={"eigenspaces may be cut in two": {"complete": 0.0}},
        rivals={
            "a shortest path always": jd.swap(predicted_success=1.0),
            "each step goes to any neighbour": jd.swap(
                predicted_success=lambda ds: ds.predicted_success.sel(embedding=model.CHANCE, drop=True)
            ),
        },
        caption=CAPTION,
    ),
)
