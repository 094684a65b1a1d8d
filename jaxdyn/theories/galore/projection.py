"""Gradient descent within subspaces: fixed ones, and those that GaLore's optimizer finds again and again."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, train
from jaxdyn.optim.projection import galore
from jaxdyn.optim.subspace import Subspace
from jaxdyn.theories.galore import dynamics, model

NEVER = 2**30


def positive(key: PRNGKeyArray, terms: int, size: int) -> Float[Array, "N d d"]:
    """Symmetric matrices with eigenvalues between 0.5 and 1.5."""

    def one(key: PRNGKeyArray) -> Array:
        k_vectors, k_values = jax.random.split(key)
        q = linalg.qr(jax.random.normal(k_vectors, (size, size), jnp.float64))[0]
        return q * jax.random.uniform(k_values, (size,), jnp.float64, 0.5, 1.5) @ q.T

    return jax.vmap(one)(jax.random.split(key, terms))


@jd.setting
class Fixed:
    """Descent within fixed random subspaces on both sides."""

    step: jd.Swept = jd.field(0.5, above=0)  # step size over 2 / (kappa + lambda_max)
    size: int = 8  # rows and columns of W
    rank: int = jd.field(3, at_least=1)  # dimensions of each subspace
    terms: int = jd.field(3, at_least=1)  # N, terms of the mean of B_i W C_i
    steps: int = jd.field(60, at_least=3)  # steps at which the projected gradient is recorded

    def __post_init__(self) -> None:
        jd.require(self, self.rank < self.size, "rank is below size", "rank", "size")


@jd.setting
class Switching:
    """Descent by GaLore's optimizer, one-sided, without moments."""

    every: jd.Swept = jd.field(20.0, at_least=0)  # steps between two subspaces; 0 keeps the first
    step: jd.Swept = jd.field(1.0, above=0)  # learning rate times the largest eigenvalue of S
    size: int = 10  # rows and columns of W
    rank: int = jd.field(4, at_least=1)  # dimensions of a subspace
    terms: int = 4  # N, terms of the mean of B_i W C_i
    steps: int = 600  # steps of training

    def __post_init__(self) -> None:
        jd.require(self, self.rank < self.size, "rank is below size", "rank", "size")


@jd.setting
class Span:
    r"""Parametric gradients :math:`\frac1N\sum_i (a_i - B_i W f_i) f_i^\top` with inputs that lack dimensions."""

    free: jd.Swept = 0.0  # standard deviation of a part of A not of this form; 0 in the theorem
    rows: int = jd.field(6, at_least=1)  # rows of W
    size: int = 8  # columns of W, entries of an input
    span: int = jd.field(3, at_least=1, role="none")  # dimensions that the inputs span
    steps: int = 40  # steps of gradient descent

    def __post_init__(self) -> None:
        jd.require(self, self.span < self.size, "span is below size", "span", "size")


def fixed_trial(s: Fixed, key: PRNGKeyArray) -> jd.Observables:
    """Norms of the projected gradient along descent, and where the full gradient ends."""
    # coefficients and subspaces
    k_b, k_c, k_g, k_p, k_q = jax.random.split(key, 5)
    b, c = positive(k_b, s.terms, s.size), positive(k_c, s.terms, s.size)
    g = jax.random.normal(k_g, (s.size, s.size), jnp.float64)
    p, q = (linalg.qr(jax.random.normal(k, (s.size, s.rank), jnp.float64))[0] for k in (k_p, k_q))
    theory = dynamics.within(b, c, g, p, q)
    eta = s.step * 2 / (theory.kappa + theory.fastest)

    def step(w: Array) -> Array:
        full = -jax.grad(model.linear_loss)(w, g, b, c)
        return w + eta * p @ (p.T @ full @ q) @ q.T

    def observe(w: Array) -> tuple[Array, Array]:
        full = -jax.grad(model.linear_loss)(w, g, b, c)
        return jnp.linalg.norm(p.T @ full @ q), full

    # norms along descent, and its end
    _, (norms, path) = train.record(step, jnp.zeros_like(g), observe, samples=s.steps, every=1)
    small = norms[:-1] < 1e-5 * jnp.linalg.norm(g)  # below, rounding errors
    ratios = jnp.where(small, 0, norms[1:] / jnp.where(small, 1, norms[:-1]))
    many = jax.lax.fori_loop(0, 2000, lambda _, w: step(w), jnp.zeros_like(g))
    end = observe(many)[1]
    return jd.observables(
        predicted={
            "worst_ratio": 1 - eta * theory.kappa,
            "end": jd.named(theory.rest, "row col"),
        },
        measured={
            "worst_ratio": jnp.max(ratios),
            "end": jd.named(end, "row col"),
        },
        recorded={
            "none": jd.named(jnp.zeros_like(end), "row col"),
            "start": jd.named(g, "row col"),
            "norms": jd.named(norms, "time"),
            "full": jd.named(jnp.linalg.norm(path, axis=(1, 2)), "time"),
        },
        assumed={"step_over_limit": s.step, "kappa": theory.kappa},
        status=train.finite_status(end),
    )


