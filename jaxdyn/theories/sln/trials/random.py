r"""Navigation on random graphs: shares of ordered pairs for which it takes a shortest path, by embedding.

Means over pairs are exact under ties. Beside them one pair that is not adjacent is drawn a graph, and one walk by each method, so
that intervals of a share hold for independent graphs.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data import graphs
from jaxdyn.theories.sln import model
from jaxdyn.theories.sln.dynamics import line

__all__ = ["BEST", "FEW", "FORMS", "LITERAL", "OWN", "Random", "trial"]

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
    nodes: jd.Swept = 8.0
    density: jd.Swept = 0.5
    rw: jd.Swept = 1.0
    power: jd.Swept = 1.0
    graphs: int = 125
    largest: int = 10
    most: int = 45
    rows: str = "all"
    dtype: str = "float64"

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit."""
        jd.require(self, 4 <= self.nodes <= self.largest, "nodes is between 4 and largest", "nodes", "largest")
        jd.require(self, 0 < self.density <= 1, "density is above 0 and at most 1", "density")
        jd.require(self, self.graphs >= 2, "graphs is at least 2", "graphs")
        jd.require(self, self.rows in ROWS, f"rows is one of {', '.join(ROWS)}", "rows")
        jd.require(self, 0 <= self.rw <= 1, "rw is from 0 to 1", "rw")
        jd.require(self, self.most >= self.largest - 1, "there is room for a tree", "most", "largest")


def trial(s: Random, key: PRNGKeyArray) -> jd.Observables:
    """Shares over all pairs, over pairs that are not adjacent, and one walk a graph."""
    methods = (*ROWS[s.rows], model.GROUND, model.CHANCE)
    own = {OWN: line.Embedding(s.rw, s.power)}
    rows = model.stack([(own | line.EMBEDDINGS)[name] for name in ROWS[s.rows]], s.dtype)

    def one(k: PRNGKeyArray) -> tuple[Array, ...]:
        k_graph, k_pair, k_tie = jax.random.split(k, 3)
        graph = graphs.draw(k_graph, s.kind.index, s.nodes, s.density, size=s.largest)
        found = model.routed(graph, rows, s.most, s.dtype)
        pairs, far = model.targets(graph)
        drawn = jax.random.categorical(k_pair, jnp.where(far, 0.0, -jnp.inf).ravel().astype(jnp.float32))
        p = found.success.reshape(len(methods), -1)[:, drawn]
        walk = (jax.random.uniform(k_tie, (), s.dtype) < p).astype(s.dtype)
        counted = jnp.any(far) & (jnp.sum(graph) // 2 <= s.most)
        return model.share(found.success, pairs), model.share(found.success, far), walk, counted

    every, far, walk, counted = jax.lax.map(one, jax.random.split(key, s.graphs), batch_size=5)
    kept = counted[:, None].astype(s.dtype)
    at = jnp.array([methods.index(name) for name in LITERAL])
    pick = jnp.stack([at[jnp.argmax(jnp.sum(far * kept, 0)[at])], jnp.asarray(methods.index(OWN if s.rows == "own" else BEST))])
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
