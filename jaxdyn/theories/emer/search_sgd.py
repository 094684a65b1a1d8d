r"""The searching layer trained by SGD in its full matrix, vertices renamed at random in every example; then new graphs.

Embeddings are random and orthonormal in d dimensions, the matrix has d x d numbers, and every step samples ``batch`` names anew.
The matrix is read in the coordinates of the vertices. The step size is in units of the theory's time. After training, the layer
makes the next thought in graphs that it has not seen.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, train
from jaxdyn.theories.emer import instances, model
from jaxdyn.theories.emer.dynamics import search as theory
from jaxdyn.theories.emer.search_flow import assumptions, off_structure

SEEN = 1e-4  # an entry of a thought above it counts


@jd.setting
class SearchSgd:
    """The search problem of ``SearchFlow``, its training by SGD, and new graphs afterwards."""

    target: jd.Code = jd.code(*instances.TARGETS)  # demonstrated vertex, with K - gap, K or one edge from the thought
    train: jd.Code = jd.code("diagonal", "full")  # entries of the matrix that move
    lr: jd.Swept = jd.field(1.0, above=0)  # step size of SGD, in units of the theory's time
    span: jd.Swept = 40.0  # time between two records
    inside: jd.Swept = jd.field(3.0, at_least=2)  # K, vertices in the thought
    gap: jd.Swept = jd.field(1.0, at_least=1)  # the middle target has K - gap edges from the thought
    density: jd.Swept = jd.field(0.25, at_least=0, at_most=1)  # probability of every other edge
    renaming: jd.Swept = 1.0  # 1: vertices renamed at random in every example, 0: never
    vertices: int = 10  # n, vertices of a graph
    width: int = 16  # d, entries of an embedding
    batch: int = jd.field(40, at_least=1)  # namings per step
    records: int = jd.field(4, at_least=1)  # records after the start
    fresh: int = jd.field(128, at_least=1)  # new graphs read after training
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, self.vertices <= self.width, "width is at least vertices", "width", "vertices")
        jd.require(self, self.inside <= self.vertices - 4, "inside is at most vertices - 4", "inside", "vertices")
        jd.require(self, self.gap < self.inside, "gap is below inside", "gap", "inside")
        jd.require(self, self.lr <= self.span, "lr is at most span", "lr", "span")
        jd.require(self, self.renaming in (0, 1), "renaming is 0 or 1", "renaming")


def expanded(s: SearchSgd, w: Float[Array, "d d"], embed: Float[Array, "d n"], key: PRNGKeyArray) -> Float[Array, ""]:
    """Share of new graphs and thoughts from which the next thought holds exactly the vertices within one more step."""

    def one(key: PRNGKeyArray) -> Array:
        k_edges, k_size, k_place = jax.random.split(key, 3)
        edges = instances.random_digraph(k_edges, s.vertices, s.density, s.dtype)
        size = jax.random.randint(k_size, (), 1, s.vertices - 2)
        inside = jax.random.permutation(k_place, s.vertices) < size
        thought = jnp.where(inside, jax.lax.rsqrt(size.astype(s.dtype)), 0.0)
        after = model.logits(w, embed, thought, edges)
        return jnp.all((after > SEEN) == (inside | (thought @ edges > 0)))

    return jnp.mean(jax.vmap(one)(jax.random.split(key, s.fresh)), dtype=s.dtype)


def trial(s: SearchSgd, key: PRNGKeyArray) -> jd.Observables:
    """mu, nu and the rest of the matrix along training, next to the theory's two numbers; then the next thoughts."""
    n, dtype, (k_graph, k_embed, k_data, k_fresh) = s.vertices, s.dtype, jax.random.split(key, 4)
    # the problem, and its loss under the names of each step
    case = instances.sample(k_graph, n, s.inside, s.gap, s.density, s.target, dtype)
    embed = linalg.qr(jax.random.normal(k_embed, (s.width, n), dtype))[0]
    full = s.train == "full"
    moves = jnp.where(full, 1.0, jnp.eye(n)).astype(dtype)

    def orders(step: Any) -> Array:
        scores = jax.random.uniform(jax.random.fold_in(k_data, step), (s.batch, n))
        return jnp.where(s.renaming > 0, jnp.argsort(scores, -1), jnp.arange(n))

    def loss(w: Float[Array, "d d"], orders: Array) -> Float[Array, ""]:
        mine = embed @ (moves * (embed.T @ w @ embed)) @ embed.T  # only entries that train count; the others stay zero

        def one(order: Array) -> Array:
            named = instances.renamed(case, order)
            return model.coconut_loss(model.logits(mine, embed, named.thought, named.edges), named.target)

        return jnp.mean(jax.vmap(one)(orders))

    # SGD on the full matrix
    tx = optax.sgd(s.lr.astype(dtype))
    step = train.make_step(loss, tx, orders)
    every = jnp.round(s.span / s.lr).astype(jnp.int32)

    def read(state: train.State) -> tuple[Array, Array, Array]:
        return off_structure(embed.T @ state.params @ embed)

    start = train.init(tx, jnp.zeros((s.width, s.width), dtype))
    last, (mu, nu, rest) = train.record(step, start, read, samples=s.records, every=every)
    # the theory's two numbers at the same times
    double = jax.tree.map(lambda x: x.astype(jnp.float64), case._replace(reached=case.reached.astype(jnp.float64)))
    law = theory.law(*double._replace(reached=case.reached), bfs=jnp.bool_(False), free=jnp.where(full, 1.0, 0.0))
    path = theory.solve_short(law, s.span.astype(jnp.float64) * jnp.arange(s.records + 1))
    return jd.observables(
        predicted={"mu": jd.named(path.ys[:, 0], "record"), "nu": jd.named(path.ys[:, 1], "record"), "support": 1.0},
        measured={
            "mu": jd.named(mu.astype(jnp.float64), "record"),
            "nu": jd.named(nu.astype(jnp.float64), "record"),
            "support": expanded(s, last.params, embed, k_fresh),
        },
        recorded={
            "rest": jd.named(rest, "record"),
            "untrained": expanded(s, jnp.zeros_like(last.params), embed, k_fresh),
            "t": jd.named(s.span * jnp.arange(s.records + 1), "record"),
        },
        assumed=assumptions(law, s.inside),
        status=jnp.maximum(train.finite_status(last.params), path.status),
    )
