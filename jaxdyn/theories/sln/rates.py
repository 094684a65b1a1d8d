"""Navigation on random graphs: how often it takes a shortest path, by embedding, size and density.

Means over pairs are exact under ties. In addition one pair that is not adjacent is sampled per graph, and one walk by each method,
so that intervals of a share hold for independent graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.data import graphs
from jaxdyn.theories.sln import dynamics, model

LITERAL = ("sym, 1, 2", "sym, 1, 3", "sym, 1, 4", "sym, 1, 5")
UNWEIGHTED = {f"sym, 1, {k}": dynamics.Embedding(0.0, 0.0, float(k)) for k in range(2, 7)} | {
    "sym, 1, all": dynamics.Embedding(0.0, 0.0)
}
BEST = "rw, 1/lam, all"
FEW = (*UNWEIGHTED, BEST, "rw, 1/sqrt, all", "sym, 1/lam, all")
OWN = "own"
ROWS = {"all": tuple(dynamics.EMBEDDINGS), "few": FEW, "own": (*LITERAL, OWN)}
FORMS = ("printed", "derived")  # the best in each run, of LITERAL or of all UNWEIGHTED; BEST, or OWN


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
    nodes: jd.Swept = jd.field(8.0, at_least=4, whole=True)
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
    own = {OWN: dynamics.Embedding(s.rw, s.power)}
    rows = model.stack([(own | UNWEIGHTED | dynamics.EMBEDDINGS)[name] for name in ROWS[s.rows]], s.dtype)

    def one(k: PRNGKeyArray) -> tuple[Array, ...]:
        k_graph, k_pair, k_tie = jax.random.split(k, 3)
        # a graph, one pair of it, and one walk
        graph = graphs.draw(k_graph, s.kind.index, s.nodes, s.density, size=s.largest)
        routes = model.routed(graph, rows, s.most, s.dtype)
        pairs, far = model.targets(graph)
        pair = jax.random.categorical(k_pair, jnp.where(far, 0.0, -jnp.inf).ravel().astype(jnp.float32))
        p = routes.success.reshape(len(methods), -1)[:, pair]
        walk = (jax.random.uniform(k_tie, (), s.dtype) < p).astype(s.dtype)
        fits = jnp.sum(graph) // 2 <= s.most
        return model.share(routes.success, pairs), model.share(routes.success, far), walk, jnp.any(far) & fits, fits

    every, far, walk, counted, fits = jax.lax.map(one, jax.random.split(key, s.graphs), batch_size=5)
    counts = counted[:, None].astype(s.dtype)

    def forms(shares: Float[Array, "graph embedding"], names: Iterable[str]) -> Int[Array, " form"]:
        at = jnp.array([methods.index(name) for name in names if name in methods])
        best = at[jnp.argmax(jnp.sum(shares * counts, 0)[at])]
        return jnp.stack([best, jnp.asarray(methods.index(OWN if s.rows == "own" else BEST))])

    pick, widest = forms(far, LITERAL), forms(every, UNWEIGHTED)
    sure = jd.named(jnp.ones((s.graphs, 2), s.dtype), "graph form")
    return jd.observables(
        predicted={"routed": sure, "any": sure},
        measured={"routed": jd.named(far[:, pick], "graph form"), "any": jd.named(every[:, widest], "graph form")},
        recorded={
            "walked": jd.named(walk[:, pick], "graph form"),
            "every": jd.named(every, "graph embedding"),
            "far": jd.named(far, "graph embedding"),
            "walk": jd.named(walk, "graph embedding"),
            "counted": jd.named(counted.astype(s.dtype), "graph"),
            "fits": jd.named(fits.astype(s.dtype), "graph"),
        },
        coords={"embedding": methods, "form": FORMS},
    )


OVER = ("seed", "graph")
NORMAL = "sym, 1/lam, all"


def instead(name: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """The next vertex is chosen as this row says."""

    def of(variable: str) -> Callable[[xr.Dataset], xr.DataArray]:
        return lambda ds: ds[variable].sel(embedding=name, drop=True)

    return jd.swap(measured_routed=of("far"), walked=of("walk"), far=lambda ds: of("far")(ds) + 0 * ds.far)


def any_by(name: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """The next vertex is chosen as this row says, for all pairs."""
    return jd.swap(measured_any=lambda ds: ds.every.sel(embedding=name, drop=True))


def counted(ds: xr.Dataset, values: xr.DataArray) -> xr.DataArray:
    """Without graphs that have no pair that is not adjacent."""
    return values.where(ds.counted > 0)


SHARE, TREE_SHARE = "pairs with a shortest path", "pairs with a shortest path, worst tree"


def judge_rate(ds: xr.Dataset) -> list[jd.Check]:
    """Means over graphs by size and density; one number for each graph, the share of its pairs."""
    return [jd.mean_within(SHARE, counted(ds, ds.measured_routed), over=OVER, low=0.99)]


ANY = "pairs with a shortest path, adjacent ones included"


def judge_any(ds: xr.Dataset) -> list[jd.Check]:
    """Means over graphs of fewer than 10 vertices by size and density, all ordered pairs: as the talk counts."""
    small = ds.sel(nodes=ds.nodes[ds.nodes < 10])
    return [jd.mean_within(ANY, small.measured_any.where(small.fits > 0), over=OVER, low=0.99)]


def judge_unweighted(ds: xr.Dataset) -> list[jd.Check]:
    """The best number of eigenvectors of every run; means over graphs by size and density."""
    jd.need(ds, nodes=2)
    large = ds.sel(nodes=ds.nodes[ds.nodes >= 5])
    return [jd.mean_within(SHARE, counted(large, large.measured_routed), over=OVER, high=0.99)]


def judge_trees(ds: xr.Dataset) -> list[jd.Check]:
    """Every pair of every tree."""
    both = counted(ds, ds.far).sel(embedding=[BEST, "rw, 1/sqrt, all"])
    return [jd.at_least(TREE_SHARE, both.min(OVER), 1 - 1e-12)]


SIZES = (10.0, 20.0, 30.0)
ROW, LEAD = "random walk, {:.0f} vertices", "random walk minus normalised, {:.0f} vertices"
GAIN = "weights minus no weights, {:.0f} vertices"


def judge_scaling(ds: xr.Dataset) -> list[jd.Reading]:
    """Means by size, and differences between embeddings on the same graphs."""
    jd.need(ds, nodes=SIZES)
    readings = []
    for n in SIZES:
        best, normal, literal = (counted(ds, ds.far).sel(embedding=e, nodes=n, drop=True) for e in (BEST, NORMAL, "sym, 1, 4"))
        pairs = (ROW, best), (LEAD, best - normal), (GAIN, normal - literal)
        readings += [jd.mean_reading(name.format(n), values, over=OVER) for name, values in pairs]
    return readings


def share(name: str, **at: Any) -> Callable[[xr.Dataset], float]:
    """The share of pairs by this row, mean over graphs."""
    return lambda ds: float(counted(ds, ds.far).sel(embedding=name, **at).mean())


def plot_rate(ds: xr.Dataset, fig: Figure, pairs: str = "far") -> None:
    """Share over size, by density, with intervals; of pairs that are not adjacent ("far") or of all of them ("every")."""
    ax = fig.subplots()
    ours = BEST if BEST in ds.embedding.values else OWN
    for density, style in zip(ds.density.values, ("o-", "s--", "^:"), strict=False):
        for name, color in ((ours, "measured"), ("sym, 1, 4", "control"), (model.GROUND, "theory")):
            kept = ds.counted if pairs == "far" else ds.fits
            part = ds[pairs].where(kept > 0).sel(embedding=name, density=density)
            mean, low, high = (100 * x for x in stats.mean_interval(part.stack(run=OVER), "run"))
            label = f"{name}, p = {density:g}"
            ax.errorbar(ds.nodes, mean, [mean - low, high - mean], fmt=style, color=plotting.COLORS[color], label=label)
    ax.axhline(99, color="grey", lw=0.6)
    ax.set(xlabel="vertices", ylabel=f"shortest path taken, %, {PAIRS[pairs]}")
    ax.legend()


def plot_any(ds: xr.Dataset, fig: Figure) -> None:
    """The same of all pairs."""
    plot_rate(ds, fig, "every")


PAIRS = {"far": "pairs that are not adjacent", "every": "all pairs"}


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
SIZES_SMALL = [float(n) for n in range(4, 11)]
SMALL = jd.grid(Random, nodes=SIZES_SMALL, density=[0.2, 0.3, 0.5], most=36, rows="few")
STUDY = jd.Study(
    trial=trial,
    quick=SMALL,
    paper=jd.grid(Random, nodes=SIZES_SMALL, density=[0.2, 0.3, 0.5], graphs=1000),
    seeds=8,
    paper_seeds=8,
    evidence="algebra",
    bounds="paper",
    form="derived",
    source="arXiv:2502.08794, section 4 (more than 99% for fewer than 10 vertices)",
    tested="No training: {graphs} random connected graphs $G(n, p)$ for each of {seeds} seeds at each $n$ and $p$; $n$ = "
    "{nodes}, $p$ = {density}. Shares of pairs are exact means over ties.",
    plot=plot_rate,
    caption="Pairs that are not adjacent for which a shortest path is taken, mean and 95% interval over random graphs.",
)
NAVIGATE = "and let each step go to the neighbour whose edge is nearest to an edge at the target."
ON_RANDOM = "On random connected graphs $G(n, p)$ with $p$ = 0.2, 0.3 and 0.5 and"
RATE = STUDY.claim(
    id="sln.rate99",
    talks=("training:sln-99",),
    title="In small random graphs 99% of pairs are led along a shortest path",
    statement=r"Let edges be embedded by all eigenvectors of the line graph's random-walk Laplacian with weights $1/\lambda$, "
    f"{NAVIGATE} {ON_RANDOM} $n = 4$ to 10 vertices this is a shortest path for at least 99% of the ordered pairs that are not "
    "adjacent, on average over graphs of each $n$ and $p$.",
    judge=judge_rate,
    controls={
        "normalised Laplacian, 3 eigenvectors, no weights": instead("sym, 1, 3"),
        "the next vertex is any neighbour": instead(model.CHANCE),
    },
)
RATE_ANY = STUDY.claim(
    id="sln.rate99_any",
    talks=("training:sln-99",),
    title="In small random graphs 99% of all pairs are led along a shortest path",
    statement=r"Let edges be embedded by all eigenvectors of the line graph's random-walk Laplacian with weights $1/\lambda$, "
    f"{NAVIGATE} {ON_RANDOM} $n = 4$ to 9 vertices this is a shortest path for at least 99% of all ordered pairs, on average over "
    "graphs of each $n$ and $p$.",
    paper=jd.grid(Random, nodes=SIZES_SMALL, density=[0.2, 0.3, 0.5], graphs=1000, most=36, rows="few"),
    judge=judge_any,
    controls={
        "normalised Laplacian, 3 eigenvectors, no weights": any_by("sym, 1, 3"),
        "the next vertex is any neighbour": any_by(model.CHANCE),
    },
    plot=plot_any,
    caption="Ordered pairs, adjacent ones included, for which a shortest path is taken, mean and 95% interval over random graphs.",
)

CLAIMS = (
    RATE,
    RATE_ANY,
    RATE_ANY.as_printed(
        id="sln.rate99_as_printed",
        talks=("training:sln-99", "training:sln-algorithm"),
        title="Eigenvectors without weights lead 99% of all pairs on a shortest path",
        form="printed",
        printed=r"talk training, Spectral Line Navigator: $distance(j, k; i) := \|v_{ij} - v_{k, target}\|_2$ and "
        r"$j = \operatorname{argmin}_{j, k} distance(j, k; i)$ with eigenvectors of the normalised Laplacian $L(\tilde{G})$ of the "
        "line graph, more than 99% optimal for small random graphs (size < 10)",
        statement="The slides' recipe, which names neither the number nor the weights of the eigenvectors, taken without weights: "
        "let edges be embedded by 2 to 6 leading eigenvectors of the line graph's normalised Laplacian, or by all of them "
        f"(whichever is best in each run), {NAVIGATE} {ON_RANDOM} $n = 4$ to 9 vertices this is a shortest path for at least 99% "
        "of all ordered pairs, on average over graphs of each $n$ and $p$.",
    ),
    STUDY.claim(
        id="sln.unweighted_fails",
        talks=("training:sln-algorithm",),
        title="Without weights, leading eigenvectors miss the 99%",
        statement="Let edges be embedded by the 2 to 5 leading eigenvectors of the line graph's normalised Laplacian (the best "
        f"number in each run), without weights, {NAVIGATE} {ON_RANDOM} $n = 5$ to 10 vertices this is a shortest path for less "
        "than 99% of the ordered pairs that are not adjacent, on average over graphs of each $n$ and $p$.",
        form="printed",
        judge=judge_unweighted,
        controls={r"random-walk Laplacian, all eigenvectors, weights $1/\lambda$": instead(BEST)},
        rivals={"every pair is led along a shortest path": {SHARE: 1.0}},
    ),
    STUDY.claim(
        id="sln.tree_random",
        title="On random trees spectral navigation is exact",
        statement="Let the edges of a tree be embedded by all eigenvectors of the line graph's random-walk Laplacian with "
        rf"weights $1/\lambda$ or $1/\sqrt\lambda$, {NAVIGATE} On random recursive trees of 10, 20 and 30 vertices this is the "
        "path for every ordered pair that is not adjacent.",
        quick=jd.grid(Random, kind="tree", **LARGE),
        paper=jd.grid(Random, kind="tree", nodes=[10.0, 20.0, 30.0, 50.0], largest=50, most=52),
        seeds=4,
        bounds="derived: float64 rounding of a probability",
        tested="No training: {graphs} random recursive trees of each size ({nodes} vertices) for each of {seeds} seeds.",
        judge=judge_trees,
        decides={"every ordered pair": (TREE_SHARE, "the next vertex is any neighbour")},
        controls={
            r"normalised Laplacian, weights $1/\lambda$": instead("sym, 1/lam, all"),
            "3 more edges": {"kind": "tree+3"},
        },
        rivals={"the next vertex is any neighbour": {TREE_SHARE: share(model.CHANCE)}},
        plot=plot_size,
        caption="Pairs that are not adjacent for which the path is taken, mean and 95% interval over random trees, by embedding.",
    ),
    STUDY.claim(
        id="sln.scaling",
        title="How spectral navigation degrades on larger graphs",
        statement="On random recursive trees with 3 more edges, which share of the ordered pairs that are not adjacent takes a "
        r"shortest path by all eigenvectors of the line graph's random-walk Laplacian with weights $1/\lambda$, by how much does "
        "this exceed the share by those of the normalised Laplacian, with the same weights, and by how much does that exceed the "
        "share by its 4 leading eigenvectors without weights, at 10, 20 and 30 vertices?",
        quick=jd.grid(Random, kind="tree+3", **LARGE),
        paper=jd.grid(Random, kind="tree+3", nodes=[10.0, 20.0, 30.0, 50.0], largest=50, most=53),
        seeds=4,
        expected="measured",
        recorded={
            "random walk, 10 vertices": (0.993, 0.9968, 1.01),
            "random walk minus normalised, 10 vertices": (0.0514, 0.08227, 0.114),
            "weights minus no weights, 10 vertices": (0.102, 0.1373, 0.173),
            "random walk, 20 vertices": (0.97, 0.9779, 0.986),
            "random walk minus normalised, 20 vertices": (0.306, 0.3369, 0.367),
            "weights minus no weights, 20 vertices": (0.113, 0.138, 0.163),
            "random walk, 30 vertices": (0.958, 0.9677, 0.977),
            "random walk minus normalised, 30 vertices": (0.463, 0.4894, 0.516),
            "weights minus no weights, 30 vertices": (0.0836, 0.1039, 0.125),
        },
        bounds=None,
        tested="No training: {graphs} random recursive trees with 3 more edges of each size ({nodes} vertices) for each of "
        "{seeds} seeds; shares of pairs are exact means over ties.",
        judge=judge_scaling,
        controls={"the next vertex is any neighbour": jd.Control(instead(model.CHANCE), breaks="a shortest path")},
        rivals={
            "ground states without the target (Steinerberger)": {ROW.format(n): share(model.GROUND, nodes=n) for n in SIZES},
            "weights make no difference": {GAIN.format(n): 0.0 for n in SIZES},
        },
        plot=plot_size,
        caption="Pairs that are not adjacent for which a shortest path is taken, mean and 95% interval over random graphs, by "
        "embedding.",
    ),
)
