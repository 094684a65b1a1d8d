"""Claims on line graphs: degrees, the trivial eigenvector, resistances, and their closed form on trees."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sln.trials.spectrum import Line, trial

__all__ = ["CLAIMS", "judge_along", "judge_line", "judge_resistance"]

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
    return [room(ds), jd.at_most("squared distance less resistance, absolutely", error, EXACT)]


def judge_along(ds: xr.Dataset) -> list[jd.Check]:
    """Squared distances against the sum along the path."""
    return [room(ds), jd.at_most("squared distance less sum, absolutely", abs(ds.measured_along - ds.predicted_along), EXACT)]


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


GRAPHS = "random graphs $G(n, 1/2)$ that are connected, and random trees with 3 more edges, $n = 5, 8, 12$"
GRID = jd.grid(Line, kind=["random", "tree+3"], nodes=[5.0, 8.0, 12.0], most=54)
TREES = jd.grid(Line, kind="tree", nodes=[6.0, 12.0, 20.0, 30.0], largest=30, most=32)
STUDY = jd.Study(
    trial=trial,
    quick=GRID,
    seeds=1,
    evidence="algebra",
    bounds="derived",
    source="arXiv:2502.08794, section 4; background: random walks and electrical networks",
)

CLAIMS = (
    STUDY.claim(
        id="sln.linegraph",
        statement=r"In the line graph of a connected graph the edge $uv$ has degree $\deg u + \deg v - 2$, and the normalised "
        r"Laplacian $I - D^{-1/2} A D^{-1/2}$ has the eigenvalue 0 once, with the eigenvector $\sqrt{d_e}$, to $10^{-10}$. "
        f"(Algebra, no training; {GRAPHS}.)",
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
        statement=r"With $x_e = d_e^{-1/2} (v_k(e) / \sqrt{\lambda_k})_{k \geq 2}$, $v_k$ the eigenvectors of the line graph's "
        r"normalised Laplacian, $\|x_e - x_f\|^2$ is the effective resistance between $e$ and $f$ in the line graph, to "
        f"$10^{{-10}}$. (Algebra, no training; {GRAPHS}; without the factor $d_e^{{-1/2}}$ it is not.)",
        judge=judge_resistance,
        controls={r"without $d_e^{-1/2}$": {"walk": 0.0}, r"weights $1/\lambda$": {"power": 1.0}},
        rivals={"steps between edges": jd.swap(predicted_resistance="steps")},
        plot=plot_resistance,
        caption="Squared distance of embeddings over effective resistance, by the inverse of a matrix. A point a pair of edges.",
    ),
    STUDY.claim(
        id="sln.tree_distance",
        statement=r"On a tree the squared distance of edges $e$ and $f$ in the embedding $x_e = d_e^{-1/2} (v_k(e) / "
        r"\sqrt{\lambda_k})_{k \geq 2}$ is $\sum 2/\deg v$ over the vertices of the path that joins them, its ends included, to "
        "$10^{-10}$. (Algebra, no training; random recursive trees of 6 to 30 vertices.)",
        quick=TREES,
        judge=judge_along,
        controls={"3 more edges": {"kind": "tree+3"}, r"without $d_e^{-1/2}$": {"walk": 0.0}},
        rivals={"steps between edges": jd.swap(predicted_along="steps")},
        source="derived; arXiv:2502.08794 for the embedding",
        plot=plot_along,
        caption="Squared distance of embeddings over the sum along the path. A point a pair of edges.",
    ),
)
