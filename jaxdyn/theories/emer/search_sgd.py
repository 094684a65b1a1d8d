r"""The searching layer trained by SGD in its full matrix, vertices renamed at random in every example; then new graphs.

Embeddings are random and orthonormal in d dimensions, the matrix has d x d numbers, and every step draws ``batch`` names anew.
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
from jaxdyn.theories.emer.search_flow import off_structure

__all__ = ["SearchSgd", "trial"]

SEEN = 1e-4  # an entry of a thought above it counts


@jd.setting
class SearchSgd:
    """As in ``SearchFlow``; ``lr`` is the step size, ``span`` the time from one record to the next, ``fresh`` new graphs."""

    target: jd.Code = jd.code(*instances.TARGETS)
    train: jd.Code = jd.code("diagonal", "full")
    lr: jd.Swept = 1.0
    span: jd.Swept = 40.0
    inside: jd.Swept = 3.0
    gap: jd.Swept = 1.0
    density: jd.Swept = 0.25
    renaming: jd.Swept = 1.0
    vertices: int = 10
    width: int = 16
    batch: int = 40
    records: int = 4
    fresh: int = 128
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, self.vertices <= self.width, "width is at least vertices", "width", "vertices")
        jd.require(self, 2 <= self.inside <= self.vertices - 4, "inside is from 2 to vertices - 4", "inside", "vertices")
        jd.require(self, 1 <= self.gap < self.inside, "gap is from 1 to inside - 1", "gap", "inside")
        jd.require(self, 0 <= self.density <= 1, "density is from 0 to 1", "density")
        jd.require(self, self.lr > 0 and self.span >= self.lr, "0 < lr <= span", "lr", "span")
        jd.require(self, self.renaming in (0, 1), "renaming is 0 or 1", "renaming")
        for name in ("batch", "records", "fresh"):
            jd.require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)


def expanded(s: SearchSgd, w: Float[Array, "d d"], embed: Float[Array, "d n"], key: PRNGKeyArray) -> Float[Array, ""]:
    """Share of new graphs and thoughts from which the next thought holds exactly the vertices within one more step."""

    def one(key: PRNGKeyArray) -> Array:
        k_edges, k_size, k_place = jax.random.split(key, 3)
        edges = instances.random_digraph(k_edges, s.vertices, s.density, s.dtype)
        size = jax.random.randint(k_size, (), 1, s.vertices - 2)
        held = jax.random.permutation(k_place, s.vertices) < size
        thought = jnp.where(held, jax.lax.rsqrt(size.astype(s.dtype)), 0.0)
        after = model.logits(w, embed, thought, edges)
        return jnp.all((after > SEEN) == (held | (thought @ edges > 0)))

    return jnp.mean(jax.vmap(one)(jax.random.split(key, s.fresh)), dtype=s.dtype)


def trial(s: SearchSgd, key: PRNGKeyArray) -> jd.Observables:
    """mu, nu and the rest of the matrix along training, beside the theory's two numbers; then the next thoughts."""
    n, dtype, (k_graph, k_embed, k_data, k_fresh) = s.vertices, s.dtype, jax.random.split(key, 4)
    case = instances.draw(k_graph, n, s.inside, s.gap, s.density, s.target, dtype)
    embed = linalg.qr(jax.random.normal(k_embed, (s.width, n), dtype))[0]
    full = s.train == "full"
    moves = jnp.where(full, 1.0, jnp.eye(n)).astype(dtype)

    def orders(step: Any) -> Array:
        draws = jax.random.uniform(jax.random.fold_in(k_data, step), (s.batch, n))
        return jnp.where(s.renaming > 0, jnp.argsort(draws, -1), jnp.arange(n))

    def loss(w: Float[Array, "d d"], orders: Array) -> Float[Array, ""]:
        mine = embed @ (moves * (embed.T @ w @ embed)) @ embed.T  # only entries that train count; the others stay zero

        def one(order: Array) -> Array:
            named = instances.renamed(case, order)
            return model.coconut_loss(model.logits(mine, embed, named.thought, named.edges), named.target)

        return jnp.mean(jax.vmap(one)(orders))

    tx = optax.sgd(s.lr.astype(dtype))
    step = train.make_step(loss, tx, orders)
    every = jnp.round(s.span / s.lr).astype(jnp.int32)

    def read(state: train.State) -> tuple[Array, Array, Array]:
        return off_structure(embed.T @ state.params @ embed)

    start = train.init(tx, jnp.zeros((s.width, s.width), dtype))
    last, (mu, nu, rest) = train.record(step, start, read, samples=s.records, every=every)
    double = jax.tree.map(lambda x: x.astype(jnp.float64), case._replace(reached=case.reached.astype(jnp.float64)))
    law = theory.law(*double._replace(reached=case.reached), bfs=jnp.bool_(False), free=jnp.where(full, 1.0, 0.0))
    path = theory.solve_short(law, s.span.astype(jnp.float64) * jnp.arange(s.records + 1))
    root2 = jnp.sqrt(jnp.asarray(s.inside, jnp.float64))
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
        assumed={
            "below_top": (jnp.max(law.a) - law.target @ law.a) * root2,
            "above_mean": (law.target @ law.a - theory.mean_degree(law, jnp.float64(0))) * root2,
            "hull_gap": theory.hull_gap(law),
        },
        status=jnp.maximum(train.finite_status(last.params), path.status),
    )
