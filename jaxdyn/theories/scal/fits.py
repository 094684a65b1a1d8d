r"""Fits of the additive law to losses at pairs of size N and tokens D, as arrays of one program.

.. math:: \min_\theta\ s \sum_i w_i\,
   H_\delta\Bigl(\ln\bigl(e^{a - \alpha \ln N_i} + e^{b - \beta \ln D_i} + e^{e}\bigr) - \ln L_i\Bigr)

with Huber's loss :math:`H_\delta`, :math:`\theta = (a, b, e, \alpha, \beta)`, :math:`A = e^a` and so on; s = 1 sums, s = 1/n
averages.
Source: arXiv:2203.15556, section 3.3 (L-BFGS from a grid of 4500 starts); arXiv:2404.10102 (sum against mean); variable
projection as in arXiv:2603.22339. Departures: of the grid, the starts with the least objective are used; resampled fits go on by
Levenberg-Marquardt with Huber's weights, which needs tens of steps where L-BFGS needs hundreds (|r| has a kink on this scale).
Letters: n points, five parameters.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from jaxdyn import linalg
from jaxdyn.theories.scal.dynamics.laws import Law

DELTA = 1e-3
GRID = np.array(
    list(product(range(0, 26, 5), range(0, 26, 5), (-1, -0.5, 0, 0.5, 1), (0, 0.5, 1, 1.5, 2), (0, 0.5, 1, 1.5, 2))), float
)
EXPONENTS = 16  # of each kind, in the grid of variable projection
Theta = Float[Array, "5"]


class Points(NamedTuple):
    """Logarithms of sizes, tokens and losses, and the weight of each point (how often it was resampled)."""

    n: Float[Array, " n"]
    d: Float[Array, " n"]
    loss: Float[Array, " n"]
    weight: Float[Array, " n"]


class Stops(NamedTuple):
    """When L-BFGS-B ends: a step gains less than ``gain * max(|f|, 1)``, or no derivative is above ``slope``."""

    gain: Any = 1e-15
    slope: Any = 1e-12
    steps: int = 500


STRICT = Stops()


def terms(theta: Theta, p: Points) -> Float[Array, "3 n"]:
    """Logarithms of the three terms of the law."""
    a, b, e, alpha, beta = theta
    return jnp.stack([a - alpha * p.n, b - beta * p.d, jnp.broadcast_to(e, p.n.shape)])


def huber(r: Array) -> Array:
    """Huber's loss."""
    return jnp.where(jnp.abs(r) <= DELTA, 0.5 * r**2, DELTA * (jnp.abs(r) - 0.5 * DELTA))


def objective(theta: Theta, p: Points, scale: Any = 1.0) -> Float[Array, ""]:
    """The weighted sum of Huber's losses of the errors in ln L, times ``scale``."""
    return scale * jnp.sum(p.weight * huber(jax.nn.logsumexp(terms(theta, p), axis=0) - p.loss))


def as_law(theta: Theta) -> Law:
    """The law of a vector of parameters."""
    a, b, e, alpha, beta = theta
    return Law(jnp.exp(e), jnp.exp(a), jnp.exp(b), alpha, beta)


def starts(p: Points, count: int) -> Float[Array, "count 5"]:
    """The starts of Hoffmann's grid with the least objective."""
    grid = jnp.asarray(GRID)
    return grid[jnp.argsort(jax.lax.map(lambda theta: objective(theta, p), grid, batch_size=500))[:count]]


def lbfgs(theta: Theta, p: Points, scale: Any = 1.0, stops: Stops = STRICT) -> tuple[Theta, Int[Array, ""]]:
    """L-BFGS of optax with a zoom line search from one start, ended as L-BFGS-B is; the result and the steps made."""
    tx = optax.lbfgs(memory_size=10, linesearch=optax.scale_by_zoom_linesearch(max_linesearch_steps=20))

    def f(theta: Theta) -> Float[Array, ""]:
        return objective(theta, p, scale)

    def going(carry: tuple) -> Bool[Array, ""]:
        return ~carry[3] & (carry[2] < stops.steps)

    def step(carry: tuple) -> tuple:
        theta, state, i, _ = carry
        value, grad = optax.value_and_grad_from_state(f)(theta, state=state)
        updates, state = tx.update(grad, state, theta, value=value, grad=grad, value_fn=f)
        after, slope = optax.tree.get(state, "value"), optax.tree.get(state, "grad")
        small = value - after <= stops.gain * jnp.maximum(jnp.maximum(jnp.abs(value), jnp.abs(after)), 1)
        return optax.apply_updates(theta, updates), state, i + 1, small | (jnp.max(jnp.abs(slope)) <= stops.slope)

    theta, _, steps, _ = jax.lax.while_loop(going, step, (theta, tx.init(theta), jnp.int32(0), jnp.asarray(False)))
    return theta, steps


