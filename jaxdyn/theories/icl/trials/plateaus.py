r"""Gradient flow from small random starts, of heads with separate keys and queries or of merged ones: where the loss rests.

The flow is by automatic differentiation of the exact population loss in all entries, to t = 794. A plateau is sought between the
levels of the theory: among the records whose loss is between the middles of neighbouring levels, the one at which the loss falls
most slowly in :math:`\ln t`. For the level of no learning it is the start's side of the first middle.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow
from jaxdyn.theories.icl import model
from jaxdyn.theories.icl.dynamics import merged, plateaus
from jaxdyn.theories.icl.trials import starts

__all__ = ["TIMES", "Plateaus", "resting", "separate_start", "trial"]

TIMES = (0.0, *(10 ** (-0.5 + 3.4 * i / 100) for i in range(101)))


@jd.setting
class Plateaus:
    """A layer, and its flow from a small start.

    Args:
        keys: separate keys and queries, or merged ones.
        size: standard deviation of every entry at the start.
        first: largest eigenvalue of the inputs' covariance.
        ratio: of each eigenvalue to the one before.
        length: N.
        inputs: d.
        heads: of rank one.
    """

    keys: jd.Code = jd.code("separate", "merged")
    size: jd.Swept = 0.05
    first: jd.Swept = 2.0
    ratio: jd.Swept = 0.5
    length: jd.Swept = 50.0
    inputs: int = 3
    heads: int = 3

    def __post_init__(self) -> None:
        jd.require(self, self.size > 0 and self.first > 0, "size and first are positive", "size", "first")
        jd.require(self, 0 < self.ratio <= 1, "ratio is above 0 and at most 1", "ratio")
        jd.require(self, self.length >= 1, "length is at least 1", "length")
        jd.require(self, self.inputs >= 2 and self.heads >= 1, "inputs is at least 2 and heads at least 1", "inputs", "heads")


def separate_start(s: Plateaus, key: PRNGKeyArray) -> model.Params:
    """Gaussian entries in one of the two parts, and zeros, which no gradient moves, in the other."""
    d, keys = s.inputs, jax.random.split(key, 5)
    shapes = [(d + 1, d + 1)] * 2 + [(s.heads, d + 1)] * 3
    here = [s.keys == "merged"] * 2 + [s.keys == "separate"] * 3
    draws = [s.size * jax.random.normal(k, shape, jnp.float64) for k, shape in zip(keys, shapes, strict=True)]
    return model.Params(*(jnp.where(where, x, 0.0) for where, x in zip(here, draws, strict=True)))


def resting(losses: Float[Array, " T"], times: Float[Array, " T"], levels: Float[Array, " d1"]) -> Int[Array, " d1"]:
    """Index of the record of every plateau; times begin with 0, which is no record of a plateau."""
    middle = (levels[1:] + levels[:-1]) / 2
    high, low = jnp.append(jnp.inf, middle), jnp.append(middle, -jnp.inf)
    log = jnp.log(jnp.maximum(times, 1e-9))
    fall = jnp.append(0.0, jnp.abs((losses[2:] - losses[:-2]) / (log[2:] - log[:-2])))
    fall = jnp.append(fall, fall[-1]).at[0].set(jnp.inf)
    inside = (losses[None] < high[:, None]) & (losses[None] >= low[:, None])
    at = jnp.argmin(jnp.where(inside, fall, jnp.inf), 1)
    nearest = jnp.argmin(jnp.abs(losses[None] - levels[:, None]), 1)  # where no record is inside
    return jnp.where(jnp.any(inside & jnp.isfinite(fall), 1), at, nearest)


def trial(s: Plateaus, key: PRNGKeyArray) -> jd.Observables:
    """Losses and strengths of the eigenvalues on the plateaus; the whole curve is recorded."""
    k_basis, k_start = jax.random.split(key)
    ts, d = jnp.asarray(TIMES, jnp.float64), s.inputs
    values, vectors = starts.spectrum(s.first, s.ratio, d), starts.basis(k_basis, d)
    lam = (vectors * values) @ vectors.T
    options = {"solver": "tsit5", "rtol": 1e-6, "atol": 1e-9, "max_steps": 50_000}
    solution = flow.gradient_flow(model.population_loss, separate_start(s, k_start), ts, lam, s.length, **options)
    losses = jax.vmap(lambda p: model.population_loss(p, lam, s.length))(solution.ys)
    predictors = jax.vmap(model.effective)(solution.ys)
    learned = vectors.T @ (merged.gamma(lam, s.length) @ predictors) @ vectors
    strengths = jnp.diagonal(learned, axis1=1, axis2=2)
    levels = plateaus.levels(values, s.length)
    at = resting(losses, ts, levels)
    return jd.observables(
        predicted={
            "level": jd.named(levels, "learned"),
            "strength": jd.named(plateaus.strengths(d), "learned eigenvalue"),
        },
        measured={
            "level": jd.named(losses[at], "learned"),
            "strength": jd.named(strengths[at], "learned eigenvalue"),
        },
        recorded={
            "loss": jd.named(losses, "time"),
            "strengths": jd.named(strengths, "time eigenvalue"),
            "rested": jd.named(ts[at], "learned"),
            "merged_level": jd.named(jnp.full(d + 1, levels[-1]).at[0].set(levels[0]), "learned"),
        },
        status=solution.status,
        coords={"time": TIMES},
    )
