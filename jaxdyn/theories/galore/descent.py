"""Gradient descent on quadratics: its gradients, their stable ranks, and the bounds on them."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, metrics, train
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
