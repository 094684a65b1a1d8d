r"""Gradient flow of the spectral contrastive loss of a linear encoder, from a random and from an aligned start.

"Measured" is the flow of the loss by automatic differentiation, over the distribution of views. The factors' law enters by its two
moments: 1/2 and 1/3 for uniform ones, 1 and 1 where nothing shrinks.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, sampling
from jaxdyn.theories.hyper.dynamics import spectral as theory

__all__ = ["Spectral", "trial"]

TIMES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 400.0)


@jd.setting
class Spectral:
    """A linear encoder: ``dim`` of ``width`` outputs, ``relevant`` of ``inputs`` bits kept, moments of the factors."""

    relevant: jd.Swept = 3.0
    dim: jd.Swept = 3.0
    mean: jd.Swept = 0.5
    second: jd.Swept = 1 / 3
    inputs: int = 8
    width: int = 8

    def __post_init__(self) -> None:
        jd.require(self, 1 <= self.relevant <= self.inputs, "relevant is from 1 to inputs", "relevant", "inputs")
        jd.require(self, 1 <= self.dim <= self.width, "dim is from 1 to width", "dim", "width")
        jd.require(self, 0 < self.mean**2 <= self.second <= 1, "second is from mean squared to 1", "mean", "second")


def loss(w: Float[Array, "d D"], plus: Float[Array, " D"], both: Float[Array, " D"]) -> Float[Array, ""]:
    """The spectral loss over the distribution of views."""
    gram = (w * both) @ w.T
    return -2 * jnp.sum(w * w * plus) + jnp.sum(gram * gram)


def trial(s: Spectral, key: PRNGKeyArray) -> jd.Observables:
    """The loss and the energy of irrelevant bits at the end from a random start; the path of an aligned one."""
    plus, both = theory.correlations(s.inputs, s.relevant, s.mean, s.second)
    ts, rows = jnp.asarray(TIMES, jnp.float64), jnp.arange(s.width)[:, None]
    random = 0.3 * sampling.normal(key, (s.width, s.inputs)) * (rows < s.dim)
    size = 0.01 * (1 + jnp.arange(min(s.width, s.inputs), dtype=jnp.float64))
    aligned = jnp.zeros((s.width, s.inputs), jnp.float64).at[jnp.arange(size.size), jnp.arange(size.size)].set(jnp.sqrt(size))
    both_starts = jnp.stack([random, aligned])
    kept = jnp.arange(s.inputs) < s.relevant

    def total(w: Float[Array, "two d D"], plus: Array, both: Array) -> Float[Array, ""]:
        return loss(w[0], plus, both) + loss(w[1], plus, both)

    path = flow.gradient_flow(total, both_starts, ts, plus, both, rtol=1e-10, atol=1e-12, max_steps=40_000)
    last, diagonal = path.ys[-1, 0], path.ys[:, 1, jnp.arange(size.size), jnp.arange(size.size)] ** 2
    energy = jnp.sum(last**2 * both, 0)
    return jd.observables(
        predicted={
            "least": theory.minimum(s.inputs, s.relevant, s.dim, s.mean, s.second),
            "path": jd.named(theory.logistic(size, plus[: size.size], both[: size.size], ts), "time coordinate"),
        },
        measured={
            "least": loss(last, plus, both),
            "path": jd.named(diagonal, "time coordinate"),
            "irrelevant": jnp.sum(jnp.where(kept, 0, energy)) / jnp.sum(energy),
        },
        recorded={
            "unlearned": loss(random, plus, both),
            "start": jd.named(size, "coordinate"),
            "unselected": jnp.asarray(1 - s.relevant / s.inputs, jnp.float64),
        },
        status=path.status,
        coords={"time": TIMES},
    )
