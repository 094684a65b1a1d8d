"""The searching layer trained in its full matrix: by gradient flow of the average loss, and by SGD with random names.

Gradient flow of the searching layer's loss in its full matrix, averaged over names of the vertices, to t = 1e12.

"Measured" is the flow of the model's loss by automatic differentiation; its n x n numbers are read as mu, the mean of the
diagonal, and nu, the mean off the diagonal. Embeddings are orthonormal, so that the matrix may be written in their coordinates.
Where ``train`` is "diagonal", entries off the diagonal are frozen: the theorem's nu = 0.

The searching layer trained by SGD in its full matrix, vertices renamed at random in every example; then new graphs.

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
from jaxdyn import linalg, sampling, train
from jaxdyn.theories.emer import dynamics, model
from jaxdyn.theories.emer import dynamics as theory

FORMS = ("alone", "joint")  # mu moves alone; mu and nu move


@jd.setting
class SearchFlow:
    """A search problem and how its layer is trained.

    Args:
        loss: one demonstrated vertex, or any vertex within one more step.
        target: the demonstrated vertex (``instances.TARGETS``).
        train: entries of the matrix that move.
        inside: K, vertices in the thought.
        gap: the second vertex has K - gap edges from the thought.
        density: probability of every other edge.
        renaming: 1 averages the loss over names of the vertices, 0 has one naming only.
        spread: standard deviation of the matrix's entries at the start.
        vertices: a prime.
    """

    loss: jd.Code = jd.code("coconut", "bfs")
    target: jd.Code = jd.code(*model.TARGETS)
    train: jd.Code = jd.code("diagonal", "full")
    inside: jd.Swept = jd.field(3.0, at_least=2)
    gap: jd.Swept = jd.field(1.0, at_least=1)
    density: jd.Swept = jd.field(0.25, at_least=0, at_most=1)
    renaming: jd.Swept = 1.0
    spread: jd.Swept = jd.field(0.0, at_least=0)
    vertices: int = jd.field(7, above=4)

    def __post_init__(self) -> None:
        n = self.vertices
        jd.require(self, all(n % i for i in range(2, n)), "vertices is a prime", "vertices")
        jd.require(self, self.inside <= n - 4, f"inside is at most vertices - 4 = {n - 4}", "inside", "vertices")
        jd.require(self, self.gap < self.inside, "gap is below inside", "gap", "inside")
        jd.require(self, self.renaming in (0, 1), "renaming is 0 or 1", "renaming")


def average_loss(w: Float[Array, "n n"], named: model.Instance, weight: Float[Array, " g"], bfs: Any) -> Float[Array, ""]:
    """The loss of the layer, averaged over namings with these weights."""
    eye = jnp.eye(w.shape[0], dtype=w.dtype)

    def one(case: model.Instance) -> Float[Array, ""]:
        xi = model.logits(w, eye, case.thought, case.edges)
        return jnp.where(bfs, model.bfs_loss(xi, case.reached), model.coconut_loss(xi, case.target))

    return weight @ jax.vmap(one)(named)


def off_structure(w: Float[Array, "n n"]) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    r"""Mean mu on the diagonal and nu off it, and the root mean square of what is left of W without the two."""
    n, eye = w.shape[0], jnp.eye(w.shape[0], dtype=w.dtype)
    mu, nu = jnp.trace(w) / n, (jnp.sum(w) - jnp.trace(w)) / (n * (n - 1))
    return mu, nu, jnp.sqrt(jnp.mean((w - mu * eye - nu * (1 - eye)) ** 2))


def assumptions(law: theory.Law, inside: Any) -> dict[str, Float[Array, ""]]:
    """By how many edges the demonstrated vertex is below the highest degree and above the mean, and how far it is from the hull."""
    degree, unit = law.target @ law.a, jnp.sqrt(jnp.asarray(inside, jnp.float64))
    return {
        "below_top": (jnp.max(law.a) - degree) * unit,
        "above_mean": (degree - theory.mean_degree(law, jnp.float64(0))) * unit,
        "hull_gap": theory.hull_gap(law),
    }


def flow_trial(s: SearchFlow, key: PRNGKeyArray) -> jd.Observables:
    """mu, nu and the rest of the matrix along the flow, next to the theory's two numbers, their limits and slopes."""
    n, (k_graph, k_start) = s.vertices, jax.random.split(key)
    # the problem, under all its names
    case = model.sample(k_graph, n, s.inside, s.gap, s.density, s.target)
    orders, bfs, full = model.relabellings(n), s.loss == "bfs", s.train == "full"
    named = jax.vmap(lambda order: model.renamed(case, order))(orders)
    weight = jnp.where(s.renaming > 0, 1 / orders.shape[0], jnp.arange(orders.shape[0]) == 0).astype(jnp.float64)
    eye = jnp.eye(n, dtype=jnp.float64)
    moves = jnp.where(full, 1.0, eye)
    noise = sampling.normal(k_start, (n * n + 2,))
    # the layer's flow, and the rates of its entries at a random mu and nu
    law = theory.law(*case, bfs=bfs, free=jnp.where(full, 1.0, 0.0))

    def field(t: Any, w: Any, args: tuple) -> Any:
        named, weight, moves, bfs = args
        return -moves * jax.grad(average_loss)(w, named, weight, bfs)

    args = (named, weight, moves, bfs)
    start = s.spread * noise[2:].reshape(n, n) * moves
    ws, status = dynamics.solve_in_log_time(field, start, args)
    mu, nu, rest = jax.vmap(off_structure)(ws)
    at = noise[0] * eye + noise[1] * (1 - eye)
    rates = -jax.grad(average_loss)(at, named, weight, bfs)
    # what the theory predicts of both numbers
    path, solved = theory.solve(law)
    formula = theory.field(0.0, noise[:2], law._replace(free=jnp.float64(1)))
    slope, factor = theory.growth(law)
    separable = theory.hull_gap(law) > 0
    measured_slope = (mu[-1] - mu[-2]) / dynamics.DECADE
    return jd.observables(
        predicted={
            "mu": jd.named(path[:, 0], "time"),
            "nu": jd.named(path[:, 1], "time"),
            "rate": jd.named(formula, "number"),
            "limit": jd.named(jnp.stack([theory.root(law), path[-1, 0]]), "form"),
            "late": slope * jnp.log(factor * dynamics.TIMES[-1]),
            "slope": slope,
            "joint_slope": jnp.where(separable, theory.margin_slope(law), 0.0),
        },
        measured={
            "mu": jd.named(mu, "time"),
            "nu": jd.named(nu, "time"),
            "rate": jd.named(jnp.stack(off_structure(rates)[:2]), "number"),
            "limit": mu[-1],
            "late": mu[-1],
            "slope": measured_slope,
            "joint_slope": measured_slope,
        },
        recorded={
            "rest": jd.named(rest, "time"),
            "rate_rest": off_structure(rates)[2],
            "second_slope": 1 / jnp.max(law.a),
        },
        assumed=assumptions(law, s.inside),
        status=jnp.maximum(status, solved),
        coords={"form": FORMS, "number": ("mu", "nu"), "time": dynamics.TIMES},
    )


