"""Line graphs of random graphs: degrees, the trivial eigenvector, squared distances next to resistances, sums on trees."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data import graphs
from jaxdyn.theories.sln import dynamics


@jd.setting
class Line:
    """Random graphs of one kind, and an embedding of the vertices of their line graphs."""

    kind: jd.Code = jd.code(*graphs.KINDS)  # of the graphs; tree+3: a tree with 3 further edges
    nodes: jd.Swept = jd.field(8.0, at_least=4, whole=True)  # vertices of a graph
    density: jd.Swept = jd.field(0.5, above=0, at_most=1)  # probability of an edge, for "random" ones
    walk: jd.Swept = 1.0  # 1 divides by the root of the degree ("rw"), 0 does not ("sym")
    power: jd.Swept = 0.5  # eigenvalues are taken to the power -power
    graphs: int = jd.field(25, at_least=1)  # number of graphs in a run
    largest: int = 12  # vertices for which there is room
    most: int = 40  # edges for which there is room; no graph may have more
    dtype: str = "float64"

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit."""
        jd.require(self, self.nodes <= self.largest, "nodes is at most largest", "nodes", "largest")
        jd.require(self, self.most >= self.largest - 1, "there is room for a tree", "most", "largest")
        connected = self.kind != "random" or graphs.chance(int(self.nodes), self.density) >= graphs.RARE
        jd.require(self, connected, "such graphs are connected more often than once in 250", "nodes", "density")


