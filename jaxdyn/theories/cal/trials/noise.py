"""Runs on quadratics: gradient descent mode by mode, and SGD with gradient noise over independent replicas."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, train
from jaxdyn.theories.cal.dynamics import noise as theory
from jaxdyn.theories.cal.model import quadratic_loss
from jaxdyn.theories.cal.trials.checks import at_least_one, falling, positive

__all__ = ["Modes", "Noise", "modes_trial", "noise_trial"]


@jd.setting
class Modes:
    """Gradient descent on a random quadratic; ``noise`` on the gradients and ``momentum`` are breaches."""

    eta: jd.Swept = 0.2
    noise: jd.Swept = 0.0
    momentum: jd.Swept = 0.0
    size: int = 6
    curvatures: tuple[float, ...] | None = None  # of the modes; None: drawn
    steps: int = 32

    def __post_init__(self) -> None:
        positive(self, "eta")
        at_least_one(self, "size", "steps")
        falling(self, "curvatures", self.size)


@jd.setting
class Noise:
    """SGD with gradient noise on a quadratic: ``curvature`` times the identity, or random with correlated noise.

    ``momentum`` is a breach. The stationary state is observed in ``replicas`` runs, the first steps in ``starts`` others.
    """

    eta: jd.Swept = 0.2
    sigma: jd.Swept = 0.5
    curvature: jd.Swept = 1.3
    momentum: jd.Swept = 0.0
    problem: jd.Code = jd.code("scalar", "matrix")
    size: int = 4
    replicas: int = 32
    starts: int = 1024
    burn_in: int = 128
    steps: int = 1024

    def __post_init__(self) -> None:
        positive(self, "eta", "curvature")
        at_least_one(self, "size", "starts", "burn_in", "steps")
        jd.require(self, self.replicas >= 2, "replicas is at least 2: the standard error comes from them", "replicas")


TRANSIENT = (1, 2, 4, 8, 16, 32)


def _orthogonal(key: PRNGKeyArray, d: int) -> Float[Array, "d d"]:
    return linalg.qr(jax.random.normal(key, (d, d), jnp.float64))[0]


def modes_trial(s: Modes, key: PRNGKeyArray) -> jd.Observables:
    """Gradient descent on a random quadratic, mode by mode at every step."""
    k_vectors, k_values, k_start, k_noise = jax.random.split(key, 4)
    vectors = _orthogonal(k_vectors, s.size)
    drawn = jax.random.uniform(k_values, (s.size,), jnp.float64, 0.1, 2.0)
    h = jnp.sort(drawn if s.curvatures is None else jnp.asarray(s.curvatures, jnp.float64))
    hessian = vectors @ (h[:, None] * vectors.T)
    x0 = 1 + jax.random.uniform(k_start, (s.size,), jnp.float64)

    def batch(step: Int[Array, ""]) -> Float[Array, " d"]:
        return s.noise * jax.random.normal(jax.random.fold_in(k_noise, step), (s.size,), jnp.float64)

    tx = optax.sgd(s.eta, momentum=s.momentum)
    step = train.make_step(lambda x, xi: quadratic_loss(x, xi, hessian), tx, batch)
    _, xs = train.record(step, train.init(tx, vectors @ x0), lambda c: c.params, samples=s.steps, every=1)
    modes = xs @ vectors
    steps = jnp.arange(1, s.steps + 1)
    exact = jax.vmap(lambda n: theory.mean_after(n, s.eta, h, x0))(steps)
    rate = -jnp.log(jnp.abs(modes[2] / modes[0])) / (2 * s.eta)
    return jd.observables(
        predicted={"amplitude": jd.named(exact, "step mode"), "rate": jd.named(theory.decay_rate(s.eta, h), "mode")},
        measured={"amplitude": jd.named(modes[1:], "step mode"), "rate": jd.named(rate, "mode")},
        recorded={"curvature": jd.named(h, "mode")},
        coords={"step": range(1, s.steps + 1)},
    )


def _statistics(xs: Float[Array, "replica *shape"], count: int) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Mean over replicas (leading axis) of a statistic, and its standard error."""
    return jnp.mean(xs, 0), jnp.std(xs, 0, ddof=1) / count**0.5


def noise_trial(s: Noise, key: PRNGKeyArray) -> jd.Observables:
    """SGD from the minimum: covariance after a few steps and in the stationary state, over independent replicas."""
    k_vectors, k_values, k_mix, k_noise, k_start = jax.random.split(key, 5)
    d, matrix = s.size, s.problem == "matrix"
    vectors = jnp.where(matrix, _orthogonal(k_vectors, d), jnp.eye(d, dtype=jnp.float64))
    h = jnp.where(matrix, jax.random.uniform(k_values, (d,), jnp.float64, 0.5, 1.0), 1.0) * s.curvature
    hessian = vectors @ (h[:, None] * vectors.T)
    mix = jnp.where(matrix, jax.random.normal(k_mix, (d, d), jnp.float64) / d**0.5, jnp.eye(d, dtype=jnp.float64)) * s.sigma
    c = mix @ mix.T

    def path(k: PRNGKeyArray, count: int) -> Float[Array, "step d"]:
        def batch(step: Int[Array, ""]) -> Float[Array, " d"]:
            return mix @ jax.random.normal(jax.random.fold_in(k, step), (d,), jnp.float64)

        tx = optax.sgd(s.eta, momentum=s.momentum)
        step = train.make_step(lambda x, xi: quadratic_loss(x, xi, hessian), tx, batch)
        first = train.init(tx, jnp.zeros((d,), jnp.float64))
        return train.record(step, first, lambda state: state.params, samples=count, every=1)[1]

    keys = jax.random.split(k_noise, s.replicas), jax.random.split(k_start, s.starts)
    xs, early = (jax.vmap(path, (0, None))(k, n) for k, n in zip(keys, (s.burn_in + s.steps, TRANSIENT[-1]), strict=True))
    late = xs[:, s.burn_in + 1 :]
    stationary, stationary_se = _statistics(jnp.einsum("rti,rtj->rij", late, late) / s.steps, s.replicas)
    transient = jnp.mean(jnp.sum(early[:, jnp.array(TRANSIENT)] ** 2, -1), 0)
    grown = jax.vmap(lambda n: jnp.trace(theory.covariance_after(n, s.eta, h, vectors, c)))(jnp.array(TRANSIENT))
    return jd.observables(
        predicted={
            "covariance": jd.named(theory.stationary_covariance(s.eta, h, vectors, c), "row col"),
            "transient": jd.named(grown, "step"),
        },
        measured={"covariance": jd.named(stationary, "row col"), "transient": jd.named(transient, "step")},
        recorded={
            "covariance_error": jd.named(stationary_se, "row col"),
            "diffusion": jd.named(theory.diffusion_covariance(s.eta, h, vectors, c), "row col"),
        },
        coords={"step": TRANSIENT},
    )
