"""Navigation on random graphs: how often it takes a shortest path, by embedding, size and density.

Means over pairs are exact under ties. In addition one pair that is not adjacent is sampled per graph, and one walk by each method,
so that intervals of a share hold for independent graphs.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.data import graphs
from jaxdyn.theories.sln import model
from jaxdyn.theories.sln.dynamics import line

__all__ = [
    "BEST",
    "CLAIMS",
    "FEW",
    "FORMS",
    "LITERAL",
    "OWN",
    "Random",
    "instead",
    "judge_rate",
    "judge_scaling",
    "judge_trees",
    "judge_unweighted",
    "trial",
]


LITERAL = ("sym, 1, 2", "sym, 1, 3", "sym, 1, 4", "sym, 1, 5")
BEST = "rw, 1/lam, all"
FEW = (*LITERAL, BEST, "rw, 1/sqrt, all", "sym, 1/lam, all")
OWN = "own"
ROWS = {"all": tuple(line.EMBEDDINGS), "few": FEW, "own": (*LITERAL, OWN)}
FORMS = ("printed", "derived")  # the best of LITERAL in each run; BEST, or OWN


@jd.setting
class Random:
    """Random graphs of one kind.

    Args:
        kind: of the graphs.
        nodes: vertices of a graph.
        density: probability of an edge, for "random" ones.
        graphs: number of graphs in a run.
        largest: rows of a matrix.
        most: edges for which there is room; a graph with more is not counted.
        rows: embeddings: "all" of the table, "few" of them, or the leading ones and one "own".
        rw, power: of the own one, with all vectors: by the random walk's Laplacian (1) or the normalised one (0).
    """

    kind: jd.Code = jd.code(*graphs.KINDS)
    nodes: jd.Swept = jd.field(8.0, at_least=4)
    density: jd.Swept = jd.field(0.5, above=0, at_most=1)
    rw: jd.Swept = jd.field(1.0, at_least=0, at_most=1)
    power: jd.Swept = 1.0
    graphs: int = jd.field(125, at_least=2)
    largest: int = 10
    most: int = 45
    rows: str = "all"
    dtype: str = "float64"

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit."""
        jd.require(self, self.nodes <= self.largest, "nodes is at most largest", "nodes", "largest")
        jd.require(self, self.rows in ROWS, f"rows is one of {', '.join(ROWS)}", "rows")
        jd.require(self, self.most >= self.largest - 1, "there is room for a tree", "most", "largest")
        connected = self.kind != "random" or graphs.chance(int(self.nodes), self.density) >= graphs.RARE
        jd.require(self, connected, "such graphs are connected more often than once in 250", "nodes", "density")