def trial(s: Line, key: PRNGKeyArray) -> jd.Observables:
    """Both sides of every identity, edge by edge; padding is 0."""
    row = dynamics.Embedding(s.walk, s.power)

    def one(k: PRNGKeyArray) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
        # a graph, and its line graph
        graph = graphs.draw(k, s.kind.index, s.nodes, s.density, size=s.largest)
        edges, away = graphs.edges_of(graph, s.most), graphs.distances(graph)
        spectrum = dynamics.spectrum(edges, s.largest, s.dtype)
        ends = jnp.sum(graph, 1)[edges.ends].astype(s.dtype)
        whole = jnp.where(edges.real, jnp.sum(ends, 1), 0)
        expected = jnp.where(edges.real, whole - 2, 0)
        squared = jnp.where(edges.real[:, None] & edges.real, dynamics.squared_distances(spectrum, row), 0)
        first = jnp.sqrt(jnp.maximum(expected, 0))
        constant = edges.real / jnp.sqrt(jnp.sum(edges.real).astype(s.dtype))
        # both sides of the identities
        by_inverse = dynamics.resistances(edges, s.largest, s.dtype)
        predicted = {"degree": expected, "first": first / jnp.linalg.norm(first), "resistance": by_inverse}
        predicted["along"] = dynamics.along(edges, graph, away, s.dtype)
        measured = {"degree": spectrum.degree, "first": jnp.abs(spectrum.vectors[:, 0]), "resistance": squared, "along": squared}
        recorded = {"whole": whole, "constant": constant, "steps": dynamics.steps(edges, away).astype(s.dtype)}
        recorded |= {"second": spectrum.values[1], "zero": jnp.abs(spectrum.values[0])}
        recorded["top"] = jnp.max(jnp.where(spectrum.values < 5, spectrum.values, 0))
        return predicted, measured, recorded | {"room": (jnp.sum(graph) // 2 <= s.most).astype(s.dtype)}

    axes = {"degree": "edge", "first": "edge", "resistance": "edge other", "along": "edge other"}
    axes |= {"whole": "edge", "constant": "edge", "steps": "edge other", "second": "", "zero": "", "top": "", "room": ""}
    groups = jax.lax.map(one, jax.random.split(key, s.graphs), batch_size=5)
    named = ({name: jd.named(x, f"graph {axes[name]}".strip()) for name, x in group.items()} for group in groups)
    predicted, measured, recorded = named
    return jd.observables(predicted=predicted, measured=measured, recorded=recorded)


EXACT = 1e-10


def room(ds: xr.Dataset) -> jd.Check:
    """Gate: no graph has more edges than there is room for."""
    return jd.gate("graphs that fit", ds.room, at_least=1.0)


def judge_line(ds: xr.Dataset) -> list[jd.Check]:
    """Degrees, and that the eigenvalue 0 is simple with the known eigenvector."""
    return [
        room(ds),
        jd.gate("smallest eigenvalue, absolutely", ds.zero, at_most=1e-12),
        jd.gate("largest eigenvalue", ds.top, at_most=2 + 1e-12),
        jd.at_most("degrees of edges: absolute error", abs(ds.measured_degree - ds.predicted_degree), 0),
        jd.at_most("first eigenvector: absolute error", abs(ds.measured_first - ds.predicted_first), EXACT),
        jd.at_least("second eigenvalue", ds.second, 1e-6),
    ]


def judge_resistance(ds: xr.Dataset) -> list[jd.Check]:
    """Squared distances against resistances."""
    error = abs(ds.measured_resistance - ds.predicted_resistance)
    return [room(ds), jd.at_most("squared distance minus resistance, absolutely", error, EXACT)]


def judge_along(ds: xr.Dataset) -> list[jd.Check]:
    """Squared distances against the sum along the path."""
    return [room(ds), jd.at_most("squared distance minus sum, absolutely", abs(ds.measured_along - ds.predicted_along), EXACT)]


def plot_resistance(ds: xr.Dataset, fig: Figure) -> None:
    """Squared distances over resistances."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_resistance, ds.measured_resistance, label="pairs of edges", color="measured", log=False)
    ax.set(xlabel="effective resistance", ylabel="squared distance")


def plot_along(ds: xr.Dataset, fig: Figure) -> None:
    """Squared distances over the sums along paths."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_along, ds.measured_along, label="pairs of edges", color="measured", log=False)
    ax.set(xlabel=r"$\sum 2/\deg v$ along the path", ylabel="squared distance")


def plot_line(ds: xr.Dataset, fig: Figure) -> None:
    """Entries of the first eigenvector."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_first, ds.measured_first, label="edges", color="measured", log=False)
    ax.set(xlabel=r"$\sqrt{d_e / \sum d}$", ylabel="first eigenvector")


GRAPHS = (
    "Algebra, no training: {graphs} random connected graphs $G(n, 1/2)$ and {graphs} random trees with 3 more edges, of {nodes} "
    "vertices each."
)
GRID = jd.grid(Line, kind=["random", "tree+3"], nodes=[5.0, 8.0, 12.0], most=54)
TREES = jd.grid(Line, kind="tree", nodes=[6.0, 12.0, 20.0, 30.0], largest=30, most=32)
STUDY = jd.Study(
    trial=trial,
    quick=GRID,
    seeds=1,
    evidence="algebra",
    bounds="derived: float64 rounding of an eigendecomposition",
    source="arXiv:2502.08794, section 4; background: random walks and electrical networks",
    tested=GRAPHS,
)

CLAIMS = (
    STUDY.claim(
        id="sln.linegraph",
        talks=("training:sln-algorithm",),
        title="The trivial eigenvector of a line graph is known in closed form",
        statement="In the line graph of a connected graph with two edges or more the edge $uv$ between vertices $u$ and $v$ has "
        r"degree $\deg u + \deg v - 2$, and the normalised Laplacian $I - D^{-1/2} A D^{-1/2}$, with the line graph's adjacency "
        r"matrix $A$ and diagonal matrix of degrees $D$, has the eigenvalue 0 once, with the eigenvector $\sqrt{d_e}$ ($d_e$ the "
        "degree of edge $e$), to $10^{-10}$.",
        judge=judge_line,
        controls={"graphs of two components": {"kind": "disconnected"}},
        rivals={
            r"the degree is $\deg u + \deg v$": jd.swap(predicted_degree="whole"),
            "the eigenvector is constant": jd.swap(predicted_first="constant"),
        },
        plot=plot_line,
        caption="First eigenvector, entry by entry, against the formula. A point an edge.",
    ),
    STUDY.claim(
        id="sln.resistance",
        title="Squared distance of embedded edges is effective resistance",
        statement=r"With $x_e = d_e^{-1/2} (v_k(e) / \sqrt{\lambda_k})_{k \geq 2}$, where $v_k$ and $\lambda_k$ are the "
        "eigenvectors and eigenvalues of the normalised Laplacian of a connected graph's line graph and $d_e$ is the degree of "
        r"edge $e$ there, $\|x_e - x_f\|^2$ is the effective resistance between $e$ and $f$ in the line graph, each of whose edges "
        "has resistance 1, to $10^{-10}$.",
        judge=judge_resistance,
        controls={r"without $d_e^{-1/2}$": {"walk": 0.0}, r"weights $1/\lambda$": {"power": 1.0}},
        rivals={"steps between edges": jd.swap(predicted_resistance="steps")},
        plot=plot_resistance,
        caption="Squared distance of embeddings over effective resistance, by the inverse of a matrix. A point a pair of edges.",
    ),
    STUDY.claim(
        id="sln.tree_distance",
        title="On a tree the distance of edges is a sum along the path between them",
        statement="On a tree the squared distance of edges $e$ and $f$ in the embedding $x_e = d_e^{-1/2} (v_k(e) / "
        r"\sqrt{\lambda_k})_{k \geq 2}$ is $\sum 2/\deg v$ over the vertices $v$ of the path that joins them, ends "
        r"included, to $10^{-10}$; $v_k$ and $\lambda_k$ are eigenvectors and eigenvalues of the line graph's normalised "
        "Laplacian, $d_e$ is the degree of $e$ there.",
        tested="Algebra, no training: {graphs} random recursive trees of each size, {nodes} vertices.",
        quick=TREES,
        judge=judge_along,
        controls={"3 more edges": {"kind": "tree+3"}, r"without $d_e^{-1/2}$": {"walk": 0.0}},
        rivals={"steps between edges": jd.swap(predicted_along="steps")},
        source="derived; arXiv:2502.08794 for the embedding",
        plot=plot_along,
        caption="Squared distance of embeddings over the sum along the path. A point a pair of edges.",
    ),
)
