r"""Gradient flow of the searching layer's loss in its full matrix, averaged over names of the vertices, to t = 1e12.

"Measured" is the flow of the model's loss by automatic differentiation; its n x n numbers are read as mu, the mean of the
diagonal, and nu, the mean off the diagonal. Embeddings are orthonormal, so that the matrix may be written in their coordinates.
Where ``train`` is "diagonal", entries off the diagonal are frozen: the theorem's nu = 0.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import sampling
from jaxdyn.theories.emer import instances, longtime, model
from jaxdyn.theories.emer.dynamics import search as theory

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
    target: jd.Code = jd.code(*instances.TARGETS)
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


def average_loss(w: Float[Array, "n n"], named: instances.Instance, weight: Float[Array, " g"], bfs: Any) -> Float[Array, ""]:
    """The loss of the layer, averaged over namings with these weights."""
    eye = jnp.eye(w.shape[0], dtype=w.dtype)

    def one(case: instances.Instance) -> Float[Array, ""]:
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


def trial(s: SearchFlow, key: PRNGKeyArray) -> jd.Observables:
    """mu, nu and the rest of the matrix along the flow, next to the theory's two numbers, their limits and slopes."""
    n, (k_graph, k_start) = s.vertices, jax.random.split(key)
    # the problem, under all its names
    case = instances.sample(k_graph, n, s.inside, s.gap, s.density, s.target)
    orders, bfs, full = model.relabellings(n), s.loss == "bfs", s.train == "full"
    named = jax.vmap(lambda order: instances.renamed(case, order))(orders)
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
    ws, status = longtime.solve(field, start, args)
    mu, nu, rest = jax.vmap(off_structure)(ws)
    at = noise[0] * eye + noise[1] * (1 - eye)
    rates = -jax.grad(average_loss)(at, named, weight, bfs)
    # what the theory predicts of both numbers
    path, solved = theory.solve(law)
    formula = theory.field(0.0, noise[:2], law._replace(free=jnp.float64(1)))
    slope, factor = theory.growth(law)
    separable = theory.hull_gap(law) > 0
    measured_slope = (mu[-1] - mu[-2]) / longtime.DECADE
    return jd.observables(
        predicted={
            "mu": jd.named(path[:, 0], "time"),
            "nu": jd.named(path[:, 1], "time"),
            "rate": jd.named(formula, "number"),
            "limit": jd.named(jnp.stack([theory.root(law), path[-1, 0]]), "form"),
            "late": slope * jnp.log(factor * longtime.TIMES[-1]),
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
        coords={"form": FORMS, "number": ("mu", "nu"), "time": longtime.TIMES},
    )