def trial(s: Random, key: PRNGKeyArray) -> jd.Observables:
    """Shares over all pairs, over pairs that are not adjacent, and one walk a graph."""
    # embeddings
    methods = (*ROWS[s.rows], model.GROUND, model.CHANCE)
    own = {OWN: line.Embedding(s.rw, s.power)}
    rows = model.stack([(own | line.EMBEDDINGS)[name] for name in ROWS[s.rows]], s.dtype)

    def one(k: PRNGKeyArray) -> tuple[Array, ...]:
        k_graph, k_pair, k_tie = jax.random.split(k, 3)
        # a graph, one pair of it, and one walk
        graph = graphs.draw(k_graph, s.kind.index, s.nodes, s.density, size=s.largest)
        routes = model.routed(graph, rows, s.most, s.dtype)
        pairs, far = model.targets(graph)
        pair = jax.random.categorical(k_pair, jnp.where(far, 0.0, -jnp.inf).ravel().astype(jnp.float32))
        p = routes.success.reshape(len(methods), -1)[:, pair]
        walk = (jax.random.uniform(k_tie, (), s.dtype) < p).astype(s.dtype)
        counted = jnp.any(far) & (jnp.sum(graph) // 2 <= s.most)
        return model.share(routes.success, pairs), model.share(routes.success, far), walk, counted

    every, far, walk, counted = jax.lax.map(one, jax.random.split(key, s.graphs), batch_size=5)
    # the best of the literal readings
    counts = counted[:, None].astype(s.dtype)
    at = jnp.array([methods.index(name) for name in LITERAL])
    pick = jnp.stack([at[jnp.argmax(jnp.sum(far * counts, 0)[at])], jnp.asarray(methods.index(OWN if s.rows == "own" else BEST))])
    return jd.observables(
        predicted={"routed": jd.named(jnp.ones((s.graphs, 2), s.dtype), "graph form")},
        measured={"routed": jd.named(far[:, pick], "graph form")},
        recorded={
            "walked": jd.named(walk[:, pick], "graph form"),
            "every": jd.named(every, "graph embedding"),
            "far": jd.named(far, "graph embedding"),
            "walk": jd.named(walk, "graph embedding"),
            "counted": jd.named(counted.astype(s.dtype), "graph"),
        },
        coords={"embedding": methods, "form": FORMS},
    )


OVER = ("seed", "graph")
NORMAL = "sym, 1/lam, all"
FOUND = {  # intervals of seeds 0:4
    "random walk, 10 vertices": (0.985, 1.0),
    "random walk, 20 vertices": (0.965, 0.99),
    "random walk, 30 vertices": (0.955, 0.98),
    "random walk minus normalised, 10 vertices": (0.05, 0.12),
    "random walk minus normalised, 20 vertices": (0.30, 0.38),
    "random walk minus normalised, 30 vertices": (0.45, 0.53),
    "weights minus no weights, 10 vertices": (0.08, 0.19),
    "weights minus no weights, 20 vertices": (0.09, 0.19),
    "weights minus no weights, 30 vertices": (0.06, 0.15),
}


def instead(name: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """The next vertex is chosen as this row says."""

    def of(variable: str) -> Callable[[xr.Dataset], xr.DataArray]:
        return lambda ds: ds[variable].sel(embedding=name, drop=True)

    return jd.swap(measured_routed=of("far"), walked=of("walk"), far=lambda ds: of("far")(ds) + 0 * ds.far)


def counted(ds: xr.Dataset, values: xr.DataArray) -> xr.DataArray:
    """Without graphs that have no pair that is not adjacent."""
    return values.where(ds.counted > 0)


def judge_rate(ds: xr.Dataset) -> list[jd.Check]:
    """Means by size and density, and walks of independent graphs by size."""
    return [
        jd.mean_within("pairs with a shortest path", counted(ds, ds.measured_routed), over=OVER, low=0.99),
        jd.share_within("walks that are shortest, one a graph", counted(ds, ds.walked), over=(*OVER, "density"), low=0.99),
    ]


def judge_unweighted(ds: xr.Dataset) -> list[jd.Check]:
    """The best number of eigenvectors of every run, by size."""
    jd.need(ds, nodes=2)
    large = ds.sel(nodes=ds.nodes[ds.nodes >= 5])
    return [jd.mean_within("pairs with a shortest path", counted(large, large.measured_routed), over=(*OVER, "density"), high=0.99)]


def judge_trees(ds: xr.Dataset) -> list[jd.Check]:
    """Every pair of every tree."""
    both = counted(ds, ds.far).sel(embedding=[BEST, "rw, 1/sqrt, all"])
    return [jd.at_least("pairs with a shortest path, worst tree", both.min(OVER), 1 - 1e-12)]


def judge_scaling(ds: xr.Dataset) -> list[jd.Check]:
    """Means by size, and differences between embeddings on the same graphs."""
    checks = []
    for n in ds.nodes.values:
        best, normal, literal = (counted(ds, ds.far).sel(embedding=e, nodes=n, drop=True) for e in (BEST, NORMAL, "sym, 1, 4"))
        checks += [
            jd.mean_within(f"random walk, {n:.0f} vertices", best, over=OVER, low=0.95),
            jd.mean_within(f"random walk minus normalised, {n:.0f} vertices", best - normal, over=OVER, low=0.02),
            jd.mean_within(f"weights minus no weights, {n:.0f} vertices", normal - literal, over=OVER, low=0.02),
        ]
    return checks


def plot_rate(ds: xr.Dataset, fig: Figure) -> None:
    """Share over size, by density, with intervals."""
    ax = fig.subplots()
    ours = BEST if BEST in ds.embedding.values else OWN
    for density, style in zip(ds.density.values, ("o-", "s--", "^:"), strict=False):
        for name, color in ((ours, "measured"), ("sym, 1, 4", "control"), (model.GROUND, "theory")):
            part = counted(ds, ds.far).sel(embedding=name, density=density)
            mean, low, high = (100 * x for x in stats.mean_interval(part.stack(run=OVER), "run"))
            label = f"{name}, p = {density:g}"
            ax.errorbar(ds.nodes, mean, [mean - low, high - mean], fmt=style, color=plotting.COLORS[color], label=label)
    ax.axhline(99, color="grey", lw=0.6)
    ax.set(xlabel="vertices", ylabel="shortest path taken, %, pairs that are not adjacent")
    ax.legend()


def plot_size(ds: xr.Dataset, fig: Figure) -> None:
    """Share over size by embedding, with intervals."""
    ax = fig.subplots()
    for name in (BEST, "rw, 1/sqrt, all", NORMAL, "sym, 1, 4", model.GROUND, model.CHANCE):
        part = counted(ds, ds.far).sel(embedding=name)
        part = part.stack(run=[d for d in part.dims if d != "nodes"])
        mean, low, high = (100 * x for x in stats.mean_interval(part, "run"))
        ax.errorbar(ds.nodes, mean, [mean - low, high - mean], fmt="o-", label=name)
    ax.set(xlabel="vertices", ylabel="shortest path taken, %, pairs that are not adjacent")
    ax.legend()


LARGE = {"nodes": [10.0, 20.0, 30.0], "graphs": 25, "largest": 30, "most": 32, "rows": "few"}
SMALL = jd.grid(Random, nodes=[float(n) for n in range(4, 11)], density=[0.2, 0.3, 0.5], most=36, rows="few")
STUDY = jd.Study(
    trial=trial,
    quick=SMALL,
    paper=jd.grid(Random, nodes=[float(n) for n in range(4, 11)], density=[0.2, 0.3, 0.5], graphs=1000),
    seeds=8,
    paper_seeds=8,
    evidence="algebra",
    bounds="paper",
    form="derived",
    source="arXiv:2502.08794, section 4 (more than 99% for fewer than 10 vertices)",
    plot=plot_rate,
    caption="Pairs that are not adjacent for which a shortest path is taken, mean and 95% interval over random graphs.",
)
GRAPHS = "random graphs $G(n, p)$ that are connected, $p = 0.2, 0.3, 0.5$, 1000 of each $n$ and $p$"
RATE = STUDY.claim(
    id="sln.rate99",
    statement=r"Edges embedded by the line graph's random-walk Laplacian, all eigenvectors with weights $1/\lambda$, lead along a "
    "shortest path for at least 99% of the ordered pairs that are not adjacent, for every number of vertices $n = 4$ to 10 and "
    f"every density ({GRAPHS}; exact means over ties, and one walk a graph with Wilson's interval by $n$; no training).",
    judge=judge_rate,
    controls={
        "normalised Laplacian, 3 eigenvectors, no weights": instead("sym, 1, 3"),
        "the next vertex is any neighbour": instead(model.CHANCE),
    },
)

CLAIMS = (
    RATE,
    RATE.as_printed(
        id="sln.rate99_as_printed",
        form="printed",
        printed=r"talks on arXiv:2502.08794: $\arg\min_j \min_k \|x_{ij} - x_{kt}\|$ with the leading eigenvectors of the line "
        "graph's normalised Laplacian, more than 99% for fewer than 10 vertices",
        statement="Edges embedded by the leading eigenvectors of the line graph's normalised Laplacian, without weights, lead "
        "along a shortest path for at least 99% of the ordered pairs that are not adjacent, with the best number of 2 to 5 "
        f"eigenvectors in each run. (On {GRAPHS}, $n = 4$ to 10.)",
    ),
    STUDY.claim(
        id="sln.unweighted_fails",
        statement="Leading eigenvectors of the line graph's normalised Laplacian, without weights, lead along a shortest path for "
        "less than 99% of the ordered pairs that are not adjacent, for every number of vertices $n = 5$ to 10 over three densities "
        f"and with the best number of 2 to 5 eigenvectors in each run. (On {GRAPHS}; no training.)",
        form="printed",
        judge=judge_unweighted,
        controls={r"random-walk Laplacian, all eigenvectors, weights $1/\lambda$": instead(BEST)},
        rivals={"ground states without the target (Steinerberger)": instead(model.GROUND)},
    ),
    STUDY.claim(
        id="sln.tree_random",
        statement=r"On random recursive trees of 10, 20 and 30 vertices both embeddings by the random-walk Laplacian of the line "
        r"graph, with weights $1/\lambda$ and $1/\sqrt\lambda$, lead along the path for every ordered pair (100 trees of each "
        "size; no training).",
        quick=jd.grid(Random, kind="tree", **LARGE),
        paper=jd.grid(Random, kind="tree", nodes=[10.0, 20.0, 30.0, 50.0], largest=50, most=52),
        seeds=4,
        bounds="derived",
        judge=judge_trees,
        controls={
            r"normalised Laplacian, weights $1/\lambda$": instead("sym, 1/lam, all"),
            "3 more edges": {"kind": "tree+3"},
        },
        rivals={"the next vertex is any neighbour": instead(model.CHANCE)},
        plot=plot_size,
        caption="Pairs that are not adjacent for which the path is taken, mean and 95% interval over random trees, by embedding.",
    ),
    STUDY.claim(
        id="sln.scaling",
        statement="How does the share of shortest paths change with size? On random recursive trees with 3 more edges, of 10, 20 "
        "and 30 vertices, and of ordered pairs that are not adjacent: share by the random-walk Laplacian of the line graph with "
        r"weights $1/\lambda$, what it gains on the normalised one, and what that one gains on its 4 leading eigenvectors without "
        "weights. The first falls slowly, its lead grows. (100 graphs of each size; no training.)",
        quick=jd.grid(Random, kind="tree+3", **LARGE),
        paper=jd.grid(Random, kind="tree+3", nodes=[10.0, 20.0, 30.0, 50.0], largest=50, most=53),
        seeds=4,
        expected="measured",
        bounds=None,
        judge=judge_scaling,
        controls={"the next vertex is any neighbour": instead(model.CHANCE)},
        rivals={"ground states without the target (Steinerberger)": instead(model.GROUND)},
        found=FOUND,
        plot=plot_size,
        caption="Pairs that are not adjacent for which a shortest path is taken, mean and 95% interval over random graphs, by "
        "embedding.",
    ),
)
