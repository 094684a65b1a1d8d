r"""Linear attention in context: the flow with merged or separate keys and queries, its limit, plateaus, errors on other prompts.

Merged keys and queries: the gradient flow of two blocks, its limit, and errors on prompts of another kind.

From the paper's start only the corner u of the values' matrix and the block U of the keys' and queries' matrix move,
:math:`\hat y = u\, w^\top S U x_q`:

.. math:: \dot U = -(u^2\Gamma\Lambda U\Lambda - u\Lambda^2), \quad
          \dot u = -(u\,\mathrm{tr}(\Gamma\Lambda U\Lambda U^\top) - \mathrm{tr}(\Lambda^2 U^\top)), \quad
          \Gamma = (1 + \tfrac1N)\Lambda + \tfrac{\mathrm{tr}\Lambda}{N} I

:math:`c = u^2 - \|U\|_F^2` is conserved and :math:`uU \to \Gamma^{-1}`, so that
:math:`u^2 \to \frac12(c + \sqrt{c^2 + 4\,\mathrm{tr}\,\Gamma^{-2}})`.
Source: arXiv:2306.09927, Theorem 4.1 (c = 0) and section 4.3 (other prompts); c of either sign, and the logistic path, are derived.
Letters: d inputs, N examples in training, M at test.

Separate keys and queries: the losses on which training from a small start rests, one eigenvalue after another.

.. math:: L_m = \tfrac12\Bigl[\mathrm{tr}\Lambda - \sum_{i \le m} \lambda_i^2/\Gamma_i\Bigr], \qquad
          \Gamma_i = (1 + \tfrac1N)\lambda_i + \tfrac{\mathrm{tr}\Lambda}{N}

for :math:`\lambda_1 > \lambda_2 > \dots` One mode learned by one head with :math:`v = \|k\| = \|q\| = a` obeys
:math:`\dot a = \lambda^2 a^2(1 - \Gamma_\lambda a^3)`: it waits for about :math:`1/(\lambda^2 a_0)`.
Source: arXiv:2501.16265, section 4. Letters: d inputs, N examples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn import flow, linalg

Scalar = float | int | Float[Array, ""]


class Blocks(NamedTuple):
    """The corner of the values' matrix, and the block of the keys' and queries' matrix."""

    u: Float[Array, ""]
    block: Float[Array, "d d"]


def gamma(covariance: Float[Array, "d d"], length: Scalar) -> Float[Array, "d d"]:
    r""":math:`\Gamma`, for which :math:`E[S^2] = \Gamma\Lambda`."""
    eye = jnp.eye(covariance.shape[0], dtype=covariance.dtype)
    return (1 + 1 / length) * covariance + jnp.trace(covariance) / length * eye


def slowest(eigenvalues: Float[Array, " d"], length: Scalar) -> Float[Array, ""]:
    r"""The least :math:`\Gamma_i\lambda_i^2`: times :math:`u^2` it is the rate of the slowest entry of U near its limit."""
    return jnp.min(((1 + 1 / length) * eigenvalues + jnp.sum(eigenvalues) / length) * eigenvalues**2)


def field(t: Any, y: Blocks, args: tuple[Float[Array, "D D"], Scalar]) -> Blocks:
    """The rates of both blocks."""
    del t
    lam, length = args
    mixed = gamma(lam, length) @ lam @ y.block @ lam
    square = lam @ lam
    return Blocks(jnp.sum(square * y.block) - y.u * jnp.sum(mixed * y.block), y.u * square - y.u**2 * mixed)


def solve(start: Blocks, covariance: Array, length: Scalar, ts: Float[Array, " T"]) -> flow.Solution:
    """Both blocks at the times ``ts``."""
    return flow.solve(field, start, ts, (covariance, length), solver="dopri8", rtol=1e-10, atol=1e-12, max_steps=20_000)


def corner(covariance: Float[Array, "d d"], length: Scalar, imbalance: Scalar) -> Float[Array, ""]:
    """The limit of u, from its conserved quantity."""
    inverse = linalg.inv(gamma(covariance, length))
    return jnp.sqrt((imbalance + jnp.sqrt(imbalance**2 + 4 * jnp.sum(inverse * inverse))) / 2)


def limit(covariance: Float[Array, "d d"], length: Scalar, imbalance: Scalar) -> Blocks:
    """Where the flow ends."""
    u = corner(covariance, length, imbalance)
    return Blocks(u, linalg.inv(gamma(covariance, length)) / u)


def least_loss(covariance: Float[Array, "d d"], length: Scalar) -> Float[Array, ""]:
    r"""The loss there, :math:`\frac12(\mathrm{tr}\Lambda - \mathrm{tr}\Lambda^2\Gamma^{-1})`."""
    inverse = linalg.inv(gamma(covariance, length))
    return 0.5 * (jnp.trace(covariance) - jnp.sum(covariance @ covariance * inverse))


def logistic(t: Float[Array, " T"], first: Scalar, inputs: int, length: Scalar) -> Float[Array, " T"]:
    r"""The strength q of :math:`uU = qI` for white inputs and c = 0: :math:`\dot q = 2\sqrt d\, q(1 - \gamma q)`."""
    top = 1 + (1 + inputs) / length
    return 1 / (top + (1 / first - top) * jnp.exp(-2 * inputs**0.5 * t))


def risk(
    predictor: Float[Array, "d d"],
    covariance: Float[Array, "d d"],
    length: Scalar,
    task: Float[Array, "d d"],
    noise: Scalar,
) -> Float[Array, ""]:
    r"""Mean squared error of :math:`w^\top S P x_q` on prompts of another law, against the label without noise.

    .. math:: \mathrm{tr}\,\Lambda\, E[(P^\top S - I)\Omega(SP - I)] + \tfrac{\sigma^2}{M}\mathrm{tr}\,\Lambda P^\top\Lambda P,
              \quad E[S\Omega S] = (1 + \tfrac1M)\Lambda\Omega\Lambda + \tfrac1M\mathrm{tr}(\Omega\Lambda)\Lambda

    Args:
        predictor: P.
        covariance: of the test's inputs, :math:`\Lambda`.
        length: M.
        task: covariance of the tasks, :math:`\Omega`.
        noise: variance of the noise on the examples' labels.
    """
    lam, p = covariance, predictor
    second = (1 + 1 / length) * lam @ task @ lam + (jnp.sum(task * lam) + noise) / length * lam
    return jnp.sum(lam * (p.T @ second @ p)) - 2 * jnp.sum(lam * (p.T @ lam @ task)) + jnp.sum(lam * task)


def levels(eigenvalues: Float[Array, " d"], length: Scalar) -> Float[Array, " d1"]:
    """Losses with no, one, ..., all eigenvalues learned; eigenvalues in falling order."""
    trace = jnp.sum(eigenvalues)
    gain = eigenvalues**2 / ((1 + 1 / length) * eigenvalues + trace / length)
    return 0.5 * (trace - jnp.concatenate([jnp.zeros(1, gain.dtype), jnp.cumsum(gain)]))


def strengths(count: int) -> Float[Array, "d1 d"]:
    r"""Which eigenvalues are learned on each plateau: :math:`\Gamma_i P_{ii}` is 1 for the first m, and 0 for the others."""
    return jnp.tri(count + 1, count, -1, dtype=jnp.float64)
