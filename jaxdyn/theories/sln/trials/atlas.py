r"""Navigation on all graphs of a collection, up to isomorphism, with vertices relabelled at random.

The probability of a shortest path is recorded for every ordered pair, with the labels of the collection ("predicted", as the theory
says that labels do not matter) and with random ones, brought back to those of the collection.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data import graphs
from jaxdyn.theories.sln import model
from jaxdyn.theories.sln.dynamics import line

__all__ = ["Atlas", "collection", "counterexamples", "trial"]

COUNTEREXAMPLES = (  # 8 vertices; edges of the graphs with the fewest on which weights 1/lambda fail for some pair
    "01 12 13 14 25 26 47 56 57 67",
    "01 12 13 14 25 26 37 47 56 67",
    "01 02 04 05 14 17 23 36 37 47",
    "01 04 12 14 23 27 36 45 57 67",
    "04 07 12 13 25 26 34 56 57 67",
)


def counterexamples(vertices: int) -> tuple[np.ndarray, ...]:
    """Graphs with 8 vertices and 10 edges, by their edges."""
    found = np.zeros((len(COUNTEREXAMPLES), 8, 8), bool)
    for graph, edges in zip(found, COUNTEREXAMPLES, strict=True):
        for u, v in edges.split():
            graph[int(u), int(v)] = graph[int(v), int(u)] = True
    return tuple(found) if vertices == 8 else ()


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


def trial(s: Atlas, key: PRNGKeyArray) -> jd.Observables:
    """Probabilities of shortest paths by both labellings, and whether every choice leads along one."""
    listed = collection(s)
    table = jnp.asarray(graphs.stacked(listed, s.largest))
    sizes = np.array([len(a) for a in listed])
    most = max(int(a.sum()) // 2 for a in listed)
    rows = model.stack(list(line.EMBEDDINGS.values()), s.dtype)
    rows = rows._replace(complete=jnp.broadcast_to(jnp.asarray(s.complete, s.dtype), rows.complete.shape))

    def one(graph: Bool[Array, "N N"], n: Array, k: PRNGKeyArray) -> tuple[Array, Array, Array, Array]:
        u = jax.random.uniform(k, (s.largest,), jnp.float32) + (jnp.arange(s.largest) >= n)
        order = jnp.argsort(u)  # vertices that are none stay last
        there, back = graphs.relabelled(graph, order), jnp.argsort(order)
        plain, other = model.routed(graph, rows, most, s.dtype), model.routed(there, rows, most, s.dtype)
        far = model.targets(graph)[1].astype(s.dtype)
        return plain.success, other.success[:, back][:, :, back], other.sure[:, back][:, :, back], far

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
