r"""Runs of linear networks under gradient flow, beside their exact solutions.

Measured is gradient flow of the network's own loss (``jax.grad``, diffrax), predicted a closed form.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow
from jaxdyn.theories.cal.dynamics import linear as theory
from jaxdyn.theories.cal.model import deep_loss, deep_product, factor_loss, linear_loss
from jaxdyn.theories.cal.trials.checks import at_least_one, falling, positive
from jaxdyn.theories.cal.trials.starts import linear_start, orthonormal, orthonormals, spectrum

__all__ = ["Deep", "Symmetric", "TwoLayer", "deep_trial", "symmetric_trial", "two_layer_trial"]


@jd.setting
class TwoLayer:
    """Gradient flow of a two-layer linear network from a start with a known solution.

    ``imbalance`` is the conserved ``a^2 - b^2`` of each mode that the theory takes into account, ``unknown`` a further one
    that it does not. The start "frames" is balanced but not aligned with the singular vectors of the target.
    """

    start: jd.Code = jd.code("aligned", "unbalanced", "frames")
    imbalance: jd.Swept = 0.0
    unknown: jd.Swept = 0.0
    strength: jd.Swept = 0.05
    solver: jd.Code = jd.code(*flow.SOLVERS)  # a switch: one program for all, they share all but the solve
    rtol: float = 1e-10
    inputs: int = 4
    hidden: int = 3
    outputs: int = 2
    values: tuple[float, ...] | None = None  # singular values of the target; None: drawn
    horizon: float = 4.0
    samples: int = 32

    def __post_init__(self) -> None:
        positive(self, "strength", "horizon", "rtol")
        at_least_one(self, "inputs", "hidden", "outputs", "samples")
        falling(self, "values", min(self.inputs, self.hidden, self.outputs))


@jd.setting
class Deep:
    """Gradient flow of a deep linear network with ``depth`` weight matrices (further ones stay at the identity).

    ``miscount`` is added to the number of matrices that the theory assumes; ``unknown`` is added to the squared singular
    values of the first matrix, the others shrink so that the product starts where the theory assumes it.
    """

    depth: jd.Swept = 3.0
    strength: jd.Swept = 0.05
    miscount: jd.Swept = 0.0
    unknown: jd.Swept = 0.0
    solver: str = "tsit5"
    rtol: float = 1e-10
    width: int = 3
    max_depth: int = 4
    values: tuple[float, ...] | None = None  # singular values of the target; None: drawn
    horizon: float = 6.0
    samples: int = 32

    def __post_init__(self) -> None:
        positive(self, "strength", "horizon", "rtol")
        at_least_one(self, "width", "max_depth", "samples")
        falling(self, "values", self.width)
        whole = 1 <= self.depth <= self.max_depth and self.depth == int(self.depth)
        jd.require(self, whole, "depth is a whole number from 1 to max_depth", "depth", "max_depth")


@jd.setting
class Symmetric:
    """Gradient flow of ``||M - U U^T||^2 / 4``; ``split`` > 0 holds the two factors that far apart (a breach)."""

    init: jd.Swept = 0.3
    split: jd.Swept = 0.0
    solver: str = "tsit5"
    rtol: float = 1e-10
    size: int = 6
    rank: int = 4
    horizon: float = 4.0
    samples: int = 32

    def __post_init__(self) -> None:
        positive(self, "init", "horizon", "rtol")
        at_least_one(self, "size", "rank", "samples")


def two_layer_trial(s: TwoLayer, key: PRNGKeyArray) -> jd.Observables:
    """A two-layer network from an aligned start, balanced or not, or from a balanced start in random directions."""
    k_u, k_v, k_r, k_a, k_b, k_s, k_start = jax.random.split(key, 7)
    k = min(s.inputs, s.hidden, s.outputs)
    u, turned_u = orthonormals((k_u, k_b), s.outputs, k)
    v, turned_v = orthonormals((k_v, k_a), s.inputs, k)
    values = spectrum(k_s, k, 0.5, 2.0, s.values)
    m = (u * values) @ v.T
    strength = s.strength * jax.random.uniform(k_start, (k,), jnp.float64, 0.5, 1.5)
    frames = s.start == "frames"
    left = jnp.where(frames, turned_u, u)
    right = jnp.where(frames, turned_v, v)
    known = jnp.where(s.start == "unbalanced", s.imbalance, 0.0)
    start = linear_start(strength, known + s.unknown, left, right, orthonormal(k_r, s.hidden, k))

    ts = jnp.linspace(0.0, s.horizon, s.samples + 1, dtype=jnp.float64)
    solve = functools.partial(flow.gradient_flow, linear_loss, start, ts, m, rtol=s.rtol, atol=s.rtol / 100)
    sol = jax.lax.switch(s.solver.index, [functools.partial(solve, solver=name) for name in s.solver.names])

    def aligned(t):
        return (u * theory.logistic_mode(t, values, strength)) @ v.T

    def unbalanced(t):
        return (u * theory.unbalanced_mode(t, values, strength, jnp.where(known > 0, known, 1.0))) @ v.T

    def rotating(t):
        return theory.balanced_product(t, m, start)

    predicted = jax.vmap(lambda t: jax.lax.switch(s.start.index, [aligned, unbalanced, rotating], t))(ts)
    return jd.observables(
        predicted={"product": jd.named(predicted, "time row col")},
        measured={"product": jd.named(sol.ys.w2 @ sol.ys.w1, "time row col")},
        recorded={
            "t": jd.named(ts, "time"),
            "strengths": jd.named(jnp.einsum("oi,toj,ji->ti", u, sol.ys.w2 @ sol.ys.w1, v), "time mode"),
            "steps": sol.steps,
        },
        status=sol.status,
    )


def deep_trial(s: Deep, key: PRNGKeyArray) -> jd.Observables:
    """A network of ``depth`` square matrices, balanced and aligned; matrices beyond stay at the identity with rate 0."""
    k_rotation, k_s, k_start = jax.random.split(key, 3)
    d, n = s.width, s.depth
    rotations = orthonormals(jax.random.split(k_rotation, s.max_depth + 1), d, d)
    values = spectrum(k_s, d, 0.5, 1.5, s.values)
    strength = s.strength * jax.random.uniform(k_start, (d,), jnp.float64, 0.5, 1.5)
    even = strength ** (1 / n)
    first = jnp.sqrt(even**2 + jnp.where(n > 1, s.unknown, 0.0))
    others = even * (even / first) ** (1 / jnp.maximum(n - 1, 1))
    v, u = rotations[0], rotations[-1]

    def layer(i):
        out = jnp.where(n == i + 1, u, rotations[i + 1])
        into = rotations[i]
        active = (out * (first if i == 0 else others)) @ into.T
        return jnp.where(i < n, active, jnp.eye(d, dtype=jnp.float64))

    start = [layer(i) for i in range(s.max_depth)]
    rate = [jnp.where(i < n, 1.0, 0.0) for i in range(s.max_depth)]
    m = (u * values) @ v.T
    ts = jnp.linspace(0.0, s.horizon, s.samples + 1, dtype=jnp.float64)
    sol = flow.gradient_flow(deep_loss, start, ts, m, rate=rate, solver=s.solver, rtol=s.rtol, atol=s.rtol / 100)

    over = jax.vmap(jax.vmap(theory.deep_mode, (None, 0, 0, None)), (0, None, None, None))
    modes = over(ts, values, strength, n + s.miscount)
    product = jax.vmap(deep_product)(sol.ys)
    return jd.observables(
        predicted={"product": jd.named(jnp.einsum("di,ti,ei->tde", u, modes, v), "time row col")},
        measured={"product": jd.named(product, "time row col")},
        recorded={
            "t": jd.named(ts, "time"),
            "strengths": jd.named(jnp.einsum("oi,toj,ji->ti", u, product, v), "time mode"),
            "steps": sol.steps,
        },
        status=sol.status,
    )


def symmetric_trial(s: Symmetric, key: PRNGKeyArray) -> jd.Observables:
    """A symmetric factorisation of a matrix with eigenvalues of both signs, from a random start."""
    k_m, k_values, k_u, k_split = jax.random.split(key, 4)
    vectors = orthonormal(k_m, s.size, s.size)
    values = spectrum(k_values, s.size, -0.5, 2.0)
    m = (vectors * values) @ vectors.T
    start = s.init * jax.random.normal(k_u, (s.size, s.rank), jnp.float64)
    offset = s.split * orthonormal(k_split, s.size, s.rank)
    ts = jnp.linspace(0.0, s.horizon, s.samples + 1, dtype=jnp.float64)
    sol = flow.gradient_flow(factor_loss, start, ts, m, offset, solver=s.solver, rtol=s.rtol, atol=s.rtol / 100)
    predicted = jax.vmap(lambda t: theory.symmetric_gram(t, m, start))(ts)
    gram = sol.ys @ jnp.swapaxes(sol.ys + offset, -1, -2)
    return jd.observables(
        predicted={"product": jd.named(predicted, "time row col")},
        measured={"product": jd.named(gram, "time row col")},
        recorded={
            "t": jd.named(ts, "time"),
            "strengths": jd.named(jnp.einsum("oi,toj,ji->ti", vectors, gram, vectors), "time mode"),
            "steps": sol.steps,
        },
        status=sol.status,
    )