SEEN = 1e-4  # an entry of a thought above it counts


@jd.setting
class SearchSgd:
    """The search problem of ``SearchFlow``, its training by SGD, and new graphs afterwards."""

    target: jd.Code = jd.code(*model.TARGETS)  # demonstrated vertex, with K - gap, K or one edge from the thought
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
        edges = model.random_digraph(k_edges, s.vertices, s.density, s.dtype)
        size = jax.random.randint(k_size, (), 1, s.vertices - 2)
        inside = jax.random.permutation(k_place, s.vertices) < size
        thought = jnp.where(inside, jax.lax.rsqrt(size.astype(s.dtype)), 0.0)
        after = model.logits(w, embed, thought, edges)
        return jnp.all((after > SEEN) == (inside | (thought @ edges > 0)))

    return jnp.mean(jax.vmap(one)(jax.random.split(key, s.fresh)), dtype=s.dtype)


def sgd_trial(s: SearchSgd, key: PRNGKeyArray) -> jd.Observables:
    """mu, nu and the rest of the matrix along training, next to the theory's two numbers; then the next thoughts."""
    n, dtype, (k_graph, k_embed, k_data, k_fresh) = s.vertices, s.dtype, jax.random.split(key, 4)
    # the problem, and its loss under the names of each step
    case = model.sample(k_graph, n, s.inside, s.gap, s.density, s.target, dtype)
    embed = linalg.qr(jax.random.normal(k_embed, (s.width, n), dtype))[0]
    full = s.train == "full"
    moves = jnp.where(full, 1.0, jnp.eye(n)).astype(dtype)

    def orders(step: Any) -> Array:
        scores = jax.random.uniform(jax.random.fold_in(k_data, step), (s.batch, n))
        return jnp.where(s.renaming > 0, jnp.argsort(scores, -1), jnp.arange(n))

    def loss(w: Float[Array, "d d"], orders: Array) -> Float[Array, ""]:
        mine = embed @ (moves * (embed.T @ w @ embed)) @ embed.T  # only entries that train count; the others stay zero

        def one(order: Array) -> Array:
            named = model.renamed(case, order)
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
    double: model.Instance = jax.tree.map(lambda x: x.astype(jnp.float64), case._replace(reached=case.reached.astype(jnp.float64)))
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