def levenberg(theta: Theta, p: Points, steps: int = 30) -> Theta:
    r"""Levenberg-Marquardt with Huber's weights :math:`\min(1, \delta/|r|)`, a fixed number of steps from one start.

    Steps that do not lower the objective are not made and raise the damping.
    """

    def step(carry: tuple, _: None) -> tuple[tuple, None]:
        theta, damping, value = carry
        z = terms(theta, p)
        total = jax.nn.logsumexp(z, axis=0)
        r, share = total - p.loss, jnp.exp(z - total)
        weight = p.weight * jnp.minimum(1, DELTA / jnp.maximum(jnp.abs(r), 1e-300))
        jac = jnp.concatenate([share, -share[:1] * p.n, -share[1:2] * p.d])
        h = (jac * weight) @ jac.T
        h = h + jnp.diag(damping * jnp.diag(h) + 1e-30)
        new = theta - linalg.solve(h, jac @ (weight * r))
        after = objective(new, p)
        better = after < value
        kept = jnp.where(better, new, theta), damping * jnp.where(better, 0.2, 5.0), jnp.where(better, after, value)
        return kept, None

    start = (theta, jnp.asarray(1e-3, theta.dtype), objective(theta, p))
    return jax.lax.scan(step, start, None, length=steps)[0][0]


def project(p: Points, low: float = 0.02, high: float = 2.0) -> Theta:
    r"""Variable projection: for each pair of exponents of a grid, E, A and B by linear least squares; the best pair.

    .. math:: \min_{\alpha, \beta}\ \min_{E, A, B \ge 0} \sum_i w_i \bigl((E + A N_i^{-\alpha} + B D_i^{-\beta}) / L_i - 1\bigr)^2

    The exponents are spread evenly in their logarithm; pairs whose coefficients are not all positive are left out. Its result
    is a start for the other fits, which needs no guess.
    """
    each = jnp.geomspace(low, high, EXPONENTS)
    n, d = p.n - jnp.mean(p.n), p.d - jnp.mean(p.d)

    def one(alpha: Array, beta: Array) -> tuple[Array, Array]:
        columns = jnp.stack([jnp.exp(-alpha * n), jnp.exp(-beta * d), jnp.ones_like(n)])
        columns = columns * jnp.exp(-p.loss)
        h = (columns * p.weight) @ columns.T
        x = linalg.solve(h + 1e-14 * jnp.trace(h) * jnp.eye(3), columns @ p.weight)
        error = jnp.sum(p.weight * (x @ columns - 1) ** 2)
        return jnp.where(jnp.all(x > 0), error, jnp.inf), x

    errors, x = jax.vmap(lambda alpha: jax.vmap(lambda beta: one(alpha, beta))(each))(each)
    i, j = jnp.unravel_index(jnp.argmin(errors), errors.shape)
    coefficient = jnp.log(jnp.maximum(x[i, j], 1e-300))
    shift = jnp.stack([each[i] * jnp.mean(p.n), each[j] * jnp.mean(p.d), jnp.zeros(())])
    return jnp.concatenate([coefficient + shift, each[i][None], each[j][None]])


def fitted(p: Points, steps: int = 60) -> Theta:
    """The fit that needs no start: variable projection, then Levenberg-Marquardt."""
    return levenberg(project(p), p, steps)


def resampled(key: Array, theta: Theta, p: Points, count: int, steps: int = 20) -> Float[Array, "count 5"]:
    """Fits to points drawn with replacement, each started from the fit of all points."""
    size = p.n.size

    def one(key: Array) -> Theta:
        drawn = jax.random.randint(key, (size,), 0, size)
        weight = jnp.zeros(size, p.n.dtype).at[drawn].add(1.0)
        return levenberg(theta, p._replace(weight=weight), steps)

    return jax.vmap(one)(jax.random.split(key, count))
