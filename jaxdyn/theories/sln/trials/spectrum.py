r"""Line graphs of random graphs: degrees, the trivial eigenvector, and squared distances beside resistances."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data import graphs
from jaxdyn.theories.sln.dynamics import line, resistance

__all__ = ["Line", "trial"]


@jd.setting
class Line:
    """Random graphs of one kind, and which embedding: ``walk`` 1 for "rw", 0 for "sym"; eigenvalues to the power -``power``."""

    kind: jd.Code = jd.code(*graphs.KINDS)
    nodes: jd.Swept = 8.0
    density: jd.Swept = 0.5
    walk: jd.Swept = 1.0
    power: jd.Swept = 0.5
    graphs: int = 25
    largest: int = 12
    most: int = 40
    dtype: str = "float64"

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit."""
        jd.require(self, 4 <= self.nodes <= self.largest, "nodes is between 4 and largest", "nodes", "largest")
        jd.require(self, 0 < self.density <= 1, "density is above 0 and at most 1", "density")
        jd.require(self, self.graphs >= 1, "graphs is at least 1", "graphs")
        jd.require(self, self.most >= self.largest - 1, "there is room for a tree", "most", "largest")


def trial(s: Line, key: PRNGKeyArray) -> jd.Observables:
    """Both sides of every identity, edge by edge; padding is 0."""
    row = line.Embedding(s.walk, s.power)

    def one(k: PRNGKeyArray) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
        graph = graphs.draw(k, s.kind.index, s.nodes, s.density, size=s.largest)
        edges, away = graphs.edges_of(graph, s.most), graphs.distances(graph)
        found = line.spectrum(edges, s.largest, s.dtype)
        ends = jnp.sum(graph, 1)[edges.ends].astype(s.dtype)
        whole = jnp.where(edges.real, jnp.sum(ends, 1), 0)
        expected = jnp.where(edges.real, whole - 2, 0)
        squared = jnp.where(edges.real[:, None] & edges.real, line.squared_distances(found, row), 0)
        first = jnp.sqrt(jnp.maximum(expected, 0))
        constant = edges.real / jnp.sqrt(jnp.sum(edges.real).astype(s.dtype))
        by_inverse = resistance.resistances(edges, s.largest, s.dtype)
        predicted = {"degree": expected, "first": first / jnp.linalg.norm(first), "resistance": by_inverse}
        predicted["along"] = resistance.along(edges, graph, away, s.dtype)
        measured = {"degree": found.degree, "first": jnp.abs(found.vectors[:, 0]), "resistance": squared, "along": squared}
        recorded = {"whole": whole, "constant": constant, "steps": resistance.steps(edges, away).astype(s.dtype)}
        recorded |= {"second": found.values[1], "zero": jnp.abs(found.values[0])}
        recorded["top"] = jnp.max(jnp.where(found.values < 5, found.values, 0))
        return predicted, measured, recorded | {"room": (jnp.sum(graph) // 2 <= s.most).astype(s.dtype)}

    axes = {"degree": "edge", "first": "edge", "resistance": "edge other", "along": "edge other"}
    axes |= {"whole": "edge", "constant": "edge", "steps": "edge other", "second": "", "zero": "", "top": "", "room": ""}
    groups = jax.lax.map(one, jax.random.split(key, s.graphs), batch_size=5)
    named = ({name: jd.named(x, f"graph {axes[name]}".strip()) for name, x in group.items()} for group in groups)
    return jd.observables(**dict(zip(("predicted", "measured", "recorded"), named, strict=True)))
