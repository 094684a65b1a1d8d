r"""Gradient flow of all entries of the layer's matrices on the exact population loss, beside the equations of two blocks.

The flow is by automatic differentiation of the loss in all :math:`2(d+1)^2` entries; it knows nothing of blocks. Time runs to
100, at records that are even in its logarithm.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow
from jaxdyn.theories.icl import model
from jaxdyn.theories.icl.dynamics import merged
from jaxdyn.theories.icl.trials import starts

__all__ = ["TIMES", "Limit", "trial"]

TIMES = (0.0, *(10 ** (-1 + 3 * i / 24) for i in range(25)))


@jd.setting
class Limit:
    """A layer with merged keys and queries, and its flow.

    Args:
        start: as in ``starts.first_weights``.
        size: of U at the start.
        imbalance: c.
        first: largest eigenvalue of the inputs' covariance.
        ratio: of each eigenvalue to the one before.
        length: N.
        inputs: d.
    """

    start: jd.Code = jd.code(*starts.STARTS)
    size: jd.Swept = 0.3
    imbalance: jd.Swept = 0.0
    first: jd.Swept = 2.0
    ratio: jd.Swept = 0.6
    length: jd.Swept = 10.0
    inputs: int = 4

    def __post_init__(self) -> None:
        jd.require(self, self.size > 0 and self.first > 0, "size and first are positive", "size", "first")
        jd.require(self, 0 < self.ratio <= 1, "ratio is above 0 and at most 1", "ratio")
        jd.require(self, self.length >= 1, "length is at least 1", "length")
        jd.require(self, self.inputs >= 2, "inputs is at least 2", "inputs")
        jd.require(self, self.imbalance > -(self.size**2), "imbalance is above -size^2", "imbalance", "size")


def trial(s: Limit, key: PRNGKeyArray) -> jd.Observables:
    """Both blocks along the flow and by their equations, their limits, the loss at the end, and the rest of the matrices."""
    k_basis, k_start = jax.random.split(key)
    ts, d = jnp.asarray(TIMES, jnp.float64), s.inputs
    vectors = starts.basis(k_basis, d)
    lam = (vectors * starts.spectrum(s.first, s.ratio, d)) @ vectors.T
    start = starts.first_weights(s.start, k_start, d, 1, s.size, s.imbalance)
    options = {"solver": "dopri8", "rtol": 1e-9, "atol": 1e-11, "max_steps": 20_000}
    solution = flow.gradient_flow(model.population_loss, start, ts, lam, s.length, **options)
    found, rest = starts.blocks(solution.ys.pv, solution.ys.kq)
    first = jax.tree.map(lambda x: x[0], found)
    path = merged.solve(first, lam, s.length, ts)
    held = jnp.square(found.u) - jnp.sum(jnp.square(found.block), (-1, -2))
    end, long = (merged.limit(lam, length, held[0]) for length in (s.length, 1e12))
    logistic = merged.logistic(ts, s.size**2 / d**0.5, d, s.length)
    strength = found.u * jnp.trace(found.block, axis1=-2, axis2=-1) / d
    last = jax.tree.map(lambda x: x[-1], solution.ys)
    return jd.observables(
        predicted={
            "u": jd.named(path.ys.u, "time"),
            "block": jd.named(path.ys.block, "time row col"),
            "u_end": end.u,
            "block_end": jd.named(end.block, "row col"),
            "loss_end": merged.least_loss(lam, s.length),
            "held": jd.named(jnp.full(len(TIMES), held[0]), "time"),
            "strength": jd.named(logistic, "time"),
        },
        measured={
            "u": jd.named(found.u, "time"),
            "block": jd.named(found.block, "time row col"),
            "u_end": found.u[-1],
            "block_end": jd.named(found.block[-1], "row col"),
            "loss_end": model.population_loss(last, lam, s.length),
            "held": jd.named(held, "time"),
            "strength": jd.named(strength, "time"),
        },
        recorded={
            "rest": jd.named(rest, "time"),
            "u_start": first.u,
            "block_start": jd.named(first.block, "row col"),
            "strength_start": strength[0],
            "loss_start": model.population_loss(start, lam, s.length),
            "u_long": long.u,
            "block_long": jd.named(long.block, "row col"),
            "u_balanced": merged.corner(lam, s.length, 0.0),
            "exponential": jd.named(logistic[-1] * -jnp.expm1(-2 * d**0.5 * ts), "time"),
        },
        status=jnp.maximum(solution.status, path.status),
        coords={"time": TIMES},
    )