def switching_trial(s: Switching, key: PRNGKeyArray) -> jd.Observables:
    """Norm of the gradient and rank of the accumulated update along training by the optimizer."""
    # coefficients and optimizer
    k_b, k_c, k_g = jax.random.split(key, 3)
    b, c = positive(k_b, s.terms, s.size), positive(k_c, s.terms, s.size)
    g = jax.random.normal(k_g, (s.size, s.size), jnp.float64)
    eta = s.step / dynamics.modes(b, c).values[-1]
    every = jnp.where(s.every > 0, jnp.round(s.every), NEVER).astype(jnp.int32)
    tx = galore(optax.sgd(eta), Subspace(rank=s.rank), every=every, scale=1.0)

    def loss(params: dict[str, Array]) -> Array:
        return model.linear_loss(params["w"], g, b, c)

    def observe(state: train.State) -> tuple[Array, Array]:
        values = linalg.singular_values(state.params["w"])
        rank = jnp.sum(values > 1e-9 * values[0])
        return jnp.linalg.norm(jax.grad(loss)(state.params)["w"]), rank.astype(jnp.float64)

    # training, and how many subspaces it has used
    step = train.make_step(loss, tx)
    start = train.init(tx, {"w": jnp.zeros_like(g)})
    last, (norms, ranks) = train.record(step, start, observe, samples=60, every=s.steps // 60)
    made = s.steps // 60 * jnp.arange(61)
    subspaces = jnp.ceil(made / every)
    return jd.observables(
        predicted={
            "rank": jd.named(jnp.minimum(subspaces * s.rank, s.size).astype(jnp.float64), "time"),
            "end": jnp.zeros(()),
            "final_rank": float(s.size),
        },
        measured={"rank": jd.named(ranks, "time"), "end": norms[-1] / norms[0], "final_rank": ranks[-1]},
        recorded={"norms": jd.named(norms / norms[0], "time"), "one_subspace": float(s.rank)},
        status=train.finite_status(last.params),
    )


def span_trial(s: Span, key: PRNGKeyArray) -> jd.Observables:
    """Singular values of the gradient along descent, and its part in the null space of S."""
    # inputs that span few dimensions
    k_f, k_mix, k_a, k_b, k_free = jax.random.split(key, 5)
    count = 2 * s.span
    inputs = jax.random.normal(k_mix, (count, s.span), jnp.float64) @ jax.random.normal(k_f, (s.span, s.size), jnp.float64)
    a = jax.random.normal(k_a, (count, s.rows), jnp.float64)
    b, c = positive(k_b, count, s.rows), jnp.einsum("ij,ik->ijk", inputs, inputs) / s.size
    g = jnp.einsum("im,in->mn", a, inputs) / count + s.free * jax.random.normal(k_free, (s.rows, s.size), jnp.float64)
    # the null space of S
    modes = dynamics.modes(b, c)
    null = modes.values < 1e-9 * modes.values[-1]
    eta = 1 / modes.values[-1]

    def negative(w: Array) -> Array:
        return -jax.grad(model.linear_loss)(w, g, b, c)

    # descent
    last, path = train.record(lambda w: w + eta * negative(w), jnp.zeros_like(g), negative, samples=s.steps, every=1)
    values = linalg.singular_values(path)
    inside = jnp.where(null, jnp.einsum("kmn,tmn->tk", modes.matrices, path), 0)
    return jd.observables(
        predicted={"null_dimensions": s.rows * (s.size - s.span) + jnp.zeros(())},
        measured={"null_dimensions": jnp.sum(null).astype(jnp.float64)},
        recorded={
            "beyond": jd.named(values[:, s.span] / values[0, 0], "time"),
            "within": values[0, s.span - 1] / values[0, 0],
            "entries_less_span": s.rows * s.size - s.span + jnp.zeros(()),
            "in_null": jd.named(jnp.linalg.norm(inside, axis=1) / jnp.linalg.norm(g), "time"),
        },
        status=train.finite_status(last),
    )
