"""Gradient descent on quadratics: its gradients, their stable ranks, and the bounds on them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, metrics, train
from jaxdyn.theories.galore import model
from jaxdyn.theories.galore.dynamics import decay

__all__ = ["SAMPLES", "Quadratic", "problem", "trial"]

SAMPLES = 40  # of the curves


@jd.setting
class Quadratic:
    r"""A quadratic :math:`G = A - \overline{B_i W C_i}` and gradient descent on it.

    ``step`` is the step size as a share of :math:`2 / (\lambda_2 + \lambda_{max})`. Problems, all in random coordinates:

    - "random": B and C Wishart, ``terms`` of them;
    - "entries": every entry of G has an eigenvalue of its own, 0.05 and 0.5 in different rows and columns, about 3 on the
      diagonal and 1 elsewhere: the lowest eigenvector is a product :math:`yz^\top`, the largest ones together have full rank;
    - "pair": two terms of 2 × 2 matrices :math:`[[a, \pm b], [\pm b, c]]` near the counterexample; the lowest eigenvector has
      rank 2.

    ``bend`` makes A depend on W, ``flip`` changes the sign of the pair's second part.
    """

    step: jd.Swept = 0.5
    bend: jd.Swept = 0.0
    flip: jd.Swept = 0.0
    kind: str = "random"
    rows: int = 5
    cols: int = 4
    terms: int = 3
    every: int = 3  # steps between two samples

    def __post_init__(self) -> None:
        jd.require(self, self.step > 0, "step is positive", "step")
        jd.require(self, self.kind in ("random", "entries", "pair"), "kind is random, entries or pair", "kind")
        jd.require(self, min(self.rows, self.cols) >= 2, "both are at least 2", "rows", "cols")
        jd.require(self, self.terms >= 1 and self.every >= 1, "both are at least 1", "terms", "every")


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
    lowest = decay.modes(both, both).matrices[0]
    lowest = lowest / lowest[0, 0]  # diag(1, -x), and beside it diag(-x, -1), of a larger eigenvalue
    beside = jnp.diag(jnp.stack([lowest[1, 1], -jnp.ones((), jnp.float64)]))
    g = lowest + part * jnp.where(s.flip > 0.5, -1.0, 1.0) * beside
    left, right = (linalg.qr(jax.random.normal(k, (2, 2), jnp.float64))[0] for k in (k_left, k_right))
    return left @ both @ left.T, right @ both @ right.T, left @ g @ right.T


def _rate(excess: Float[Array, " t"], steps: Array) -> Array:
    """Slope of the logarithm of the excess over the steps, while it is between 1e-10 and 1e-6; 0 where it never is."""
    size = jnp.abs(excess)
    weight = jnp.where((size > 1e-10) & (size < 1e-6), 1.0, 0.0)
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


def trial(s: Quadratic, key: PRNGKeyArray) -> jd.Observables:
    """Gradients along gradient descent by differentiation, and by the eigenvectors of S; stable ranks and bounds."""
    b, c, g = problem(s, key)
    modes = decay.modes(b, c)
    kept, first, second = decay.lowest(modes, g)
    eta = s.step * decay.largest_step(modes, second)[0]

    def negative(w: Array) -> Array:  # W starts at zero, so that A is the gradient there
        return -jax.grad(model.linear_loss)(w, g + s.bend * jnp.tanh(w), b, c)

    tx = optax.sgd(eta)

    def step(state: train.State) -> train.State:
        updates, opt = tx.update(-negative(state.params), state.opt)
        return train.State(optax.apply_updates(state.params, updates), opt, state.step + 1)

    start = train.init(tx, jnp.zeros_like(g))
    last, path = train.record(step, start, lambda state: negative(state.params), samples=SAMPLES, every=s.every)
    steps = s.every * jnp.arange(SAMPLES + 1)
    printed, corrected = decay.bounds(modes, g, eta, steps)
    rank = metrics.stable_rank(path)
    still, flow = jnp.broadcast_to(g, path.shape), decay.gradients(modes, g, eta, steps)
    decayed = jnp.exp(-eta * modes.values * steps[:, None]) * jnp.einsum("kmn,mn->k", modes.matrices, g)
    amounts = jnp.abs(jnp.einsum("kmn,mn->k", modes.matrices, g - kept))
    slowest = modes.values[jnp.argmax(jnp.where(amounts > 1e-9 * jnp.linalg.norm(g), 1 - eta * modes.values, -jnp.inf))]
    rho = decay.ratio(eta, first, slowest)
    delta = decay.ratio(eta, first, second) ** steps * jnp.linalg.norm(g - kept) / linalg.singular_values(kept)[0]
    order, rate = jnp.log(jnp.abs(rho)), _rate(rank - metrics.stable_rank(kept), steps)
    return jd.observables(
        predicted={
            "gradient": jd.named(flow, "time row col"),
            "bound": jd.named(jnp.stack([printed, corrected]), "form time"),
            "first_order": order,
            "second_order": 2 * order,
        },
        measured={
            "gradient": jd.named(path, "time row col"),
            "bound": jd.named(rank, "time"),
            "first_order": rate,
            "second_order": rate,
        },
        recorded={
            "still": jd.named(still, "time row col"),
            "flow": jd.named(jnp.einsum("tk,kmn->tmn", decayed, modes.matrices), "time row col"),
            "rank_start": metrics.stable_rank(g),
            "delta": jd.named(delta, "time"),
            "size": jd.named(jnp.linalg.norm(path, axis=(1, 2)) / jnp.linalg.norm(g), "time"),
        },
        assumed={
            "step_over_limit": s.step,
            "eigenvalue_gap": (second - first) / modes.values[-1],
            "second_share": jnp.max(jnp.where(modes.values == slowest, amounts, 0)) / jnp.linalg.norm(g),
            "kept_share": jnp.linalg.norm(kept) / jnp.linalg.norm(g),
        },
        status=train.finite_status(last.params),
        coords={"form": ("printed", "corrected")},
    )
