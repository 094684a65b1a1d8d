"""Gradient descent on quadratics: in the whole space, and within subspaces.

Gradient descent on quadratics: its gradients, their stable ranks, and the bounds on them.

Gradient descent within subspaces: fixed ones, and those that GaLore's optimizer finds again and again.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, metrics, train
from jaxdyn.optim.projection import galore
from jaxdyn.optim.subspace import Subspace
from jaxdyn.theories.galore import dynamics, model

SAMPLES = 40  # of the curves
READ = slice(None, None, 4)  # those of which the whole gradient is stored


@jd.setting
class Quadratic:
    r"""A quadratic :math:`G = A - \overline{B_i W C_i}` and gradient descent on it.

    The kinds of problems, all in random coordinates:

    - "random": B and C Wishart, ``terms`` of them;
    - "entries": every entry of G has an eigenvalue of its own, 0.05 and 0.5 in different rows and columns, about 3 on the
      diagonal and 1 elsewhere: the lowest eigenvector is a product :math:`yz^\top`, the largest ones together have full rank;
    - "pair": two terms of 2 × 2 matrices :math:`[[a, \pm b], [\pm b, c]]` near the counterexample; the lowest eigenvector has
      rank 2.
    """

    step: jd.Swept = jd.field(0.5, above=0)  # step size over 2 / (lambda_2 + lambda_max)
    bend: jd.Swept = 0.0  # size of the part of A that follows tanh W
    flip: jd.Swept = 0.0  # 1: the second part of a pair's first gradient changes sign
    kind: str = "random"  # B and C: Wishart (random), one eigenvalue per entry, or a 2 x 2 pair
    rows: int = jd.field(5, at_least=2)  # rows of W; a pair has 2
    cols: int = jd.field(4, at_least=2)  # columns of W; a pair has 2
    terms: int = jd.field(3, at_least=1)  # N, terms of a random problem
    every: int = jd.field(3, at_least=1)  # steps between two samples

    def __post_init__(self) -> None:
        jd.require(self, self.kind in ("random", "entries", "pair"), "kind is random, entries or pair", "kind")


def _wishart(key: PRNGKeyArray, count: int, size: int) -> Float[Array, "N d d"]:
    x = jax.random.normal(key, (count, size, 2 * size), jnp.float64)
    return x @ jnp.swapaxes(x, 1, 2) / (2 * size)


def _entries(s: Quadratic, k_left: PRNGKeyArray, k_values: PRNGKeyArray) -> tuple[Array, Array]:
    r"""B and C of rank one and full rank, :math:`B_i = m u_i u_i^\top` and :math:`C_i = V \mathrm{diag}(\lambda_i) V^\top`."""
    off = jax.random.uniform(k_values, (s.rows, s.cols), jnp.float64, -1, 1)
    diagonal = jnp.eye(s.rows, s.cols, dtype=bool)
    values = jnp.where(diagonal, 3 * (1 + 0.01 * off), 1 + 0.2 * off)
    values = values.at[0, -1].set(0.05).at[1, 0].set(0.5)
    u, v = (linalg.qr(jax.random.normal(jax.random.fold_in(k_left, n), (n, n), jnp.float64))[0] for n in (s.rows, s.cols))
    return s.rows * jnp.einsum("ai,bi->iab", u, u), jnp.einsum("aj,ij,bj->iab", v, values, v)


def _pair(s: Quadratic, key: PRNGKeyArray) -> tuple[Array, Array, Array]:
    """The counterexample (N = 2) with its numbers scaled by up to 5%, in turned coordinates."""
    k_numbers, k_part, k_left, k_right = jax.random.split(key, 4)
    numbers = jnp.asarray([1.0, 0.9, 2.0]) * jax.random.uniform(k_numbers, (3,), jnp.float64, 0.95, 1.05)
    part = 0.3 * jax.random.uniform(k_part, (), jnp.float64, 0.8, 1.2)
    same = jnp.stack([jnp.stack([numbers[0], numbers[1]]), jnp.stack([numbers[1], numbers[2]])])
    both = jnp.stack([same, same * jnp.asarray([[1.0, -1.0], [-1.0, 1.0]])])
    lowest = dynamics.modes(both, both).matrices[0]
    lowest = lowest / lowest[0, 0]  # diag(1, -x), and next to it diag(-x, -1), of a larger eigenvalue
    higher = jnp.diag(jnp.stack([lowest[1, 1], -jnp.ones((), jnp.float64)]))
    g = lowest + part * jnp.where(s.flip > 0.5, -1.0, 1.0) * higher
    left, right = (linalg.qr(jax.random.normal(k, (2, 2), jnp.float64))[0] for k in (k_left, k_right))
    return left @ both @ left.T, right @ both @ right.T, left @ g @ right.T


def _late(excess: Float[Array, " t"], remaining: Float[Array, " t"]) -> Float[Array, " t"]:
    """1 while the excess is between 1e-10 and 1e-6 and the gradient above 1e-4 of its start, so that neither is rounding errors."""
    size = jnp.abs(excess)
    return jnp.where((size > 1e-10) & (size < 1e-6) & (remaining > 1e-4), 1.0, 0.0)


def _rate(excess: Float[Array, " t"], weight: Float[Array, " t"], steps: Array) -> Array:
    """Slope of the logarithm of the excess over the steps, at the records with weight; 0 without any."""
    size = jnp.abs(excess)
    count = jnp.maximum(jnp.sum(weight), 1)
    x, y = steps.astype(excess.dtype), jnp.log(jnp.where(weight > 0, size, 1))
    x, y = (v - jnp.sum(weight * v) / count for v in (x, y))
    spread = jnp.sum(weight * x * x)
    return jnp.where(spread > 0, jnp.sum(weight * x * y) / jnp.where(spread > 0, spread, 1), 0)


def problem(s: Quadratic, key: PRNGKeyArray) -> tuple[Array, Array, Array]:
    """B, C and the gradient at the start."""
    if s.kind == "pair":
        return _pair(s, key)
    k_b, k_c, k_g = jax.random.split(key, 3)
    g = jax.random.normal(k_g, (s.rows, s.cols), jnp.float64)
    if s.kind == "entries":
        return *_entries(s, k_b, k_c), g
    return _wishart(k_b, s.terms, s.rows), _wishart(k_c, s.terms, s.cols), g


class Descent(NamedTuple):
    """A run: its modes, the start and its lowest part, the step size, both lowest eigenvalues, and the gradients at the samples."""

    modes: dynamics.Modes
    start: Float[Array, "m n"]
    kept: Float[Array, "m n"]
    eta: Float[Array, ""]
    first: Float[Array, ""]
    second: Float[Array, ""]
    steps: Int[Array, " t"]
    path: Float[Array, "t m n"]


def descend(s: Quadratic, key: PRNGKeyArray) -> Descent:
    """Gradient descent from zero weights, its gradients by differentiation."""
    b, c, g = problem(s, key)
    modes = dynamics.modes(b, c)
    kept, first, second = dynamics.lowest(modes, g)
    eta = s.step * dynamics.largest_step(modes, second)[0]

    def negative(w: Array) -> Array:  # W starts at zero, so that A is the gradient there
        return -jax.grad(model.linear_loss)(w, g + s.bend * jnp.tanh(w), b, c)

    _, path = train.record(lambda w: w + eta * negative(w), jnp.zeros_like(g), negative, samples=SAMPLES, every=s.every)
    return Descent(modes, g, kept, eta, first, second, s.every * jnp.arange(SAMPLES + 1), path)


def _norms(run: Descent) -> Float[Array, " t"]:
    """Of the gradients, in parts of that of the start."""
    return jnp.linalg.norm(run.path, axis=(1, 2)) / jnp.linalg.norm(run.start)


def ranks(run: Descent) -> Float[Array, " t"]:
    """Stable ranks; 1 for the zero matrix, which rounding can make of a gradient that has decayed: no judge reads it."""
    gone = jnp.all(run.path == 0, (1, 2), keepdims=True)
    return metrics.stable_rank(jnp.where(gone, 1.0, run.path))


def bound_trial(s: Quadratic, key: PRNGKeyArray) -> jd.Observables:
    """Stable ranks along descent, and both bounds."""
    run = descend(s, key)
    bounds = dynamics.bounds(run.modes, run.start, run.eta, run.steps)
    # the gradient and its part outside the lowest eigenspace, relative to the part inside, which falls by a known factor
    fall = ((1 - run.eta * run.first) ** run.steps)[:, None, None] * linalg.singular_values(run.kept)[0]
    whole = run.path / fall
    rest = whole - run.kept / linalg.singular_values(run.kept)[0]
    return jd.observables(
        predicted={
            "bound": jd.named(jnp.stack([bounds.printed, bounds.corrected]), "form time"),
            "rest": jd.named(bounds.delta, "time"),
            "square": jd.named(bounds.square, "time"),
        },
        measured={
            "bound": jd.named(ranks(run), "time"),
            "rest": jd.named(jnp.linalg.norm(rest, axis=(1, 2)), "time"),
            "square": jd.named(jnp.sum(whole**2, (1, 2)), "time"),
        },
        recorded={
            "rank_start": metrics.stable_rank(run.start),
            "delta": jd.named(bounds.delta, "time"),
            "remaining": jd.named(_norms(run), "time"),
        },
        assumed={
            "step_over_limit": s.step,
            "eigenvalue_gap": (run.second - run.first) / run.modes.values[-1],
            "kept_share": jnp.linalg.norm(run.kept) / jnp.linalg.norm(run.start),
        },
        coords={"form": ("printed", "corrected")},
    )


def descent_trial(s: Quadratic, key: PRNGKeyArray) -> jd.Observables:
    """Gradients along descent by differentiation and by modes, and the rate at which their stable rank approaches its limit."""
    run = descend(s, key)
    amounts = jnp.einsum("kmn,mn->k", run.modes.matrices, run.start)
    flow = jnp.exp(-run.eta * run.modes.values * run.steps[READ, None]) * amounts
    # the eigenvalue of the rest that decays last: the second one, or a later one of which the start has nothing before it
    rest, total = jnp.abs(jnp.einsum("kmn,mn->k", run.modes.matrices, run.start - run.kept)), jnp.linalg.norm(run.start)
    slowest = jnp.argmax(jnp.where(rest > 1e-9 * total, 1 - run.eta * run.modes.values, -jnp.inf))
    order = jnp.log(jnp.abs(dynamics.ratio(run.eta, run.first, run.modes.values[slowest])))
    excess = ranks(run) - metrics.stable_rank(run.kept)
    late = _late(excess, _norms(run))
    rate = _rate(excess, late, run.steps)
    axes = "time row col"
    return jd.observables(
        predicted={
            "gradient": jd.named(dynamics.gradients(run.modes, run.start, run.eta, run.steps[READ]), axes),
            "first_order": order,
            "second_order": 2 * order,
        },
        measured={"gradient": jd.named(run.path[READ], axes), "first_order": rate, "second_order": rate},
        recorded={
            "still": jd.named(run.start, "row col"),
            "flow": jd.named(jnp.einsum("tk,kmn->tmn", flow, run.modes.matrices), axes),
            "remaining": jd.named(_norms(run)[READ], "time"),
        },
        assumed={
            "step_over_limit": s.step,
            "kept_share": jnp.linalg.norm(run.kept) / total,
            "second_share": rest[slowest] / total,
            "late_records": jnp.sum(late),
        },
    )


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

    every: jd.Swept = jd.field(20.0, at_least=0, whole=True)  # steps between two subspaces; 0 keeps the first
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
