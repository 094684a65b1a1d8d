r"""The three approaches of Hoffmann on a table of losses: sizes times budgets, every budget :math:`C = 6ND` at every size.

1. The lowest of all curves: at every one of many budgets the size with the lowest loss, interpolated along the budgets.
2. At each budget the vertex of a parabola through ln L over ln N.
3. The parametric fit.

The last two use the sizes within a factor of 5.5 of the best at each budget; models far from it have seen too few tokens for a law.

Source: arXiv:2203.15556, sections 3.1 to 3.3. Letters: s sizes, k budgets, r runs; x are logarithms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.stats import bonferroni_t
from jaxdyn.theories.scal import fits, optima
from jaxdyn.theories.scal.dynamics import laws

Values = np.ndarray | np.floating  # one number, too
APPROACHES = ("minimum over curves", "isoFLOP parabolas", "parametric fit")
BUDGETS = 1500  # of approach 1
NEAR = float(np.log(5.5))  # parabolas and the fit use the sizes within this of a budget's best


class Estimate(NamedTuple):
    """Results of all approaches."""

    exponents: Float[Array, " three"]
    lowest: Float[Array, " b"]  # ln N of approach 1 at its budgets
    vertices: Float[Array, " k"]  # ln N of approach 2 at the budgets
    theta: Float[Array, "5"]  # of approach 3
    held_out: Float[Array, ""]  # largest relative error at the last budget of a fit to all others, near its lowest loss


def estimate(n: Float[Array, " s"], budgets: Float[Array, " k"], losses: Float[Array, "s k"]) -> Estimate:
    """All approaches on one table.

    Args:
        n: sizes.
        budgets: in operations.
        losses: of each size at each budget.
    """
    # approaches 1 and 2
    x, c, y = jnp.log(n), jnp.log(budgets), jnp.log(losses)
    fine = jnp.linspace(c[0], c[-1], BUDGETS)
    curves = jax.vmap(lambda row: jnp.interp(fine, c, row), 0, 1)(y)
    lowest = optima.envelope(x, curves)
    vertices = optima.vertices(x, y.T, NEAR)
    # the parametric fit
    d = c - jnp.log(laws.COST) - x[:, None]
    used = jax.vmap(lambda row: optima.near(x, row, NEAR), 1, 1)(y).ravel()
    points = fits.Points(jnp.broadcast_to(x[:, None], d.shape).ravel(), d.ravel(), y.ravel(), used)
    theta = fits.fitted(points)
    # a fit without the last budget
    last = jnp.broadcast_to(jnp.arange(c.size) == c.size - 1, d.shape).ravel()
    rest = fits.as_law(fits.fitted(points._replace(weight=jnp.where(last, 0.0, used))))
    near = jnp.argsort(y[:, -1])[:3]
    error = jnp.abs(laws.loss(rest, n, jnp.exp(d[:, -1])) / losses[:, -1] - 1)[near]
    a = jnp.stack([optima.slope(fine, lowest), optima.slope(c, vertices), laws.exponent(fits.as_law(theta))])
    return Estimate(a, lowest, vertices, theta, jnp.max(error))


def estimates(n: np.ndarray, budgets: np.ndarray, losses: np.ndarray) -> Estimate:
    """As :func:`estimate` for several tables ``losses[..., s, k]``, as NumPy arrays in float64."""
    with jax.enable_x64(True):
        tables = jnp.asarray(losses.reshape(-1, *losses.shape[-2:]), jnp.float64)
        results = jax.device_get(_several(jnp.asarray(n, jnp.float64), jnp.asarray(budgets, jnp.float64), tables))
    return jax.tree.map(lambda x: np.reshape(x, (*losses.shape[:-2], *x.shape[1:])), results)


_several = jax.jit(jax.vmap(estimate, (None, None, 0)))


def jackknife(n: np.ndarray, budgets: np.ndarray, losses: np.ndarray) -> tuple[Any, Any]:
    r"""Results on the mean of all runs, and pseudo-values of each run: :math:`r\hat\theta - (r - 1)\hat\theta_{-i}`.

    A run is one seed at all sizes and budgets, ``losses[seed, s, k]``: its models share their data, and those of one size their
    start. Both are an :class:`Estimate` of NumPy arrays. Source: Tukey 1958; Efron and Stein 1981, The jackknife estimate of
    variance.
    """
    runs = len(losses)
    without = (losses.sum(0) - losses) / (runs - 1)
    every = estimates(n, budgets, np.concatenate([losses.mean(0)[None], without]))
    whole = jax.tree.map(lambda x: x[0], every)
    return whole, jax.tree.map(lambda x: runs * x[0] - (runs - 1) * x[1:], every)


def interval(
    value: np.ndarray | np.floating, pseudo: np.ndarray, level: float = 0.95
) -> tuple[np.ndarray | np.floating, np.ndarray | np.floating]:
    """Student's interval about a result from its pseudo-values [seed, ...]."""
    half = bonferroni_t(1, len(pseudo), level) * pseudo.std(0, ddof=1) / len(pseudo) ** 0.5
    return value - half, value + half
